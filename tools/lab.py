"""Open JupyterLab with the extension of this checkout."""

from __future__ import annotations

import os
import shlex
import sys

from tools.setup import MAIN, set_up
from tools.shell import CHECKOUT, main, say


def lab() -> None:
    """Become JupyterLab; the next free port is taken when the usual one is busy."""
    env = set_up()
    command = [str(MAIN / "bin" / "jupyter"), "lab", "--ServerApp.port_retries=100"]
    if os.geteuid() == 0:
        command.append("--allow-root")
    if not any(env.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        say("No display here: open the address that JupyterLab prints below.")
        command.append("--no-browser")
    command += sys.argv[1:]
    say(shlex.join(command))
    os.chdir(CHECKOUT)
    os.execve(command[0], command, env)  # noqa: S606  # no shell is the point


if __name__ == "__main__":
    main(lab)
