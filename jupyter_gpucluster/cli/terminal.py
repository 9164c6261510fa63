"""The terminal as a session: results on standard output, remarks and errors beside it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from ..core.errors import GpuClusterError
from . import output

if TYPE_CHECKING:
    from ..clusters import Clusters
    from ..state.view import ClusterView


def _default_clusters() -> Clusters:
    from ..clusters import Clusters

    return Clusters()


@dataclass
class Terminal:
    """A `Session` on two streams.

    Parameters
    ----------
    json
        Whether standard output may hold one JSON document and nothing else.
    make_clusters
        Makes the `Clusters` when a command first uses it.
    """

    program: str = "jupyter gpucluster"
    python: str = ""
    json: bool = False
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    make_clusters: Callable[[], Clusters] = _default_clusters

    @cached_property
    def clusters(self) -> Clusters:
        """The clusters of this user."""
        return self.make_clusters()

    def write(self, text: str) -> None:
        """Show a piece of a result as it comes."""
        self.out.write(output.visible(text) if self.out.isatty() else text)
        self.out.flush()

    def note(self, text: str) -> None:
        """Show a line about the progress, beside the result."""
        if not self.json:
            self._say(text)

    @contextmanager
    def progress(self) -> Iterator[output.Progress]:
        """Show one live line on a terminal, a line for each change of the state elsewhere."""
        from .describe import state  # with the records, which --help can do without

        live = self.err.isatty() and not self.json
        last = ""

        def show(view: ClusterView) -> None:
            nonlocal last
            line = f"{view.name}: {state(view)}"
            if live:
                line = output.visible(line)[: shutil.get_terminal_size().columns - 1]
            if line == last:
                return
            last = line
            if live:
                self._rewrite(line)
            else:
                self.note(line)

        try:
            yield show
        finally:
            if live and last:
                self._rewrite("")

    def _rewrite(self, line: str) -> None:
        self.err.write(f"\r\x1b[K{line}")
        self.err.flush()

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
        self._say(f"error: {output.one_line(error.message)}")
        if error.detail and error.status >= 500:
            self._say(f"detail: {error.detail}")
        if error.hint:
            self._say(f"hint: {output.hint_line(error)}")

    def _say(self, text: str) -> None:
        print(output.visible(text) if self.err.isatty() else text, file=self.err, flush=True)
