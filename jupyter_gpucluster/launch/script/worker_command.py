"""The command that starts workers: Dask's or dask-cuda's, in a container or not.

dask-jobqueue's class writes it where there is one of the batch system's jobs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from ...batch import job_classes, on_this_machine
from ...batch.base import Backend
from ...core.cluster import Spec, WorkerShape, protocol_of
from ...host.cluster_directory import ClusterDirectory
from ...host.environ import LEFT, LIFETIME
from ...profiles import Profile
from ...profiles.sections import Workers
from .containers import inside, preparation
from .launchers import layout_of

WORKER_NAME = '"$GPUCLUSTER_WORKER"'
"""The one unquoted word of a script: the job's own name, expanded where the job runs."""
DEATH_TIMEOUT = 60
"""Seconds for which a worker looks for its scheduler."""
WORKER_STARTER = "workerstart.py"
"""The file that runs Dask's or dask-cuda's module: jobs may not see this package."""


def worker_lines(
    profile: Profile, spec: Spec, backend: Backend, directory: ClusterDirectory, work: str = ""
) -> tuple[list[str], str]:
    """Return the lines that prepare a node, and the one that starts a rank's workers there.

    Parameters
    ----------
    work
        What runs in place of the workers, where they would; empty for the workers.
    """
    container = profile.environment.container
    extra = extra_arguments(profile.workers)
    cores = core_lines(spec) if spec.spread or not backend.on_this_machine else []
    if container is None or spec.simulated:
        return cores, work or worker_command(spec, backend, directory, extra)
    place = expanding(spec.worker.local_directory)
    gpus = spec.job.gpus > 0 and not spec.simulated
    words = inside(container, directory.path, place, gpus=gpus)
    line = work or worker_command(spec, backend, directory, extra, container.python)
    names = [*spec.variables, "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"]
    names += [LIFETIME, LEFT] if seconds_of(spec) else []
    return [*cores, *preparation(container, place, names)], " ".join([*words, line])


def core_lines(spec: Spec) -> list[str]:
    """Return the lines that say where a rank's workers were bound to too few cores."""
    threads = spec.worker.threads * layout_of(spec).workers
    if threads == 1:
        return []
    return [
        # nproc itself would heed the variable.
        f"GPUCLUSTER_CORES=$(env -u OMP_NUM_THREADS nproc 2>/dev/null || echo {threads})",
        f'[ "$GPUCLUSTER_CORES" -ge {threads} ] ||'
        f' echo "Warning: $GPUCLUSTER_CORES cores for {threads} threads"',
    ]


def worker_command(
    spec: Spec,
    backend: Backend,
    directory: ClusterDirectory,
    extra: Sequence[str] = (),
    python: str = "",
) -> str:
    """Return the line that starts the workers of one rank; without a launcher, of one job.

    Parameters
    ----------
    extra
        More arguments of the worker.
    python
        Its interpreter, where it is not that of the head.
    """
    module = "dask_cuda.cli" if _on_gpus(spec) else "distributed.cli.dask_worker"
    starter = shlex.join([python or spec.python, str(directory.jobs / WORKER_STARTER)])
    # Sites name node-local storage by variables that exist only there, such as $TMPDIR.
    place = expanding(spec.worker.local_directory)
    if not backend.job_class:
        line = shlex.join(["-m", module, *worker_arguments(spec, directory), *extra])
        line += f" --local-directory {place}" if place else ""
        return f"{starter} {line} --name {WORKER_NAME}"
    workers, threads = layout_of(spec).workers, spec.worker.threads
    line = job_classes.command(
        backend.job_class,
        {
            "python": starter,
            "worker_command": module,
            "scheduler": f"--scheduler-file {shlex.quote(str(directory.scheduler_file))}",
            "name": WORKER_NAME,
            "cores": threads * workers,
            "memory": 2**20 * workers,
            "processes": workers,
            "death_timeout": DEATH_TIMEOUT,
            "local_directory": place or None,
            "worker_extra_args": [shlex.join([*own_arguments(spec, directory), *extra])],
        },
    )
    # The class rounds a limit, perhaps to more than there is, and always writes one.
    limit = spec.worker.memory_limit
    usual = f"--name {WORKER_NAME} --nthreads {threads}"
    exact = usual if limit is None else f"{usual} --memory-limit {limit}"
    line = line.replace(f"{usual} --memory-limit 1.00MiB", exact, 1)
    if any(word.partition("=")[0] == "--name" for word in extra):  # the last one counts
        line += f" --name {WORKER_NAME}"
    return line


