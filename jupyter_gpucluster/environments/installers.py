"""Run uv, pip or venv as a child, show what it says, and put its failures into words."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..core.errors import InstallationFailed, InvalidInput
from ..host.processes import kill_group, signal_group, start_time

Say = Callable[[str], None]

NAMES = ("uv", "pip")
SECONDS_TO_TIDY = 5.0
"""How long an interrupted installer may take away its own temporary files."""
DIVERTING = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "UV_SYSTEM_PYTHON", "UV_TARGET", "UV_PREFIX")
"""Variables by which packages would go elsewhere than into the environment."""

COMPLAINT = re.compile(
    r"\s*(ERROR:|error:|fatal:|\u00d7|╰─▶|Caused by:|cause:|Error:)(?! Ignored the)"
)
CAUSES = (
    (r"No space left|Disk quota exceeded|Not enough space",
     "There is no room left.",
     "Free some, or choose another place; the installers' caches and TMPDIR count, too."),
    (r"ResolutionImpossible|conflicting dependencies",
     "The packages do not go together.",
     "Leave a version open, or leave out what binds Dask to another release."),
    (r"network was disabled|dns error|[Nn]ame resolution|Name or service not known|"
     r"Network is unreachable|"
     r"NewConnectionError|Connection refused|ConnectTimeout|[Rr]ead timed out|"
     r"error sending request|client error \(Connect\)|Could not resolve host",
     "The network, or the package index, cannot be reached from here.",
     "Try it on a login node; or from a folder of wheels, with PIP_NO_INDEX=1 and"
     " PIP_FIND_LINKS=FOLDER in the environment (UV_OFFLINE and UV_FIND_LINKS for uv)."),
    (r"git clone|git fetch|git operation|could not read Username|Repository not found|"
     r"did not match any file|Git executable",
     "A package could not be had from git.",
     "Check its address, branch and commit; nobody is asked for a password, so give git a key or"
     " a credential helper."),
    (r"'ensurepip', .*returned non-zero",
     "pip could not be put into the new environment.",
     "There may be no room left; or this Python lacks ensurepip: choose another with --python."),
    (r"ensurepip",
     "This Python has no venv of its own.",
     "Install your system's package for it (python3-venv on Debian and Ubuntu), or choose another"
     " one with --python."),
    (r"No module named pip",
     "The environment has no pip.",
     "Put it there with `python -m ensurepip` of that environment, or use --installer uv."),
    (r"No solution found|No matching distribution|Could not find a version",
     "The packages cannot be had, or not together.",
     "Check the names; leave a version open, or choose another Python (--python)."),
    (r"Failed building|metadata-generation-failed|subprocess-exited-with-error|Failed to build|"
     r"build backend returned an error",
     "A package that has no wheel for this Python could not be built.",
     "Choose a version that has one, or another Python (--python); or load the compilers that it"
     " needs (module load) and try again."),
    (r"Permission denied|Operation not permitted|Read-only file system",
     "You may not write there.",
     "Choose a place of your own, or ask who owns this one."),
)  # fmt: skip
"""Signs in an installer's words: what happened, and the way out; the first that is found counts."""


def find_installer(name: str = "") -> str:
    """Return the installer that was named, else uv where it is on the path, else pip.

    Raises
    ------
    InvalidInput
        uv was named and is not there.
    """
    if name == "uv" and shutil.which("uv") is None:
        raise InvalidInput(
            "There is no uv on PATH.",
            hint="Install it, or leave --installer out: every environment has pip.",
            detail="installer",
        )
    return name or ("uv" if shutil.which("uv") else "pip")


def install_command(installer: str, python: str) -> list[str]:
    """Return how the command begins that installs into the environment of a Python."""
    if installer == "uv":
        return ["uv", "pip", "install", "--python", python, "--compile-bytecode"]
    return [*_pip(python), "install", "--progress-bar", "off"]


def installed_packages(installer: str, python: str) -> list[str]:
    """Return what is installed there, as lines that install it again."""
    uv = ["uv", "pip", "freeze", "--python", python]
    command = uv if installer == "uv" else [*_pip(python), "freeze"]
    answer = subprocess.run(
        command,
        env=_variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
    )
    if answer.returncode != 0:
        raise _failure(command, answer.returncode, answer.stderr.splitlines())
    return answer.stdout.splitlines()


def _pip(python: str) -> list[str]:
    # -I: nothing that lies in this folder, or on PYTHONPATH, may stand for what is installed.
    return [python, "-I", "-m", "pip", "--disable-pip-version-check"]


def run_installer(command: Sequence[str], say: Say, *held: int) -> None:
    """Run a command to its end, and say each of its lines as it comes.

    Parameters
    ----------
    held
        Descriptors that it holds open as well, with the locks on them: it may outlive us.

    Raises
    ------
    InstallationFailed
        It ended with an error, which is named together with the way out.
    """
    lines: list[str] = []
    try:
        child = subprocess.Popen(
            command,
            env=_variables(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            # Of its own, so that Ctrl-C reaches it when we are ready to tidy up after it.
            start_new_session=True,
            pass_fds=held,
        )
    except OSError as error:
        raise InstallationFailed(
            f"{command[0]} does not start: {error.strerror}.", hint="Choose another Python."
        ) from error
    started = start_time(child.pid)
    with child:
        try:
            for line in child.stdout or ():
                lines.append(line.rstrip())
                say(lines[-1])
            child.wait()
        except BaseException:
            _end(child, started or 0)
            raise
    if child.returncode != 0:
        raise _failure(command, child.returncode, lines)


def _variables() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in DIVERTING}
    # Nobody could answer a question.  A site's configuration may say `user`, which no venv takes.
    return {**kept, "PIP_USER": "0", "PIP_NO_INPUT": "1", "GIT_TERMINAL_PROMPT": "0"}


def _end(child: subprocess.Popen[str], started: int) -> None:
    """End an installer and all that it started, after it had time for its temporary files."""
    signal_group(child.pid, signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        child.wait(SECONDS_TO_TIDY)
    kill_group(child.pid, started)
    signal_group(child.pid, signal.SIGKILL)  # what its leader left behind


def _failure(command: Sequence[str], code: int, lines: list[str]) -> InstallationFailed:
    text = "\n".join(lines)
    complaints = dict.fromkeys(line.strip()[:300] for line in lines if COMPLAINT.match(line))
    detail = "\n".join([*complaints][-6:] or lines[-3:])
    program = "uv" if command[0] == "uv" else command[command.index("-m") + 1]
    other = " uv does not read pip's configuration: --installer pip does." * (program == "uv")
    for sign, words, hint in CAUSES:
        if re.search(sign, text):
            return InstallationFailed(words, hint=hint + other, detail=detail)
    return InstallationFailed(
        f"{program} failed with exit code {code}.",
        hint="The last of its own lines say why.",
        detail=detail,
    )
