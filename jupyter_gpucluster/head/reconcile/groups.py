"""Worker groups: each is kept at its number by the same step as the cluster itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...core.cluster import ENDED, Policy, Record, Target, WorkerGroup, spec_of_group
from ...core.job import Job
from ...core.summary import WorkerCounts
from . import decide
from .model import Action, Finish, Note, Observation, Submit, count_workers


def own_part(record: Record) -> Record:
    """Return the record without the jobs of groups: what the target counts."""
    if not record.spec.groups:
        return record
    return replace(record, jobs=tuple(job for job in record.jobs if not job.group))


def step(record: Record, seen: Observation, now: float) -> tuple[Record, list[Action]]:
    """Do `decide.step` for the cluster's own jobs, and then for those of each group.

    The end is that of all jobs together: when one part decides to stop, all of them do.
    """
    if not record.spec.groups or record.phase in ENDED or record.stop_requested is not None:
        return decide.step(record, seen, now)
    own = own_part(record)
    whole, actions = decide.step(own, seen, now)
    stopping = whole
    jobs: tuple[Job, ...] = whole.jobs
    for group in record.spec.groups:
        part = _part(record, whole, group)
        part, more = decide.step(part, _seen_by(group, seen), now)
        if part.stop_requested is not None and stopping.stop_requested is None:
            stopping = replace(part, reason=f"Workers of group {group.name}: {part.reason}")
        jobs += tuple(replace(job, group=group.name) for job in part.jobs)
        actions += _actions_of(group, more)
        whole = replace(
            whole,
            submissions=part.submissions,
            replaced=part.replaced,
            reason=whole.reason or (part.reason and f"Group {group.name}: {part.reason}"),
        )
    if stopping.stop_requested is not None:
        ends = {name: getattr(stopping, name) for name in ("stop_requested", "outcome", "reason")}
        return decide.step(replace(record, **ends), seen, now)
    return replace(whole, jobs=jobs), actions


def count_group(record: Record, group: WorkerGroup, seen: Observation) -> WorkerCounts:
    """Count the workers of one group by how far they are."""
    return count_workers(_part(record, record, group), _seen_by(group, seen))


def _seen_by(group: WorkerGroup, seen: Observation) -> Observation:
    """Return what is seen with what a group is to have; without any workers it has none either."""
    return replace(seen, desired=group.workers if seen.desired else 0, volunteers=())


def _part(record: Record, whole: Record, group: WorkerGroup) -> Record:
    """Return a record of one group alone; the clocks of the cluster are not its business."""
    policy = record.spec.policy
    spec = spec_of_group(record.spec, group.name)
    return replace(
        whole,
        spec=replace(
            spec,
            policy=Policy(
                replacements=policy.replacements,
                drain_before=policy.drain_before,
                at_walltime="replace",
            ),
        ),
        target=Target(group.workers, group.workers),
        jobs=tuple(job for job in record.jobs if job.group == group.name),
        stop_requested=None,
        reason="",
        expired=0,
    )


def _actions_of(group: WorkerGroup, actions: Sequence[Action]) -> list[Action]:
    """Return what is to be done for a group; its phase is nobody's news."""
    return [
        replace(each, group=group.name) if isinstance(each, Submit) else each
        for each in actions
        if not isinstance(each, Finish)
        if not (isinstance(each, Note) and each.event.kind == "phase")
    ]
