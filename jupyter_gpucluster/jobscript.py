"""Job and dialect -> text: the script of a job, and the spec that the head lives by."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .backends.base import Backend
from .store import ClusterDirectory
from .machine import Machine
from .profiles import Profile
from .records import JobShape, Policy, Spec, WorkerShape

MARK = "@MARK@"
"""Stands for the submission's mark in a script; the head fills it in."""
WORKER_NAME = '"$GPUCLUSTER_WORKER"'
"""The one unquoted word of a script: the job's own name, expanded where the job runs."""
ONE_THREAD_EACH = {
    # What a nanny sets: with several workers on a node, each library's own thread pool as wide as
    # the node is slower than none (dask.org, "Oversubscribing"; distributed.nanny.pre-spawn-environ).
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_TRIM_THRESHOLD_": "65536",
}
NO_WORKER_PAGES = {
    # `--no-dashboard` still listens on every interface; without routes it answers nothing.
    "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
}
MOST_DEFAULT_WORKERS = 4


def default_workers(profile: Profile, machine: Machine) -> int:
    """Return how many workers a user gets who does not say."""
    if uses_gpus(profile, machine):
        wanted = len(machine.gpus) if profile.backend == "local" else 1
    elif profile.backend == "local":
        wanted = min(machine.cpus, MOST_DEFAULT_WORKERS)
    else:
        wanted = 1
    return min(wanted, profile.limits.workers or wanted)


def uses_gpus(profile: Profile, machine: Machine) -> bool:
    """Tell whether each worker gets a GPU."""
    if profile.job.gpus == "auto":
        return profile.backend == "local" and bool(machine.gpus)
    return profile.job.gpus > 0


def maximum_workers(profile: Profile, machine: Machine) -> int | None:
    """Return the most workers that a cluster may have, None where only the site knows."""
    ceilings = [profile.limits.workers] if profile.limits.workers else []
    if profile.backend == "local" and uses_gpus(profile, machine):
        ceilings.append(len(machine.gpus))
    return min(ceilings, default=None)


def make_spec(
    profile: Profile,
    *,
    name: str,
    workers: int,
    machine: Machine,
    python: str,
    environment: str,
    directory: ClusterDirectory,
    scratch: Path,
    options: dict[str, object],
) -> Spec:
    """Settle everything that does not change during a cluster's life.

    Parameters
    ----------
    workers
        How many workers share the machine at first; cores and memory are divided by them.
    scratch
        Where local workers put data that does not fit into memory.
    """
    gpus = uses_gpus(profile, machine)
    share = max(1, workers)
    threads = profile.workers.threads
    if threads == "auto":
        threads = 1 if gpus else max(1, (profile.job.cpus or machine.cpus) // share)
    memory = profile.workers.memory_limit
    if memory == "auto":
        memory = (profile.job.memory or machine.memory) // share
    device = profile.workers.device_memory_limit
    if device == "auto" or not gpus:
        device_limit = None
    else:
        device_limit = 0 if device is None else int(device)
    spec = Spec(
        profile=name,
        title=profile.title,
        backend=profile.backend,
        python=python,
        environment=environment,
        job=JobShape(
            nodes=profile.job.nodes,
            gpus=1 if gpus else 0,
            cpus=profile.job.cpus,
            memory=profile.job.memory,
            walltime=profile.job.walltime,
            queue=profile.job.queue,
            account=profile.job.account,
            directives=profile.job.directives,
            skip_directives=profile.job.skip_directives,
        ),
        worker=WorkerShape(
            threads=threads,
            memory_limit=memory,
            device_memory_limit=device_limit,
            local_directory=profile.workers.local_directory or str(scratch),
        ),
        variables={**ONE_THREAD_EACH, **NO_WORKER_PAGES, **profile.environment.variables},
        devices=machine.gpus if gpus else (),
        encrypted=profile.network.protocol == "tls",
        maximum_workers=maximum_workers(profile, machine),
        policy=Policy(
            idle_timeout=profile.policy.idle_timeout,
            no_client_timeout=profile.policy.no_client_timeout,
            max_lifetime=profile.policy.max_lifetime,
            replacements=profile.policy.replacements,
        ),
        options=options,
        scratch=str(scratch),
    )
    plain = not gpus and not profile.environment.prologue and not profile.workers.extra_args
    return spec if not plain else _with_preloaded_worker(spec, directory)


def _with_preloaded_worker(spec: Spec, directory: ClusterDirectory) -> Spec:
    argv = ["{scheduler}", "--name", "{name}", "--nthreads", str(spec.worker.threads)]
    argv += ["--memory-limit", str(spec.worker.memory_limit or 0)]
    argv += ["--local-directory", spec.worker.local_directory, "--host", spec.host]
    if spec.encrypted:
        argv += ["--tls-directory", str(directory.tls)]
    return replace(spec, worker_argv=tuple(argv))


def worker_command(spec: Spec, directory: ClusterDirectory, extra: Sequence[str] = ()) -> str:
    """Return the line that starts the worker of one job."""
    module = "dask_cuda.cli" if spec.job.gpus else "distributed.cli.dask_worker"
    argv = [spec.python, "-m", module, "--scheduler-file", str(directory.scheduler_file)]
    argv += ["--nthreads", str(spec.worker.threads)]
    argv += ["--memory-limit", str(spec.worker.memory_limit or 0)]
    argv += ["--local-directory", spec.worker.local_directory]
    argv += ["--host", spec.host, "--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    argv += ["--death-timeout", "60", "--protocol", "tls" if spec.encrypted else "tcp"]
    if spec.worker.device_memory_limit is not None:
        argv += ["--device-memory-limit", str(spec.worker.device_memory_limit)]
    if spec.encrypted:
        argv += ["--tls-ca-file", str(directory.tls / "ca.pem")]
        argv += ["--tls-cert", str(directory.tls / "worker-cert.pem")]
        argv += ["--tls-key", str(directory.tls / "worker-key.pem")]
    return f"{shlex.join([*argv, *extra])} --name {WORKER_NAME}"


def render(profile: Profile, spec: Spec, backend: Backend, directory: ClusterDirectory) -> str:
    """Return the script of one job, with `MARK` where the mark goes."""
    exports = [
        f"export {name}={shlex.quote(value)}"
        for name, value in {**spec.variables, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}.items()
    ]
    lines = [
        "#!/bin/sh",
        *backend.directives(spec.job, MARK),
        *exports,
        *profile.environment.prologue,
        f"exec {worker_command(spec, directory, profile.workers.extra_args)}",
    ]
    return "\n".join(lines) + "\n"
