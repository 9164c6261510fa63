"""``%gpucluster COMMAND``: the commands of the terminal in a notebook."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any

from .cli.commands import COMMANDS
from .cli.describe import named, state
from .cli.dispatch import options_of, read, top_help
from .cli.output import (
    Block,
    Outcome,
    Session,
    Table,
    Text,
    as_json,
    as_text,
    facts,
    hint_line,
    one_line,
    visible,
)
from .core.errors import GpuClusterError, InvalidInput

if TYPE_CHECKING:
    from argparse import Namespace

    from IPython.core.interactiveshell import InteractiveShell


PROGRAM = "%gpucluster"
RED, PLAIN = "\x1b[31m", "\x1b[0m"
LIVE = "application/vnd.jupyter-gpucluster.v1+json"
"""Shown by the Lab extension as cards that change with their clusters."""
NAMED = ("doctor", "stop", "forget")
"""Commands whose first word may be a cluster, beside those that name one."""


class MagicError(Exception):
    """An error shown as one red line; it stops the cells that follow."""

    def __init__(self, errors: Sequence[GpuClusterError]) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self._errors = errors

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows in place of a traceback."""
        lines = []
        for error in self._errors:
            lines.append(f"{RED}error: {visible(one_line(error.message))}{PLAIN}")
            if error.hint:
                lines.append(f"hint: {visible(hint_line(error))}")
        return lines


class Notebook(Session):
    """A `Session` whose results are displayed; also in IPython on a terminal."""

    program = PROGRAM
    python = sys.executable
    """Clusters run in the calling kernel's environment, which the client shares."""

    def __init__(self) -> None:
        self._line: Any = None  # the display of the progress, while there is one

    def write(self, text: str) -> None:
        """Show a piece of a result as it comes."""
        sys.stdout.write(visible(text))

    def note(self, text: str) -> None:
        """Show a line about the progress, beside the result."""
        print(visible(text))

    def show_progress(self, line: str) -> None:
        """Show one line that changes with the cluster; it is emptied, since the result has it."""
        from IPython.display import display

        if self._line is None:
            self._line = display(_bundle(line), raw=True, display_id=True)
        else:
            self._line.update(_bundle(line), raw=True)
        if not line:
            self._line = None


class GpuClusterMagic:
    """The magic of one shell.

    Parameters
    ----------
    shell
        The shell that gets the names.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._session = Notebook()
        self._bound: Any = None  # the GPUCluster of the last `connect`; its type needs distributed
        self._client: Any = None

    def run(self, line: str) -> None:
        """Start, watch, use and stop GPU clusters: ``%gpucluster COMMAND``, see ``%gpucluster``."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise MagicError([InvalidInput(f"Cannot read the line: {error}.")]) from None
        if not words or words[0] in ("-h", "--help", "help"):
            print(top_help(PROGRAM))
            return
        try:
            outcome, as_document = self._execute(words)
        except SystemExit:  # argparse has printed a command's help
            return
        except KeyboardInterrupt:
            raise MagicError([GpuClusterError("Interrupted.")]) from None
        except GpuClusterError as error:
            raise MagicError([error]) from None
        if as_document:
            print(as_json(outcome.document))
        else:
            _show(outcome)
        if outcome.errors:
            raise MagicError(outcome.errors)
        if outcome.code:
            raise MagicError([GpuClusterError(f"Ended with exit code {outcome.code}.")])

    def _execute(self, words: Sequence[str]) -> tuple[Outcome, bool]:
        """Run a command; return also whether its JSON document is wanted."""
        run, arguments = read(words, PROGRAM)
        as_document = getattr(arguments, "json", None) is True
        if words[0] == "stop":
            self._let_go(arguments)
        if words[0] == "connect" and not as_document and arguments.form is None:
            return self._connect(arguments.name), False
        return run(arguments, self._session), as_document

    def _connect(self, name: str) -> Outcome:
        """Bind ``client`` and ``cluster``; connecting once more to one cluster makes no second."""
        from distributed.core import Status

        from .client.gpucluster import GPUCluster

        view = self._session.clusters.get(name)
        cluster = self._bound
        if cluster is None or cluster.id != view.id or cluster.status != Status.running:
            cluster = GPUCluster.from_name(view.id)
        client = cluster.get_client()
        self._bound, self._client = cluster, client
        self._shell.push({"client": client, "cluster": cluster})
        known = {
            "cluster": f"{view.name}: {state(view)}",
            "client": str(client),
            "dashboard": cluster.dashboard_link,
        }
        block = facts(known.items(), title="client and cluster are ready to use")
        return Outcome(blocks=(block,), clusters=named(view))

    def _let_go(self, arguments: Namespace) -> None:
        """Close the bound client where its cluster is about to stop: it would try to reconnect."""
        cluster = self._bound
        if cluster is None:
            return
        if arguments.all or {cluster.id, cluster.name} & set(arguments.names):
            self._bound = None
            self._client.close()
            cluster.close()

    def complete(self, _shell: InteractiveShell, event: Any) -> list[str]:
        """Return the words that may come next on the line."""
        before = event.line.removesuffix(event.symbol).split()[1:]
        return [word for word in self._following(before) if word.startswith(event.symbol)]

    def _following(self, words: Sequence[str]) -> list[str]:
        if not words:
            return list(COMMANDS)
        command = words[0]
        if command not in COMMANDS:
            return []
        names: list[str] = []
        if COMMANDS[command].name or command in NAMED:
            with suppress(GpuClusterError):  # the command itself will report the error
                names = [view.name for view in self._session.clusters.live()]
        return names + options_of(command)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magic and its completions."""
    magic = GpuClusterMagic(shell)
    shell.magics_manager.register_function(magic.run, "line", "gpucluster")
    shell.set_hook("complete_command", magic.complete, str_key=PROGRAM)


# Display.


def _show(outcome: Outcome) -> None:
    from IPython.display import display

    text = visible(as_text(outcome.blocks))
    if not text:
        return
    html = visible("".join(as_html(block) for block in outcome.blocks))
    bundle: dict[str, Any] = {"text/plain": text, "text/html": html}
    if outcome.clusters:
        bundle[LIVE] = {
            "clusters": [{"id": id, "name": name} for id, name in outcome.clusters],
            "words": outcome.blocks[0].title,
        }
    display(bundle, raw=True)


def as_html(block: Block) -> str:
    """Return a block as HTML; everything in it is escaped."""
    title = f"<p><strong>{escape(block.title)}</strong></p>" if block.title else ""
    match block:
        case Table(rows=()):
            return f"<p>{escape(block.empty)}</p>" if block.empty else ""
        case Table():
            return title + _table(block.headings, block.rows)
        case Text(code=True):
            return f"{title}<pre>{escape(block.text)}</pre>"
        case Text():
            return f"{title}<p>{escape(block.text)}</p>" if block.text else ""


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    style = ' style="text-align: left"'
    head = "".join(f"<th{style}>{escape(cell)}</th>" for cell in headings)
    body = "".join(
        "<tr>" + "".join(f"<td{style}>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return (
        f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
    )


def _bundle(text: str) -> dict[str, str]:
    text = visible(text)
    return {"text/plain": text, "text/html": f"<p>{escape(text)}</p>"}
