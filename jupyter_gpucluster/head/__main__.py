"""Start a head, or its job server: ``python -P .../head/__main__.py head|jobs ...``.

The chosen Python usually lacks this package, and must not see the other packages that are
installed beside it.  So the package goes into ``sys.modules`` by its place, not onto ``sys.path``.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PACKAGE = "jupyter_gpucluster"


def put_package_in_place() -> None:
    """Make this file's own package importable, whatever else is installed."""
    if PACKAGE not in sys.modules:
        home = Path(__file__).resolve().parent.parent
        spec = importlib.util.spec_from_file_location(
            PACKAGE, home / "__init__.py", submodule_search_locations=[str(home)]
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"{home} is not a package")
        module = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = module
        spec.loader.exec_module(module)


if __name__ == "__main__":
    put_package_in_place()
    verb, *rest = sys.argv[1:]
    if verb == "jobs":
        from jupyter_gpucluster.head import local_scheduler

        if "--site" in rest:  # most clusters are not simulated
            from jupyter_gpucluster.head.simulator import server

            local_scheduler.main(rest, server.DemoServer)
        else:
            local_scheduler.main(rest, local_scheduler.JobServer)
    else:
        from jupyter_gpucluster.head import process

        process.main(rest)
