"""Plan -> cluster: its directory, its files, and its head."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..batch import dialect_file, on_this_machine
from ..core.cluster import ENDED, EXISTING, Phase, Record, Spec, Target, heads_mark
from ..core.errors import (
    ClusterConflict,
    GpuClusterError,
    InvalidInput,
    LimitReached,
    StateError,
)
from ..core.job import Job
from ..core.summary import Event
from ..host.cluster_directory import ClusterDirectory
from ..host.hardware import check_interface
from ..host.private_files import locked, make_private, trouble, write_private
from ..host.processes import this_process
from ..host.state_root import make_entry
from ..profiles import Profile
from ..profiles.values import home_expanded
from ..state import head_job
from ..state.paths import check_place
from ..state.reader import START_LOCK, Memory, look_at
from ..state.view import ClusterView, Look
from .allocation import held_from_inside, is_spread
from .attaching import attach
from .certificates import make_certificates
from .naming import choose_name, new_id
from .plan import Plan, make_plan, start_remarks
from .request import Request
from .script.job import environment_script, group_scripts, render, write_node_files
from .site_limits import forget_old, rules, within_site
from .spawning import head_command, spawn
from .spec import make_spec

DAY = 86400.0
LOCK_SECONDS = 60.0
"""A starter holds the lock for half of that at most."""
CERTIFICATE_SECONDS = 365 * DAY
"""For clusters without a maximum lifetime: distributed cannot renew a certificate in use."""


def start(root: Path, memory: Memory, request: Request) -> Look:
    """Plan a request, make the cluster's files and start its head; see `Clusters.start`.

    Raises
    ------
    GpuClusterError
        The cluster cannot be started; nothing of it is left.
    """
    plan = make_plan(request)
    check_network(plan.profile)
    check_place(root, "JUPYTER_DATA_DIR")
    check_place(Path(tempfile.gettempdir()), "TMPDIR")
    make_private(root.parent)
    make_private(root)
    settings = plan.loaded.site.settings
    ended = bool(request.request_id or settings.retention or settings.limits.gpu_hours)
    with one_starter(root):
        seen = memory.looks(root, ended=ended, troubles=[])
        if request.request_id:
            for look, _ in seen:
                if look.record.request_id == request.request_id:
                    return look
        live = [view for _, view in seen if view.phase not in ENDED]
        listed = [view for _, view in memory.looks(root, ended=False, troubles=[])]
        unnamed = request.reuse and request.name is None
        wanted = request.profile if unnamed else request.name
        if request.reuse:
            for look, view in seen:
                if view.name == wanted and view.phase not in (*ENDED, Phase.STOPPING):
                    refuse_other(look.record, plan)
                    return look
        name = choose_name(request.profile, wanted, live, listed)
        check_clusters(plan, live)
        plan = within_site(plan, seen)
        forget_old(plan, seen)
        directory = new_directory(root, plan.profile)
        look = create(directory, plan, name)
    if plan.head_here or plan.profile.backend == EXISTING:
        return look
    # The lock is free again: a submit command may take a minute.
    return submit_head(directory, look.record)


def new_directory(root: Path, profile: Profile) -> ClusterDirectory:
    """Return the directory of a new cluster, which is not made yet, with an entry in the root.

    Raises
    ------
    InvalidInput
        The profile's directory is not an absolute path, or a variable in it is not set.
    """
    given, id = profile.head.directory, new_id(root)
    if not given:
        return ClusterDirectory(root / id)
    place = Path(os.path.expandvars(home_expanded(given)))
    if "$" in str(place) or not place.is_absolute():
        raise InvalidInput(
            f"head.directory is {given!r}: it is not an absolute path, or a variable in it is not"
            " set here.",
            hint="Write for example $SCRATCH/clusters, with a variable that is set here.",
            detail="head.directory",
        )
    check_place(place, "head.directory")
    make_private(place)
    return make_entry(root, place / id)


def refuse_other(record: Record, plan: Plan) -> None:
    """Refuse to take a live cluster that differs from the plan; name each difference."""
    spec, request = record.spec, plan.request
    pairs: dict[str, tuple[object, object]] = {
        "profile": (spec.profile, plan.loaded.name),
        "python": (spec.python, plan.environment.python),
    }
    for name in sorted({*spec.options, *request.options}):
        pairs[f"option {name}"] = (spec.options.get(name), request.options.get(name))
    if request.target is not None:
        pairs["number of workers"] = (_range(record.target), _range(request.target))
    different = [
        f"{what} is {has}, not {asked}"
        for what, (has, asked) in pairs.items()
        if str(has) != str(asked)
    ]
    if different:
        raise ClusterConflict(
            f"Cluster {record.name} cannot be reused: {'; '.join(different)}.",
            hint="Request the same, choose another name, scale it, or stop it first.",
            detail="name",
        )


def _range(target: Target) -> str:
    return f"{target.minimum} to {target.maximum}" if target.adaptive else str(target.maximum)


def check_network(profile: Profile) -> None:
    """Refuse an interface that this host lacks, if the head is to listen on it."""
    own = profile.head.interface
    name = own or profile.network.interface
    local = on_this_machine(profile.backend)
    listens = is_spread(profile) if local else profile.head.placement == "server"
    if name and listens and profile.backend != EXISTING:
        check_interface(name, "head.interface" if own else "network.interface")


def check_clusters(plan: Plan, live: Sequence[ClusterView]) -> None:
    """Refuse one cluster more than the profile allows."""
    most = plan.loaded.profile.limits.clusters
    running = [view.name for view in live if view.profile == plan.loaded.name]
    if most is not None and len(running) >= most:
        raise LimitReached(
            f"{plan.loaded.name} allows {most} at a time; running: {', '.join(running)}.",
            hint=plan.loaded.site.hint("Stop one first."),
            detail="profile",
        )


def create(directory: ClusterDirectory, plan: Plan, name: str) -> Look:
    """Make a cluster's files and start its head if it runs here; on any failure remove both."""
    scratch, existing = None, plan.profile.backend == EXISTING
    try:
        directory.create()
        if plan.head_here and not existing:
            scratch = make_scratch(directory.id)
        # A job's scratch directory is made where the job runs.
        spec = make_spec(plan, directory, scratch or Path())
        record = new_record(directory, plan, name, spec)
        if existing:
            directory.write_record(attach(directory, plan.profile, record))
            return look_at(directory)
        record = make_files(directory, plan, record)
        if scratch is not None:
            job = plan.joined.variables if plan.joined is not None else None
            spawn(directory, scratch, record, plan.survival.prefix, job, plan.environment.variables)
        return Look(directory, record, None)
    except BaseException:
        directory.remove()
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        raise


