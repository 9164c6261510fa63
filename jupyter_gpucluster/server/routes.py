"""The REST routes: each handler asks one question and answers in JSON."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

from ..core.cluster import ENDED
from ..core.errors import InvalidInput
from ..core.serialize import to_json
from ..doctor.batch_system import without_profile
from ..launch.profile_catalog import one_place, places
from ..launch.python_environments import list_environments
from ..state.view import is_shown
from . import notebooks
from .api import ApiHandler
from .bodies import CopyBody, SetupBody, StartBody, TrialBody, UpdateBody
from .dashboard import DashboardHandler
from .health import check_health

MAXIMUM_LINES = 100_000
SETUPS = ThreadPoolExecutor(2, "gpucluster-setup")
"""Threads of their own: a batch system that hangs is waited for up to 20 s a command."""
Route = tuple[str, type[JupyterHandler], dict[str, Any]]


class ReadHandler(ApiHandler):
    """Answers GET with what one call returns, under a key where the route has one."""

    def initialize(self, read: Callable[..., Awaitable[Any]], key: str = "") -> None:
        self.read, self.key = read, key

    @web.authenticated
    @authorized
    async def get(self, **path: str) -> None:
        found = await self.read(self, *path.values())
        self.respond({self.key: to_json(found)} if self.key else found)


class ScriptHandler(ApiHandler):
    """The job script and the command that would submit it."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        script = await self.clusters.script(self.body(TrialBody).request(name))
        self.respond(to_json(script))


