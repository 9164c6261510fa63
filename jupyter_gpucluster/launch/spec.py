"""Profile and machine -> spec: everything that does not change during a cluster's life."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..batch import arguments_elsewhere, elsewhere, routing_of
from ..core.cluster import Policy, Spec, WorkerGroup, WorkerShape
from ..core.errors import InvalidInput
from ..core.job import JobShape
from ..core.serialize import copied
from ..host.cluster_directory import ClusterDirectory
from ..host.hardware import Machine
from ..profiles import Profile
from ..profiles.sections import Launcher
from .script.launchers import lay_out
from .script.worker_command import (
    check_container,
    extra_arguments,
    image_directives,
    worker_arguments,
)
from .sizes import Sizes, sizes_of

if TYPE_CHECKING:
    from .plan import Plan

POOLS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Threads of each library's own pool.  Pools as wide as the node are slower than none if several
workers share it (dask.org, "Oversubscribing").  A nanny sets 1, unless the variable is set."""
NANNYS = {"MALLOC_TRIM_THRESHOLD_": "65536"}
NO_WORKER_PAGES = {
    # `--no-dashboard` still listens on every interface; without routes it answers nothing.
    "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
}
NO_REAL_GPUS = {"CUDA_VISIBLE_DEVICES": ""}
"""Simulated GPUs are CPU workers, also on a machine that has real ones."""


def shown_title(profile: Profile, sizes: Sizes) -> str:
    """Return the title for users, which says that a simulation is one."""
    clear = not sizes.simulated or "simulat" in profile.title.lower()
    return profile.title if clear else f"{profile.title} (simulation)"


def budget(profile: Profile) -> float | None:
    """Return the GPU-hours that a cluster may use, None where nothing says."""
    limits = (profile.policy.gpu_hours, profile.limits.gpu_hours)
    return min((float(hours) for hours in limits if hours is not None), default=None)


