"""The command that starts workers: Dask's or dask-cuda's, in a container or not.

dask-jobqueue's class writes it where there is one of the batch system's jobs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from ...batch import find_backend, image_option, job_classes, on_this_machine
from ...batch.quoting import directive_value
from ...core.cluster import Spec, WorkerShape, protocol_of
from ...core.errors import InvalidInput
from ...host.cluster_directory import ClusterDirectory
from ...host.environ import LEFT, LIFETIME
from ...profiles import Profile
from ...profiles.sections import Container, Workers
from .launchers import find_dialect, layout_of

WORKER_NAME = '"$GPUCLUSTER_WORKER"'
"""The one unquoted word of a script: the job's own name, expanded where the job runs."""
DEATH_TIMEOUT = 60
"""Seconds for which a worker looks for its scheduler."""
WORKER_STARTER = "workerstart.py"
"""The file that runs Dask's or dask-cuda's module: jobs may not see this package."""
ENVIRONMENT_PREFIXES = {"apptainer": "APPTAINERENV_", "singularity": "SINGULARITYENV_"}
CLEAN = frozenset({"-e", "--cleanenv", "-c", "--contain", "-C", "--containall"})
"""Arguments with which these runtimes do not hand all variables on."""


def worker_lines(
    profile: Profile, spec: Spec, directory: ClusterDirectory, work: str = ""
) -> tuple[list[str], str]:
    """Return the lines that prepare a node, and the one that starts a rank's workers there.

    Parameters
    ----------
    work
        What runs in place of the workers, where they would; empty for the workers.
    """
    container = profile.environment.container
    extra = extra_arguments(profile.workers)
    cores = core_lines(spec) if spec.spread or not on_this_machine(spec.backend) else []
    if container is None or spec.simulated:
        return cores, work or worker_command(spec, directory, extra)
    before, words = inside(container, spec, directory.path, spec.worker.local_directory)
    line = work or worker_command(spec, directory, extra, container.python)
    return [*cores, *before], " ".join([*words, line])


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
    backend = find_backend(spec.backend)
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


def lifetime_lines(seconds: str) -> list[str]:
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


# Containers.


def check_container(profile: Profile, directory: Path) -> None:
    """Refuse what cannot work.

    Raises
    ------
    InvalidInput
        Pyxis without the srun that it is a part of, a pod's image without pods, or a cluster
        directory that cannot be bound.
    """
    container = profile.environment.container
    if container is None:
        return
    if container.runtime == "pod":
        if not image_option(profile.backend) or container.args:
            raise InvalidInput(
                "The runtime `pod` is Kubernetes itself, and takes no arguments.",
                hint="Its other settings go into job.directives, such as"
                " spec.containers[0].imagePullPolicy = Always; other backends need another"
                " runtime.",
                detail="environment.container",
            )
        return
    launcher = profile.launcher
    starts = "" if launcher.name == "none" else find_dialect(launcher).container_runtime
    if container.runtime == "pyxis" != starts:
        raise InvalidInput(
            "Pyxis is a part of srun, which this profile does not use.",
            hint="Set launcher: srun, or use apptainer.",
            detail="environment.container.runtime",
        )
    if container.runtime != "shifter" and set(str(directory)) & set(":,"):
        raise InvalidInput(
            f"{directory} cannot be bound into a container: its name holds ':' or ','.",
            hint="Set head.directory to a directory without these characters.",
            detail="environment.container",
        )


def image_directives(profile: Profile) -> tuple[str, ...]:
    """Return the directives by which the batch system itself runs a job in the container."""
    container = profile.environment.container
    if container is None or container.runtime != "pod":
        return ()
    image = directive_value(container.image, "environment.container.image")
    return (f"{image_option(profile.backend)} = {image}",)


def inside(
    container: Container, spec: Spec, directory: Path, local_directory: str
) -> tuple[list[str], list[str]]:
    """Return the lines that prepare a container on its node, and the words before a command in it.

    Parameters
    ----------
    directory
        The cluster's directory, which the workers read certificates and addresses from.
    local_directory
        Where workers put data; empty where Dask chooses.
    """
    image, args = shlex.quote(container.image), map(shlex.quote, container.args)
    if container.runtime in ("pyxis", "pod"):  # srun or the node has made the container already
        return [], []
    if container.runtime == "shifter":  # the site mounts its file systems, and the driver
        return [], ["shifter", f"--image={image}", *args]
    place = expanding(local_directory)
    words = [container.runtime, "exec", *(["--nv"] if _on_gpus(spec) else [])]
    words += ["--bind", shlex.quote(str(directory)), *(["--bind", place] if place else [])]
    # What is bound must be there.
    lines = [f"mkdir -p {place}"] if place else []
    if CLEAN & set(container.args):
        names = [*spec.variables, "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"]
        names += [LIFETIME, LEFT] if seconds_of(spec) else []
        prefix = ENVIRONMENT_PREFIXES[container.runtime]
        for name in names:
            lines.append(f'[ -z "${{{name}+set}}" ] || export {prefix}{name}="${name}"')
    return lines, [*words, *args, image]


def srun_words(container: Container | None, directory: Path) -> list[str]:
    """Return what makes srun start its ranks in a container."""
    if container is None or container.runtime != "pyxis":
        return []
    mounts = shlex.quote(f"{directory}:{directory}")
    image = shlex.quote(container.image)
    return [
        f"--container-image={image}",
        f"--container-mounts={mounts}",
        *map(shlex.quote, container.args),
    ]
