"""Set-up step by step, for the dialog in Lab: what batch systems report, then one profile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..batch import installed
from ..batch.base import Backend
from ..batch.status_cache import REUSED_SECONDS
from ..core.errors import BackendError, InvalidInput
from ..core.site import GpuQueue, Site
from ..doctor.findings import Finding, Result
from ..launch.capacity import ask
from ..state.paths import default_root
from .profile_text import Choices
from .proposals import (
    Proposal,
    decide,
    describe,
    offered_account,
    proposed_name,
    rehearsed,
    require_allowed,
    survey,
    taken_names,
)
from .proposals import save as write_profile

SHOWN = ("name", "gpus", "gpu_type", "nodes", "accounts", "open_to", "closed", "remark")
"""Fields of a queue that the dialog shows."""


class Desk:
    """The answers of this host's batch systems, which all pages of a server share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sites: dict[str, tuple[float, Site]] = {}
        self._decided: dict[str, tuple[float, Choices]] = {}

    def systems(self) -> list[dict[str, Any]]:
        """Ask each batch system for its queues with GPUs, at most once a minute."""
        return [self._system(each) for each in installed() if each.survey("")]

    def proposal(
        self, profile: str, *, account: str, python: str, check: bool, save: bool
    ) -> dict[str, Any]:
        """Return the profile of one queue.

        Parameters
        ----------
        profile
            Its name in the answer of `systems`.
        account
            The account that is charged; it is never chosen for the user.
        python
            The Python of the clusters; empty: the one that runs this.
        check
            Whether the batch system is to check the job script.
        save
            Whether to check it, and to write the profile if it is accepted.

        Raises
        ------
        InvalidInput
            There is no such queue, an account is missing, the batch system refuses the job, or a
            profile of this name exists.
        """
        require_allowed()
        made = self._described(profile, python)
        if account and account not in (made.choices.accounts or (account,)):
            raise InvalidInput(f"{account!r} is no account of yours here.", detail="account")
        if check or save:
            made = rehearsed(made)
        if account in made.refused:
            refusal = replace(made.rehearsal, result=Result.FAILED, found=made.refused[account])
            made = replace(made, rehearsal=refusal)
        made = made.with_account(account)
        return {
            "profile": made.name,
            "text": made.text,
            "accounts": made.choices.accounts,
            "check": _shown(made.rehearsal) if check or save else None,
            "saved": _saved(made) if save else "",
        }

    def _site(self, backend: Backend) -> tuple[float, Site]:
        with self._lock:
            known = self._sites.get(backend.name)
            if known is None or time.time() - known[0] > REUSED_SECONDS:
                known = self._sites[backend.name] = (time.time(), survey(backend))
            return known

    def _system(self, backend: Backend) -> dict[str, Any]:
        trouble = ""
        try:
            asked, site = self._site(backend)
        except BackendError as error:
            trouble = f"{error.message} {error.detail}".strip()
            asked, site = self._sites.get(backend.name, (time.time(), Site()))
        taken, free = taken_names(), _free(backend) if site.queues and not trouble else {}
        offered, question = offered_account(site), site.questions.get("account", "")
        queues = [
            {
                "profile": (name := proposed_name(backend, site, queue)),
                "exists": name in taken,
                "free": free.get(queue.name),
                **{key: getattr(queue, key) for key in SHOWN},
            }
            for queue in site.queues
        ]
        return {
            "title": backend.title,
            "asked": asked,
            "error": trouble,
            "offered": offered,
            "question": question,
            "queues": queues,
        }

    def _described(self, profile: str, python: str) -> Proposal:
        for backend, site, queue in self._queues():
            if proposed_name(backend, site, queue) == profile and not queue.closed:
                return describe(backend, site, [queue], self._choices(python), taken_names())
        raise InvalidInput(f"No queue of yours has the profile {profile!r}.", detail="profile")

    def _queues(self) -> Iterator[tuple[Backend, Site, GpuQueue]]:
        for backend in installed():
            if backend.survey(""):
                # The user chose from this answer, however old it is now.
                _, site = self._sites.get(backend.name) or self._site(backend)
                yield from ((backend, site, queue) for queue in site.queues)

    def _choices(self, python: str) -> Choices:
        when, known = self._decided.get(python, (0.0, None))
        if known is None or time.time() - when > REUSED_SECONDS:
            known = decide(python)
            self._decided[python] = (time.time(), known)
        return known


def _free(backend: Backend) -> dict[str, int]:
    """Return the free GPUs of each queue, as far as the batch system reports them."""
    if backend.capacity() is None:
        return {}
    try:
        return {each.partition: each.free for each in ask(backend, default_root())}
    except BackendError:
        return {}


def _shown(finding: Finding) -> dict[str, str]:
    return {"result": finding.result.value, "found": finding.found, "way_out": finding.way_out}


def _saved(made: Proposal) -> str:
    if made.undecided:
        yours = ", ".join(made.choices.accounts)
        raise InvalidInput("Choose the account that is charged.", hint=yours, detail="account")
    if made.exists:
        raise InvalidInput(f"There is a profile {made.name}; it stays as it is.", detail="profile")
    if not made.usable:
        raise InvalidInput(made.rehearsal.found, hint=made.rehearsal.way_out)
    return str(write_profile(made.name, made.text))
