"""Start a module of this room for a cluster, in a process that outlives this one."""

from __future__ import annotations

import contextlib
import subprocess
import sys

from ..host.cluster_directory import ClusterDirectory

SPAWN_SECONDS = 10.0


def start_module(module: str, directory: ClusterDirectory, log: int = subprocess.DEVNULL) -> None:
    """Start a module with the cluster's directory as its argument; errors change nothing.

    Parameters
    ----------
    log
        Descriptor of the file that takes its output.
    """
    argv = [sys.executable, "-P", "-m", f"{__package__}.{module}", str(directory.path)]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(  # the shell ends at once, and leaves no zombie to a server
            ["/bin/sh", "-c", '"$@" &', "sh", *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            timeout=SPAWN_SECONDS,
            check=False,
        )
