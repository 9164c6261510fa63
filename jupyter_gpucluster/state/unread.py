"""Stop clusters whose record cannot be read: their heads have it in memory."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import replace
from pathlib import Path

from ..batch import THIS_MACHINE
from ..core.cluster import ENDED, Phase, Record, Spec, Target
from ..core.errors import GpuClusterError, HeadUnreachable, NewerRecord
from ..core.serialize import copied
from ..host.cluster_directory import FORCED, ClusterDirectory
from ..host.processes import end_heirs, is_alive
from ..host.state_root import cluster_at
from .control_client import QUICK_SECONDS, ask, endpoint_at
from .reader import ID, directories, look_at
from .reaper import end_head, kill_head
from .view import ClusterView, Look, view_of

LOST = (
    "Its record was damaged, so that its batch jobs, if it had any, could not be cancelled: they"
    " end by themselves within four minutes."
)


def stop_unread(root: Path, name: str, error: GpuClusterError, *, force: bool) -> ClusterView:
    """Stop a cluster by its process file and token.

    Parameters
    ----------
    error
        Why its record cannot be read; raised again where no head of such a cluster lives.

    Raises
    ------
    HeadUnreachable
        The head does not answer, or lives on another host.
    """
    directory = find_unread(root, name)
    if directory is None:
        raise error
    if force:
        return end_unread(directory)
    ask_to_stop(directory)
    return view_of(look_again(directory) or Look(directory, draft(directory), None))


def find_unread(root: Path, name: str) -> ClusterDirectory | None:
    """Return the directory of an id, or of a name in a summary, if a head may live there."""
    if ID.fullmatch(name):
        found = [cluster_at(root, name)]
    else:
        found = [
            directory
            for directory in directories(root)
            if (summary := directory.read_summary()) is not None
            and summary.name == name
            and summary.phase not in ENDED
        ]
    return next((each for each in found if each.head_may_live()), None)


def ask_to_stop(directory: ClusterDirectory, seconds: float = 10.0) -> None:
    """Ask the head over HTTP, or by a signal if its address is unknown."""
    process, address = directory.read_process(), directory.read_http_address()
    by_force = f"If it hangs, kill it: jupyter gpucluster stop --force {directory.id}"
    if address:
        try:
            endpoint = endpoint_at(directory, address)
            ask(endpoint, "POST", "/gpucluster/stop", {"reason": ""}, seconds=seconds)
        except (HeadUnreachable, OSError, ValueError) as error:
            told = f"The scheduler of cluster {directory.id} does not answer ({error})."
            raise HeadUnreachable(told, hint=by_force) from error
    elif process is not None and is_alive(process):
        os.kill(process.pid, signal.SIGTERM)
    else:
        raise HeadUnreachable(
            f"Where the scheduler of cluster {directory.id} listens is not known.", hint=by_force
        )


def end_unread(directory: ClusterDirectory) -> ClusterView:
    """Kill a head, and end the processes of its cluster without its record."""
    # A head that answers writes its record, by which its jobs can be cancelled.
    with contextlib.suppress(GpuClusterError):
        ask_to_stop(directory, QUICK_SECONDS)
    look = look_again(directory)
    if look is not None:
        if look.record.phase not in ENDED:
            look = replace(look, record=end_head(directory, look.record))
        return view_of(look)
    record = draft(directory)
    try:
        directory.read_record()
    except NewerRecord:
        # Not ours to write: the version that made it finds its head dead, and cancels its jobs.
        with contextlib.suppress(OSError):
            (directory.path / FORCED).touch(mode=0o600)
        kill_head(directory, record)
        end_heirs(directory.path)
        return view_of(Look(directory, replace(record, phase=Phase.STOPPED), None))
    except GpuClusterError:
        record = end_head(directory, record, LOST)
    return view_of(Look(directory, record, None))


def look_again(directory: ClusterDirectory) -> Look | None:
    """Read a cluster whose head may have written its record again; None if it has not."""
    with contextlib.suppress(GpuClusterError):
        return look_at(directory)
    return None


def draft(directory: ClusterDirectory) -> Record:
    """Return a record made from the other files on disk."""
    summary, head = directory.read_summary(), directory.read_process()
    created = directory.path.stat().st_mtime
    spec = Spec(profile="", title="", backend=THIS_MACHINE, python="")
    if summary is None:
        return Record(directory.id, directory.id, spec, Target(0, 0), created, head=head)
    spec = replace(spec, profile=summary.profile)
    return copied(Record, summary, spec=spec, created=created, head=head, unaccounted=None)
