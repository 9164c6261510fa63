"""Checks of the connections between this host and the nodes of a job, from calls of each side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from ..core.fast_dataclass import frozen
from ..host.log_diagnosis import diagnose
from .findings import Finding, failed, ok

Answer = Mapping[str, Any]
AGENT = (
    "Give nodes of the shared home a key that they accept from one another (ssh-keygen, and its"
    " public half in ~/.ssh/authorized_keys); where only your own computer has the key, log in with"
    " agent forwarding (ssh -A), or use another launcher, such as srun."
)


@frozen
class Expected:
    """The profile's requests, and the place of its scheduler."""

    ranks: int
    nodes: int
    gpus: int = 0
    """Of each rank."""
    in_job: bool = False
    """True if the head runs in a job."""
    interface: str = ""
    """The interface of the workers."""
    head_interface: str = ""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    """Of this host."""
    usual: str = ""
    """This host's address where no interface is named."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the Python that the head would run in."""
    python: str = ""

    @property
    def address(self) -> str:
        """The address at which a scheduler on this host would listen."""
        return self.interfaces.get(self.head_interface or self.interface, self.usual)


def hosts(answers: Iterable[Answer]) -> str:
    """Return the names of nodes, the first few of many."""
    names = list(dict.fromkeys(str(answer["host"]) for answer in answers))
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:8])} and others"


def nodes_to_here(expected: Expected, answers: Sequence[Answer]) -> Finding:
    """Return whether nodes reach a scheduler on this host, and at which address they would."""
    troubles: dict[str, str] = {}
    for name, address in expected.interfaces.items():
        if address in answers[0]["home"]:
            calls = ((answer["home"][address]["trouble"], answer["host"]) for answer in answers)
            troubles[name] = next((f"{why} from {host}" for why, host in calls if why), "")
    good = {expected.interfaces[name]: name for name in troubles if not troubles[name]}
    tried = ", ".join(
        f"{name} ({expected.interfaces[name]}): {trouble or 'reached'}"
        for name, trouble in troubles.items()
    )
    if expected.in_job:
        return ok(f"Not needed: the scheduler runs in a job. {tried}.")
    if expected.address in good:
        return ok(f"{hosts(answers)}: the scheduler's address can be reached. {tried}.")
    where = f"{hosts(answers)}: cannot reach {expected.address}, where a scheduler would listen."
    fix = (
        "Set head.placement: job, so that the scheduler runs beside its workers, or ask the site"
        " which network and ports lead from the nodes to this host."
    )
    change = ("head.placement", "job")
    for address, name in good.items():
        fix = f"Set head.interface: {name} ({address}), which all of them reach."
        change = ("head.interface", name)
        break
    return failed(f"{where} {tried or 'No address could be tried'}.", fix).fixed_by(*change)


def here_to_nodes(answers: Mapping[str, Answer]) -> Finding | None:
    """Return whether this host reaches a scheduler in the job; None if no call was made.

    Parameters
    ----------
    answers
        By node, the address of each interface with the error of a call to it.
    """
    if not answers:
        return None
    calls = "; ".join(
        f"{host}: " + ", ".join(f"{a} {why or 'reached'}" for a, why in tried.items())
        for host, tried in answers.items()
    )
    if all("" in tried.values() for tried in answers.values()):
        return ok(f"A scheduler in the job can be reached ({calls}).")
    return failed(
        f"A scheduler in the job cannot be reached ({calls}).",
        "Set head.interface to a network that this host shares with the nodes, or run Jupyter in a"
        " job and use a profile with backend: local.",
    )


def logins(
    nodes: Sequence[str], troubles: Mapping[str, str], bad: Callable[[str, str], Finding]
) -> Finding | None:
    """Return whether ssh logs in to the nodes without a password; None if it was not tried.

    Parameters
    ----------
    troubles
        The error of ssh by node, of those that it cannot enter.
    bad
        The kind of finding that errors make.
    """
    if troubles:
        words = "; ".join(dict.fromkeys(troubles.values()))
        subject = ", ".join(filter(None, troubles)) or "The job's nodes"
        fix = AGENT if "Permission denied" in words else diagnose(words) or AGENT
        return bad(f"{subject} cannot be entered without a password: {words}", fix)
    return ok(f"{', '.join(nodes)} can be entered.") if nodes else None
