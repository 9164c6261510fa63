"""Commands of our own making in front of the machine's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def put_command(directory: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> Path:
    """Put a shell script before the machine's commands; return where it writes its arguments."""
    place = directory / "bin"
    place.mkdir(exist_ok=True)
    calls = directory / f"{name}.calls"
    command = place / name
    command.write_text(f'#!/bin/sh\necho "$@" >>{calls}\n{script}\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(place), prepend=os.pathsep)
    return calls
