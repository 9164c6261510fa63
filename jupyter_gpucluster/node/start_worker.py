"""Start a Dask worker as ``python -m`` does, and say in the log where its imports hang.

A job's Python runs this file by its path, with ``-m``, a module and its arguments behind it, so it
needs nothing but the standard library.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import runpy
import sys
import threading
import time
from collections.abc import Iterator

STACK_SECONDS = 60.0
"""Period in which the log gets the stack of imports that take long."""

LIFETIME = "DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION"
LIFETIME_KEY = "distributed.worker.lifetime.duration"


def main(module: str, arguments: list[str]) -> None:
    """Import the package that a module is of, then run the module as the main one."""
    package = module.partition(".")[0]
    if not getattr(sys.flags, "safe_path", False):
        # Of a file that is run it is the file's directory.
        with contextlib.suppress(OSError):  # it may have been deleted
            sys.path[0] = os.getcwd()  # noqa: PTH109  # as text
    began = time.monotonic()
    say(f"importing {package}")
    with stacks():
        importlib.import_module(package)
    heed_own_files()
    say("starting workers", f" (imports took {time.monotonic() - began:.1f} s)")
    sys.argv = [module, *arguments]
    # What a nanny starts anew finds the module by its name, as after `python -m`.
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def heed_own_files() -> None:
    """Take the job script's word on a worker's lifetime back where the user's Dask files have one.

    To Dask a variable counts more than a file, and no shell reads these.
    """
    left = os.environ.get("GPUCLUSTER_LEFT")
    if left is None or os.environ.get(LIFETIME) != f"{left} s":
        return
    config = importlib.import_module("dask.config")
    own = config.get(LIFETIME_KEY, None, config=config.collect(env={}))
    if own:
        del os.environ[LIFETIME]
        config.set({LIFETIME_KEY: own})


@contextlib.contextmanager
def stacks() -> Iterator[None]:
    """Write the stack of what takes long onto standard error, again and again.

    By a thread of Python's, not by faulthandler's: that one reads frames while they change, and
    crashed one start in a hundred that was slow and went on.
    """
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(threading.get_ident(), done), daemon=True)
    try:
        watcher.start()
    except RuntimeError:  # no more threads may be had
        yield
        return
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(thread: int, done: threading.Event) -> None:
    while not done.wait(STACK_SECONDS):
        # No line of a source is shown: its file may be on what hangs.
        lines = ["gpucluster: stack, innermost first:"]
        frame = sys._current_frames().get(thread)
        while frame is not None:
            code = frame.f_code
            lines.append(f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_name}')
            frame = frame.f_back
        print("\n".join(lines), file=sys.stderr, flush=True)


def say(phase: str, more: str = "") -> None:
    """Write a line into the job's log, in the words of the job's script."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    print(f"gpucluster: {phase} since {now}{more}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3:])
