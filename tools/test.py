"""Everything: lint, browser, Python on both Dask stacks, the wheel; pytest comes last."""

from __future__ import annotations

from tools.check import lint, python_tests, typescript_tests
from tools.setup import (
    GPU,
    MAIN,
    set_up,
    set_up_browser,
    set_up_gpu_stack,
    set_up_launchers,
    set_up_queueing_systems,
)
from tools.shell import CHECKOUT, main, run, step

WITHOUT_DASK = (
    "batch",
    "cli",
    "core",
    "doctor",
    "environments",
    "integration/batch",
    "integration/local/test_damaged_records.py",
    "integration/local/test_full_disk.py",
    "integration/local/test_owners.py",
    "integration/local/test_refused.py",
    "integration/local/test_removed.py",
    "integration/local/test_requests.py",
    "integration/local/test_scripts.py",
    "integration/local/test_silent_heads.py",
    "integration/local/test_state.py",
    "launch/script/test_head.py",
    "launch/test_allocation.py",
    "matrix",
    "packaging",
    "profiles",
    "server",
    "state/test_relay.py",
    "test_docs.py",
)
"""Dialects, profiles, terminal, server, wheel, batch systems, scripts, new environments, files on
disk and the documents' examples are the same beside any Dask, which most of them never import; so
they run on one stack."""


def test() -> None:
    """Run everything, the cheap and telling parts first."""
    env = set_up()
    lint(env)
    typescript_tests(env)
    set_up_browser(env)
    browser = CHECKOUT / "ui-tests"
    step("browser tests", lambda: run("jlpm", "test", env=env, folder=browser))
    set_up_queueing_systems()
    set_up_launchers()
    ignored = [f"--ignore=tests/{name}" for name in WITHOUT_DASK]
    python_tests(GPU, set_up_gpu_stack(), *ignored)
    python_tests(MAIN, env)


if __name__ == "__main__":
    main(test)
