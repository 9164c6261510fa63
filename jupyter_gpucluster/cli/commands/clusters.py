"""Commands on clusters: list, show, connect, scale, why, stop, forget."""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ...batch.queue import user_name
from ...core.cluster import ENDED
from ...core.errors import BackendUnavailable, GpuClusterError, InvalidInput
from ...core.serialize import to_json
from ..arguments import Parser, add_target, refuse_gpus_of, target_from, whole_number
from ..describe import (
    cluster_facts,
    cluster_table,
    event_table,
    gpu_table,
    job_table,
    named,
    state,
    target_text,
)
from ..output import Outcome, Session, Table, Text, ago, counted, errors_document, gpu_hours
from ..waiting import add_wait, interrupted, until, wait_ready

if TYPE_CHECKING:
    from ...state.view import ClusterView

T = TypeVar("T")
SHOWN_EVENTS = 20
TITLES = {
    "connect": "Python with this package",
    "magic": "Notebook",
    "dask": "Python with Dask alone",
}


def add_list(parser: Parser) -> None:
    """Add the arguments of ``list``."""
    parser.flag("--all", "also those that have ended")
    parser.flag("--orphans", "list processes and jobs left over from ended clusters")


def run_list(arguments: argparse.Namespace, session: Session) -> Outcome:
    """List clusters, or leftovers."""
    if arguments.orphans:
        orphans = session.clusters.orphans()
        rows = tuple((orphan,) for orphan in orphans)
        return Outcome({"orphans": orphans}, (Table(("ORPHAN",), rows, empty="no orphans"),))
    views, damaged = session.clusters.survey(ended=arguments.all)
    document = {"clusters": to_json(views), "damaged": [error.as_json() for error in damaged]}
    empty = "no clusters" if arguments.all else "no clusters; list --all shows those that ended"
    unreadable = "\n".join(f"{error.message} {error.hint}".strip() for error in damaged)
    blocks = (cluster_table(views, empty), Text(unreadable, title="Records that cannot be read"))
    return Outcome(document, blocks, clusters=named(*views))