def make_spec(plan: Plan, directory: ClusterDirectory, scratch: Path) -> Spec:
    """Return everything that does not change during the life of a cluster in this directory.

    Parameters
    ----------
    scratch
        Where local workers put data that does not fit into memory.
    """
    profile, sizes, machine = plan.profile, plan.sizes, plan.machine
    sharing = plan.target.maximum + sum(group.count for group in profile.groups.values())
    job, worker = shapes(profile, sizes, machine, sharing, scratch)
    if not sizes.here:
        check_container(profile, directory.path)
    groups = []
    for name, group in profile.groups.items():
        own = group_profile(profile, name)
        if not sizes.here:
            check_container(own, directory.path)
        parts = shapes(own, sizes_of(own, machine), machine, sharing, scratch)
        groups.append(WorkerGroup(name, group.count, *parts))
    network, idle = profile.network, profile.policy.idle_gpus
    pool = max(1, cores_of_worker(profile, sizes, machine, sharing) // worker.threads)
    spec = Spec(
        profile=plan.loaded.name,
        title=shown_title(profile, sizes),
        backend=profile.backend,
        python=plan.environment.python,
        environment=plan.environment.name,
        job=job,
        worker=worker,
        groups=tuple(groups),
        variables={
            **dict.fromkeys(POOLS, str(pool)),
            **NANNYS,
            **NO_WORKER_PAGES,
            **(NO_REAL_GPUS if sizes.simulated else {}),
            **plan.environment.variables,
            **profile.environment.variables,
        },
        devices=machine.gpus if sizes.alone and job.gpus else (),
        simulated=sizes.simulated,
        encrypted=network.protocol == "tls",
        ucx=network.protocol == "ucx",
        host="127.0.0.1" if sizes.here else "",
        interface=network.interface or "",
        scheduler_interface=profile.head.interface or network.interface or "",
        maximum_workers=sizes.maximum,
        shared_memory=sizes.memory,
        policy=copied(
            Policy,
            profile.policy,
            gpu_hours=budget(profile),
            idle_gpus_after=idle.after,
            idle_gpus_action=idle.action,
            at_walltime="stop" if profile.policy.at_walltime == "stop" else "replace",
            while_used=profile.policy.at_walltime == "while_used",
        ),
        options=plan.request.options,
        scratch=str(scratch),
        in_job=not plan.head_here,
        relayed=profile.head.placement == "job" and profile.head.submit == "relay",
        spread=sizes.spread,
        routing=routing_of(profile.backend, profile.job, os.environ),
    )
    return with_worker_command(spec, profile, directory) if sizes.here else spec


def cores_of_worker(profile: Profile, sizes: Sizes, machine: Machine, sharing: int) -> int:
    """Return the cores of each worker; 1 if the job does not say.

    On this machine all workers share its cores; elsewhere those of one job share the job's.
    """
    share = max(1, sharing) if sizes.here else sizes.per_job
    return (profile.job.cpus or (machine.cpus if sizes.here else share)) // share


def shapes(
    profile: Profile, sizes: Sizes, machine: Machine, sharing: int, scratch: Path
) -> tuple[JobShape, WorkerShape]:
    """Return the resources of each job and of each worker.

    Parameters
    ----------
    sharing
        How many workers share this machine, if they are here.
    """
    job, workers = profile.job, profile.workers
    here, per_job = sizes.here, sizes.per_job
    requested = int(job.gpus) if sizes.gpus and not sizes.alone else 0
    ranks, submit_args, cancel_args = 1, job.submit_args, job.cancel_args
    if here:
        submit_args = cancel_args = ()
    else:
        layout = lay_out(
            profile.launcher, nodes=job.nodes, gpus=requested, cpus=job.cpus, workers=per_job
        )
        ranks = layout.ranks
        cancel_args += arguments_elsewhere(profile.backend, job)
    threads = workers.threads
    if threads == "auto":
        cores = cores_of_worker(profile, sizes, machine, sharing)
        threads = 1 if sizes.gpus else max(1, cores)
    memory = workers.memory_limit
    if memory == "auto":
        total = job.memory or (machine.memory if here else None)
        memory = None if total is None else total // (max(1, sharing) if here else per_job)
    device = workers.device_memory_limit
    return (
        copied(
            JobShape,
            job,
            gpus=1 if sizes.gpus and sizes.alone else requested,
            directives=(*image_directives(profile), *job.directives),
            submit_args=submit_args,
            cancel_args=cancel_args,
            ranks=ranks,
        ),
        copied(
            WorkerShape,
            workers,
            threads=threads,
            memory_limit=memory,
            device_memory_limit=None if device == "auto" or not sizes.gpus else device or 0,
            per_job=per_job,
            local_directory=workers.local_directory or (str(scratch) if here else ""),
            bound=workers.cpu_affinity == "gpu",
        ),
    )


def with_worker_command(spec: Spec, profile: Profile, directory: ClusterDirectory) -> Spec:
    """Return the spec of local jobs with the worker's command, where no shell must expand it."""
    extra = extra_arguments(profile.workers)
    needs_shell = (
        profile.environment.prologue
        or (profile.environment.container and not spec.simulated)
        or "$" in profile.workers.local_directory
    )
    if needs_shell:
        return spec
    if spec.job.gpus and not spec.simulated:
        place = spec.worker.local_directory
        argv = [*worker_arguments(spec, directory), *extra, "--local-directory", place]
        return replace(spec, worker_argv=(*argv, "--name", "{name}"))
    if extra:
        return spec
    argv = ["{scheduler}", "--name", "{name}", "--nthreads", str(spec.worker.threads)]
    argv += ["--memory-limit", str(spec.worker.memory_limit or 0)]
    argv += ["--local-directory", spec.worker.local_directory, "--host", spec.host]
    if spec.encrypted:
        argv += ["--tls-directory", str(directory.tls)]
    # Only the worker without a nanny takes another limit while it runs.
    follows = not spec.simulated and profile.workers.memory_limit == "auto"
    return replace(spec, worker_argv=tuple(argv), memory_follows=follows)


def group_profile(profile: Profile, name: str) -> Profile:
    """Return the profile that a worker group's jobs are made from.

    Raises
    ------
    InvalidInput
        The group asks for GPUs: those that nobody counts would cost GPU-hours.  Or it is sent to
        another system than the profile's own jobs, which nobody would ask about it.
    """
    group = profile.groups[name]
    there, own_place = (elsewhere(profile.backend, job) for job in (group.job, profile.job))
    if there and there != own_place:
        raise InvalidInput(
            f"Group {name} sends its jobs to {', '.join(there.values())}, and the profile's own"
            f" jobs go to {', '.join(own_place.values()) or 'the usual one'}: a cluster's jobs are"
            " of one batch system.",
            hint="Send both to the same by job.directives or job.submit_args, or make two"
            " profiles.",
            detail=f"groups.{name}.job.directives",
        )
    if group.job.gpus not in ("auto", 0):
        raise InvalidInput(
            f"Group {name} asks for GPUs, which only the profile's own job may.",
            hint="Put the GPU workers into job and workers, and the others into groups.",
            detail=f"groups.{name}.job.gpus",
        )
    own = profile.job
    job = group.job.model_copy(
        update={
            "gpus": 0,
            "queue": group.job.queue or own.queue,
            "account": group.job.account or own.account,
            "walltime": group.job.walltime or own.walltime,
            "submit_args": group.job.submit_args or own.submit_args,
            "cancel_args": own.cancel_args,
        }
    )
    launcher = profile.launcher if job.nodes > 1 else Launcher.model_construct()
    return profile.model_copy(
        update={"job": job, "workers": group.workers, "launcher": launcher, "groups": {}}
    )
