"""Signals that end a command, turned into `KeyboardInterrupt`."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Self


class Signals:
    """Turns the signals that end a command into `KeyboardInterrupt`, so that nothing is left."""

    def __init__(self) -> None:
        self.last = signal.SIGINT
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # Python lets only the main thread set handlers; in others signals do not arrive anyway.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        self.last = signal.Signals(number)
        raise KeyboardInterrupt

    def reached_children(self) -> bool:
        """Return whether the last signal came from a terminal, which sends it to the script."""
        if self.last is not signal.SIGINT:
            return False
        try:
            with Path("/dev/tty").open("rb") as terminal:
                return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
        except OSError:
            return False