def new_record(directory: ClusterDirectory, plan: Plan, name: str, spec: Spec) -> Record:
    """Return the record of a cluster that starts now."""
    now = time.time()
    return Record(
        id=directory.id,
        name=name,
        spec=spec,
        target=plan.target,
        created=now,
        phase_since=now,
        request_id=plan.request.request_id,
        owner=this_process() if plan.request.owned else None,
    )


def submit_head(directory: ClusterDirectory, record: Record) -> Look:
    """Submit the job of a head; a cluster whose job is refused leaves nothing behind."""
    try:
        head_job.submit(directory, record)
    except GpuClusterError:
        directory.remove()
        raise
    words = f"Requested the scheduler's job ({heads_mark(record.id)})"
    directory.append_event(Event(time.time(), "submit", words))
    return look_at(directory)


def make_scratch(id: str) -> Path:
    """Make a directory of this machine for data that does not fit into the workers' memory."""
    try:
        return Path(tempfile.mkdtemp(prefix=f"gpc-{id}-"))
    except OSError as error:
        raise StateError(
            f"Cannot make a directory for temporary files: {error.strerror}.",
            hint="Free some space, or point TMPDIR at a directory that you can write.",
        ) from error


def make_files(directory: ClusterDirectory, plan: Plan, record: Record) -> Record:
    """Write all files that the head needs, the record last."""
    spec, owner, started_in, held = record.spec, record.owner, "", None
    if spec.spread:
        held = held_from_inside() if plan.joined is None else plan.joined.held
    with contextlib.suppress(OSError):  # it may have been deleted
        started_in = os.getcwd()  # noqa: PTH109  # as text
    spec = replace(
        spec,
        survives=plan.survival.survives and owner is None,
        survival=plan.survival.words if owner is None else owned_words(spec, owner.pid),
        scratch="" if spec.in_job else spec.scratch,
        allocation=held,
        started_in=started_in,
        site=rules(plan),
        root="" if directory.entry is None else str(directory.root),
    )
    if spec.encrypted or spec.in_job:
        lifetime = spec.policy.max_lifetime
        seconds = CERTIFICATE_SECONDS if lifetime is None else lifetime + DAY
        make_certificates(directory.tls, cluster=directory.id, seconds=seconds)
    write_private(directory.path / "token", secrets.token_urlsafe(32).encode())
    if (found := dialect_file(spec.backend)) is not None:
        source, dialect = found
        write_private(directory.path / dialect.file, source)
        spec = replace(spec, dialect=dialect)
    jobs = write_scripts(directory, plan, spec)
    phase = Phase.PENDING if jobs else Phase.STARTING
    record = replace(record, spec=spec, phase=phase, jobs=jobs)
    directory.write_record(record)
    for words in start_remarks(spec, plan):
        directory.append_event(Event(record.created, "start", words))
    return record


