"""Set-up step by step, for the dialog in Lab: what batch systems report, then one profile."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from ..batch import elsewhere, installed
from ..batch.base import Backend
from ..batch.status_cache import REUSED_SECONDS
from ..core.errors import BackendError, InvalidInput
from ..core.fast_dataclass import frozen
from ..core.site import Site
from ..launch.capacity import ask
from ..profiles import find_profile, profile_names
from ..profiles.options import takes
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
)
from .proposals import save as write_profile

SHOWN = ("name", "gpus", "gpu_type", "nodes", "accounts", "open_to", "closed", "remark")
"""Fields of a queue that the dialog shows."""


CHECKED = ("result", "found", "way_out")
"""Fields of a finding that the dialog shows."""


@frozen
class Answer:
    """A batch system's last answer."""

    asked: float = 0.0
    """Epoch seconds; 0 = it has not answered yet."""
    tried: float = 0.0
    """Epoch seconds of the newest question, with or without an answer."""
    site: Site = Site()
    trouble: str = ""
    """The reason why the newest question has no answer."""


class Desk:
    """The answers of this host's batch systems, which all pages of a server share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Answer] = {}

    def systems(self) -> list[dict[str, Any]]:
        """Ask each batch system for its queues with GPUs, at most once a minute.

        Raises
        ------
        InvalidInput
            The site forbids to save profiles.
        """
        require_allowed()
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
            raise InvalidInput(f"{account!r} is not one of your accounts here.", detail="account")
        wanted = made = made.with_account(account)
        if (check or save) and wanted.undecided:
            yours = ", ".join(wanted.choices.accounts)
            raise InvalidInput("Choose the account that is charged.", hint=yours, detail="account")
        if check or save:
            made = rehearsed(made)
        if account in made.refused:
            made = replace(wanted, rehearsal=made.rehearsal)
        finding = made.rehearsal
        return {
            "profile": made.name,
            "text": made.text,
            "accounts": made.choices.accounts,
            "check": {key: getattr(finding, key) for key in CHECKED} if check or save else None,
            "saved": _saved(made) if save else "",
        }

    def values(self, profile: str) -> dict[str, Any]:
        """Return what the batch system reports for the options of a profile.

        Values that an option does not take are left out.
        """
        found = find_profile(profile).profile
        options = {name: each for name, each in found.options.items() if each.values}
        asked = [each for each in installed() if each.name == found.backend and each.survey("")]
        if not (options and asked) or elsewhere(found.backend, found.job):
            return {"title": "", "asked": 0.0, "values": {}}
        answer = self.answer(asked[0])
        queues = [each for each in answer.site.queues if not each.closed]
        reported = {
            "queues": [each.name for each in queues],
            "accounts": [name for each in queues for name in each.accounts],
            "qos": [name for each in queues for name in each.qos],
        }
        values = {}
        for name, option in options.items():
            names = dict.fromkeys(reported[str(option.values)])
            values[name] = [each for each in names if takes(option, each)]
        return {"title": asked[0].title, "asked": answer.asked, "values": values}

    def answer(self, backend: Backend) -> Answer:
        """Return the batch system's answer of the last minute, or a new one."""
        with self._lock:
            known = self._known.get(backend.name, Answer())
            if (now := time.time()) - known.tried > REUSED_SECONDS:
                try:
                    known = Answer(now, now, survey(backend))
                except BackendError as error:
                    words = f"{error.message} {error.detail}".strip()
                    known = replace(known, tried=now, trouble=words)
                self._known[backend.name] = known
            return known

    def _system(self, backend: Backend) -> dict[str, Any]:
        answer = self.answer(backend)
        site, taken = answer.site, profile_names()
        free = {} if answer.trouble or not site.queues else _free(backend)
        # A queue with several types of GPU is listed for each, and only its sum is reported.
        names = Counter(each.name for each in site.queues)
        queues = [
            {
                "profile": (name := proposed_name(backend, site, queue)),
                "exists": name in taken,
                "free": free.get(queue.name) if names[queue.name] == 1 else None,
                **{key: getattr(queue, key) for key in SHOWN},
            }
            for queue in site.queues
        ]
        return {
            "title": backend.title,
            "asked": answer.asked,
            "error": answer.trouble,
            "offered": offered_account(site),
            "question": site.questions.get("account", ""),
            "queues": queues,
        }

    def _described(self, profile: str, python: str) -> Proposal:
        period = int(time.monotonic() // REUSED_SECONDS)
        for backend in installed():
            asked = profile.startswith(f"{backend.name}-") and backend.survey("")
            site = self.answer(backend).site if asked else Site()
            for queue in site.queues:
                if proposed_name(backend, site, queue) == profile and not queue.closed:
                    decided = _decided(python, period)
                    return describe(backend, site, [queue], decided, profile_names())
        raise InvalidInput(f"No queue of yours has the profile {profile!r}.", detail="profile")


@functools.lru_cache(maxsize=8)
def _decided(python: str, period: int) -> Choices:
    """Check a Python once in a period: that takes seconds."""
    return decide(python)


def _free(backend: Backend) -> dict[str, int]:
    """Return the free GPUs of each queue, as far as the batch system reports them."""
    with contextlib.suppress(BackendError):
        if backend.capacity() is not None:
            return {each.partition: each.free for each in ask(backend, default_root())}
    return {}


def _saved(made: Proposal) -> str:
    if made.exists:
        raise InvalidInput(f"There is a profile {made.name}; it stays as it is.", detail="profile")
    if not made.usable:
        raise InvalidInput(made.rehearsal.found, hint=made.rehearsal.way_out)
    return str(write_profile(made.name, made.text))
