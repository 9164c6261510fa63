"""Remove what the other make targets made."""

from __future__ import annotations

import shutil

from tools.shell import CHECKOUT, main

MADE = (
    ".venv",
    ".venv-gpu",
    "node_modules",
    "ui-tests/node_modules",
    "ui-tests/test-results",
    "lib",
    "jupyter_gpucluster/labextension",
    "build",
    "dist",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".import_linter_cache",
    ".hypothesis",
    ".yarn",
)


def clean() -> None:
    """Remove made folders and Python's caches beside the sources."""
    for name in MADE:
        shutil.rmtree(CHECKOUT / name, ignore_errors=True)
    for path in CHECKOUT.glob("*.tsbuildinfo"):
        path.unlink()
    for folder in ("benchmarks", "jupyter_gpucluster", "tests", "tools"):
        for cache in (CHECKOUT / folder).rglob("__pycache__"):
            shutil.rmtree(cache)


if __name__ == "__main__":
    main(clean)
