"""Turn what a submit command said into the error that the user sees."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import BackendError
from ..records import CommandResult


def refusal(
    title: str, result: CommandResult, cures: Iterable[tuple[str, str]], words: str = ""
) -> BackendError:
    """Return the error for a submission that the system refused.

    Parameters
    ----------
    title
        The system's name.
    cures
        Part of what it says -> what to change; the first that fits counts.
    words
        The one line that tells most; the first line of what the command said where it is empty.
        A site's banner may stand there: then it is the line with the part that has a cure.
    """
    said = result.stderr.strip() or result.stdout.strip()
    words = words or next(iter(said.splitlines()), "no reason given")
    everything = f"{result.stdout}\n{result.stderr}"
    cures = list(cures)
    known, cure = next(((part, cure) for part, cure in cures if part in everything), ("", ""))
    if known and not any(part in words for part, _ in cures):
        words = next((line.strip() for line in everything.splitlines() if known in line), words)
    return BackendError(
        f"{title} refused the job: {words}",
        hint=cure,
        detail=f"$ {' '.join(result.argv)}\nexit code {result.exit_code}\n{said}",
    )
