"""Programs in place of launchers and container runtimes that nobody can install here.

They know no option but those of their manuals, start as many processes as they are told, with the
variables that the manuals name, and end all of them when one ends or when they are asked to.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Options = Mapping[str, str]


@dataclass(frozen=True)
class Launcher:
    """Options of a launcher, and the variables of its ranks."""

    values: tuple[str, ...]
    """Options with a value."""
    flags: tuple[str, ...]
    total: str
    """The option with the number of ranks."""
    on_a_node: str
    variables: Callable[[int, int, Options], dict[str, str]]
    """Variables of a rank, by its number, its number on its node, and the options."""


def _jsrun(rank: int, slot: int, options: Options) -> dict[str, str]:
    told = {"PMIX_RANK": rank, "JSM_NAMESPACE_RANK": rank, "JSM_NAMESPACE_LOCAL_RANK": slot}
    return {**_texts(told), "JSM_NAMESPACE_SIZE": options["-n"], "OMPI_COMM_WORLD_RANK": str(rank)}


def _aprun(rank: int, slot: int, options: Options) -> dict[str, str]:
    return {"ALPS_APP_PE": str(rank), "ALPS_APP_DEPTH": options.get("-d", "1")}


def _mpich(rank: int, slot: int, options: Options) -> dict[str, str]:
    return _texts({"PMI_RANK": rank, "PMI_SIZE": options["-n"], "MPI_LOCALRANKID": slot})


def _pals(rank: int, slot: int, options: Options) -> dict[str, str]:
    return _texts({"PALS_RANKID": rank, "PALS_LOCAL_RANKID": slot, "PMI_RANK": rank})


def _srun(rank: int, slot: int, options: Options) -> dict[str, str]:
    told = _texts({"SLURM_PROCID": rank, "SLURM_LOCALID": slot})
    if image := options.get("--container-image"):
        told["BOXED_IN"] = image
        told["BOXED_WITH"] = options["--container-mounts"]
    return told


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


LAUNCHERS = {
    "jsrun": Launcher(("-n", "-r", "-a", "-c", "-g", "--bind"), (), "-n", "-r", _jsrun),
    "aprun": Launcher(("-n", "-N", "-d", "-cc"), ("-b",), "-n", "-N", _aprun),
    "mpiexec": Launcher(("-n", "-ppn", "-hostfile"), ("-genvall",), "-n", "-ppn", _mpich),
    "pals": Launcher(("-n", "--ppn", "--cpu-bind", "--depth"), (), "-n", "--ppn", _pals),
    "srun": Launcher(
        (
            "--nodes", "--ntasks", "--ntasks-per-node", "--export", "--kill-on-bad-exit", "--wait",
            "--cpu-bind", "--cpus-per-task", "--container-image", "--container-mounts",
        ),
        (), "--ntasks", "--ntasks-per-node", _srun,
    ),
}  # fmt: skip


def parsed(
    words: Sequence[str], values: Sequence[str], flags: Sequence[str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Split a command line into its options and the words from the first that is none on."""
    rest, found = list(words), []
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name in values:
            found.append((name, value if equals else rest.pop(0)))
        elif name in flags:
            found.append((name, ""))
        else:
            sys.exit(f"{sys.argv[0]}: unknown option {name}")
    return found, rest


def launch(launcher: Launcher, words: Sequence[str]) -> int:
    """Start the ranks and return the worst exit code; one that ends takes the others with it."""
    found, command = parsed(words, launcher.values, launcher.flags)
    options = dict(found)
    each = int(options[launcher.on_a_node])
    ranks = [
        subprocess.Popen(
            command,
            env={**os.environ, **launcher.variables(rank, rank % each, options)},
            start_new_session=True,  # on another node
        )
        for rank in range(int(options[launcher.total]))
    ]

    def end(*_: object) -> None:
        for rank in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(rank.pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    _, status = os.wait()
    end()
    return max([os.waitstatus_to_exitcode(status), *(rank.wait() for rank in ranks)])


def shifter(words: Sequence[str]) -> None:
    """Run a command as in a container of Shifter, which hands all variables on."""
    [(_, image)], command = parsed(words, ["--image"], [])
    os.execvpe(command[0], command, {**os.environ, "BOXED_IN": image})  # noqa: S606  # the words are our job script's


def apptainer(words: Sequence[str]) -> None:
    """Run a command as in a container of Apptainer: what is bound must be there."""
    if words[0] != "exec":
        sys.exit(64)
    options, [image, *command] = parsed(words[1:], ["--bind"], ["--cleanenv", "--nv"])
    bound = [path for name, path in options if name == "--bind"]
    if missing := [path for path in bound if not Path(path).exists()]:
        sys.exit(f"FATAL: container creation failed: mount source {missing[0]} doesn't exist")
    kept = dict(os.environ)
    if ("--cleanenv", "") in options:
        kept = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    prefix = "APPTAINERENV_"
    given = {k.removeprefix(prefix): v for k, v in os.environ.items() if k.startswith(prefix)}
    boxed = {"BOXED_IN": image, "BOXED_WITH": ":".join(bound)}
    os.execvpe(command[0], command, {**kept, **given, **boxed})  # noqa: S606  # the words are our job script's


def run(program: str) -> None:
    """Be one of the programs."""
    if program in LAUNCHERS:
        sys.exit(launch(LAUNCHERS[program], sys.argv[1:]))
    {"shifter": shifter, "apptainer": apptainer}[program](sys.argv[1:])


def text_of(program: str) -> str:
    """Return what is put on a job's path under the program's name."""
    checkout = str(Path(__file__).resolve().parents[1])
    return (
        f"#!{os.path.realpath(sys.executable)} -IS\nimport sys\n"
        f"sys.path.insert(0, {checkout!r})\n"
        "from tests.launcher_programs import run\n"
        f"run({program!r})\n"
    )
