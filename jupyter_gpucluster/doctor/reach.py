"""Who reaches whom between this host and the nodes of a job, out of what each side tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from ..core.fast_dataclass import frozen
from ..host.log_diagnosis import diagnose
from .findings import Finding, Result, failed, ok

Answer = Mapping[str, Any]
AGENT = (
    "Give nodes of the shared home a key that they accept from one another (ssh-keygen, and its"
    " public half in ~/.ssh/authorized_keys); where only your own computer has the key, log in with"
    " agent forwarding (ssh -A), or use another launcher, such as srun."
)


@frozen
class Expected:
    """What the profile asks for, and where a scheduler would be."""

    ranks: int
    nodes: int
    gpus: int = 0
    """Of each rank."""
    in_job: bool = False
    """Whether the head runs in a job."""
    interface: str = ""
    """What workers are told to use."""
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
        """Where a scheduler on this host would listen."""
        return self.interfaces.get(self.head_interface or self.interface, self.usual)


def hosts(answers: Iterable[Answer]) -> str:
    """Return the names of nodes, the first few of many."""
    names = list(dict.fromkeys(str(answer["host"]) for answer in answers))
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:8])} and others"


def look_at_reach(expected: Expected, answers: Sequence[Answer]) -> list[Finding]:
    """Say whether a scheduler on this host would be reached, and at which address it would be."""
    check = "nodes to here"
    tried = [address for address in expected.interfaces.values() if address in answers[0]["home"]]
    good = [
        address
        for address in tried
        if not any(answer["home"][address]["trouble"] for answer in answers)
    ]
    names = {address: name for name, address in expected.interfaces.items()}
    told = ", ".join(
        f"{names[address]} ({address}): {_trouble(answers, address) or 'reached'}"
        for address in tried
    )
    if expected.in_job:
        return [ok(check, f"Not needed, as the head runs in a job. {told}.")]
    if expected.address in good:
        return [ok(check, f"{hosts(answers)}: the scheduler's address is reached. {told}.")]
    where = f"{hosts(answers)}: a scheduler would listen at {expected.address}, out of their reach."
    if good:
        name = names[good[0]]
        cure = f"Set head.interface: {name} ({good[0]}), which all of them reach."
    else:
        cure = (
            "Set head.placement: job, so that the scheduler runs beside its workers, or ask the"
            " site which network and ports lead from the nodes to this host."
        )
    return [failed(check, f"{where} {told or 'No address could be tried'}.", cure)]


def _trouble(answers: Sequence[Answer], address: str) -> str:
    return next(
        (
            f"{answer['home'][address]['trouble']} from {answer['host']}"
            for answer in answers
            if answer["home"][address]["trouble"]
        ),
        "",
    )


def look_at_way_in(answers: Mapping[str, Answer]) -> Finding | None:
    """Say whether a scheduler in the job would be reached from here.

    Parameters
    ----------
    answers
        By node, the address of each interface with what hinders a call to it.
    """
    if not answers:
        return None
    check = "here to nodes"
    reached = {host: [a for a, why in told.items() if not why] for host, told in answers.items()}
    told = "; ".join(
        f"{host}: " + ", ".join(f"{a} {why or 'reached'}" for a, why in tried.items())
        for host, tried in answers.items()
    )
    if all(reached.values()):
        return ok(check, f"A scheduler in the job can be reached ({told}).")
    return failed(
        check,
        f"A scheduler in the job cannot be reached ({told}).",
        "Name a network that this host shares with the nodes in head.interface, or run Jupyter in"
        " a job of its own, with backend: local.",
    )


def look_at_logins(
    there: Mapping[str, Any] | None, troubles_here: Mapping[str, str] | None
) -> list[Finding]:
    """Say whether ssh logs in to the nodes without a password, from the first one and from here.

    Parameters
    ----------
    there
        What the job's first node said: its hosts, and ssh's words of those that it cannot enter.
    troubles_here
        The same words of this host.
    """
    if there is None:
        return []
    found = []
    for check, troubles, result in (
        ("ssh in the job", there["troubles"], Result.FAILED),
        ("ssh from here", troubles_here or {}, Result.WARNING),
    ):
        if troubles:
            words = "; ".join(dict.fromkeys(troubles.values()))
            subject = ", ".join(filter(None, troubles)) or "The job's nodes"
            told = f"{subject} cannot be entered without a password: {words}"
            cure = AGENT if "Permission denied" in words else diagnose(words) or AGENT
            found.append(Finding(check, result, told, cure))
        elif there["hosts"]:
            found.append(ok(check, f"{', '.join(there['hosts'])} can be entered."))
    return found
