"""The output of a command, in parts that a terminal and a notebook each show their own way."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..core.errors import GpuClusterError
from ..core.fast_dataclass import frozen

if TYPE_CHECKING:
    from ..clusters import Clusters
    from ..state.view import ClusterView

Progress = Callable[["ClusterView"], None]

ELLIPSIS = "…"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that a terminal obeys instead of showing; line ends and tabs are left."""


@frozen
class Table:
    """Rows under headings, or without any; ``empty`` is the text without rows."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str = ""
    title: str = ""


def facts(pairs: Iterable[tuple[str, str]], title: str = "") -> Table:
    """Return names and values, one pair a line; pairs without a value are left out."""
    return Table((), tuple(pair for pair in pairs if pair[1]), title=title)


@frozen
class Text:
    """Text as it is; ``code`` if spaces and line ends matter."""

    text: str
    code: bool = False
    title: str = ""


Block = Table | Text


@frozen
class Outcome:
    """The answer of a command: a document for programs, blocks for people, and the errors.

    Parameters
    ----------
    document
        Printed with ``--json``.
    blocks
        The same for people.
    errors
        Errors on the way; the first decides the exit code.
    exit_code
        Taken without errors.
    clusters
        Ids and names of its clusters, which a notebook keeps showing.
    """

    document: Any = None
    blocks: tuple[Block, ...] = ()
    errors: tuple[GpuClusterError, ...] = ()
    exit_code: int = 0
    clusters: tuple[tuple[str, str], ...] = ()

    @property
    def code(self) -> int:
        """The exit code of the command."""
        return self.errors[0].exit_code if self.errors else self.exit_code


class Session:
    """A terminal or a notebook."""

    program: str
    """The typed program: ``jupyter gpucluster`` or ``%gpucluster``."""

    python: str
    """The Python that clusters run in where the user names none; empty = the profile's."""

    @cached_property
    def clusters(self) -> Clusters:
        """The clusters of this user."""
        from ..clusters import Clusters

        return Clusters()

    def write(self, text: str) -> None:
        """Show a piece of a result as it comes."""
        raise NotImplementedError

    def note(self, text: str) -> None:
        """Show a line about the progress, beside the result."""
        raise NotImplementedError

    def ask(self, question: str) -> str | None:
        """Return the user's answer; None if there is no terminal, which is never asked."""
        return None

    def agrees(self, question: str) -> bool | None:
        """Return whether the user says yes; None if there is no terminal."""
        answer = self.ask(f"{question} [y/N] ")
        return None if answer is None else answer.lower() in ("y", "yes")

    def show_progress(self, line: str) -> None:
        """Show a line in place of the last one; an empty line ends the progress."""
        raise NotImplementedError

    @contextmanager
    def live_line(self) -> Iterator[Callable[[str], None]]:
        """Yield a function that shows a line in place of the last one; it is wiped in the end."""
        last = ""

        def show(line: str) -> None:
            nonlocal last
            if line != last:
                self.show_progress(line)
                last = line

        try:
            yield show
        finally:
            show("")

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """Show each change of a cluster's state while the caller waits."""
        from .describe import state  # with the records, which --help can do without

        with self.live_line() as show:
            yield lambda view: show(f"{view.name}: {state(view)}")


def errors_document(errors: Sequence[GpuClusterError]) -> dict[str, Any]:
    """Return the part of a document about errors: the first in full, then all of them."""
    first = errors[0].as_json() if errors else {}
    return {**first, "errors": [error.as_json() for error in errors]}


def as_json(document: Any) -> str:
    """Return the one document that ``--json`` prints."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def visible(text: str) -> str:
    """Return text with control characters spelt out, so that a terminal does not obey them."""
    return CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def as_text(blocks: Iterable[Block], width: int | None = None) -> str:
    """Return blocks as plain text; lines of tables are cut at ``width`` columns."""
    return "\n\n".join(part for part in (_block_text(block, width) for block in blocks) if part)


def _block_text(block: Block, width: int | None) -> str:
    if isinstance(block, Table):
        body = table_text(block, width) if block.rows else block.empty
    else:
        body = block.text.rstrip("\n")
    return f"{block.title}\n{body}" if block.title and body else body


def table_text(table: Table, width: int | None = None) -> str:
    """Return a table with aligned columns, two spaces apart; under headings lines are cut."""
    lines = [tuple(map(one_line, row)) for row in (table.headings, *table.rows) if row]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    return "\n".join(_cut(text, width) if table.headings else text for text in texts)


def one_line(text: str) -> str:
    """Return text without line ends."""
    return " ".join(text.split())


def hint_line(error: GpuClusterError) -> str:
    """Return an error's hint on one line, with how an option of a profile is spelled here."""
    hint, (section, _, name) = one_line(error.hint), error.detail.partition(".")
    spelled = f" As in: --option {name}=VALUE" if f"`{name}`" in error.message else ""
    return hint + spelled if section == "options" else hint


def _cut(line: str, width: int | None) -> str:
    if width is None or len(line) <= width:
        return line
    return line[: max(width - 1, 0)] + ELLIPSIS


# Amounts.

_SPANS = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def span(seconds: float) -> str:
    """Return a length of time in its largest unit, rounded down: ``3 min``."""
    for size, unit in _SPANS:
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} day" if unit == "days" and count == 1 else f"{count} {unit}"
    return "0 s"


def ago(moment: float | None, now: float | None = None) -> str:
    """Return the age of an epoch time: ``just now``, ``3 min ago``; empty for None."""
    if moment is None:
        return ""
    passed = (time.time() if now is None else now) - moment
    return "just now" if passed < 5 else f"{span(passed)} ago"


def ahead(moment: float | None, now: float | None = None) -> str:
    """Return the time until an epoch time: ``in 3 min``, ``now``; empty for None."""
    if moment is None:
        return ""
    left = moment - (time.time() if now is None else now)
    return "now" if left < 1 else f"in {span(left)}"


def size(count: int) -> str:
    """Return bytes in a binary unit: ``1.9 GiB``; empty for 0, which means unknown."""
    if not count:
        return ""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def gpu_hours(hours: float) -> str:
    """Return GPU-hours with the digits that matter: ``0.3 GPU-hours``, ``120 GPU-hours``."""
    return f"{hours:.1f} GPU-hours" if hours < 10 else f"{hours:.0f} GPU-hours"


def counted(number: int, noun: str) -> str:
    """Return ``1 worker``, ``2 workers``; ``noun`` is in the plural."""
    return f"{number} {noun[:-1] if number == 1 and noun.endswith('s') else noun}"
