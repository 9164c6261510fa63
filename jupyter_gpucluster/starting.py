"""The starter: settles a request, makes a cluster's files and spawns its head."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shlex
import shutil
import signal
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .backends import find_backend
from .environments import check_python, find_kernel
from .errors import (
    GpuClusterError,
    InvalidInput,
    LimitReached,
    StateError,
    UnsuitableEnvironment,
)
from .jobscript import MARK, default_workers, make_spec, maximum_workers, render, uses_gpus
from .machine import Machine, look_around
from .processes import is_alive, signal_group
from .profiles import LoadedProfile, Profile, apply_options, find_profile
from .records import Record, Spec, Submission, Target
from .store import ClusterDirectory, make_private, trouble, write_private
from .survival import BATCH_JOBS, Survival, find_survival
from .tls import make_certificates
from .views import Look, Script

if TYPE_CHECKING:
    from .clusters import Clusters

ALPHABET = string.ascii_lowercase + string.digits
DAY = 86400.0
CERTIFICATE_SECONDS = 365 * DAY
"""For clusters without a maximum lifetime: distributed cannot renew a certificate in use."""
SPAWN_SECONDS = 30.0
HEAD = Path(__file__).resolve().parent / "head" / "__main__.py"
NOT_INHERITED = (
    # What belongs to the process that starts the cluster, not to the cluster: its batch job ...
    *(f"{name.split('_')[0]}_" for name in BATCH_JOBS if name not in ("_CONDOR_SLOT", "JOB_ID")),
    "JOB_ID",
    "SBATCH_", "PBS_", "PE_", "SGE_", "_CONDOR_",
    # ... and its secrets.
    "JUPYTERHUB_", "JUPYTER_TOKEN", "JPY_",
    # A cluster that a worker's task starts is not that worker's.
    "GPUCLUSTER_",
)  # fmt: skip
INHERITED = frozenset(
    # Where the queueing systems' commands find their system.
    {"SLURM_CONF", "SLURM_CLUSTERS", "PBS_CONF_FILE", "PBS_DEFAULT", "PBS_EXEC", "PBS_SERVER",
     "LSF_ENVDIR", "LSF_SERVERDIR", "LSF_LIBDIR", "LSF_BINDIR",
     "SGE_ROOT", "SGE_CELL", "SGE_CLUSTER_NAME", "SGE_QMASTER_PORT", "SGE_EXECD_PORT",
     "OARCONFFILE", "OARDIR", "COBALT_CONFIG_FILES"}
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """What a user asks for."""

    profile: str
    name: str
    target: Target | None
    options: dict[str, Any]
    python: str
    kernel: str
    request_id: str


@dataclass(frozen=True)
class Plan:
    """A request that has been found good, before anything is made."""

    loaded: LoadedProfile
    profile: Profile
    """The loaded one with the user's options in it."""
    target: Target
    machine: Machine
    python: str
    environment: str
    survival: Survival = field(default_factory=find_survival)


def start(clusters: Clusters, request: Request) -> Look:
    """Settle, make, spawn; see `Clusters.start`."""
    plan = settle(request)
    refuse_unbuilt(plan.profile)
    make_private(clusters.root.parent)
    make_private(clusters.root)
    with locked(clusters.root / ".lock"):
        known = find_request(clusters, request.request_id)
        if known is not None:
            return known
        name = choose_name(clusters, request)
        check_limits(clusters, plan)
        directory = ClusterDirectory(clusters.root / new_id(clusters.root))
        scratch = None
        try:
            directory.create()
            scratch = make_scratch(directory.id)
            record = make(directory, scratch, plan, name, request)
            spawn(directory, scratch, record, plan.survival.prefix)
        except BaseException:
            directory.remove()
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
            raise
    return Look(directory, record, None)


