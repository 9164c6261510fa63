"""Run venv, pip or uv as a child process, and pass its output on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..core.errors import InstallationFailed, InvalidInput
from ..host.processes import signal_group

Say = Callable[[str], None]

SECONDS_TO_CLEAN_UP = 5.0
"""Time for an interrupted installer to delete its own temporary files."""
REDIRECTING = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "UV_SYSTEM_PYTHON", "UV_TARGET", "UV_PREFIX")
"""Variables that make installers write outside the environment."""

HINT = (
    "The output above has the reason. Without a network, try a login node, or a folder of wheels,"
    " PIP_NO_INDEX=1 and PIP_FIND_LINKS=FOLDER set (UV_OFFLINE and UV_FIND_LINKS for uv, which does"
    " not read pip's configuration). Else check names, free space and TMPDIR, or choose another"
    " Python (--python), which may need its package of venv (python3-venv)."
)
LAST_LINES = 8
"""Lines of an installer's output that an error quotes; pip explains its error in so many."""


def find_installer(name: str = "") -> str:
    """Return the given installer, or by default uv if it is on PATH, else pip.

    Raises
    ------
    InvalidInput
        uv was requested and is not on PATH.
    """
    found = shutil.which("uv")
    if name == "uv" and not found:
        raise InvalidInput(
            "There is no uv on PATH.", hint="Install it, or omit --installer.", detail="installer"
        )
    return name or ("uv" if found else "pip")


def install(installer: str, python: str, arguments: Sequence[str], say: Say, *held: int) -> None:
    """Install into the environment of a Python; ``say`` and ``held`` as in `run_installer`."""
    uv = ["uv", "pip", "install", "--python", python, "--compile-bytecode"]
    pip = [*_pip(python), "install", "--progress-bar", "off"]
    run_installer([*(uv if installer == "uv" else pip), *arguments], say, *held)


def installed_packages(installer: str, python: str) -> list[str]:
    """Return the installed packages, as requirements that install the same again."""
    uv = ["uv", "pip", "freeze", "--python", python]
    command = uv if installer == "uv" else [*_pip(python), "freeze"]
    return run_installer(command, lambda line: None, stderr=subprocess.DEVNULL)


def _pip(python: str) -> list[str]:
    # -I: no module of the current folder or of PYTHONPATH hides an installed one.
    return [python, "-I", "-m", "pip", "--disable-pip-version-check"]


def run_installer(
    command: Sequence[str], say: Say, *held: int, stderr: int = subprocess.STDOUT
) -> list[str]:
    """Run a command, pass each line of its output to ``say``, and return the lines.

    Parameters
    ----------
    held
        File descriptors that the child keeps open, with their locks: it may outlive this process.

    Raises
    ------
    InstallationFailed
        The command failed; ``detail`` is its own explanation.
    """
    kept = {name: value for name, value in os.environ.items() if name not in REDIRECTING}
    # No questions: no user could answer.  A site's pip.conf may set `user`, which a venv refuses.
    kept |= {"PIP_USER": "0", "PIP_NO_INPUT": "1", "GIT_TERMINAL_PROMPT": "0"}
    lines: list[str] = []
    with subprocess.Popen(
        command,
        env=kept,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        encoding="utf-8",
        errors="surrogateescape",
        # Ctrl-C reaches this process only, which then ends the child's whole group.
        start_new_session=True,
        pass_fds=held,
    ) as child:
        try:
            for line in child.stdout or ():
                lines.append(line.rstrip())
                say(lines[-1].encode(errors="replace").decode())
            child.wait()
        except BaseException:
            signal_group(child.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                child.wait(SECONDS_TO_CLEAN_UP)
            signal_group(child.pid, signal.SIGKILL)
            raise
    if child.returncode != 0:
        program = "uv" if command[0] == "uv" else command[command.index("-m") + 1]
        raise InstallationFailed(
            f"{program} failed, exit code {child.returncode}.",
            hint=HINT,
            detail="\n".join(lines[-LAST_LINES:]).encode(errors="replace").decode(),
        )
    return lines
