"""Run commands in view of the user, and bring what the machine lacks or say what to install."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

CHECKOUT = Path(__file__).resolve().parent.parent


class Stop(Exception):
    """The reason, in one line, why a make target cannot go on."""


def main(action: Callable[[], int | None]) -> NoReturn:
    """Run a make target; what stops it is one line, not a traceback."""
    try:
        sys.exit(action())
    except Stop as reason:
        sys.exit(f"make: {reason}")
    except KeyboardInterrupt:
        sys.exit(130)


def say(text: str) -> None:
    """Print a line at once, in order with what commands print."""
    print(text, flush=True)


def run(
    *command: str | Path,
    env: Mapping[str, str] | None = None,
    folder: Path = CHECKOUT,
    quiet: bool = False,
) -> None:
    """Run a command without input and stop unless it succeeds.

    Parameters
    ----------
    quiet
        Show what the command printed only if it fails.
    """
    words = [str(word) for word in command]
    result = subprocess.run(
        words,
        cwd=folder,
        env=dict(env) if env is not None else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        if quiet:
            sys.stdout.write(result.stdout)
        raise Stop(f"{' '.join(words[:4])} ended with exit code {result.returncode}")


def output(command: Sequence[str], env: Mapping[str, str]) -> str:
    """Return what a command prints, '' when it is not there or fails."""
    program = shutil.which(command[0], path=env["PATH"])
    if program is None:
        return ""
    try:
        return subprocess.run(
            [program, *command[1:]], env=dict(env), capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def step(title: str, action: Callable[[], None]) -> None:
    """Name what is being done and how long it took."""
    say(f"== {title}")
    started = time.monotonic()
    action()
    say(f"   {title}: {time.monotonic() - started:.0f} s")


def need(present: Callable[[], bool], *, what: str, package: str) -> None:
    """Install a Debian package when root, else say in one line what to install.

    Parameters
    ----------
    present
        Tells whether it is there; asked again after the installation.
    what
        What is missing, in words.
    package
        The name of the Debian package that brings it.
    """
    if present():
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        step(f"install {package}", functools.partial(_apt_install, package))
    if not present():
        raise Stop(f"{what} is missing; install it first (Debian: apt-get install {package})")


def _apt_install(package: str) -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _apt_update()
    run("apt-get", "install", "-y", "--no-install-recommends", package, env=env, quiet=True)


@functools.cache
def _apt_update() -> None:
    run("apt-get", "update", quiet=True)
