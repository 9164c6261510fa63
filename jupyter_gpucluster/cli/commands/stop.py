"""``stop NAME...``: stop clusters, all of them if asked to, and wait for the end if asked to."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from ...core.cluster import ENDED
from ...core.errors import BackendUnavailable, GpuClusterError, InvalidInput
from ...core.serialize import to_json
from ..arguments import add_json
from ..describe import named, state
from ..output import Outcome, Text, errors_document
from ..parsing import Parser
from ..session import Session
from ..waiting import add_wait, interrupted, timeout_from, until


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="names or ids of clusters")
    parser.add_argument("--all", action="store_true", help="every cluster that has not ended")
    parser.add_argument(
        "--force", action="store_true", help="kill heads that do not answer, and end their jobs"
    )
    add_wait(parser, "they have ended")
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Ask every cluster to stop, then wait for each; one failure does not spare the others."""
    names = _names(arguments, session)
    stopping, errors = _ask(names, arguments.force, session)
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
        raise InvalidInput(
            "Which cluster?", hint=f"{session.program} stop NAME..., or --all for every one."
        )
    return list(dict.fromkeys(arguments.names))


def _ask(
    names: Sequence[str], force: bool, session: Session
) -> tuple[list[str], list[GpuClusterError]]:
    stopping: list[str] = []
    errors: list[GpuClusterError] = []
    for name in names:
        try:
            stopping.append(session.clusters.stop(name, force=force).id)
        except GpuClusterError as error:
            errors.append(error)
    return stopping, errors


def _wait(ids: Sequence[str], wait: float, session: Session) -> list[GpuClusterError]:
    """Wait for each; the limit holds for all together.

    A cluster may end although the batch system does not confirm the end of its jobs.
    """
    limit = timeout_from(wait)
    deadline = None if limit is None else time.monotonic() + limit
    errors: list[GpuClusterError] = []
    with session.progress() as show:
        progress = until(lambda view: view.phase in ENDED, show)
        for id in ids:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            try:
                view = session.clusters.wait_stopped(id, timeout=left, progress=progress)
                if jobs := session.clusters.left_jobs(id):
                    words = f"Cluster {view.name} has ended, but the end of its jobs is not proved."
                    errors.append(BackendUnavailable(words, hint="; ".join(jobs)))
            except GpuClusterError as error:
                errors.append(error)
    return errors
