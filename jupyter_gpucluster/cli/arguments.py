"""The parser of one command, the values of options, and arguments that several commands share."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import re
import shutil
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ..core.cluster import Target
from ..core.errors import GpuClusterError, InvalidInput
from ..launch.request import Request
from .output import Session


class Parser(argparse.ArgumentParser):
    """Raises `InvalidInput` instead of printing usage and ending the process."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)
        self.intermixed = False
        """True if words without an option may be given before and after options."""
        self.passes_on = False
        """True if the command runs another one, whose words follow ``--``."""

    def flag(self, option: str, words: str) -> None:
        """Add an option without a value."""
        self.add_argument(option, action="store_true", help=words)

    def error(self, message: str) -> NoReturn:
        """Raise argparse's complaint, with a pointer to the command's help."""
        text = re.sub(r"^arguments? ", "", message)
        text = text.replace("the following arguments are required:", "Missing:")
        raise InvalidInput(f"{text}.", hint=self._usage())

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse the words after the command; unknown options and spare words are errors."""
        # argparse would drop the marker.
        end = words.index("--") if "--" in words else len(words)
        parse = self.parse_known_intermixed_args if self.intermixed else self.parse_known_args
        arguments, spare = parse(_spell_out_wait(words[:end]))
        if spare:
            self._refuse(spare[0])
        if end < len(words) and not self.passes_on:
            command = self.prog.rpartition(" ")[2]
            raise InvalidInput(f"The command {command} takes no -- ARGS.", hint=self._usage())
        arguments.passed_on = list(words[end + 1 :])
        return arguments

    def _refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            raise InvalidInput(f"Unexpected argument {word!r}.", hint=self._usage())
        option = word.partition("=")[0]
        hint = suggestion(option, self.options()) or self._usage()
        raise InvalidInput(f"There is no option {option}.", hint=hint)

    def options(self) -> list[str]:
        """Return the options of the command."""
        return re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", self.format_help(), flags=re.MULTILINE)

    def _usage(self) -> str:
        return f"See: {self.prog} --help"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return ``Did you mean X?`` for the nearest known word; empty if no word is near."""
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


def seconds(text: str) -> float:
    """Read the seconds of ``--wait``; nothing means without limit (infinity)."""
    if not text:
        return float("inf")
    try:
        number = float(text)
    except ValueError:
        raise InvalidInput(f"--wait takes seconds, not {text!r}.") from None
    if not number >= 0:  # refuses NaN too
        raise InvalidInput(f"--wait takes seconds, 0 or more, not {text}.")
    return number


