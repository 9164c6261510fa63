"""Open JupyterLab on the simulated site, or let something happen there.

``make demo-site`` opens JupyterLab with folders of its own under ``build/demo-site``, so that
clusters of the demo never stand beside real ones.  While it runs, another terminal makes things
happen (``JUPYTER_DATA_DIR`` names the site where it is not the usual one, as in browser tests):

    python3 -m tools.demo_site push 120         # two minutes pass at once for queues and walltimes
    python3 -m tools.demo_site fail demo01 60   # a node and its jobs fail; repaired after 60 s
    python3 -m tools.demo_site show             # nodes, free GPUs and jobs
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from jupyter_gpucluster.head.simulator import site as site_rules
from jupyter_gpucluster.head.simulator.site import Site
from tools.lab import lab
from tools.shell import CHECKOUT, Stop, main, say

HOME = CHECKOUT / "build" / "demo-site"
SWITCH = "JUPYTER_GPUCLUSTER_DEMO"


def demo_site() -> None:
    """Open Lab, or do what the words say."""
    words = sys.argv[1:]
    if words and words[0] in ACTIONS:
        try:
            change(ACTIONS[words[0]], words[1:])
        except (IndexError, ValueError):
            raise Stop(f"cannot read {shlex.join(words)!r}; see tools/demo_site.py") from None
        return
    os.environ |= {
        SWITCH: "1",
        "JUPYTER_DATA_DIR": str(HOME / "data"),
        "JUPYTER_CONFIG_DIR": str(HOME / "config"),
    }
    say("A simulated site: profiles demo-*, whose GPUs are CPU workers of this machine.")
    lab()


def change(action: Callable[[Site, list[str]], Site], words: list[str]) -> None:
    """Change the site that the demo clusters of this user share."""
    root = Path(os.environ.get("JUPYTER_DATA_DIR", HOME / "data"), "gpucluster", "clusters")
    file = site_rules.site_file(root)
    if not file.parent.is_dir():
        raise Stop(f"no demo cluster was started yet below {root}")
    with site_rules.opened(file) as site:
        site[0] = action(site[0], words)


def push(site: Site, words: list[str]) -> Site:
    """Let seconds pass at once."""
    return replace(site, pushed=site.pushed + float(words[0]))


def fail(site: Site, words: list[str]) -> Site:
    """Let a node fail for some seconds."""
    if words[0] not in site_rules.NODES:
        raise Stop(f"there is no node {words[0]}; there are: {', '.join(site_rules.NODES)}")
    return site_rules.fail_node(site, words[0], *map(float, words[1:2]))


def show(site: Site, words: list[str]) -> Site:
    """Print nodes and jobs."""
    free = site_rules.free_gpus(site.jobs)
    for node in site_rules.NODES:
        say(f"{node}  {'down' if node in site.down else f'{free[node]} GPUs free'}")
    for job in site.jobs:
        say(f"{job.id}  {job.queue}  {job.state}  {job.outcome or job.reason}".rstrip())
    return site


ACTIONS = {"push": push, "fail": fail, "show": show}

if __name__ == "__main__":
    main(demo_site)
