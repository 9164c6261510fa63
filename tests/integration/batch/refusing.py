"""Submit a script that a batch system refuses, and look at what users are told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.queue import ProcessRunner, Queue
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable
from jupyter_gpucluster.core.job import CommandResult, Submission

from .places import RealPlace
from .real_site import NEUTRAL


class AsUser(ProcessRunner):
    """Runs commands as a place's ordinary user: systems have words of their own for root."""

    def __init__(self, place: RealPlace) -> None:
        super().__init__({**NEUTRAL, **place.environment})
        self.user = place.site.user

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        # OAR takes the directory from that variable.
        result = await super().run(["runuser", "-u", self.user, "--", "env", "PWD=/", *argv], stdin)
        return replace(result, argv=tuple(argv))


def refusal(place: RealPlace, text: str, count: int = 1) -> BackendError:
    """Return the error of a submission that must be refused."""
    script = place.site.base / "refused.sh"
    script.write_text(text)
    script.chmod(0o755)
    queue = Queue(find_backend(place.backend), AsUser(place))
    with pytest.raises(BackendError) as caught:
        asyncio.run(queue.submit(Submission(script.stem, str(script), count, text=text)))
    assert not isinstance(caught.value, BackendUnavailable)
    assert caught.value.detail.startswith(f"$ {place.words.command.split()[1]} ")
    assert place.queue() == []
    return caught.value