def run_show(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Show the cluster with its jobs and its timeline."""
    clusters = session.clusters
    view = clusters.get(arguments.name)
    jobs, events = clusters.jobs(view.id), clusters.events(view.id)
    document = {**to_json(view), "jobs": to_json(jobs), "events": to_json(events)}
    blocks = (
        cluster_facts(view),
        gpu_table(view.gpus),
        job_table(jobs, view.reason),
        event_table(events[-SHOWN_EVENTS:], view.reason),
    )
    return Outcome(document, blocks, clusters=named(view))


def add_connect(parser: Parser) -> None:
    """Add the arguments of ``connect``."""
    parser.add_argument("--form", choices=TITLES, help="print only this form, ready to paste")


def run_connect(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Show the code that connects, in three forms or in one."""
    code = session.clusters.client_code(arguments.name)
    if form := arguments.form:
        return Outcome({form: code[form]}, (Text(code[form], code=True),))
    blocks = (
        Text(textwrap.indent(code[form], "    "), code=True, title=f"{title}:")
        for form, title in TITLES.items()
    )
    return Outcome(code, tuple(blocks))


def add_scale(parser: Parser) -> None:
    """Add the arguments of ``scale``."""
    add_target(parser, least=0, required=True)
    add_wait(parser, "all workers are ready")


def run_scale(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Change the number of workers, or the range in which it follows the load."""
    clusters = session.clusters
    target = target_from(arguments)
    view = clusters.get(arguments.name)
    refuse_gpus_of(view.unit, arguments, f"Cluster {view.name}")
    view = clusters.update(view.id, target=target)
    view, failed = wait_ready(view, arguments.wait, session, "continues to its target", target)
    if failed is not None:
        return failed
    text = f"{view.name}: scaling to {target_text(view)}; {state(view)}"
    return Outcome(to_json(view), (Text(text),), clusters=named(view))


def run_why(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Explain why a cluster waits, failed or ended."""
    text = session.clusters.why(arguments.name)
    return Outcome({"text": text}, (Text(text),))


def add_stop(parser: Parser) -> None:
    """Add the arguments of ``stop``."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="names or ids of clusters")
    parser.flag("--all", "every cluster that has not ended")
    parser.flag("--force", "kill schedulers that do not answer, and end their jobs")
    add_wait(parser, "they have ended")


def run_stop(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Stop each cluster, then wait for each with ``--wait``; one failure does not spare others."""
    names = _names(arguments, session)
    stopping, errors = _for_each(
        names, lambda name: session.clusters.stop(name, force=arguments.force).id
    )
    if arguments.wait is not None and stopping:
        try:
            errors += _wait(stopping, arguments.wait, session)
        except KeyboardInterrupt:
            shown = [session.clusters.get(id).name for id in stopping]
            errors.append(interrupted(shown, "stops by itself", session.program))
    views = [session.clusters.get(id) for id in stopping]
    document = {"clusters": to_json(views), **errors_document(errors)}
    lines = [f"{view.name}: {state(view)}" for view in views]
    text = "\n".join(lines) if names else "no clusters to stop"
    return Outcome(document, (Text(text),), tuple(errors), clusters=named(*views))


def _names(arguments: argparse.Namespace, session: Session) -> list[str]:
    if arguments.all:
        if arguments.names:
            raise InvalidInput("Give names or --all, not both.")
        return [view.id for view in session.clusters.live()]
    if not arguments.names:
        hint = f"{session.program} stop NAME..., or --all for every one."
        raise InvalidInput("Name a cluster.", hint=hint)
    return list(dict.fromkeys(arguments.names))


def _wait(ids: Sequence[str], wait: float, session: Session) -> list[GpuClusterError]:
    """Wait for each; the limit holds for all together.

    A cluster may end although the batch system does not confirm the end of its jobs.
    """
    deadline = time.monotonic() + wait
    with session.progress() as show:
        progress = until(lambda view: view.phase in ENDED, show)

        def wait_for(id: str) -> ClusterView:
            left = max(deadline - time.monotonic(), 0)
            view = session.clusters.wait_stopped(id, timeout=left, progress=progress)
            if jobs := session.clusters.left_jobs(id):
                text = f"Cluster {view.name} has ended, but the end of its jobs is not proved."
                raise BackendUnavailable(text, hint="; ".join(jobs))
            return view

        return _for_each(ids, wait_for)[1]


def add_forget(parser: Parser) -> None:
    """Add the arguments of ``forget``."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="names or ids of ended clusters")
    older, days = (
        "every cluster that ended DAYS days ago or earlier",
        whole_number("--older-than", 0),
    )
    parser.add_argument("--older-than", metavar="DAYS", type=days, help=older)
    parser.flag("--force", "also while the end of its jobs is not proved")


def run_forget(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Delete the record of each; one failure does not spare the others."""

    def forget(name: str) -> str:
        left = session.clusters.forget(name, force=arguments.force)
        lines.append(f"{name}: forgotten. {left}" if left else f"{name}: forgotten")
        return name

    lines: list[str] = []
    names = dict.fromkeys(arguments.names)
    if arguments.older_than is not None:
        limit = time.time() - 86400 * arguments.older_than
        ended = session.clusters.list(ended=True)
        names |= {view.id: None for view in ended if view.ended is not None and view.ended <= limit}
    elif not names:
        raise InvalidInput(
            "Name a cluster.", hint=f"{session.program} forget NAME..., or --older-than"
        )
    forgotten, errors = _for_each(names, forget)
    document = {"forgotten": forgotten, **errors_document(errors)}
    text = "\n".join(lines)
    return Outcome(document, (Text(text),), tuple(errors))


def run_report(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Report the GPU-hours of this user's clusters on record."""
    keys = ("name", "id", "profile", "backend", "phase", "created", "ended", "unit", "gpu_hours")
    views, user = session.clusters.list(ended=True), user_name()
    total = sum(view.gpu_hours for view in views)
    listed = [{key: to_json(getattr(view, key)) for key in keys} for view in views]
    rows = tuple(
        (view.name, view.profile, view.phase.value, ago(view.created), f"{view.gpu_hours:.1f}")
        for view in views
    )
    table = Table(("NAME", "PROFILE", "PHASE", "CREATED", "GPU-HOURS"), rows, empty="no clusters")
    text = Text(f"{user}: {gpu_hours(total)} in {counted(len(views), 'clusters')}")
    document = {"user": user, "gpu_hours": total, "clusters": listed}
    return Outcome(document, (table, text))


def _for_each(
    items: Iterable[str], act: Callable[[str], T]
) -> tuple[list[T], list[GpuClusterError]]:
    """Return the results for the items, and the errors of the others."""
    results: list[T] = []
    errors: list[GpuClusterError] = []
    for item in items:
        try:
            results.append(act(item))
        except GpuClusterError as error:
            errors.append(error)
    return results, errors
