"""Schedulers known by address or scheduler file: other users' clusters, and files of old runs."""

from __future__ import annotations

import errno
import json
import re
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.cluster import EXISTING, Phase, Record, heads_job
from ..core.errors import ClusterConflict, InvalidInput
from ..core.summary import Event, Summary, summary_of
from ..host.cluster_directory import ClusterDirectory
from .control_client import Endpoint

if TYPE_CHECKING:
    from ssl import SSLContext

ADDRESS = re.compile(
    r"(?:(?P<protocol>tcp|tls|ucx)://)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):(?P<port>\d{1,5})",
    re.ASCII,
)
ANSWER_SECONDS = 2.0
REMEMBERED_SECONDS = 15.0
"""A scheduler may write a line about each connection into its log."""

_answers: dict[tuple[str, str], tuple[float, str]] = {}


def read_address(text: str) -> tuple[str, str, int]:
    """Return protocol, host and port of a scheduler's address.

    Raises
    ------
    InvalidInput
        It is none, or of a protocol other than tcp, tls and ucx.
    """
    match = ADDRESS.fullmatch(text.strip())
    if match is None or not 0 < int(match["port"]) < 65536:
        raise InvalidInput(
            f"{ascii(text)[1:-1][:80]} is not the address of a scheduler.",
            hint="Write it as tcp://host:8786, tls://host:8786 or ucx://host:8786.",
            detail="existing.address",
        )
    return match["protocol"] or "tcp", match["host"].strip("[]"), int(match["port"])


def read_scheduler_file(path: Path) -> dict[str, Any]:
    """Return the content of a scheduler file.

    Raises
    ------
    InvalidInput
        It cannot be read, or is no scheduler file.
    """
    try:
        data = json.loads(path.read_bytes())
        if isinstance(data, dict) and isinstance(data.get("address"), str):
            return data
        why = "it holds no address"
    except OSError as error:
        why = str(error.strerror)
    except ValueError:
        why = "it is not JSON"
    raise InvalidInput(
        f"Cannot use the scheduler file {path}: {why}.",
        hint="It is what `dask scheduler --scheduler-file` writes; the scheduler may be gone.",
        detail="existing.scheduler_file",
    )


def look_at_existing(directory: ClusterDirectory, record: Record) -> tuple[Record, Summary]:
    """Return record and summary of another user's cluster, by whether its scheduler answers."""
    trouble = ""
    address = record.scheduler_address
    try:
        # Another scheduler may have written its file anew.
        address = read_scheduler_file(directory.scheduler_file)["address"]
        trouble = probe(directory, address)
        if trouble and directory.scheduler_file.is_symlink():
            trouble += f" {age_of(directory.scheduler_file)}"
    except InvalidInput as error:
        trouble = error.message
    phase = Phase.UNREACHABLE if trouble else Phase.RUNNING
    record = replace(record, phase=phase, reason=trouble, scheduler_address=address)
    words = "does not answer" if trouble else "answers; it was not started here"
    return record, summary_of(record, words, time.time())


def age_of(file: Path) -> str:
    """Return a sentence on the age of a scheduler file."""
    written = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.stat().st_mtime))
    return f"Its scheduler file of {written} may be left from an earlier run."


def probe(directory: ClusterDirectory, address: str) -> str:
    """Connect to a scheduler, at most every `REMEMBERED_SECONDS`, and return the fault.

    An encrypted one must show a certificate of its authority, and take ours.
    """
    key = (str(directory.path), address)
    when, trouble = _answers.get(key, (float("-inf"), ""))
    if time.monotonic() - when < REMEMBERED_SECONDS:
        return trouble
    try:
        reach(directory, address)
        trouble = ""
    except OSError as error:  # what goes wrong in TLS is one, too
        why = error.strerror or str(error) or "no answer in time"
        trouble = f"No Dask scheduler answers at {address}: {why}."
    _answers[key] = (time.monotonic(), trouble)
    return trouble


def reach(directory: ClusterDirectory, address: str) -> None:
    """Connect to a scheduler; raises `OSError` if it is gone or has other certificates."""
    protocol, host, port = read_address(address)
    # UCX makes its connections with the help of TCP, and takes no harm from one that says nothing.
    context = tls_context(directory) if protocol == "tls" else None
    with socket.create_connection((host, port), ANSWER_SECONDS) as plain:
        if context is not None:
            with context.wrap_socket(plain) as stream:
                stream.settimeout(ANSWER_SECONDS)
                stream.recv(1)  # under TLS 1.3 a refusal of our certificate comes only now


