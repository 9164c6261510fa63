"""The quick checks for daily work: lint, types, import directions and unit tests."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.setup import MAIN, set_up
from tools.shell import Stop, main, run, say, step

LINT: dict[str, tuple[str, ...]] = {
    "mypy": ("mypy",),
    "TypeScript lint and types": ("jlpm", "lint:check"),
    "ruff": ("ruff", "check", "."),
    "ruff format": ("ruff", "format", "--check", "."),
    "import directions": ("lint-imports", "--no-logo"),
    "words": ("python", "-m", "tools.words"),
    "documents": ("python", "-m", "mkdocs", "build", "--site-dir", "build/docs"),
}
"""The long ones come first, since they run side by side."""


def lint(env: dict[str, str]) -> None:
    """Run all linters side by side, so that one run shows everything they find."""

    def found(title: str, command: tuple[str, ...]) -> str:
        try:
            step(title, lambda: run(*command, env=env, quiet=True))
        except Stop:
            return title
        return ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = list(filter(None, pool.map(found, LINT, LINT.values())))
    if failed:
        raise Stop("these found something: " + ", ".join(failed))


def typescript_tests(env: dict[str, str]) -> None:
    """Run the unit tests of the Lab extension."""
    step("TypeScript tests", lambda: run("jlpm", "test", env=env))


PARALLEL = (
    f"--numprocesses={min((os.cpu_count() or 1) + 1, 4)}",
    "--dist=loadfile",
    "--no-loadscope-reorder",
)
"""A module's tests share its cluster, so they stay together; half of their time is waiting, so
there is one more than cores."""


def python_tests(venv: Path, env: dict[str, str], *arguments: str) -> None:
    """Run pytest in one of the environments; its own closing line says how long it took."""
    say(f"== Python tests in {venv.name}")
    run(venv / "bin" / "python", "-m", "pytest", *PARALLEL, *arguments, env=env)


def check() -> None:
    """Run them all."""
    env = set_up()
    lint(env)
    typescript_tests(env)
    python_tests(MAIN, env, "-m", "not slow and not browser")


if __name__ == "__main__":
    main(check)
