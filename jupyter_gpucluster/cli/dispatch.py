"""From words to the function of a command, for the terminal and the magic."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module

from ..core.errors import InvalidInput
from .arguments import Parser, suggestion
from .commands import COMMANDS
from .output import Outcome, Session, facts, table_text

Run = Callable[[argparse.Namespace, Session], Outcome]


def read(words: Sequence[str], program: str) -> tuple[Run, argparse.Namespace]:
    """Parse a command and its arguments; only the module of that command is imported.

    Raises
    ------
    InvalidInput
        Unknown command or option, or a value that cannot be used.
    """
    name = words[0]
    if name not in COMMANDS:
        hint = suggestion(name, COMMANDS) or f"The commands are: {', '.join(COMMANDS)}"
        raise InvalidInput(f"Unknown command {name!r}.", hint=hint)
    run, parser = _parser(name, program)
    return run, parser.parse_words(words[1:])


def options_of(name: str) -> list[str]:
    """Return the options of a command, for completion."""
    return _parser(name, "")[1].options()


def top_help(program: str) -> str:
    """Return the list of commands."""
    commands = table_text(facts((name, entry.summary) for name, entry in COMMANDS.items()))
    indented = "\n".join(f"  {line}" for line in commands.splitlines())
    return (
        f"usage: {program} COMMAND [OPTIONS]\n\n"
        "Dask clusters with one worker per GPU.\n\n"
        f"commands:\n{indented}\n\n"
        f"{program} COMMAND --help lists the options of a command.\n"
        "exit codes: 0 done, 1 failed, 2 wrong usage, 3 timed out waiting"
    )


def _parser(name: str, program: str) -> tuple[Run, Parser]:
    entry = COMMANDS[name]
    module = import_module(f".commands.{entry.module}", __package__)
    parser = Parser(f"{program} {name}", entry.summary)
    if entry.name:
        parser.add_argument("name", metavar="NAME", help="name or id of the cluster")
    if add := getattr(module, f"add_{name}", None):
        add(parser)
    if entry.json:
        parser.flag("--json", "print one JSON document and nothing else")
    run: Run = getattr(module, f"run_{name}")
    return run, parser
