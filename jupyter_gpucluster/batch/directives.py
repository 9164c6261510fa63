"""Directives: how a system writes them, and how a profile's own are merged with a dialect's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..core.errors import InvalidInput

GLUED = re.compile(r"(-[A-Za-z])([^\s=].*)")
OPTION = re.compile(r"(--[\w-]+|-\w+)[= ]?(.*)")
RESOURCE = re.compile(r"[\w./-]+")
NAMED_VALUE = re.compile(r"(?:^|,)\s*(?:gres[:/])?([\w./-]+)|(\w+)\s*[=\[]")
CLOCK: Mapping[int, tuple[int, ...]] = {1: (1,), 2: (60, 1), 3: (3600, 60, 1)}
DAYS: Mapping[int, tuple[int, ...]] = {1: (3600,), 2: (3600, 60), 3: (3600, 60, 1)}


@dataclass(frozen=True)
class Syntax:
    """The directives of one system.

    A line is a directive with its prefix, as it stands in a script.  A dialect states the fields
    that have no default, also when they are empty.
    """

    prefix: str
    """Word with which a directive begins; empty if the system has none."""
    keys: Mapping[str, tuple[str, ...]]
    """The keys of ``job`` that each option of a directive or of the submit command sets.

    Where the values of an option have names, ``-l walltime`` is one of them and ``-l`` all.  ``*``
    stands for any text, ``{gpu}`` and ``{memory}`` for names in ``gpu_request`` and
    ``memory_request``.
    """
    name: str
    """Option that names the job, by which a cluster finds it."""
    arrays: tuple[str, ...]
    """Options that make several jobs of one."""
    waits: tuple[str, ...]
    """Options with which the submit command does not answer at once.

    Each with the name of its value, if only that one waits: ``-W block``.
    """
    refused: Mapping[str, str] = field(default_factory=dict)
    """Other options that are up to the cluster, each with the predicate of the error's sentence."""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """Other spellings of an option."""
    alike: Mapping[str, str] = field(default_factory=dict)
    """Options of which a system takes only one, since they ask for one thing."""
    others: tuple[str, ...] = ()
    """Beginnings of directives that no key sets, and whose names users look for among the keys."""
    repeated: tuple[str, ...] = ()
    """Options that may stand several times, each time for a resource of its own."""
    joined: Mapping[str, str] = field(default_factory=dict)
    """Lines of which the last would replace the others though all are meant, as one line."""
    glued: bool = False
    """True if a value may follow its option without a blank."""
    listed: bool = False
    """True if the values of `repeated` are lists with commas."""
    clock: Mapping[int, tuple[int, ...]] = field(default_factory=lambda: CLOCK)
    """Seconds that each part of a walltime such as ``1:30`` counts, by the number of parts."""
    arguments: bool = True
    """True if the submit command's arguments are the options of directives."""

    def option_of(self, line: str) -> tuple[str, str]:
        """Return a directive's option in its one spelling, and its value: ``--gres``, ``gpu:4``."""
        text = line.removeprefix(f"{self.prefix} ").strip()
        match = (GLUED.match(text) if self.glued else None) or OPTION.match(text)
        option, value = match.groups() if match else (text, "")
        return self.synonyms.get(option, option), value.strip()

    def requests_of(self, line: str) -> tuple[str, ...]:
        """Return the things that a directive asks for, however they are spelled."""
        option, value = self.option_of(line)
        if option in self.joined:
            return (f"{option} {value}",)
        if option not in self.repeated:
            return (self.alike.get(option, option),)
        parts = value.split(",") if self.listed else [value]
        names = (match.group() if (match := RESOURCE.match(part)) else part for part in parts)
        return tuple(self.alike.get(f"{option} {name}", f"{option} {name}") for name in names)

    def names_in(self, line: str) -> set[str]:
        """Return the names by which `keys` may know a directive: its option alone and by values."""
        option, value = self.option_of(line)
        found = NAMED_VALUE.findall(bare(value))
        return {option, *(f"{option} {one or other}" for one, other in found)}

    def reserved(self, text: str) -> str:
        """Return why a directive is up to the cluster, as a predicate; empty if it is not."""
        option, value = self.option_of(f"{self.prefix} {text}")
        option = option.partition(" ")[0]
        if option == self.name:
            return "sets the job's name, by which the cluster finds it"
        if option in self.arrays:
            return "makes an array of the job; how many jobs there are is up to the cluster"
        if {option, f"{option} {value.partition('=')[0]}"} & {*self.waits}:
            return "is not allowed: the submit command must return at once"
        return self.refused.get(option, "")

    def join(self, option: str, before: str, value: str) -> str:
        """Return one line for two values of an option in `joined`."""
        return self.joined[option].format(before, value)

    def arrange(self, lines: Sequence[str], own: int) -> list[str]:
        """Return merged lines in the form that the system takes; own ones begin at ``own``."""
        done: list[str] = []
        places: dict[str, int] = {}
        for line in lines:
            option, value = self.option_of(line)
            if option in self.joined and option in places:
                place = places[option]
                done[place] = self.join(option, self.option_of(done[place])[1], value)
            else:
                places[option] = len(done)
                done.append(line)
        return done

    def check(self, generated: Sequence[str], lines: Sequence[str]) -> None:
        """Refuse merged lines that the system, or the cluster, cannot take."""

    def check_argument(self, text: str) -> None:
        """Refuse an argument of the submit command that the cluster cannot take."""

    def words(self, text: str) -> list[str]:
        """Return the words of a directive as the system reads them in a script."""
        try:
            return shlex.split(text)
        except ValueError:  # a lone quote; the system reads its lines in a way of its own
            return [text]

    def seconds(self, walltime: str) -> int | None:
        """Return a walltime in seconds as the system reads it, None if it is none."""
        days, dash, rest = walltime.rpartition("-")
        parts = rest.split(":")
        weights = (DAYS if dash else self.clock).get(len(parts))
        digits = (days or "0", *parts)
        if weights is None or not all(d.isascii() and d.isdigit() and len(d) < 10 for d in digits):
            return None
        hours = sum(int(part) * weight for part, weight in zip(parts, weights, strict=True))
        return int(days or 0) * 86400 + hours


