"""Run the bundled benchmark notebook on a local cluster and leave nothing behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tools.leftovers import end_processes
from tools.setup import MAIN, python_packages, variables
from tools.shell import CHECKOUT, Stop, main, run, say

NOTEBOOK = CHECKOUT / "jupyter_gpucluster" / "notebooks" / "parallel_sum.ipynb"


def demo() -> None:
    """Run it with Jupyter folders of its own, so that what it leaves can be told apart."""
    python_packages(MAIN)
    env = variables(MAIN)
    with tempfile.TemporaryDirectory(prefix="gpc-demo-") as folder:
        home = Path(folder)
        env |= {
            "JUPYTER_CONFIG_DIR": str(home / "config"),
            "JUPYTER_DATA_DIR": str(home / "data"),
            "JUPYTER_RUNTIME_DIR": str(home / "run"),
        }
        say("Starting a local cluster for the parallel sum, and running it on 1 and on 2 workers:")
        try:
            run(MAIN / "bin" / "python", "-m", "tools.notebook", NOTEBOOK, env=env)
        except KeyboardInterrupt:
            end_processes(home)
            say("Interrupted: the cluster is stopped and no process is left.")
            raise
        finally:
            left = end_processes(home)
    if left:
        raise Stop("the demo left processes, which were ended: " + "; ".join(left))
    say("The cluster is stopped and no process is left.")


if __name__ == "__main__":
    main(demo)