def extra_arguments(workers: Workers) -> list[str]:
    """Return what the profile itself adds to the worker's command."""
    named = ",".join(f"{name}={amount}" for name, amount in workers.resources.items())
    return [*(["--resources", named] if named else []), *workers.extra_args]


def worker_arguments(spec: Spec, directory: ClusterDirectory) -> list[str]:
    """Return what Dask's or dask-cuda's worker is told, but for its name and its place for data."""
    argv = ["--scheduler-file", str(directory.scheduler_file)]
    argv += ["--nthreads", str(spec.worker.threads)]
    workers = layout_of(spec).workers
    if not _on_gpus(spec) and workers > 1:
        argv += ["--nworkers", str(workers)]
    if spec.worker.memory_limit is not None:
        argv += ["--memory-limit", str(spec.worker.memory_limit)]
    argv += ["--death-timeout", str(DEATH_TIMEOUT)]
    return argv + own_arguments(spec, directory)


def own_arguments(spec: Spec, directory: ClusterDirectory) -> list[str]:
    """Return those of a worker's arguments that no class of dask-jobqueue's writes."""
    argv = gpu_arguments(spec.worker) if _on_gpus(spec) else []
    if spec.host:
        argv += ["--host", spec.host]
    elif spec.interface:
        argv += ["--interface", spec.interface]
    argv += ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    argv += ["--protocol", protocol_of(spec)]
    if spec.encrypted:
        argv += ["--tls-ca-file", str(directory.tls / "ca.pem")]
        argv += ["--tls-cert", str(directory.tls / "worker-cert.pem")]
        argv += ["--tls-key", str(directory.tls / "worker-key.pem")]
    return argv


def _on_gpus(spec: Spec) -> bool:
    return spec.job.gpus > 0 and not spec.simulated


def gpu_arguments(worker: WorkerShape) -> list[str]:
    """Return what dask-cuda's worker is told about GPU memory.

    Sizes are absolute: dask-cuda takes fractions of the first device's memory, which is another
    one's on a node with several kinds, and the whole card's for a slice of it.
    """
    argv = []
    if worker.device_memory_limit is not None:
        argv += ["--device-memory-limit", str(worker.device_memory_limit)]
    if worker.rmm_pool is not None:
        argv += ["--rmm-pool-size", str(worker.rmm_pool)]
    if worker.rmm_async:
        argv.append("--rmm-async")
    if worker.rmm_libraries:
        argv += ["--set-rmm-allocator-for-libs", ",".join(worker.rmm_libraries)]
    if worker.cudf_spill:
        argv.append("--enable-cudf-spill")
    return argv


def expanding(path: str) -> str:
    """Quote a path so that the shell expands ``$NAME`` and ``${NAME}`` in it, nothing else."""
    parts = re.split(r"(\$\w+|\$\{\w+\})", path, flags=re.ASCII)
    return "".join(
        f'"{part}"' if number % 2 else shlex.quote(part)
        for number, part in enumerate(parts)
        if part
    )


MOST_SECONDS = 60


def seconds_of(spec: Spec) -> int:
    """Return after how many seconds of its job a worker leaves by itself; 0 = it does not.

    The head drains first: no later than `policy.drain_before` before the end, or else from the
    middle of the walltime on.
    """
    walltime, before = spec.job.walltime, spec.policy.drain_before
    if spec.simulated or on_this_machine(spec.backend) or not walltime or not before:
        return 0
    margin = int(min(MOST_SECONDS, before / 2, walltime / 4))
    return walltime - margin if margin else 0


def lines(seconds: str) -> list[str]:
    """Return the lines of a script that tell workers when to leave.

    Parameters
    ----------
    seconds
        How long they would have if they were there when this shell started.
    """
    return [
        f"export {LEFT}=$(({seconds} - SECONDS))",
        f'[ "${LEFT}" -le 0 ] || export {LIFETIME}="${{{LIFETIME}:-${LEFT} s}}"',
    ]
