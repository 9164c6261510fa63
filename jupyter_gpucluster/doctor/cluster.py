"""Examine a cluster that is there: what it says of itself, who reaches it, which versions meet."""

from __future__ import annotations

import socket
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..client.connect import connect
from ..core.cluster import ENDED, EXISTING, Phase
from ..core.errors import GpuClusterError
from ..state.control_client import ask
from .findings import Finding, Report, Result, failed, ok, refused, warning
from .here import release

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
"""How a cluster in each phase does; in any other it waits or lacks something."""
DECISIVE = ("python", "dask", "distributed")
"""What client, scheduler and workers must agree on; the others only where tasks use them."""


def examine_cluster(clusters: Clusters, name: str) -> Report:
    """Return what can be told of a cluster.

    Raises
    ------
    ClusterNotFound
        There is none of that name.
    """
    view = clusters.get(name)
    findings = [look_at_phase(view, clusters.why(view.id))]
    if view.phase not in ENDED:
        if view.backend != EXISTING:
            findings.append(_tried("head", lambda: _reach_head(clusters, view)))
        if view.scheduler_address:
            findings.append(_tried("versions", lambda: _versions(view)))
        if view.unit == "GPUs":
            findings.append(look_at_gpus(view))
    return Report(f"cluster {view.name}", socket.gethostname(), tuple(findings))


def look_at_phase(view: ClusterView, why: str) -> Finding:
    """Return what the verb ``why`` says, and whether that is well."""
    result = PHASES.get(view.phase, Result.WARNING)
    if view.unsaved_since is not None and result is Result.OK:
        result = Result.WARNING
    return Finding("cluster", result, " ".join(why.split()))


def look_at_gpus(view: ClusterView) -> Finding:
    """Say whether each worker's GPU is read, and what is wrong with any."""
    ready = view.workers.ready
    bad = [f"{gpu.worker}: {gpu.trouble}" for gpu in view.gpus if gpu.trouble]
    bad += [f"{gpu.worker}: XID {', '.join(map(str, gpu.xids))}" for gpu in view.gpus if gpu.xids]
    devices = Counter((gpu.host, gpu.uuid) for gpu in view.gpus if gpu.uuid)
    bad += [
        f"{count} workers on one GPU of {host}" for (host, _), count in devices.items() if count > 1
    ]
    if bad:
        return warning("GPUs", f"{'; '.join(bad)}.", "See the verbs show and logs.")
    told = f"{len(view.gpus)} read, of {ready} workers."
    if len(view.gpus) < ready and not view.simulated:
        cure = "They come within seconds of a worker's start; without NVML there, never."
        return warning("GPUs", told, cure)
    return ok("GPUs", told)


def look_at_cluster_versions(
    client: Mapping[str, Any], scheduler: Mapping[str, Any], workers: Sequence[Mapping[str, Any]]
) -> Finding:
    """Compare what client, scheduler and workers have; see `distributed.Client.get_versions`."""
    parties = [("this process", client), ("scheduler", scheduler)]
    parties += [("workers", worker) for worker in workers]
    found: dict[str, dict[str, list[str]]] = {}
    for party, packages in parties:
        for name, version in packages.items():
            places = found.setdefault(name, {}).setdefault(release(name, version), [])
            if party not in places:
                places.append(party)
    differing = {
        name: "; ".join(f"{name} {v} in {' and '.join(where)}" for v, where in versions.items())
        for name, versions in found.items()
        if len(versions) > 1
    }
    decisive = [words for name, words in differing.items() if name in DECISIVE]
    cure = (
        "Connect from a kernel of the cluster's own environment (the verb show names its Python),"
        " or start the cluster in yours (--python, --kernel)."
    )
    if decisive:
        return failed("versions", f"{'; '.join(decisive)}.", cure)
    if differing:
        return warning("versions", f"{'; '.join(differing.values())}.", cure)
    told = ", ".join(f"{name} {client.get(name)}" for name in DECISIVE)
    return ok("versions", f"{told} in this process, the scheduler and {len(workers)} workers.")


def _tried(check: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except GpuClusterError as error:
        return refused(check, error)
    except OSError as error:  # of a connection that does not come about
        cure = "See its log: the verb logs."
        return failed(check, f"The scheduler does not answer: {error}", cure)


def _reach_head(clusters: Clusters, view: ClusterView) -> Finding:
    endpoint = clusters.endpoint(view.id)
    ask(endpoint, "GET", "/gpucluster/summary")
    return ok("head", f"It answers at {endpoint.scheme}://{endpoint.host}:{endpoint.port}.")


def _versions(view: ClusterView) -> Finding:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Dask says of versions is what is told here
        client = connect(view.id, timeout=CONNECT_SECONDS, set_as_default=False)
    with client:
        told = cast("dict[str, Any]", client.get_versions(check=False))
    return look_at_cluster_versions(
        told["client"]["packages"],
        told["scheduler"]["packages"],
        [worker["packages"] for worker in told["workers"].values()],
    )
