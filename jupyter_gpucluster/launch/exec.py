"""The way into the jobs of a cluster that runs: which job, which node, which command."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ..batch import arguments_elsewhere, find_backend, on_this_machine, routed, routing
from ..core.cluster import ENDED, EXISTING, spec_of_group
from ..core.errors import ClusterConflict, ClusterNotFound, HeadUnreachable, InvalidInput
from ..core.job import Job, JobState
from ..host.processes import is_alive
from ..node.node_list import expand
from ..state.view import Look

WORKER = re.compile(r"(gpc-\w+-\d+_\d+)(?:\.r\d+)?(?:-n(\d+))?(?:-\d+)?")
"""The name of a worker: its job, a restart, its rank, its place in the rank."""


def entry_of(
    look: Look, *, job: str, worker: str, words: Sequence[str], terminal: bool
) -> list[str]:
    """Return the command that runs words, or a shell, in the environment of a cluster's job.

    Parameters
    ----------
    job
        The job by its name or the batch system's number; by default the first that runs.
    worker
        A worker by name, in place of a job.

    Raises
    ------
    ClusterConflict
        The cluster has ended, is somebody else's, or the job does not run.
    ClusterNotFound
        It has no such job.
    """
    record, spec = look.record, look.record.spec
    if record.phase in ENDED:
        raise ClusterConflict(
            f"Cluster {record.name} is {record.phase.value}; there is no job to enter."
        )
    if spec.backend == EXISTING:
        raise ClusterConflict(
            f"Cluster {record.name} was started by another user, whose jobs are not known here.",
            hint="Use the batch system's own commands.",
        )
    named = WORKER.fullmatch(worker)
    if worker and named is None:
        raise InvalidInput(
            f"{worker[:80]!r} is not the name of a worker.",
            hint="Workers are called like gpc-a1b2c3-1_0; see the command show.",
        )
    chosen = _choose(look, named[1] if named else job)
    inner = ["/bin/bash", str(look.directory.environment()), *words]
    held = spec.allocation
    if on_this_machine(spec.backend) and record.head and is_alive(record.head) is None:
        raise HeadUnreachable(
            f"Cluster {record.name} runs on {record.head.host}.",
            hint=f"Use it from there: ssh {record.head.host}",
        )
    if spec.spread:
        if held is None:
            raise ClusterConflict(
                "The nodes of this cluster's allocation are not known here.",
                hint="ssh to the node, or start a job step with the batch system's command.",
            )
        system, id, nodes = held.system, held.id, expand(held.nodes)
    else:
        system, id = spec.backend, chosen.id
        nodes = [host for part in chosen.nodes for host in expand(part)]
        if chosen.devices:
            inner = ["env", f"CUDA_VISIBLE_DEVICES={','.join(chosen.devices)}", *inner]
    shape = spec_of_group(spec, chosen.group).job
    rank = int(named[2]) // shape.ranks if named and named[2] else 0
    node = nodes[min(rank, len(nodes) - 1)] if nodes else ""
    dialect = find_backend(system)
    if not node and dialect.needs_node:
        raise ClusterConflict(
            f"The batch system does not show the node of job {chosen.id}.",
            hint="The first line of its log names it; see the command logs.",
        )
    argv = dialect.enter(id, node, inner, terminal=terminal)
    if arguments := arguments_elsewhere(spec.backend, shape):
        return [argv[0], *arguments, *argv[1:]]
    kept = routed(spec, os.environ)
    left = [f"--unset={name}" for name in os.environ if name not in kept]
    there = [*left, *(f"{name}={value}" for name, value in routing(spec).items())]
    return [*(["env", *there] if there else []), *argv]


def _choose(look: Look, name: str) -> Job:
    """Return the job that is meant, which must run."""
    jobs = [job for job in look.record.jobs if not name or name in (job.id, job.key, job.mark)]
    if not jobs and name:
        known = ", ".join(job.key for job in look.record.jobs)
        raise ClusterNotFound(
            f"Cluster {look.record.name} has no job {name}.", hint=f"There are: {known or 'none'}."
        )
    running = [job for job in jobs if job.state is JobState.RUNNING]
    if running:
        return running[0]
    last = jobs[-1] if jobs else None
    state = "no job runs" if last is None else f"{last.key} is {last.state.value}"
    why = last.cause or last.reason if last is not None else ""
    raise ClusterConflict(
        f"Cluster {look.record.name}: {state}{f' ({why})' if why else ''}.",
        hint="A shell needs a running job; see the command why.",
    )
