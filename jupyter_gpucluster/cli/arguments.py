"""Arguments that several verbs share, and what they mean."""

from __future__ import annotations

import argparse
import shutil
from typing import Any

from ..core.cluster import Target
from ..core.errors import InvalidInput
from ..launch.interpreters import expanded
from ..launch.request import Request
from .parsing import Parser, assignment, whole_number


def add_json(parser: Parser) -> None:
    """Add ``--json``."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )


def add_target(parser: Parser, *, least: int, required: bool = False) -> None:
    """Add ``--workers``, ``--gpus`` and ``--adapt``; ``least`` is the smallest fixed number."""
    hint = "To begin without workers: --adapt 0 MAX" if least else ""
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument(
        "--workers",
        metavar="N",
        type=whole_number("--workers", least, hint),
        help="keep this many workers",
    )
    group.add_argument(
        "--gpus",
        metavar="N",
        type=whole_number("--gpus", least, hint),
        help="keep this many GPUs, each of them one worker",
    )
    group.add_argument(
        "--adapt",
        nargs=2,
        metavar=("MIN", "MAX"),
        type=whole_number("--adapt", 0),
        help="follow the load between these two numbers of workers",
    )


def target_from(arguments: argparse.Namespace) -> Target | None:
    """Return the target that was asked for, or None where none was."""
    if arguments.adapt is not None:
        minimum, maximum = arguments.adapt
        if maximum < max(minimum, 1):
            raise InvalidInput(
                f"--adapt {minimum} {maximum}: the maximum must be at least {max(minimum, 1)}."
            )
        return Target(minimum, maximum)
    number = arguments.workers if arguments.gpus is None else arguments.gpus
    return None if number is None else Target(number, number)


def refuse_gpus_of(unit: str, arguments: argparse.Namespace, subject: str) -> None:
    """Refuse ``--gpus`` where the workers are CPU workers."""
    if arguments.gpus is not None and unit != "GPUs":
        raise InvalidInput(
            f"{subject} has CPU workers, no GPUs.",
            hint=f"Use --workers {arguments.gpus}",
            detail="target",
        )


def add_options(parser: Parser) -> None:
    """Add ``--option``."""
    parser.add_argument(
        "--option",
        metavar="K=V",
        action="append",
        default=[],
        type=assignment,
        help="set an option of the profile; may be given several times",
    )


def add_place(parser: Parser) -> None:
    """Add what ``start`` and ``script`` take about options and environment."""
    add_options(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--python", metavar="PATH", help="the Python that the cluster runs in")
    group.add_argument("--kernel", metavar="NAME", help="run in the environment of this kernel")


def add_allocation(parser: Parser) -> None:
    """Add ``--allocation``."""
    parser.add_argument(
        "--allocation",
        metavar="JOB",
        type=_job,
        help="put the workers into this running job of yours, of salloc, qsub -I and the like",
    )


def _job(text: str) -> str:
    # As a variable that is not set gives it: the cluster would start elsewhere, silently.
    if not text.strip():
        raise InvalidInput("--allocation takes the number of a job.")
    return text


def options_from(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the values of ``--option`` by name; a name given twice is an error."""
    options: dict[str, str] = {}
    for key, value in arguments.option:
        if key in options:
            raise InvalidInput(f"--option {key} is given twice.", detail=f"options.{key}")
        options[key] = value
    return options


def python_from(arguments: argparse.Namespace, default: str) -> str:
    """Return the Python that was named, else the session's own unless a kernel was named."""
    if not arguments.python:
        return "" if arguments.kernel else default
    return absolute_python(arguments.python)


def request_from(
    arguments: argparse.Namespace, profile: str, python: str, **fields: Any
) -> Request:
    """Return the request for a cluster of a profile.

    Parameters
    ----------
    python
        The session's own Python.
    fields
        Fields of the request that these arguments do not set.
    """
    return Request(
        profile,
        target=target_from(arguments),
        options=options_from(arguments),
        python=python_from(arguments, python),
        kernel=arguments.kernel or "",
        allocation=arguments.allocation or "",
        **fields,
    )


def absolute_python(path: str) -> str:
    """Return the absolute path of a Python, given a path or the name of a program."""
    found = None if "/" in path else shutil.which(path)
    # Absolute, since the head runs elsewhere; links stay, since a venv's Python is one.
    return found or str(expanded(path, "python").absolute())