def write_scripts(directory: ClusterDirectory, plan: Plan, spec: Spec) -> tuple[Job, ...]:
    """Write the scripts and the files that jobs run; return the head's job if it has one."""
    profile = plan.profile
    texts = {
        directory.template(): render(profile, spec, directory),
        directory.environment(): environment_script(profile, spec, directory),
    }
    for group, script in group_scripts(profile, spec, directory):
        texts[directory.template(group)] = script
    jobs: tuple[Job, ...] = ()
    if spec.in_job:
        tag = heads_mark(directory.id)
        command = head_command(spec, directory)
        texts[directory.script(tag)] = render(profile, spec, directory, command)
        jobs = (Job(tag, 0, submitted=time.time()),)
    for path, text in texts.items():
        write_private(path, text.encode())
    write_node_files(directory)
    return jobs


def owned_words(spec: Spec, pid: int) -> str:
    """Return what ends a cluster that ends with the program that started it."""
    if spec.in_job:  # from another host no program can tell whether a process lives
        return "It ends when the program that started it closes it, or its scheduler's job ends."
    return f"It ends with the program that started it, process {pid}."


@contextlib.contextmanager
def one_starter(root: Path) -> Iterator[None]:
    """Let one starter at a time choose names and count clusters.

    Raises
    ------
    StateError
        Another one has not ended within a minute, or the lock cannot be made.
    """
    path = root / START_LOCK
    with contextlib.ExitStack() as stack:
        try:
            held = stack.enter_context(locked(path, LOCK_SECONDS))
        except OSError as error:
            raise trouble(error, path) from error
        # Some shared file systems know no locks; then two starts in one second may share a name.
        if held is False:
            holder = path.read_text("utf-8", "replace").strip() or "one of an older version"
            raise StateError(
                f"Another start has held the lock {path} for {LOCK_SECONDS:.0f} s: {holder}.",
                hint="If that process is stopped (Ctrl-Z), continue or end it.",
            )
        with contextlib.suppress(OSError):
            path.write_text(f"process {os.getpid()} on {os.uname().nodename}")
        yield