class CheckHandler(ApiHandler):
    """The errors of a form."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        await asyncio.to_thread(one_place, name)
        body = self.body(TrialBody)
        problems = []
        try:
            await self.clusters.script(body.request(name))
        except InvalidInput as error:
            problems.append({"field": error.detail, "message": error.message, "hint": error.hint})
        self.respond({"ok": not problems, "problems": problems})


class ClustersHandler(ApiHandler):
    """All clusters of this user."""

    etag: str | None = None

    @web.authenticated
    @authorized
    async def get(self) -> None:
        ended = self.flag("ended")
        views = await self.extension.snapshots.latest()
        views = [v for v in views if ended or is_shown(v.phase, v.phase_since)]
        text, self.etag = await asyncio.to_thread(self.extension.models.list, views)
        self.write(text)

    def compute_etag(self) -> str | None:
        """Return the tag of the list, by which a page is spared what it shows already."""
        return self.etag

    @web.authenticated
    @authorized
    async def post(self) -> None:
        view = await self.clusters.start(self.body(StartBody).request())
        where = url_path_join(self.base_url, "gpucluster/api/clusters", quote(view.id, safe=""))
        self.set_header("Location", where)
        self.respond(self.extension.models.model(view), HTTPStatus.CREATED)


class ClusterHandler(ApiHandler):
    """One cluster."""

    @web.authenticated
    @authorized
    async def get(self, cluster_id: str) -> None:
        self.respond(self.extension.models.model(await self.clusters.get(cluster_id)))

    @web.authenticated
    @authorized
    async def patch(self, cluster_id: str) -> None:
        body = self.body(UpdateBody)
        target = body.target.target() if body.target else None
        more: dict[str, Any] = {"drop": body.drop, "restart": body.restart, "keep": body.keep}
        if body.name is None and target is None and not any(more.values()):
            raise InvalidInput("Nothing to change.", hint="Give a name, a target or a worker.")
        view = await self.clusters.update(cluster_id, new_name=body.name, target=target, **more)
        self.respond(self.extension.models.model(view))

    @web.authenticated
    @authorized
    async def delete(self, cluster_id: str) -> None:
        force = self.flag("force")
        view = await self.clusters.get(cluster_id)
        if view.phase in ENDED:
            await self.clusters.forget(view.id)
            self.set_status(HTTPStatus.NO_CONTENT)
        else:
            stopping = await self.clusters.stop(view.id, force=force)
            self.respond(self.extension.models.model(stopping), HTTPStatus.ACCEPTED)


class SetupHandler(ReadHandler):
    """The queues that batch systems report, and a profile for one of them."""

    get = ReadHandler.get

    @web.authenticated
    @authorized
    async def post(self) -> None:
        propose = functools.partial(self.extension.desk.proposal, **dict(self.body(SetupBody)))
        self.respond(await aside(propose))


async def aside(call: Callable[[], Any]) -> Any:
    """Call what may wait for a batch system in a thread of its own kind."""
    return await asyncio.get_running_loop().run_in_executor(SETUPS, call)


class NotebookHandler(ApiHandler):
    """One of them, to be copied to where the user works."""

    @web.authenticated
    @authorized
    @authorized("write", "contents")  # type: ignore[untyped-decorator]  # only with arguments
    async def post(self, name: str) -> None:
        body = self.body(CopyBody)
        view = await self.clusters.get(body.cluster) if body.cluster else None
        path = await notebooks.copy(name, body.directory, self.contents_manager, view)
        self.respond({"path": path}, HTTPStatus.CREATED)


async def read_logs(on: ApiHandler, cluster: str) -> str:
    """Return the end of a cluster's logs, or of one job's."""
    lines = on.count("lines", "500", MAXIMUM_LINES)
    return await on.clusters.logs(cluster, on.get_query_argument("job", ""), lines=lines)


def listed_profiles() -> dict[str, Any]:
    """Return the profiles, and the batch systems that could have some; runs no command."""
    return {**places(), "without_profile": without_profile()}


async def read_values(on: ApiHandler, name: str) -> Any:
    """Return what the batch system reports for the options of a profile."""
    return await aside(functools.partial(on.extension.desk.values, name))


def read(pattern: str, call: Callable[..., Awaitable[Any]], key: str = "") -> Route:
    """Return the route of a `ReadHandler`."""
    return (API + pattern, ReadHandler, {"read": call, "key": key})


API = "gpucluster/api/"
PROFILE = r"profiles/(?P<name>[^/]+)"
CLUSTER = r"clusters/(?P<cluster_id>[^/]+)"

ROUTES: list[Route] = [
    read("profiles", lambda _: asyncio.to_thread(listed_profiles)),
    read(PROFILE, lambda _, name: asyncio.to_thread(one_place, name)),
    read(PROFILE + "/capacity", lambda on, name: on.clusters.capacity(name)),
    read(PROFILE + "/values", read_values),
    (API + PROFILE + "/script", ScriptHandler, {}),
    (API + PROFILE + "/check", CheckHandler, {}),
    read("environments", lambda _: asyncio.to_thread(list_environments), "environments"),
    (API + "clusters", ClustersHandler, {}),
    (API + CLUSTER, ClusterHandler, {}),
    read(CLUSTER + "/jobs", lambda on, name: on.clusters.jobs(name), "jobs"),
    read(CLUSTER + "/logs", read_logs, "text"),
    read(CLUSTER + "/workers", lambda on, name: on.clusters.workers(name), "workers"),
    read(CLUSTER + "/events", lambda on, name: on.clusters.events(name), "events"),
    read(CLUSTER + "/scripts", lambda on, name: on.clusters.scripts(name), "scripts"),
    read(CLUSTER + "/why", lambda on, name: on.clusters.why(name), "text"),
    read(CLUSTER + "/client-code", lambda on, name: on.clusters.client_code(name)),
    (
        API + "setup",
        SetupHandler,
        {"read": lambda on: aside(on.extension.desk.systems), "key": "systems"},
    ),
    read("notebooks", lambda _: asyncio.to_thread(notebooks.titles), "notebooks"),
    (API + r"notebooks/(?P<name>[^/]+)", NotebookHandler, {}),
    read("health", lambda on: check_health(on.clusters, on.extension.snapshots)),
    (r"gpucluster/dashboard/(?P<cluster_id>[^/]+)(?P<path>/.*|)", DashboardHandler, {}),
]
