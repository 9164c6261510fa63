"""Ask the batch systems of this host, and propose a profile for each of their GPU queues."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..batch import installed
from ..batch.base import Backend
from ..batch.queue import ProcessRunner, for_user, run_aside, user_name
from ..batch.variables import inherited, surrounding_job
from ..core.errors import BackendError, GpuClusterError, InvalidInput
from ..core.job import CommandResult
from ..core.site import GpuQueue, Site
from ..doctor.batch_system import ANSWER_SECONDS, submission
from ..doctor.findings import Finding, Result, failed, ok, refused
from ..launch.plan import make_plan
from ..launch.preview import preview
from ..launch.request import Request
from ..profiles import load_site, profile_names, read_profile
from ..state.paths import data_directory, default_root
from .decisions import head_interface, head_placement, python_for_jobs
from .profile_text import Choices, allocation_text, profile_text, template

LAUNCHERS = ("srun", "mpirun", "mpiexec")
"""Launchers of an allocation's nodes, the first that is installed."""


@dataclass(frozen=True)
class Proposal:
    """A profile that may be saved."""

    name: str
    backend: str
    site: Site
    queues: Sequence[GpuQueue]
    choices: Choices
    rehearsal: Finding
    """The batch system's answer to the script, or the reason why there is none."""
    exists: bool = False
    """True if a profile of this name is there already."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Accounts that the rehearsal refused, with the system's words."""

    @property
    def text(self) -> str:
        """The profile, in YAML."""
        return profile_text(self.backend, self.site, self.queues, self.choices)

    @property
    def usable(self) -> bool:
        """True if it may be saved."""
        return not self.exists and self.rehearsal.result is not Result.FAILED

    @property
    def undecided(self) -> bool:
        """True if the user must choose an account."""
        several = len(self.choices.accounts) > 1 and not self.choices.for_site
        return several and not self.choices.account

    def with_account(self, account: str) -> Proposal:
        """Return the proposal with the user's account, unless the system named others only.

        It cannot be saved if the rehearsal refused this account.
        """
        if account in self.refused:
            return replace(self, rehearsal=failed(self.refused[account]))
        accounts = self.choices.accounts or tuple(filter(None, [account]))
        chosen = account if account in accounts else ""
        return replace(self, choices=replace(self.choices, account=chosen, accounts=accounts))


@dataclass(frozen=True)
class System:
    """The proposals for one batch system of this host."""

    title: str
    proposals: tuple[Proposal, ...] = ()
    closed: Mapping[str, str] = field(default_factory=dict)
    """Queues that the user cannot use, with the reason."""
    offered: str = ""
    """The account that the user's variables name to the system's commands."""
    template: str = ""
    """A commented profile, if this version cannot read what the system reports."""
    error: str = ""


def propose(
    python: str = "",
    *,
    account: str = "",
    queues: Sequence[str] = (),
    for_site: bool = False,
    saves: bool = True,
) -> list[System]:
    """Return the proposals for all batch systems whose commands are on this host.

    Parameters
    ----------
    python
        The Python of the clusters; empty: the one that runs this.
    account
        The account that is charged; it is never chosen for the user.
    queues
        Those that are wanted; empty: all.
    for_site
        Whether the profiles are for all users of the site.
    saves
        Whether they are to be saved, so that no other profile may have their names.
    """
    if saves:
        require_allowed()
    found = installed()
    if not found:
        return []
    decided = replace(decide(python), for_site=for_site, account="" if for_site else account)
    taken = profile_names() if saves else ()
    return [_of_system(each, decided, queues, taken) for each in found]


def require_allowed() -> None:
    """Raise `InvalidInput` where the site forbids to save profiles."""
    site = load_site()
    if site.settings.setup == "off":
        raise InvalidInput(
            "This site has turned `setup` off.",
            hint=site.hint("Use the site's profiles; the command profiles lists them."),
        )


def decide(python: str) -> Choices:
    """Return what this host decides; see `propose`."""
    return Choices(python_for_jobs(python or sys.executable), head_placement(), head_interface(""))


def allocation() -> str:
    """Return the profile of the batch job that this host is in; empty outside of one."""
    job = surrounding_job()
    launcher = next((name for name in LAUNCHERS if shutil.which(name)), "")
    return allocation_text(job, launcher) if job else ""