NO_DIRECTIVES = Syntax("", {}, "", (), ())
"""The syntax of a system that reads no directives."""


def merge(
    syntax: Syntax, generated: Sequence[str], extra: Iterable[str], skip: Iterable[str]
) -> list[str]:
    """Return the directives of a script.

    Parameters
    ----------
    generated
        The dialect's own lines.
    extra
        The profile's own directives, without prefix; they replace what asks for the same thing,
        and are never skipped.
    skip
        Generated lines that contain one of these texts are left out; blanks count.

    Raises
    ------
    InvalidInput
        Two of the profile's own directives contradict each other.
    """
    if not generated:
        return []
    added: dict[str, str] = {}
    for text in filter(str.strip, extra):
        line = f"{syntax.prefix} {text}"
        for request in syntax.requests_of(line):
            other = added.setdefault(request, line)
            if other != line:
                raise InvalidInput(
                    f"Two directives of job.directives set the same: {other!r} and {line!r}.",
                    hint="Keep one of them.",
                    detail="job.directives",
                )
    kept = [
        line
        for line in without_skipped(generated, skip)
        if not added.keys() & set(syntax.requests_of(line))
    ]
    return syntax.arrange([*kept, *dict.fromkeys(added.values())], len(kept))


def without_skipped(generated: Iterable[str], skip: Iterable[str]) -> list[str]:
    """Return the generated lines that the profile wants."""
    unwanted = tuple(skip)
    return [line for line in generated if not any(text in line for text in unwanted)]


def options_in(arguments: Sequence[str]) -> list[str]:
    """Write a command's arguments as directives are written: each option with its value."""
    texts: list[str] = []
    for word in arguments:
        if word.startswith("-") or not texts:
            texts.append(word)
        else:
            texts[-1] += f" {word}"
    return texts


def bare(text: str) -> str:
    """Return a value without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
