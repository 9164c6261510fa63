"""The files of a probe job: its script, the probe beside it, and its settings."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..batch import find_backend, programs_of
from ..core.cluster import Phase, Record, Spec, Target, heads_mark
from ..core.errors import InvalidInput
from ..core.job import Job
from ..core.serialize import to_json
from ..host.cluster_directory import ClusterDirectory
from ..host.private_files import make_private, write_private
from ..launch.naming import new_id
from ..launch.plan import Plan
from ..launch.script.job import render, write_node_files
from ..launch.script.launchers import find_dialect, layout_of, options_of
from ..launch.script.worker_command import expanding
from ..launch.spec import make_spec
from ..node import probe
from ..profiles import Profile
from .reach import Expected

WALLTIME = 300
"""Seconds; an import from a slow file system may take minutes."""
FORGOTTEN_SECONDS = 3600.0
READY = "import sys; sys.exit(sys.version_info < (3, 8))"


@dataclass
class Probe:
    """One probe job: its files, its requests, and its state."""

    directory: ClusterDirectory
    record: Record
    job: Job
    """The job as last observed."""
    expected: Expected
    listener: probe.Listener
    ssh: list[str]
    """The launcher's command if it is ssh, up to the host."""
    submitted: float = 0.0
    began: float = 0.0
    """Time of the first rank's hello; 0 = none yet."""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: dict[str, dict[str, str]] = field(default_factory=dict)
    logins: dict[str, str] | None = None


@contextlib.contextmanager
def job_files(root: Path) -> Iterator[ClusterDirectory]:
    """Make a directory beside those of clusters, on the same file system, for a while."""
    place = root.parent / "doctor"
    make_private(root.parent)
    make_private(place)
    for old in place.iterdir():
        # Its process was killed; a job that it left ends when it misses its lease.
        with contextlib.suppress(FileNotFoundError):  # another check is just done
            if time.time() - old.stat().st_mtime > FORGOTTEN_SECONDS:
                shutil.rmtree(old, ignore_errors=True)
    directory = ClusterDirectory(place / new_id(place))
    directory.create()
    try:
        yield directory
    finally:
        directory.remove()
        if not any(other.is_dir() for other in place.iterdir()):
            for shared in place.iterdir():  # listings and limits, which checks share
                shared.unlink(missing_ok=True)


def prepare(directory: ClusterDirectory, plan: Plan, listener: probe.Listener) -> Probe:
    """Write the job's script, the probe that it runs, and the settings that it reads.

    Raises
    ------
    InvalidInput
        The profile makes no job.
    """
    make_private(directory.path / "answers")
    directory.renew_lease()
    spec, profile, text = _script(directory, plan)
    expected = _expected(profile, spec, plan)
    write_private(directory.jobs / "probe.py", Path(probe.__file__).read_bytes())
    write_node_files(directory)
    submits = expected.in_job and profile.head.submit == "direct"
    settings = {
        **to_json(expected),
        "secret": listener.secret,
        "port": listener.port,
        "addresses": _addresses(expected),
        "modules": ["distributed", *(["dask_cuda"] if expected.gpus else [])],
        "programs": programs_of(find_backend(profile.backend)) if submits else [],
    }
    write_private(directory.jobs / "probe.json", json.dumps(settings).encode())
    now = time.time()
    mark = heads_mark(directory.id)
    write_private(directory.jobs / f"{mark}.sh", text.encode())
    # The job of a head is watched before any head is there, just as this one.
    record = Record(
        id=directory.id,
        name="doctor",
        spec=replace(spec, in_job=True),
        target=Target(spec.worker.per_job, spec.worker.per_job),
        created=now,
        phase=Phase.PENDING,
        jobs=(Job(mark, 0, submitted=now),),
    )
    ssh = _ssh(profile, spec) if profile.launcher.name == "ssh" else []
    return Probe(directory, record, record.jobs[0], expected, listener, ssh)


def _addresses(expected: Expected) -> list[str]:
    """Return the addresses of this host to try; loopback only where the profile names it."""
    return [
        address
        for address in expected.interfaces.values()
        if not address.startswith("127.") or address == expected.address
    ]


def _expected(profile: Profile, spec: Spec, plan: Plan) -> Expected:
    layout = layout_of(spec)
    container = profile.environment.container
    return Expected(
        ranks=layout.total,
        nodes=layout.nodes,
        gpus=layout.gpus,
        in_job=profile.head.placement == "job",
        interface=profile.network.interface or "",
        head_interface=profile.head.interface or "",
        interfaces=probe.interfaces(),
        usual=probe.usual_address(),
        versions=plan.environment.versions,
        python=container.python if container else spec.python,
    )


def _script(directory: ClusterDirectory, plan: Plan) -> tuple[Spec, Profile, str]:
    """Return the script of a job like the cluster's own, but short and with the probe in it."""
    own = plan.profile.model_copy(update={"groups": {}})
    shortest = min(WALLTIME, own.job.walltime or WALLTIME)
    short = own.model_copy(update={"job": own.job.model_copy(update={"walltime": shortest})})
    try:
        return _rendered(directory, plan, short)
    except InvalidInput:  # its own directives say how long it takes
        return _rendered(directory, plan, own)


def _rendered(
    directory: ClusterDirectory, plan: Plan, profile: Profile
) -> tuple[Spec, Profile, str]:
    plan = replace(plan, profile=profile)
    spec = make_spec(plan, directory, Path())
    container = profile.environment.container
    place = shlex.quote(str(directory.path))
    script = shlex.quote(str(directory.jobs / "probe.py"))
    python = shlex.quote(container.python) if container else _python(spec.python)
    work = f'{python} {script} rank {place} "$GPUCLUSTER_WORKER"'
    if spec.worker.local_directory:
        work += f" {expanding(spec.worker.local_directory)}"
    if profile.launcher.name == "ssh":
        login = f"{_python(spec.python)} {script} ssh {place} {shlex.join(_ssh(profile, spec))}"
        # Each rank runs the prologue, too.
        line = f'[ -n "${{GPUCLUSTER_RANK:-}}" ] || {login}'
        prologue = (*profile.environment.prologue, line)
        changed = profile.environment.model_copy(update={"prologue": prologue})
        profile = profile.model_copy(update={"environment": changed})
    text = render(profile, spec, directory, work=work)
    return spec, profile, text


def _python(python: str) -> str:
    """Return a word of the shell: a Python that runs there, the cluster's own if it does."""
    names = f"{shlex.quote(python)} python3 python"
    tried = f'"$each" -c \'{READY}\' && command -v "$each" && break'
    return f'"$(for each in {names}; do {tried}; done)"'


def _ssh(profile: Profile, spec: Spec) -> list[str]:
    launcher = profile.launcher
    options = options_of(find_dialect(launcher), launcher, layout_of(spec))
    return [launcher.command or launcher.name, *options]
