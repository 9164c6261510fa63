"""Scheduler files left by a run that is over: told by their job, and by who answers there."""

from __future__ import annotations

import errno
import socket
from typing import Any

from ..core.cluster import EXISTING, Record, heads_job
from ..core.errors import ClusterConflict, InvalidInput
from ..host.cluster_directory import ClusterDirectory
from .external import reach, read_scheduler_file


def check_scheduler(directory: ClusterDirectory) -> None:
    """Look whether the scheduler file is of this run, and whether somebody answers where it says.

    Nothing is said of a scheduler that takes its time: it may be busy.

    Raises
    ------
    ClusterConflict
        The file is of another run, or the scheduler that wrote it is gone.
    """
    record = directory.read_record()
    try:
        file = read_scheduler_file(directory.scheduler_file)
    except InvalidInput as error:
        if record.spec.backend != EXISTING:
            return  # the record has the address, too, and a head that ends removes the file
        raise gone(record, error.message) from error
    own, job = heads_job(record), job_of(file)
    if own is not None and job and own.id and job != own.id:
        raise gone(record, f"Its scheduler file was written by job {job}, and it is job {own.id}.")
    try:
        if not record.spec.ucx:
            reach(directory, file["address"])
    except TimeoutError:
        return
    except InvalidInput as error:
        raise gone(record, error.message) from error
    except OSError as error:
        if not _says_that_it_is_gone(error):
            return  # Dask's own client tries again, and says in the end what is wrong
        why = error.strerror or str(error)
        told = f"No scheduler of it answers at {file['address']}, which its file names: {why}."
        raise gone(record, told) from error


def _says_that_it_is_gone(error: OSError) -> bool:
    """Tell whether an error is the other side's: this one may lack files, or a route."""
    import ssl  # takes 15 ms, and `reach` had to load it where it matters

    answered = (ConnectionRefusedError, ConnectionResetError, ssl.SSLError)
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_NONAME
    # What goes wrong in TLS is another cluster's scheduler, whose certificates are not ours.
    return isinstance(error, answered) or error.errno == errno.EHOSTUNREACH


def check_answer(directory: ClusterDirectory, answered: str) -> None:
    """Look whether the scheduler that answered is the one that wrote the file.

    Parameters
    ----------
    answered
        The id of the scheduler that answered.

    Raises
    ------
    ClusterConflict
        It is another one, which was given the same address.
    """
    try:
        file = read_scheduler_file(directory.scheduler_file)
    except InvalidInput:
        return
    if answered != file.get("id", answered):
        told = f"Another scheduler answers at {file['address']} than the one that wrote the file."
        raise gone(directory.read_record(), told)


def job_of(file: dict[str, Any]) -> str:
    """Return the id of the job in which a head of ours wrote the file; empty for any other."""
    ours = file.get("gpucluster")
    return str(ours.get("job", "")) if isinstance(ours, dict) else ""


def gone(record: Record, told: str) -> ClusterConflict:
    """Return the error of a scheduler that cannot be had any more."""
    way = f"start another one: jupyter gpucluster start {record.spec.profile}"
    if record.spec.backend == EXISTING:
        way = "have it started again, and connect anew."
    return ClusterConflict(
        f"Cluster {record.name} cannot be connected to: {told}",
        hint=f"The file is left from a run that is over; {way}",
    )