def refuse_unbuilt(profile: Profile) -> None:
    """Refuse what a profile says and this version cannot do; anything else would cost GPU-hours."""
    if profile.backend == "local":
        return
    for key, asked in (
        ("launcher", profile.launcher.name != "none"),
        ("job.nodes", profile.job.nodes > 1),
        ("head.placement", profile.head.placement == "job"),
        ("head.submit", profile.head.submit == "relay"),
        ("environment.container", profile.environment.container is not None),
        ("network.ports", profile.network.ports is not None),
    ):
        if asked:
            raise InvalidInput(
                f"The profile sets {key}, which this version cannot do yet.",
                hint="Its script can be shown (verb script); to start, leave the key out.",
                detail=key,
            )


def preview(clusters: Clusters, request: Request) -> Script:
    """Render what `start` would submit, without making anything."""
    plan = settle(request)
    directory = ClusterDirectory(clusters.root / "<id>")
    scratch = Path(tempfile.gettempdir()) / "gpc-<id>"
    profile = plan.profile
    spec = spec_of(plan, directory, scratch, request)
    backend = find_backend(profile.backend)
    mark = "gpc-<id>-1"
    text = render(profile, spec, backend, directory).replace(MARK, mark)
    submission = Submission(
        mark,
        str(directory.jobs / f"{mark}.sh"),
        -(-plan.target.maximum // spec.worker.per_job),
        gpus=spec.job.gpus,
        text=text,
    )
    command = shlex.join(backend.submit(submission))
    stdin = backend.stdin(submission)
    if stdin == text:
        command += f" < {shlex.quote(submission.script)}"
    elif stdin:
        command += f" <<'END'\n{stdin}END"
    return Script(text, command)


def spec_of(plan: Plan, directory: ClusterDirectory, scratch: Path, request: Request) -> Spec:
    """Return what does not change during the life of a cluster in this directory."""
    return make_spec(
        plan.profile,
        name=plan.loaded.name,
        workers=plan.target.maximum,
        machine=plan.machine,
        python=plan.python,
        environment=plan.environment,
        directory=directory,
        scratch=scratch,
        options=request.options,
    )


def settle(request: Request) -> Plan:
    """Find a request good, or say which part of it is not."""
    from .clusters import check_target

    loaded = find_profile(request.profile)
    profile = apply_options(loaded.profile, request.options)
    find_backend(profile.backend)
    machine = look_around()
    asked = request.target
    target = asked or Target(*[default_workers(profile, machine)] * 2)
    check_target(target, least=1)
    ceiling = maximum_workers(profile, machine)
    if ceiling is not None and target.maximum > ceiling:
        unit = "GPUs" if uses_gpus(profile, machine) else "workers"
        raise LimitReached(
            f"{target.maximum} {unit} asked for; {loaded.name} allows {ceiling}.",
            hint=f"Ask for {ceiling} or fewer.",
            detail="target",
        )
    python, environment = choose_python(request, profile.environment.python)
    return Plan(loaded, profile, target, machine, python, environment)


def choose_python(request: Request, from_profile: str) -> tuple[str, str]:
    """Return the Python of head and workers, and the name of its kernel where it has one."""
    if request.kernel and request.python:
        raise InvalidInput(
            "Both a kernel and a Python were chosen.", hint="Choose one of them.", detail="python"
        )
    try:
        if request.kernel:
            found = find_kernel(request.kernel, strict=True)
            return found.python, found.name
        python = request.python or (sys.executable if from_profile == "kernel" else from_profile)
        return check_python(python, strict=True).python, ""
    except UnsuitableEnvironment as error:
        error.detail = "kernel" if request.kernel else "python"
        raise


def choose_name(clusters: Clusters, request: Request) -> str:
    """Return the wanted name, or the first free ``<profile>-<n>``."""
    if request.name:
        clusters.check_name(request.name)
        return request.name
    taken = {view.name for view in clusters.live()}
    number = 1
    while f"{request.profile}-{number}" in taken:
        number += 1
    return f"{request.profile}-{number}"


def check_limits(clusters: Clusters, plan: Plan) -> None:
    """Refuse one cluster more than the profile allows."""
    most = plan.loaded.profile.limits.clusters
    live = [view.name for view in clusters.live() if view.profile == plan.loaded.name]
    if most is not None and len(live) >= most:
        raise LimitReached(
            f"{plan.loaded.name} allows {most} clusters at a time; running: {', '.join(live)}.",
            hint="Stop one of them first.",
            detail="profile",
        )


def find_request(clusters: Clusters, request_id: str) -> Look | None:
    """Return the cluster that an earlier try of the same request made."""
    if request_id:
        for view in clusters.list(ended=True):
            directory = ClusterDirectory(clusters.root / view.id)
            with contextlib.suppress(GpuClusterError):
                record = directory.read_record()
                if record.request_id == request_id:
                    return Look(directory, record, directory.read_summary())
    return None


def new_id(root: Path) -> str:
    """Return six random characters that no cluster has; marks of 15 leave no room for more."""
    while True:
        id = "".join(secrets.choice(ALPHABET) for _ in range(6))
        if not (root / id).exists():
            return id


def make_scratch(id: str) -> Path:
    """Make a directory of this machine for what does not fit into the workers' memory."""
    try:
        return Path(tempfile.mkdtemp(prefix=f"gpc-{id}-"))
    except OSError as error:
        raise StateError(
            f"Cannot make a directory for temporary files: {error.strerror}.",
            hint="Free some space, or point TMPDIR at a directory that you can write.",
        ) from error


def make(
    directory: ClusterDirectory, scratch: Path, plan: Plan, name: str, request: Request
) -> Record:
    """Write all files that the head needs, the record last."""
    profile = plan.profile
    spec = spec_of(plan, directory, scratch, request)
    spec = replace(spec, survives=plan.survival.survives, survival=plan.survival.words)
    if spec.encrypted:
        lifetime = spec.policy.max_lifetime
        seconds = CERTIFICATE_SECONDS if lifetime is None else lifetime + DAY
        make_certificates(directory.tls, cluster=directory.id, seconds=seconds)
    write_private(directory.path / "token", secrets.token_urlsafe(32).encode())
    text = render(profile, spec, find_backend(spec.backend), directory)
    write_private(directory.jobs / "template.sh", text.encode())
    now = time.time()
    record = Record(
        id=directory.id,
        name=name,
        spec=spec,
        target=plan.target,
        created=now,
        phase_since=now,
        request_id=request.request_id,
    )
    directory.write_record(record)
    return record


def spawn(
    directory: ClusterDirectory, scratch: Path, record: Record, prefix: tuple[str, ...]
) -> None:
    """Start the head in a clean process; it leaves us before this returns."""
    argv = [*prefix, record.spec.python, "-P", str(HEAD), "head"]
    argv += ["--directory", str(directory.path), "--scratch", str(scratch)]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or not name.startswith(NOT_INHERITED)
    }
    log = directory.logs / "head.log"
    write_private(log, b"")
    try:
        with log.open("ab") as stream:
            process = subprocess.Popen(  # argv of our own making
                argv,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=environment,
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
        last = words.splitlines()[-1] if words else f"exit code {code}"
        raise StateError(
            f"The cluster's head could not start: {last}",
            hint=f"If this machine is well, choose another Python than {record.spec.python}.",
            detail=words[-2000:],
        )


def abandon(process: subprocess.Popen[bytes], directory: ClusterDirectory) -> None:
    """End a head that is about to leave us; one that has not yet said so ends itself."""
    signal_group(process.pid, signal.SIGKILL)
    process.wait()
    head = directory.read_process()
    if head is not None and is_alive(head):
        signal_group(head.pid, signal.SIGKILL)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one starter at a time choose names and count clusters."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise trouble(error, path) from error
    try:
        # Some shared file systems know no locks; then two starts in one second may share a name.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
