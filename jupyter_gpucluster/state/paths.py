"""Paths of a user's clusters: the directory of cluster directories."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from ..core.errors import StateError

FILLED_IN = ("@MARK@", "{name}", "{scheduler}")
"""Texts that the head and its job server replace in scripts and commands."""


def default_root() -> Path:
    """Return the directory that holds all cluster directories of this user."""
    # Absolute: heads and workers do not keep the starter's working directory.
    return Path(data_directory()).absolute() / "gpucluster" / "clusters"


def check_place(place: Path, variable: str) -> None:
    """Refuse a directory whose name scripts, commands or records would change.

    Raises
    ------
    StateError
        Its name holds control characters, bytes that are not UTF-8, or a text that we replace.
    """
    text = str(place)
    fault = next((f"the text {word}" for word in FILLED_IN if word in text), "")
    if re.search(r"[\x00-\x1f\x7f-\x9f]", text):
        fault = "line ends or other control characters"
    elif re.search(r"[\ud800-\udfff]", text):
        fault = "bytes that are not UTF-8"
    if fault:
        raise StateError(
            f"The directory {text!a} cannot be used: its name holds {fault}.",
            hint=f"Point {variable} at another directory.",
        )


def data_directory() -> str:
    """Return what ``jupyter_core.paths.jupyter_data_dir`` does, whose import takes 10 ms."""
    if given := os.environ.get("JUPYTER_DATA_DIR"):
        return given
    if sys.platform == "linux" and "JUPYTER_PLATFORM_DIRS" not in os.environ:
        shared = os.environ.get("XDG_DATA_HOME") or Path.home().resolve() / ".local" / "share"
        return str(Path(shared, "jupyter"))
    from jupyter_core.paths import jupyter_data_dir

    return jupyter_data_dir()
