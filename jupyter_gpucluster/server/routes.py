"""The REST routes: each handler asks one question and answers in JSON."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from jupyter_server.auth.decorator import authorized
from jupyter_server.utils import url_path_join
from tornado import web

from ..core.cluster import ENDED
from ..core.errors import InvalidInput
from ..core.serialize import to_json
from ..launch.profile_catalog import one_place, places
from ..launch.python_environments import list_environments
from . import notebooks
from .api import MODELS_SETTING, SNAPSHOTS_SETTING, ApiHandler
from .bodies import CopyBody, StartBody, TrialBody, UpdateBody
from .dashboard import DashboardHandler
from .health import check_health
from .snapshot import is_listed

if TYPE_CHECKING:
    from .models import Models
    from .snapshot import Snapshots

MAXIMUM_LINES = 100_000


class ProfilesHandler(ApiHandler):
    """The places to run."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        self.respond(await asyncio.to_thread(places))


class ProfileHandler(ApiHandler):
    """One place to run."""

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        self.respond(await asyncio.to_thread(one_place, name))


class CapacityHandler(ApiHandler):
    """What is free now at one place to run."""

    @web.authenticated
    @authorized
    async def get(self, name: str) -> None:
        self.respond(await self.clusters.capacity(name))


class ScriptHandler(ApiHandler):
    """The job script and the command that would submit it."""

    @web.authenticated
    @authorized
    async def post(self, name: str) -> None:
        script = await self.clusters.script(self.body(TrialBody).request(name))
        self.respond(to_json(script))


class CheckHandler(ApiHandler):
    """What is wrong with a form."""

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


class EnvironmentsHandler(ApiHandler):
    """The Python environments that head and workers may run in."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        found = await asyncio.to_thread(list_environments)
        self.respond({"environments": to_json(found)})


class ClusterRoute(ApiHandler):
    """A handler that answers clusters."""

    @property
    def models(self) -> Models:
        """What makes JSON of clusters."""
        return cast("Models", self.settings[MODELS_SETTING])

    @property
    def snapshots(self) -> Snapshots:
        """The looks that all pages share."""
        return cast("Snapshots", self.settings[SNAPSHOTS_SETTING])

    def on_finish(self) -> None:
        """Let the next list show what this request changed."""
        super().on_finish()
        if self.request.method != "GET":
            self.snapshots.expire()


class ClustersHandler(ClusterRoute):
    """All clusters of this user."""

    etag: str | None = None

    @web.authenticated
    @authorized
    async def get(self) -> None:
        ended = self.flag("ended")
        views = [v for v in await self.snapshots.latest() if ended or is_listed(v)]
        text, self.etag = await asyncio.to_thread(self.models.list, views)
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
        self.respond(self.models.model(view), HTTPStatus.CREATED)


class ClusterHandler(ClusterRoute):
    """One cluster."""

    @web.authenticated
    @authorized
    async def get(self, cluster_id: str) -> None:
        self.respond(self.models.model(await self.clusters.get(cluster_id)))

    @web.authenticated
    @authorized
    async def patch(self, cluster_id: str) -> None:
        body = self.body(UpdateBody)
        target = body.target.target() if body.target else None
        if body.name is None and target is None:
            raise InvalidInput("Nothing to change.", hint="Give a name, a target or both.")
        view = await self.clusters.update(cluster_id, new_name=body.name, target=target)
        self.respond(self.models.model(view))

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
            self.respond(self.models.model(stopping), HTTPStatus.ACCEPTED)


class JobsHandler(ApiHandler):
    """The jobs of a cluster."""

    @web.authenticated
    @authorized
    async def get(self, cluster_id: str) -> None:
        self.respond({"jobs": to_json(await self.clusters.jobs(cluster_id))})


class LogsHandler(ApiHandler):
    """The end of a cluster's logs, or of one job's."""

    @web.authenticated
    @authorized
    async def get(self, cluster_id: str) -> None:
        lines = self.count("lines", default=500, maximum=MAXIMUM_LINES)
        job = self.get_query_argument("job", "")
        self.respond({"text": await self.clusters.logs(cluster_id, job, lines=lines)})


class EventsHandler(ApiHandler):
    """The timeline of a cluster."""

    @web.authenticated
    @authorized
    async def get(self, cluster_id: str) -> None:
        self.respond({"events": to_json(await self.clusters.events(cluster_id))})


class ScriptsHandler(ApiHandler):
    """The job scripts of a cluster, as they ran."""

    @web.authenticated
    @authorized
    async def get(self, cluster_id: str) -> None:
        self.respond({"scripts": to_json(await self.clusters.scripts(cluster_id))})


class WhyHandler(ApiHandler):
    """Why a cluster waits, failed or ended, in words."""

    @web.authenticated
    @authorized
    async def get(self, cluster_id: str) -> None:
        self.respond({"text": await self.clusters.why(cluster_id)})


class ClientCodeHandler(ApiHandler):
    """The code that connects a notebook."""

    @web.authenticated
    @authorized
    async def get(self, cluster_id: str) -> None:
        self.respond(await self.clusters.client_code(cluster_id))


class NotebooksHandler(ApiHandler):
    """The notebooks that come with the package."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        self.respond({"notebooks": await asyncio.to_thread(notebooks.titles)})


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


class HealthHandler(ApiHandler):
    """Whether clusters can be started and seen here."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        self.respond(await check_health(self.clusters))


API = "gpucluster/api/"
PROFILE = API + r"profiles/(?P<name>[^/]+)"
CLUSTER = API + r"clusters/(?P<cluster_id>[^/]+)"

ROUTES = [
    (API + "profiles", ProfilesHandler),
    (PROFILE, ProfileHandler),
    (PROFILE + "/capacity", CapacityHandler),
    (PROFILE + "/script", ScriptHandler),
    (PROFILE + "/check", CheckHandler),
    (API + "environments", EnvironmentsHandler),
    (API + "clusters", ClustersHandler),
    (CLUSTER, ClusterHandler),
    (CLUSTER + "/jobs", JobsHandler),
    (CLUSTER + "/logs", LogsHandler),
    (CLUSTER + "/events", EventsHandler),
    (CLUSTER + "/scripts", ScriptsHandler),
    (CLUSTER + "/why", WhyHandler),
    (CLUSTER + "/client-code", ClientCodeHandler),
    (API + "notebooks", NotebooksHandler),
    (API + r"notebooks/(?P<name>[^/]+)", NotebookHandler),
    (API + "health", HealthHandler),
    (r"gpucluster/dashboard/(?P<cluster_id>[^/]+)(?P<path>/.*|)", DashboardHandler),
]
