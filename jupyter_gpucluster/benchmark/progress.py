"""A progress bar for terminals."""

from __future__ import annotations

from typing import TextIO

from .measure import Progress

WIDTH = 30


class ProgressBar:
    """Draws one line again and again on a terminal; elsewhere it stays silent."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._drawn = 0

    def __call__(self, progress: Progress) -> None:
        """Draw; a finished run is wiped, since the report tells it better."""
        if not self._stream.isatty():
            return
        self._draw("" if progress.done >= progress.total else line(progress))

    def close(self) -> None:
        """Wipe what is left of an interrupted run."""
        if self._drawn:
            self._draw("")

    def _draw(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._drawn) + ("" if text else "\r"))
        self._stream.flush()
        self._drawn = len(text)


def line(progress: Progress) -> str:
    """Return e.g. ``gpu 1/3 [####....] 12/50 chunks, 3 s, 9 s left``."""
    filled = WIDTH * progress.done // progress.total
    words = (
        f"{progress.device} {progress.run}/{progress.runs} "
        f"[{'#' * filled}{'.' * (WIDTH - filled)}] "
        f"{progress.done}/{progress.total} chunks, {progress.seconds:.0f} s"
    )
    if progress.done:
        left = progress.seconds * (progress.total - progress.done) / progress.done
        words += f", {left:.0f} s left"
    return words