def assignment(text: str) -> tuple[str, str]:
    """Read ``K=V``."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        hint = "For example: --option account=abc123"
        raise InvalidInput(f"--option takes NAME=VALUE, not {text!r}.", hint=hint)
    return key.strip(), value


def _job(text: str) -> str:
    # As a variable that is not set gives it: the cluster would start elsewhere, silently.
    if not text.strip():
        raise InvalidInput("--allocation takes the id of a job.")
    return text


# Arguments that several commands share.


def add_workers(parser: Parser, least: int, hint: str = "", *, required: bool = False) -> Any:
    """Add ``--workers`` and ``--gpus``, at least ``least``; return their group."""
    group = parser.add_mutually_exclusive_group(required=required)
    for option, unit in (("--workers", "workers"), ("--gpus", "GPUs, one worker for each")):
        number = whole_number(option, least, hint)
        group.add_argument(option, metavar="N", type=number, help=f"number of {unit}")
    return group


def add_target(parser: Parser, *, least: int, required: bool = False) -> None:
    """Add ``--workers``, ``--gpus`` and ``--adapt``; ``least`` is the smallest fixed number."""
    hint = "To begin without workers: --adapt 0 MAX" if least else ""
    group = add_workers(parser, least, hint, required=required)
    number = whole_number("--adapt", 0)
    words = "scale automatically between these numbers of workers"
    group.add_argument("--adapt", nargs=2, metavar=("MIN", "MAX"), type=number, help=words)


def add_options(parser: Parser) -> None:
    """Add ``--option``."""
    words = "set an option of the profile; may be given several times"
    parser.add_argument(
        "--option", metavar="K=V", action="append", default=[], type=assignment, help=words
    )


def add_place(parser: Parser) -> None:
    """Add ``--option``, ``--python`` and ``--kernel``."""
    add_options(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--python", metavar="PATH", help="the Python that the cluster runs in")
    kernel = "run in the environment of this kernel"
    group.add_argument("--kernel", metavar="NAME", default="", help=kernel)


def add_request(parser: Parser) -> None:
    """Add the arguments of `request_from`."""
    add_target(parser, least=1)
    add_place(parser)
    words = "run the workers in your own running job (its id, from salloc, qsub -I, ...)"
    parser.add_argument("--allocation", metavar="JOB", type=_job, help=words)


def request_from(
    arguments: argparse.Namespace, profile: str, session: Session, **fields: Any
) -> Request:
    """Return the request for a cluster of a profile; the problems of its files are shown first.

    Parameters
    ----------
    fields
        Fields of the request that these arguments do not set.
    """
    target = target_from(arguments)
    refuse_gpus_on(profile, arguments)
    note_problems(profile, session)
    return Request(
        profile,
        target=target,
        options=options_from(arguments),
        python=python_from(arguments, session.python),
        kernel=arguments.kernel,
        allocation=arguments.allocation or "",
        **fields,
    )


def target_from(arguments: argparse.Namespace) -> Target | None:
    """Return the requested target, or None without one."""
    if arguments.adapt is not None:
        minimum, maximum = arguments.adapt
        if maximum < max(minimum, 1):
            raise InvalidInput(
                f"--adapt {minimum} {maximum}: the maximum must be at least {max(minimum, 1)}."
            )
        return Target(minimum, maximum)
    number = arguments.workers if arguments.gpus is None else arguments.gpus
    return None if number is None else Target(number, number)


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


def absolute_python(path: str) -> str:
    """Return the absolute path of a Python, given a path or the name of a program."""
    from ..launch.python_environments import expanded

    found = None if "/" in path else shutil.which(path)
    # Absolute, since the head runs elsewhere; links stay, since a venv's Python is one.
    return found or str(expanded(path, "python").absolute())


# Profiles; imported in the functions, since they take pydantic and YAML.


def default_profile() -> str:
    """Return the profile that is preselected here; on a login node the only one with jobs."""
    from ..batch import THIS_MACHINE, on_this_machine
    from ..core.cluster import EXISTING
    from ..launch.sizes import is_login_node
    from ..profiles import load_profiles

    found = {name: loaded.profile for name, loaded in load_profiles().profiles.items()}
    if not found:
        hint = "Correct the files that the command profiles reports."
        raise InvalidInput("No profile can be used.", hint=hint)
    chosen = next((name for name, profile in found.items() if profile.default), "")
    if not is_login_node():
        # The shipped profile of this machine has the name of its backend.
        return chosen or (THIS_MACHINE if THIS_MACHINE in found else next(iter(found)))
    jobs = [
        name
        for name, profile in found.items()
        if profile.backend != EXISTING and not on_this_machine(profile.backend)
    ]
    if chosen in jobs or len(jobs) == 1:
        return chosen if chosen in jobs else jobs[0]
    setup = "The command setup writes profiles for jobs."
    submits = f"Give --profile {' or '.join(jobs)}." if jobs else setup
    raise InvalidInput(
        "Other users share this login node, so a profile must be named.",
        hint=f"{submits} For a small cluster here: --profile {THIS_MACHINE}",
        detail="profile",
    )


def refuse_gpus_on(profile: str, arguments: argparse.Namespace) -> None:
    """Refuse ``--gpus`` on a profile without GPUs."""
    if arguments.gpus is None:
        return
    from ..host.hardware import look_around
    from ..launch.allocation import is_spread
    from ..launch.sizes import sizes_of
    from ..profiles import find_profile

    found = find_profile(profile).profile
    if is_spread(found) and found.job.gpus == "auto":
        return  # they are the allocation's
    unit = "GPUs" if sizes_of(found, look_around()).gpus else "workers"
    refuse_gpus_of(unit, arguments, f"Profile {profile}")


def refuse_gpus_of(unit: str, arguments: argparse.Namespace, subject: str) -> None:
    """Refuse ``--gpus`` if the workers are CPU workers."""
    if arguments.gpus is not None and unit != "GPUs":
        hint = f"Use --workers {arguments.gpus}"
        raise InvalidInput(f"{subject} has CPU workers, no GPUs.", hint=hint, detail="target")


def note_problems(profile: str, session: Session) -> None:
    """Show the problems of a profile's files before they are used."""
    from ..profiles import find_profile

    with contextlib.suppress(GpuClusterError):  # raised again by the user of the profile
        for problem in find_profile(profile).problems:
            session.note(f"{problem.severity}: {problem}")
