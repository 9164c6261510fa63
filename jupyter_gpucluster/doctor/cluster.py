"""Checks of a cluster that exists: its phase, its scheduler, its versions and its GPUs."""

from __future__ import annotations

import socket
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..client.connect import connect
from ..core.cluster import ENDED, EXISTING, Phase
from ..core.errors import GpuClusterError
from ..state.control_client import ask
from .findings import Finding, Report, Result, collect, failed, ok, refused, warning
from .here import DECISIVE, SAME_VERSIONS, differences

if TYPE_CHECKING:
    from ..clusters import Clusters
    from ..state.view import ClusterView

CONNECT_SECONDS = 10.0
PHASES = {
    Phase.RUNNING: Result.OK,
    Phase.STOPPED: Result.OK,
    Phase.FAILED: Result.FAILED,
    Phase.UNREACHABLE: Result.FAILED,
}
"""Results by phase; in any other phase the cluster waits or lacks something."""


def examine_cluster(clusters: Clusters, name: str) -> Report:
    """Return the findings about a cluster.

    Raises
    ------
    ClusterNotFound
        There is none of that name.
    """
    view = clusters.get(name)
    found = {check: _tried(look, clusters, view) for check, look in CHECKS.items()}
    return Report(f"cluster {view.name}", socket.gethostname(), tuple(collect(found)))


def _tried(look: Check, clusters: Clusters, view: ClusterView) -> Finding | None:
    try:
        return look(clusters, view)
    except GpuClusterError as error:
        return refused(error)
    except OSError as error:  # the connection failed
        return failed(f"The scheduler does not answer: {error}", "Read its log: the command logs.")


def phase(clusters: Clusters, view: ClusterView) -> Finding:
    """Return the explanation of the command ``why``, and whether the phase is good."""
    result = PHASES.get(view.phase, Result.WARNING)
    if view.unsaved_since is not None and result is Result.OK:
        result = Result.WARNING
    return Finding("", result, " ".join(clusters.why(view.id).split()))


def head(clusters: Clusters, view: ClusterView) -> Finding | None:
    """Ask the head for its summary."""
    if view.phase in ENDED or view.backend == EXISTING:
        return None
    endpoint = clusters.endpoint(view.id)
    ask(endpoint, "GET", "/gpucluster/summary")
    return ok(f"It answers at {endpoint.url('')}.")


def versions(clusters: Clusters, view: ClusterView) -> Finding | None:
    """Compare the packages of this process, the scheduler and the workers."""
    if view.phase in ENDED or not view.scheduler_address:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dask's warnings about versions are the finding here
        client = connect(view.id, timeout=CONNECT_SECONDS, set_as_default=False)
    with client:
        found = cast("dict[str, Any]", client.get_versions(check=False))
    return compare_versions(
        found["client"]["packages"],
        found["scheduler"]["packages"],
        [worker["packages"] for worker in found["workers"].values()],
    )


def compare_versions(
    client: Mapping[str, Any], scheduler: Mapping[str, Any], workers: Sequence[Mapping[str, Any]]
) -> Finding:
    """Compare versions of packages; see `distributed.Client.get_versions`."""
    parties = [("this process", client), ("scheduler", scheduler)]
    parties += [("workers", worker) for worker in workers]
    names = dict.fromkeys(name for _, packages in parties for name in packages)
    differing = differences(parties, names)
    if decisive := [words for name, words in differing.items() if name in DECISIVE]:
        return failed(f"{'; '.join(decisive)}.", SAME_VERSIONS)
    if differing:
        return warning(f"{'; '.join(differing.values())}.", SAME_VERSIONS)
    words = ", ".join(f"{name} {client.get(name)}" for name in DECISIVE)
    return ok(f"{words} in this process, the scheduler and {len(workers)} workers.")


Check = Callable[["Clusters", "ClusterView"], Finding | None]
CHECKS: Mapping[str, Check] = {"cluster": phase, "scheduler": head, "versions": versions}
"""Checks of a cluster by name; None if one does not apply."""
