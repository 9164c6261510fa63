"""An environment of its own that has the wheel and no Node.js on its path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.setup import install_into


@dataclass(frozen=True)
class Installed:
    """An environment that has the wheel and no Node.js on its path."""

    folder: Path

    @property
    def variables(self) -> Mapping[str, str]:
        return {**os.environ, "PATH": str(self.folder / "bin")}

    def run(self, *command: str, timeout: float = 120) -> str:
        """Run one of the environment's programs outside the checkout and return what it prints."""
        program = str(self.folder / "bin" / command[0])
        result = subprocess.run(
            [program, *command[1:]],
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert result.returncode == 0, f"{command}: {result.stdout}"
        return result.stdout


def install(python: str, folder: Path, *packages: str) -> Installed:
    """Make an empty virtual environment of an interpreter and install packages into it."""
    run_loudly([python, "-m", "venv", str(folder)])
    install_into(folder, *packages, uv=Path(sys.prefix))
    return Installed(folder)


def run_loudly(command: list[str]) -> None:
    """Run a command; what it printed is the message if it fails."""
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
