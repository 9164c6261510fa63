"""The terminal as a session: results on standard output, remarks and errors beside it."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

from ..core.errors import GpuClusterError, ProfileError
from . import output


class Terminal(output.Session):
    """A `Session` on two streams; None = those of the process.

    With ``json`` standard output may hold one JSON document and nothing else.
    """

    program = "jupyter gpucluster"
    python = ""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self.out = out or sys.stdout
        self.err = err or sys.stderr
        self.json = False

    def write(self, text: str) -> None:
        """Show a piece of a result as it comes."""
        self.out.write(output.visible(text) if self.out.isatty() else text)
        self.out.flush()

    def note(self, text: str) -> None:
        """Show a line about the progress, beside the result."""
        if not self.json:
            self._say(text)

    def ask(self, question: str) -> str | None:
        """Return a line that the user types; None where no user can."""
        if self.json or not (self.err.isatty() and sys.stdin.isatty()):
            return None
        self.err.write(output.visible(question))
        self.err.flush()
        return sys.stdin.readline().strip()

    def show_progress(self, line: str) -> None:
        """Show one live line on a terminal, a line for each change elsewhere."""
        if self.err.isatty() and not self.json:
            line = output.visible(line)[: shutil.get_terminal_size().columns - 1]
            self.err.write(f"\r\x1b[K{line}")
            self.err.flush()
        elif line:
            self.note(line)

    def show(self, outcome: output.Outcome) -> None:
        """Print the answer of a command, then its errors."""
        if self.json:
            self.write(output.as_json(outcome.document) + "\n")
        else:
            width = shutil.get_terminal_size().columns if self.out.isatty() else None
            text = output.as_text(outcome.blocks, width)
            if text:
                self.write(text + "\n")
        for error in outcome.errors:
            self.complain(error)

    def complain(self, error: GpuClusterError) -> None:
        """Print an error, its evidence and the fix."""
        several = isinstance(error, ProfileError)
        for message in error.message.splitlines() if several else [error.message]:
            self._say(f"error: {output.one_line(message)}")
        if error.detail and error.status >= 500:
            self._say(f"detail: {error.detail}")
        if error.hint:
            self._say(f"hint: {output.hint_line(error)}")

    def _say(self, text: str) -> None:
        print(output.visible(text) if self.err.isatty() else text, file=self.err, flush=True)
