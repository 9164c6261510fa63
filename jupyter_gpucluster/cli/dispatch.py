"""From words to a verb's function: what the command line and the magic share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

from ..core.errors import InvalidInput
from ..core.fast_dataclass import frozen
from .commands import SUMMARIES
from .output import Facts, Outcome, facts_text
from .parsing import Parser, suggestion
from .session import Session


class Verb(Protocol):
    """What each module in ``verbs`` has."""

    def add_arguments(self, parser: Parser) -> None:
        """Add the arguments of the verb."""

    def run(self, arguments: argparse.Namespace, session: Session) -> Outcome:
        """Do it and return what there is to say."""


@frozen
class Command:
    """One verb with its arguments, ready to run."""

    verb: Verb
    arguments: argparse.Namespace


def read(words: Sequence[str], program: str) -> Command:
    """Parse a verb and its arguments; only the module of that verb is imported.

    Raises
    ------
    InvalidInput
        Unknown verb or option, or a value that cannot be used.
    """
    name, rest = words[0], list(words[1:])
    if name not in SUMMARIES:
        raise InvalidInput(
            f"There is no verb {name!r}.",
            hint=suggestion(name, SUMMARIES) or f"The verbs are: {', '.join(SUMMARIES)}",
        )
    verb, parser = _parser(name, program)
    # What follows "--" belongs to what the verb runs; argparse would drop the marker.
    own, marker, passed_on = _split(rest)
    arguments = parser.parse_words(own)
    arguments.passed_on = passed_on
    if marker and name not in ("run", "shell"):
        raise InvalidInput(
            f"The verb {name} takes no -- ARGS.", hint=f"See: {program} {name} --help"
        )
    return Command(verb, arguments)


def options_of(name: str) -> list[str]:
    """Return the options of a verb, to be completed."""
    return _parser(name, "")[1].options()


def execute(command: Command, session: Session) -> Outcome:
    """Run a command in a session."""
    return command.verb.run(command.arguments, session)


def top_help(program: str) -> str:
    """Return the list of verbs."""
    verbs = facts_text(Facts(tuple(SUMMARIES.items())))
    indented = "\n".join(f"  {line}" for line in verbs.splitlines())
    return (
        f"usage: {program} VERB [OPTIONS]\n\n"
        "Dask clusters with one worker per GPU.\n\n"
        f"verbs:\n{indented}\n\n"
        f"{program} VERB --help tells the options of a verb.\n"
        "exit codes: 0 done, 1 failed, 2 wrong usage, 3 timed out waiting"
    )


def _parser(name: str, program: str) -> tuple[Verb, Parser]:
    verb = cast(Verb, import_module(f".commands.{name}", __package__))
    parser = Parser(f"{program} {name}", SUMMARIES[name])
    verb.add_arguments(parser)
    return verb, parser


def _split(words: list[str]) -> tuple[list[str], bool, list[str]]:
    if "--" not in words:
        return words, False, []
    at = words.index("--")
    return words[:at], True, words[at + 1 :]
