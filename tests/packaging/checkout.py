"""The checkout: its files as git sees them, and its two package descriptions."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


def files(*patterns: str) -> list[Path]:
    """Return tracked files, and new ones that are not ignored, relative to the checkout."""
    command = [
        "git",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        *patterns,
    ]
    listing = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    names = sorted(set(listing.stdout.split("\0")) - {""})
    return [Path(name) for name in names if (CHECKOUT / name).is_file()]


def text(name: str | Path) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


def pyproject() -> dict[str, Any]:
    return tomllib.loads(text("pyproject.toml"))


def package_json(folder: str = ".") -> dict[str, Any]:
    package: dict[str, Any] = json.loads(text(Path(folder, "package.json")))
    return package
