"""Explain in a few lines why a cluster waits, or why it ended."""

from __future__ import annotations

from ..core.cluster import ENDED, Phase
from ..core.job import FINAL
from ..host.dask_settings import own_settings
from .view import ClusterView, Look, view_of

LONG = 120
"""Characters of a reason that is not repeated for each job."""
MOST_EVENTS = 5


def explain(look: Look) -> str:
    """Return the lines, the cluster's own first."""
    view = view_of(look)
    words = f": {view.words}" if view.words != view.phase.value else ""
    lines = [f"{view.name} is {view.phase.value}{words}.", view.reason]
    for job in look.record.jobs:
        text = job.cause or job.reason
        telling = text not in ("", job.state.value)
        wanted = job.state not in FINAL or job.retiring_since is None
        if telling and (wanted or view.phase in ENDED):
            # A refusal is long, and is the cause of all jobs of its submission.
            repeated = len(text) > LONG and any(text in line for line in lines)
            rest = "see above." if repeated else text
            lines.append(f"{job.mark}_{job.task} ({job.state.value}): {rest}")
    if view.phase not in ENDED:
        lines += _events(look, view)
    lines += [
        f"It ends by itself: {clock.name}." for clock in view.clocks if clock.ends and not clock.job
    ]
    if view.phase is Phase.FAILED and not any(job.connected for job in look.record.jobs):
        lines.append("" if "Dask settings" in view.reason else own_settings())
    return "\n".join(dict.fromkeys(line for line in lines if line))


def _events(look: Look, view: ClusterView) -> list[str]:
    """Return the last events that explain slow starts, GPUs, cores and jobs that end."""
    late = {job.key for job in look.record.jobs if not job.connected}
    late -= {job for job in late if view.reason.startswith(f"{job} ")}
    leaving = {job.key for job in look.record.jobs if job.retiring_since and job.ended is None}
    news = {
        # Of a slow start only the last event is true.
        (event.job if event.kind == "slow" else event.message): event.message
        for event in look.directory.events()
        if event.kind in ("gpu", "cores")
        or (event.kind == "slow" and event.job in late)
        or (event.kind == "cancel" and event.job in leaving)
    }
    return [*news.values()][-MOST_EVENTS:]
