"""List the user's own Dask settings, for messages about their effects."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

SETTING = re.compile(r"^\s*[^\s#]", re.MULTILINE)
"""Dask itself leaves files there in which everything is commented out."""


def own_settings() -> str:
    """Return a sentence that names files and variables with Dask settings; empty for none.

    Directories as in Dask's own ``dask.config``, which may be what cannot be imported.
    """
    environment = Path(sys.prefix, "etc", "dask")
    ours = environment / "jupyter_gpucluster.yaml"  # comes with this package
    places: list[str | Path] = [
        os.environ.get("DASK_ROOT_CONFIG", "/etc/dask"),
        environment,
        "~/.config/dask",
        os.environ.get("DASK_CONFIG", ""),
    ]
    files = dict.fromkeys(
        str(file) for place in places if place for file in _files(Path(place).expanduser())
    )
    variables = {name for name in os.environ if name.startswith("DASK_")}
    theirs = [file for file in files if Path(file) != ours and _has_setting(Path(file))]
    named = theirs + sorted(variables - {"DASK_CONFIG", "DASK_ROOT_CONFIG"})
    return f"Dask settings of your own are in force: {', '.join(named)}." if named else ""


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(file for file in place.iterdir() if file.suffix in (".yaml", ".yml", ".json"))
    return [place] if place.is_file() else []


def _has_setting(file: Path) -> bool:
    try:
        return SETTING.search(file.read_text("utf-8", "replace")) is not None
    except OSError:
        return True  # Dask will not be able to read it, either