def tls_context(directory: ClusterDirectory) -> SSLContext:
    """Return the TLS settings of an encrypted scheduler; raises `OSError` without its files."""
    import ssl  # takes 15 ms, which other clusters do without

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # Dask's certificates name no hosts
    tls = directory.tls
    context.load_verify_locations(tls / "ca.pem")
    context.load_cert_chain(tls / "client-cert.pem", tls / "client-key.pem")
    return context


def detach(directory: ClusterDirectory, record: Record) -> None:
    """Forget another user's cluster, which goes on."""
    now = time.time()
    reason = f"Forgotten here; the scheduler at {record.scheduler_address} was left alone."
    over = replace(
        record, phase=Phase.STOPPED, phase_since=now, ended=now, reason=reason,
        revision=record.revision + 1,
    )  # fmt: skip
    directory.write_end(over, Event(now, "phase", f"stopped: {reason}"))
    directory.remove_private(record)


def dashboard_of(directory: ClusterDirectory, record: Record) -> Endpoint:
    """Return the address of another user's dashboard, if the profile trusts it.

    Raises
    ------
    ClusterConflict
        It does not, or the scheduler file names no dashboard.
    """
    if not record.spec.trusted:
        raise ClusterConflict(
            f"The dashboard of {record.name} is not shown here: another user started it.",
            hint="What it sends would run in your Jupyter page. Where you trust it, set"
            " existing.trust_dashboard in the profile and attach again.",
        )
    data = read_scheduler_file(directory.scheduler_file)
    port = data.get("services", {}).get("dashboard")
    if not isinstance(port, int):
        raise ClusterConflict(
            f"Only a scheduler file names the dashboard of {record.name}.",
            hint="Attach by existing.scheduler_file.",
        )
    _, host, _ = read_address(str(data["address"]))
    return Endpoint(host, port, "")


def not_ours(record: Record) -> ClusterConflict:
    """Return the error of a change to another user's cluster."""
    return ClusterConflict(
        f"Cluster {record.name} was not started here: it cannot be scaled or renamed.",
        hint="Only the user who started it can do that; stop removes it from this list.",
    )


def check_scheduler(directory: ClusterDirectory) -> None:
    """Check that the scheduler file is of this run and that a scheduler answers at its address.

    A scheduler that takes long is accepted: it may be busy.

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
        raise gone(record, f"Job {job} wrote its scheduler file, but its job is {own.id}.")
    try:
        if not record.spec.ucx:
            reach(directory, file["address"])
    except TimeoutError:
        return
    except InvalidInput as error:
        raise gone(record, error.message) from error
    except OSError as error:
        if not _is_gone(error):
            return  # Dask's own client tries again, and says in the end what is wrong
        why = error.strerror or str(error)
        problem = f"No scheduler answers at {file['address']}, the address in its file: {why}."
        raise gone(record, problem) from error


def _is_gone(error: OSError) -> bool:
    """Return whether an error is the other side's: this one may lack files, or a route."""
    import ssl  # takes 15 ms, and `reach` had to load it where it matters

    answered = (ConnectionRefusedError, ConnectionResetError, ssl.SSLError)
    if isinstance(error, socket.gaierror):
        return error.errno == socket.EAI_NONAME
    # What goes wrong in TLS is another cluster's scheduler, whose certificates are not ours.
    return isinstance(error, answered) or error.errno == errno.EHOSTUNREACH


def check_answer(directory: ClusterDirectory, answered: str) -> None:
    """Check that the scheduler that answered is the one that wrote the file.

    Parameters
    ----------
    answered
        The id of the scheduler that answered.

    Raises
    ------
    ClusterConflict
        It is another one, which got the same address.
    """
    try:
        file = read_scheduler_file(directory.scheduler_file)
    except InvalidInput:
        return
    if answered != file.get("id", answered):
        problem = f"Another scheduler answers at {file['address']}, the address in its file."
        raise gone(directory.read_record(), problem)


def job_of(file: dict[str, Any]) -> str:
    """Return the id of the job in which a head of ours wrote the file; empty for any other."""
    ours = file.get("gpucluster")
    return str(ours.get("job", "")) if isinstance(ours, dict) else ""


def gone(record: Record, problem: str) -> ClusterConflict:
    """Return the error of a scheduler that is gone."""
    way = f"start another one: jupyter gpucluster start {record.spec.profile}"
    if record.spec.backend == EXISTING:
        way = "ask its owner to start it again, then connect again."
    return ClusterConflict(
        f"Cluster {record.name} cannot be connected to: {problem}",
        hint=f"The file is left from an earlier run; {way}",
    )
