"""The hosts of a batch job, from the forms in which batch systems list them; runs alone."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path

MOST_HOSTS = 100_000
"""More are no host list but a slip, or an attempt to fill the memory."""
ITEM = re.compile(r"(?:[^\s,\[\]]|\[[^\[\]]*\])+")
GROUP = re.compile(r"\[([^\[\]]*)\]")
RANGE = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)
COUNT = re.compile(r"(\d+)(?:\(x(\d+)\))?", re.ASCII)
HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*", re.ASCII)
"""Never begins with ``-``: a host is an argument of ssh."""
OUTSIDE = "GPUCLUSTER_ALLOCATION"
"""The hosts and slots of an allocation that the head is not in, as pairs: ``n1 4 n2 4``."""
SOURCES: Sequence[Sequence[str]] = ()
"""Forms and variables of node lists; `reader` fills them in for the copy that jobs run."""


def expand(text: str) -> list[str]:
    """Return the hosts of a list such as ``g[1-3,07],rack[1-2]n[01-04]-ib login``, in order.

    Raises
    ------
    ValueError
        It is no list of hosts, or one of far too many.
    """
    # What remains beside the items may only be separators.
    if re.sub(r"[\s,]", "", ITEM.sub("", text)):
        raise ValueError(f"{text[:200]!r} is not a list of hosts: a bracket lacks its other half.")
    hosts: list[str] = []
    for item in ITEM.findall(text):
        parts = GROUP.split(item)
        choices = [_choices(part) if number % 2 else [part] for number, part in enumerate(parts)]
        if len(hosts) + prod(map(len, choices)) > MOST_HOSTS:
            raise ValueError(f"{text[:200]!r} names more than {MOST_HOSTS} hosts.")
        hosts += [_checked("".join(parts)) for parts in product(*choices)]
    return hosts


def _choices(inside: str) -> list[str]:
    """Return what ``1-3,07`` stands for; leading zeros are kept."""
    found: list[str] = []
    for part in inside.split(","):
        match = RANGE.fullmatch(part)
        first, last = match.groups(default=match.group(1)) if match else ("1", "0")
        if not 0 <= int(last) - int(first) < MOST_HOSTS - len(found):
            raise ValueError(f"[{inside[:200]}] is not a range of numbers.")
        found += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return found


def _checked(host: str) -> str:
    if not HOST.fullmatch(host):
        raise ValueError(f"{host[:200]!r} is not the name of a host.")
    return host


def allocation_hosts(
    environ: Mapping[str, str], sources: Iterable[Sequence[str]]
) -> list[tuple[str, int]]:
    """Return the hosts of the batch job that this process works in, each with its slots.

    Slots are what the batch system counts there: cores for some, lines of a file for others.  Empty
    outside any batch job.

    Parameters
    ----------
    environ
        The variables of the job.
    sources
        The form of each list and the variable that has it or names its file: `FORMS`.  A list in
        ``brackets`` may have a second variable with its slots, such as ``72(x2),36``.

    Raises
    ------
    ValueError
        A variable names a file that cannot be read, or holds no list of hosts.
    """
    for form, name, *more in [("pairs", OUTSIDE), *sources]:
        if text := environ.get(name):
            if form in FILES:
                text = _read(name, text)
            return FORMS[form](text, *(environ.get(other, "") for other in more))
    return []


def reader(sources: Iterable[Sequence[str]]) -> str:
    """Return this file with the sources that `main` reads."""
    text = Path(__file__).read_text("utf-8")
    filled = tuple(tuple(source) for source in sources)
    return text.replace("\nSOURCES: Sequence[Sequence[str]] = ()\n", f"\nSOURCES = {filled!r}\n", 1)


def _bracketed(text: str, counts: str = "") -> list[tuple[str, int]]:
    """Read ``g[1-3]`` and its slots."""
    hosts = expand(text)
    slots: list[int] = []
    for match in filter(None, map(COUNT.fullmatch, counts.split(","))):
        slots += [int(match.group(1))] * min(int(match.group(2) or 1), len(hosts))
    return list(zip(hosts, slots + [1] * len(hosts)))


def _words(text: str) -> list[tuple[str, int]]:
    """Read ``n1 n1 n2``, one word for each slot."""
    return _counted((host, 1) for host in text.split())


def _table(text: str) -> list[tuple[str, int]]:
    """Read lines that begin with a host and its slots."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    return _counted((row[0], _number(row[1]) if len(row) > 1 else 1) for row in rows)


def _paired(text: str) -> list[tuple[str, int]]:
    """Read ``n1 4 n2 4``."""
    words = text.split()
    return _counted((host, _number(slots)) for host, slots in zip(words[::2], words[1::2]))


def _counted(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Add up the slots of each host; hosts stay in the order of their first mention."""
    total: dict[str, int] = {}
    for host, slots in pairs:
        total[_checked(host)] = total.get(host, 0) + slots
    return list(total.items())


def _number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text[:200]!r} is not a number of slots.")
    return int(text)


def _read(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ValueError(f"{name} names {path}, which cannot be read: {error.strerror}.") from error


FORMS: Mapping[str, Callable[..., list[tuple[str, int]]]] = {
    "brackets": _bracketed, "pairs": _paired, "words": _words, "file": _words, "table": _table,
}  # fmt: skip
FILES = ("file", "table")


def main(arguments: list[str]) -> int:
    """Print the last COUNT hosts of this batch job, each put into FORMAT's braces.

    Some systems name the node that the script itself runs on first, beside those of the job.
    """
    try:
        count, text = int(arguments[0]), arguments[1]
        hosts = [host for host, _ in allocation_hosts(os.environ, SOURCES)]
        if len(hosts) < count:
            raise ValueError(f"This job has the hosts {hosts}; it requested {count}.")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for host in hosts[-count:]:
        print(text.replace("{}", host))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
