"""The parser of one verb: argparse that raises our errors and suggests what was meant."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ..core.errors import InvalidInput


class Parser(argparse.ArgumentParser):
    """Raises `InvalidInput` instead of printing usage and ending the process."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)
        self.intermixed = False
        """Whether words without an option may be given before and after options."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found wrong, with a pointer to the verb's help."""
        words = re.sub(r"^arguments? ", "", message)
        words = words.replace("the following arguments are required:", "Missing:")
        raise InvalidInput(f"{words}.", hint=self._usage())

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse the words after the verb; unknown options and spare words are errors."""
        parse = self.parse_known_intermixed_args if self.intermixed else self.parse_known_args
        arguments, spare = parse(_spell_out_wait(words))
        if spare:
            self._refuse(spare[0])
        return arguments

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            raise InvalidInput(f"Nothing is known of {word!r}.", hint=self._usage())
        option = word.partition("=")[0]
        raise InvalidInput(
            f"There is no option {option}.",
            hint=suggestion(option, self.options()) or self._usage(),
        )

    def options(self) -> list[str]:
        """Return the options of the verb."""
        return re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", self.format_help(), flags=re.MULTILINE)

    def _usage(self) -> str:
        return f"See: {self.prog} --help"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``Did you mean X?`` for the nearest known word; empty where none is near."""
    near = difflib.get_close_matches(word, sorted(set(known)), n=1, cutoff=0.6)
    return f"Did you mean {near[0]}?" if near else ""


def _spell_out_wait(words: Sequence[str]) -> list[str]:
    """Write a bare ``--wait`` as ``--wait=``: argparse would take the next word for its value."""
    following = [*words, ""][1:]
    return [
        "--wait=" if word == "--wait" and not re.match(r"[-+]?\.?\d", after) else word
        for word, after in zip(words, following, strict=False)
    ]


# Values of options.


def whole_number(option: str, least: int, hint: str = "") -> Any:
    """Return an argparse type: a whole number of at least ``least``."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[-+]?[0-9]{1,18}", text):
            raise InvalidInput(f"{option} takes a whole number, not {text!r}.")
        number = int(text)
        if number < least:
            raise InvalidInput(f"{option} takes {least} or more, not {number}.", hint=hint)
        return number

    return read


def seconds(option: str) -> Any:
    """Return an argparse type: seconds to wait; nothing means without limit (infinity)."""

    def read(text: str) -> float:
        if not text:
            return float("inf")
        try:
            number = float(text)
        except ValueError:
            raise InvalidInput(f"{option} takes seconds, not {text!r}.") from None
        if not number >= 0:  # refuses NaN too
            raise InvalidInput(f"{option} takes seconds, 0 or more, not {text}.")
        return number

    return read


def assignment(text: str) -> tuple[str, str]:
    """Read ``K=V``."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InvalidInput(
            f"--option takes NAME=VALUE, not {text!r}.",
            hint="For example: --option account=abc123",
        )
    return key.strip(), value
