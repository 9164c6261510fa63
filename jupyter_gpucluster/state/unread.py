"""Stop clusters whose record cannot be read: their heads have it in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..batch import THIS_MACHINE
from ..core.cluster import ENDED, Phase, Record, Spec, Target
from ..core.errors import GpuClusterError, HeadUnreachable, NewerRecord
from ..core.serialize import copied
from ..host.cluster_directory import ClusterDirectory
from ..host.processes import end_leftovers
from ..host.state_root import cluster_at
from .control_client import ANSWER_SECONDS, QUICK_SECONDS, ask, endpoint_at
from .reader import ID, directories, look_at
from .reaper import end_head, kill_head
from .view import ClusterView, Look, view_of

LOST = (
    "Its record was damaged, so that its batch jobs, if it had any, could not be cancelled: they"
    " end by themselves within five minutes."
)


def stop_unread(root: Path, name: str, error: GpuClusterError, *, force: bool) -> ClusterView:
    """Stop a cluster by its process file and token; by force kill its head, and what it left.

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
    try:
        # A head that answers writes its record, by which its jobs can be cancelled.
        ask_to_stop(directory, QUICK_SECONDS if force else ANSWER_SECONDS)
    except GpuClusterError:
        if not force:
            raise
    record, remark, newer = draft(directory), LOST, False
    try:
        record, remark = look_at(directory).record, ""
    except GpuClusterError as trouble:
        newer = isinstance(trouble, NewerRecord)
    if force and newer:
        # Not ours to write: the version that made it finds its head dead, and cancels its jobs.
        kill_head(directory, record)
        end_leftovers(directory.path)
        record = replace(record, phase=Phase.STOPPED)
    elif force and record.phase not in ENDED:
        record = end_head(directory, record, remark)
    return view_of(Look(directory, record, directory.read_summary()))


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


def ask_to_stop(directory: ClusterDirectory, seconds: float) -> None:
    """Ask the head over HTTP."""
    if not (address := directory.read_http_address()):
        raise HeadUnreachable(
            f"Where the scheduler of cluster {directory.id} listens is not known.",
            hint=f"Kill it: jupyter gpucluster stop --force {directory.id}",
        )
    try:
        endpoint = endpoint_at(directory, address)
        ask(endpoint, "POST", "/gpucluster/stop", {"reason": ""}, seconds=seconds)
    except (HeadUnreachable, OSError, ValueError) as error:
        raise HeadUnreachable(
            f"The scheduler of cluster {directory.id} does not answer ({error}).",
            hint=f"If it hangs, kill it: jupyter gpucluster stop --force {directory.id}",
        ) from error


def draft(directory: ClusterDirectory) -> Record:
    """Return a record made from the other files on disk."""
    summary, head = directory.read_summary(), directory.read_process()
    created = directory.path.stat().st_mtime
    spec = Spec(profile="", title="", backend=THIS_MACHINE, python="")
    if summary is None:
        return Record(directory.id, directory.id, spec, Target(0, 0), created, head=head)
    spec = replace(spec, profile=summary.profile)
    return copied(Record, summary, spec=spec, created=created, head=head, unaccounted=None)
