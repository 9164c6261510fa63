"""From a running cluster's directory to a Dask client, from any process of the same user."""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.cluster import ENDED, Phase
from ..core.errors import ClusterConflict, HeadUnreachable, WaitTimeout
from ..host.cluster_directory import ClusterDirectory
from ..state.external import check_answer, check_scheduler

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

    from ..clusters import Clusters
    from ..state.view import ClusterView

CONNECT_SECONDS = 60.0
LEAST_ANSWER_SECONDS = 5.0
"""Time for the answer of a running scheduler, however short the wait for a start is."""
FIRST_LOOK_SECONDS = 0.05
LONGEST_LOOK_SECONDS = 2.0


def connect(name: str, *, timeout: float | None = CONNECT_SECONDS, **options: Any) -> Client:
    """Return a Dask client of a running cluster.

    Parameters
    ----------
    name
        Name or id of the cluster.
    timeout
        Seconds to wait for a scheduler that still starts, None = no limit; one that is up has as
        long to answer, between 5 s and Dask's own ``distributed.comm.timeouts.connect``.
    options
        Passed on to `distributed.Client`, such as ``set_as_default=False``; with
        ``asynchronous=True`` the client is to be awaited.

    Raises
    ------
    ClusterNotFound
        There is no cluster of that name.
    ClusterConflict
        It has ended, or ends now; or its scheduler file is left from a run that is over.
    WaitTimeout
        Its scheduler was not up in time; the cluster goes on.
    HeadUnreachable
        Its scheduler is up and does not answer.
    UnsuitableEnvironment
        Its scheduler speaks UCX, and this Python does not.
    """
    from ..clusters import Clusters
    from .client import ClusterClient

    view = wait_for_scheduler(Clusters(), name, timeout=timeout)
    directory = ClusterDirectory(Path(view.directory))
    check_scheduler(directory)
    check_protocol(view)
    options |= {"security": security_of(view), "timeout": answer_seconds(timeout)}
    try:
        client = ClusterClient(  # type: ignore[no-untyped-call]  # distributed leaves it untyped
            view.scheduler_address, **options
        )
    except OSError as error:
        raise silent(view, error) from error
    if not client.asynchronous:
        try:
            check_answer(directory, client.scheduler_info(n_workers=0)["id"])
        except ClusterConflict:
            client.close()  # type: ignore[no-untyped-call]  # as above
            raise
    client.proxied_dashboard = dashboard_link(view)
    return client


def wait_for_scheduler(clusters: Clusters, name: str, *, timeout: float | None) -> ClusterView:
    """Wait until a cluster's scheduler can be reached; workers may still be on their way.

    Raises
    ------
    ClusterNotFound, ClusterConflict, WaitTimeout
        As `connect`.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    pause = FIRST_LOOK_SECONDS
    while not has_scheduler(view := clusters.get(name)):
        if deadline is not None and time.monotonic() >= deadline:
            raise too_late(view, timeout)
        time.sleep(pause)
        pause = min(pause * 1.2, LONGEST_LOOK_SECONDS)  # a head may wait in a queue for hours
    return view


def has_scheduler(view: ClusterView) -> bool:
    """Return whether a scheduler can be reached; raises `ClusterConflict` where none ever will."""
    if view.phase in ENDED or view.phase is Phase.STOPPING:
        reason = f": {view.reason}" if view.reason else "."
        hint = f"Start another one: jupyter gpucluster start {view.profile}"
        raise ClusterConflict(f"Cluster {view.name} is {view.phase.value}{reason}", hint=hint)
    return bool(view.scheduler_address)


def check_protocol(view: ClusterView) -> None:
    """Raise `UnsuitableEnvironment` where this Python lacks what the scheduler speaks."""
    if view.scheduler_address.startswith("ucx://") and not find_spec("distributed_ucxx"):
        from ..launch.python_environments import check_python, require_ucx

        require_ucx(check_python(sys.executable), f"cluster {view.name}")


def too_late(view: ClusterView, timeout: float | None) -> WaitTimeout:
    """Return the error of a wait for the scheduler that took longer than allowed."""
    words = f"The scheduler of cluster {view.name} was not up after {timeout:g} s: {view.words}."
    hint = f"See why: jupyter gpucluster why {view.name}"
    return WaitTimeout(words, hint=hint)


def answer_seconds(timeout: float | None) -> float:
    """Return how long a scheduler that is up has to answer whoever waits that long for one."""
    from dask import config
    from dask.utils import parse_timedelta

    limit = float(parse_timedelta(config.get("distributed.comm.timeouts.connect")))
    return limit if timeout is None else min(max(timeout, LEAST_ANSWER_SECONDS), limit)


def silent(view: ClusterView, error: OSError) -> HeadUnreachable:
    """Return the error of a scheduler that is up and does not answer."""
    words = f"The scheduler of cluster {view.name} does not answer at {view.scheduler_address}."
    hint = f"It may be busy or frozen: try again. Its log: jupyter gpucluster logs {view.name}"
    return HeadUnreachable(words, hint=hint, detail=str(error))


def certificate_paths(view: ClusterView) -> dict[str, str]:
    """Return the files that a client of an encrypted cluster needs, by their name in Dask."""
    tls = Path(view.directory) / "tls"
    return {
        "tls_ca_file": str(tls / "ca.pem"),
        "tls_client_cert": str(tls / "client-cert.pem"),
        "tls_client_key": str(tls / "client-key.pem"),
    }


def security_of(view: ClusterView) -> Security | None:
    """Return what a client needs for the cluster's encryption; None where there is none."""
    if not view.encrypted:
        return None
    from distributed.security import Security

    return Security(require_encryption=True, **certificate_paths(view))


def client_environment(view: ClusterView) -> dict[str, str]:
    """Return the variables with which a plain ``Client()`` connects to the cluster."""
    variables = {"DASK_SCHEDULER_ADDRESS": view.scheduler_address}
    if view.encrypted:
        paths = certificate_paths(view)
        variables |= {
            "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
            "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": paths["tls_ca_file"],
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT": paths["tls_client_cert"],
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY": paths["tls_client_key"],
        }
    return variables


# The dashboard, which only Jupyter's authenticated proxy can open: the head asks every request
# for a token that no browser sends.


def dashboard_link(view: ClusterView) -> str:
    """Return the link of a cluster's dashboard through the Jupyter server around this process.

    It begins with the server's path, so it holds in whichever way the browser reaches the server;
    in a terminal of Jupyter with its address.  Empty outside Jupyter.
    """
    base = jupyter_base()
    return f"{base}gpucluster/dashboard/{view.id}/status" if base else ""


def jupyter_base() -> str:
    """Return the base URL of the Jupyter server that this process runs under; empty for none."""
    if prefix := os.environ.get("JUPYTERHUB_SERVICE_PREFIX"):
        return _with_slash(prefix)
    for pid in (str(os.getpid()), os.environ.get("JPY_PARENT_PID", "")):
        if base := _base_of_server(pid):
            return base
    # Terminals of JupyterLab have it.
    return _with_slash(os.environ.get("JUPYTER_SERVER_URL", ""))


def _base_of_server(pid: str) -> str:
    try:
        from jupyter_core.paths import jupyter_runtime_dir

        file = Path(jupyter_runtime_dir()) / f"jpserver-{int(pid)}.json"
        return _with_slash(str(json.loads(file.read_text())["base_url"]))
    except (ImportError, OSError, ValueError, KeyError):
        return ""  # no such server, or a kernel started by something else


def _with_slash(url: str) -> str:
    return url if not url or url.endswith("/") else f"{url}/"