def save(name: str, text: str) -> Path:
    """Write a profile of this user.

    Raises
    ------
    InvalidInput
        The file exists, or it cannot be written.
    """
    path = Path(data_directory(), "gpucluster", "profiles", f"{name}.yaml")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidInput(f"{path} exists; it was not changed.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from error
    return path


def _of_system(
    backend: Backend, decided: Choices, wanted: Sequence[str], taken: Collection[str]
) -> System:
    if not backend.survey(""):
        return System(backend.title, template=template(backend))
    try:
        site = survey(backend)
    except BackendError as error:
        return System(backend.title, error=f"{error.message} {error.detail}".strip())
    queues = [each for each in site.queues if not wanted or each.name in wanted]
    proposals = [
        rehearsed(describe(backend, site, alike, decided, taken))
        for alike in _alike(each for each in queues if not each.closed)
    ]
    closed = {each.name: each.closed for each in queues if each.closed}
    return System(backend.title, tuple(proposals), closed, offered_account(site))


def offered_account(site: Site) -> str:
    """Return the account that the user's variables name to the system's commands."""
    return next(filter(None, map(os.environ.get, site.account_variables)), "")


def _alike(queues: Iterable[GpuQueue]) -> Iterable[list[GpuQueue]]:
    """Return the queues in groups that differ in nothing but their names."""
    groups: dict[str, list[GpuQueue]] = {}
    for queue in queues:
        groups.setdefault(repr(replace(queue, name="")), []).append(queue)
    return groups.values()


def survey(backend: Backend) -> Site:
    """Run the commands at the same time, each with a time limit; raises `BackendError`."""
    environment = inherited(os.environ)
    limited = ProcessRunner(environment, seconds=ANSWER_SECONDS)
    runner = for_user(backend, limited, default_root(), environment)
    commands = backend.survey(user_name())

    async def all_of_them() -> list[CommandResult]:
        return await asyncio.gather(*(runner.run(words) for words in commands.values()))

    return backend.parse_survey(dict(zip(commands, run_aside(all_of_them()), strict=True)))


def proposed_name(backend: Backend, site: Site, queue: GpuQueue) -> str:
    """Return the name of a queue's profile; the queues of a site have different ones."""
    names = [_name_of(backend, site, each) for each in site.queues]
    at = site.queues.index(queue)
    earlier = names[:at].count(names[at])
    return f"{names[at]}-{earlier + 1}" if earlier else names[at]


def _name_of(backend: Backend, site: Site, queue: GpuQueue) -> str:
    several = [each.name for each in site.queues].count(queue.name) > 1
    words = [backend.name, queue.name or "gpus", queue.gpu_type if several else ""]
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", "-".join(filter(None, words)))[:60]


def describe(
    backend: Backend,
    site: Site,
    queues: Sequence[GpuQueue],
    decided: Choices,
    taken: Collection[str],
) -> Proposal:
    """Return the profile of queues that differ in their names only, not yet rehearsed."""
    queue = queues[0]
    name = proposed_name(backend, site, queue)
    choices = replace(decided, interface=head_interface(queue.address), accounts=queue.accounts)
    made = Proposal(name, backend.name, site, queues, choices, ok(""), exists=name in taken)
    return made.with_account(decided.account)


def rehearsed(made: Proposal) -> Proposal:
    """Return a proposal with the accounts, of those it has, that the batch system accepts."""
    if made.exists:
        return made
    tried = {account: _rehearse(made, account) for account in made.choices.accounts or ("",)}
    accepted = [each for each, finding in tried.items() if finding.result is not Result.FAILED]
    refusals = {each: finding.found for each, finding in tried.items() if each not in accepted}
    if not accepted:
        refusal = tried.get(made.choices.account, next(iter(tried.values())))
        return replace(made, rehearsal=refusal)
    accounts = tuple(filter(None, accepted))
    made = replace(made, choices=replace(made.choices, accounts=accounts), refused=refusals)
    made = replace(made, rehearsal=_rehearse(made, accepted[0]))
    return made.with_account(made.choices.account)


def _rehearse(proposal: Proposal, account: str) -> Finding:
    """Read the profile, render its script, and let the batch system check that."""
    given = {"qos": proposal.queues[0].qos[0]} if proposal.queues[0].qos_needed else {}
    if len(proposal.choices.accounts) > 1 or (account and proposal.choices.for_site):
        given["account"] = account
    with tempfile.TemporaryDirectory(prefix="gpc-setup-") as place:
        file = Path(place, f"{proposal.name}.yaml")
        file.write_text(proposal.text, encoding="utf-8")
        try:
            loaded = read_profile(file)
            options = {key: value for key, value in given.items() if key in loaded.profile.options}
            request = Request(proposal.name, options=options)
            plan = make_plan(request, here=False, loaded=loaded)
            script = preview(default_root(), request, plan).text.replace("<id>", "setup")
        except GpuClusterError as error:
            return refused(error)
    return submission(plan.profile, script) or ok("")
