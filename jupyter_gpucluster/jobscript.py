"""Job and dialect -> text: the script of a job, and the spec that the head lives by."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .backends.base import Backend
from .backends.directives import merge
from .machine import Machine
from .profiles import Profile
from .records import JobShape, Policy, Spec, WorkerShape
from .store import ClusterDirectory

MARK = "@MARK@"
"""Stands for the submission's mark in a script; the head fills it in."""
WORKER_NAME = '"$GPUCLUSTER_WORKER"'
"""The one unquoted word of a script: the job's own name, expanded where the job runs."""
ONE_THREAD_EACH = {
    # What a nanny sets: with several workers on a node, each library's own thread pool as wide as
    # the node is slower than none (dask.org, "Oversubscribing"; nanny.pre-spawn-environ).
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


def workers_per_job(profile: Profile, machine: Machine) -> int:
    """Return how many workers one job holds."""
    if profile.workers.per_job != "auto":
        return profile.workers.per_job
    if profile.backend == "local" or not uses_gpus(profile, machine):
        return 1
    return int(profile.job.gpus)


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
    local = profile.backend == "local"
    per_job = workers_per_job(profile, machine)
    # On this machine all workers share what it has; elsewhere those of one job share the job's.
    share = max(1, workers) if local else per_job
    cpus = profile.job.cpus or (machine.cpus if local else per_job)
    threads = 1 if gpus else max(1, cpus // share)
    if profile.workers.threads != "auto":
        threads = profile.workers.threads
    memory = profile.workers.memory_limit
    if memory == "auto":
        total = profile.job.memory or (machine.memory if local else None)
        memory = None if total is None else total // share
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
            gpus=0 if not gpus else 1 if local else int(profile.job.gpus),
            cpus=profile.job.cpus,
            memory=profile.job.memory,
            walltime=profile.job.walltime,
            queue=profile.job.queue,
            account=profile.job.account,
            gpu_request=profile.job.gpu_request,
            gpu_type=profile.job.gpu_type,
            directives=profile.job.directives,
            skip_directives=profile.job.skip_directives,
        ),
        worker=WorkerShape(
            threads=threads,
            memory_limit=memory,
            device_memory_limit=device_limit,
            per_job=per_job,
            local_directory=profile.workers.local_directory or (str(scratch) if local else ""),
        ),
        variables={**ONE_THREAD_EACH, **NO_WORKER_PAGES, **profile.environment.variables},
        devices=machine.gpus if gpus and local else (),
        encrypted=profile.network.protocol == "tls",
        host="127.0.0.1" if local else "",
        interface=profile.network.interface or "",
        scheduler_interface=profile.head.interface or profile.network.interface or "",
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
    plain = (
        local and not gpus and not profile.environment.prologue and not profile.workers.extra_args
    )
    return spec if not plain else _with_preloaded_worker(spec, directory)


def _with_preloaded_worker(spec: Spec, directory: ClusterDirectory) -> Spec:
    argv = ["{scheduler}", "--name", "{name}", "--nthreads", str(spec.worker.threads)]
    argv += ["--memory-limit", str(spec.worker.memory_limit or 0)]
    argv += ["--local-directory", spec.worker.local_directory, "--host", spec.host]
    if spec.encrypted:
        argv += ["--tls-directory", str(directory.tls)]
    return replace(spec, worker_argv=tuple(argv))


def worker_command(spec: Spec, directory: ClusterDirectory, extra: Sequence[str] = ()) -> str:
    """Return the line that starts the workers of one job on one node."""
    module = "dask_cuda.cli" if spec.job.gpus else "distributed.cli.dask_worker"
    argv = [spec.python, "-m", module, "--scheduler-file", str(directory.scheduler_file)]
    argv += ["--nthreads", str(spec.worker.threads)]
    if not spec.job.gpus and spec.worker.per_job > 1:
        argv += ["--nworkers", str(spec.worker.per_job)]
    if spec.worker.memory_limit is not None:
        argv += ["--memory-limit", str(spec.worker.memory_limit)]
    if spec.worker.device_memory_limit is not None:
        argv += ["--device-memory-limit", str(spec.worker.device_memory_limit)]
    if spec.host:
        argv += ["--host", spec.host]
    elif spec.interface:
        argv += ["--interface", spec.interface]
    argv += ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    argv += ["--death-timeout", "60", "--protocol", "tls" if spec.encrypted else "tcp"]
    if spec.encrypted:
        argv += ["--tls-ca-file", str(directory.tls / "ca.pem")]
        argv += ["--tls-cert", str(directory.tls / "worker-cert.pem")]
        argv += ["--tls-key", str(directory.tls / "worker-key.pem")]
    line = shlex.join([*argv, *extra])
    if spec.worker.local_directory:
        # Sites name node-local storage by variables that exist only there, such as $TMPDIR.
        line += f" --local-directory {_expanding(spec.worker.local_directory)}"
    return f"{line} --name {WORKER_NAME}"


def _expanding(path: str) -> str:
    """Quote a path so that the shell expands ``$NAME`` and ``${NAME}`` in it, nothing else."""
    parts = re.split(r"(\$\w+|\$\{\w+\})", path, flags=re.ASCII)
    return "".join(
        f'"{part}"' if number % 2 else shlex.quote(part)
        for number, part in enumerate(parts)
        if part
    )


def render(profile: Profile, spec: Spec, backend: Backend, directory: ClusterDirectory) -> str:
    """Return the script of one job, with `MARK` where the mark goes."""
    exports = [
        f"export {name}={shlex.quote(value)}"
        for name, value in {**spec.variables, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}.items()
    ]
    command = worker_command(spec, directory, profile.workers.extra_args)
    if spec.backend == "local":
        lines = ["#!/bin/sh", *exports, *profile.environment.prologue, f"exec {command}"]
        return "\n".join(lines) + "\n"
    output = str(directory.logs / f"{MARK}.out")
    lines = [
        "#!/bin/bash",
        *merge(
            backend.directives(spec.job, MARK, output),
            spec.job.directives,
            spec.job.skip_directives,
        ),
        f"export GPUCLUSTER_JOB={MARK}_{backend.task}",
        f"GPUCLUSTER_RESTARTS={backend.restarts}",
        'export GPUCLUSTER_WORKER="$GPUCLUSTER_JOB"',
        '[ "$GPUCLUSTER_RESTARTS" = 0 ] ||'
        ' GPUCLUSTER_WORKER="$GPUCLUSTER_JOB.r$GPUCLUSTER_RESTARTS"',
        f"GPUCLUSTER_DIRECTORY={shlex.quote(str(directory.path))}",
        'exec >>"$GPUCLUSTER_DIRECTORY/logs/$GPUCLUSTER_JOB.log" 2>&1',
        'echo "$GPUCLUSTER_WORKER on $(hostname) since $(date)"',
        *exports,
        *profile.environment.prologue,
        f"{command} &",
        *GUARD,
    ]
    return "\n".join(lines) + "\n"


LEASE_LAPSED = 180
"""Seconds: the head renews its lease every 15; NFS may show a file's time a minute late."""
GUARD = f"""\
worker=$!
# The lease and the file beside it get their times from one file server: no two clocks compared.
guard() {{
    trap 'kill $! 2>/dev/null; exit' TERM
    while kill -0 "$worker" 2>/dev/null; do
        sleep 30 & wait $!
        : >"$GPUCLUSTER_DIRECTORY/exit/.$GPUCLUSTER_JOB" 2>/dev/null
        now=$(stat -c %Y "$GPUCLUSTER_DIRECTORY/exit/.$GPUCLUSTER_JOB" 2>/dev/null) || now=0
        seen=$(stat -c %Y "$GPUCLUSTER_DIRECTORY/lease" 2>/dev/null) || seen=-1
        if [ "$seen" = -1 ] || [ $((now - seen)) -gt {LEASE_LAPSED} ]; then
            echo "The cluster's head is gone; ending this job."
            kill "$worker" 2>/dev/null
            sleep 15
            kill -KILL 0
        fi
    done
}}
guard &
guard=$!
trap 'kill "$worker" 2>/dev/null' TERM INT
wait "$worker"
code=$?
while kill -0 "$worker" 2>/dev/null; do wait "$worker"; code=$?; done
kill "$guard" 2>/dev/null
rm -f "$GPUCLUSTER_DIRECTORY/exit/.$GPUCLUSTER_JOB"
echo "$code" >"$GPUCLUSTER_DIRECTORY/exit/$GPUCLUSTER_JOB"
exit "$code\"""".splitlines()
