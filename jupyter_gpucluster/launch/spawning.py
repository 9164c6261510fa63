"""The start of a head: as a process that leaves its starter, or by the script of a job."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..batch import routed
from ..batch.variables import inherited
from ..core.cluster import Record, Spec
from ..core.errors import StateError
from ..host.cluster_directory import ClusterDirectory
from ..host.private_files import write_private
from ..host.processes import is_alive, signal_group

SPAWN_SECONDS = 30.0
HEAD = Path(__file__).resolve().parents[1] / "head" / "__main__.py"


def head_command(spec: Spec, directory: ClusterDirectory) -> str:
    """Return how a job's script starts the head, but for what is only known there."""
    return shlex.join([spec.python, "-P", str(HEAD), "head", "--directory", str(directory.path)])


def spawn(
    directory: ClusterDirectory,
    scratch: Path,
    record: Record,
    prefix: tuple[str, ...],
    job: Mapping[str, str] | None = None,
    kernel: Mapping[str, str] | None = None,
) -> None:
    """Start the head in a clean process; it leaves us before this returns.

    Parameters
    ----------
    job
        Variables of the batch job that it works with, where this process is not in that job.
    kernel
        Variables of the kernel whose Python it runs in.
    """
    argv = [*prefix, record.spec.python, "-P", str(HEAD), "head"]
    argv += ["--directory", str(directory.path), "--scratch", str(scratch)]
    environment = inherited(os.environ, with_job=record.spec.spread and job is None)
    environment |= {**(job or {}), **(kernel or {})}
    log = directory.logs / "head.log"
    write_private(log, b"")
    try:
        with log.open("ab") as stream:
            process = subprocess.Popen(  # argv of our own making
                argv,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=routed(record.spec, environment),
                start_new_session=True,
            )
    except OSError as error:
        raise StateError(
            f"Cannot start {record.spec.python}: {error.strerror}.",
            hint="Choose another Python for the cluster.",
        ) from error
    try:
        code = process.wait(SPAWN_SECONDS)
    except subprocess.TimeoutExpired as error:
        abandon(process, directory)
        raise StateError(
            f"{record.spec.python} did not start in {SPAWN_SECONDS:.0f} s.",
            hint="The machine or its file system may be overloaded; try again.",
        ) from error
    except BaseException:
        abandon(process, directory)
        raise
    if code:
        words = log.read_text("utf-8", "replace").strip()
        if not words:  # on a full disk a head cannot say so; this does
            write_private(directory.path / "room", bytes(1 << 14))
        last = words.splitlines()[-1] if words else f"exit code {code}"
        raise StateError(
            f"The scheduler process could not start: {last}",
            hint=f"If other programs start here, choose another Python than {record.spec.python}.",
            detail=words[-2000:],
        )


def abandon(process: subprocess.Popen[bytes], directory: ClusterDirectory) -> None:
    """End a head that is about to leave us; one that has not yet said so ends itself."""
    signal_group(process.pid, signal.SIGKILL)
    process.wait()
    head = directory.read_process()
    if head is not None and is_alive(head):
        signal_group(head.pid, signal.SIGKILL)
