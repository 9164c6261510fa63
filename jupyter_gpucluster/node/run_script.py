"""Run a user's script as ``python SCRIPT`` does, with a default Dask client before its first line.

The cluster's Python runs this file by its path, so it needs only the standard library and
distributed.
"""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client

CLOSE_SECONDS = 5.0
"""A cluster that is gone must not hold the script's end up."""


def main(script: str, arguments: list[str]) -> None:
    """Connect to the cluster that the environment variables name, then run the script."""
    from distributed import Client

    sys.argv = [script, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = str(Path(script).resolve().parent)
    # Python starts multiprocessing's children from the module's file, so they get no client.
    module = types.ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    sys.excepthook = without_this_file
    code = compile(Path(script).read_bytes(), script, "exec", dont_inherit=True)
    # Not as a context manager: that client would stay the default beside one that the script makes.
    client = Client()
    forget_in_children(client)
    try:
        exec(code, module.__dict__)  # noqa: S102  # it is the user's own script
    finally:
        client.close(timeout=CLOSE_SECONDS)


def forget_in_children(client: Client) -> None:
    """Unset the default client in forked children: a connection belongs to one process."""
    import dask
    from distributed.client import _del_global_client

    def forget() -> None:
        dask.config.set(scheduler=None)
        _del_global_client(client)

    os.register_at_fork(after_in_child=forget)


def without_this_file(
    kind: type[BaseException], error: BaseException, trace: types.TracebackType | None
) -> None:
    """Print a traceback that begins in the script."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
