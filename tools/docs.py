"""The documentation as a site below `build/docs`."""

from __future__ import annotations

from tools.check import LINT
from tools.setup import MAIN, python_packages, variables
from tools.shell import main, run, say


def docs() -> None:
    """Build the site; a broken link or a page outside the navigation is an error."""
    python_packages(MAIN)
    run(*LINT["documents"], env=variables(MAIN))
    say("ready: build/docs/index.html")


if __name__ == "__main__":
    main(docs)
