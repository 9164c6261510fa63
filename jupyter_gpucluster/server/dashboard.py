"""The dashboard proxy: one registered head and nothing else, without the user's credentials."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, unquote_plus, urljoin, urlsplit

from jupyter_server.utils import ensure_async, url_path_join
from jupyter_server_proxy.handlers import ProxyHandler
from jupyter_server_proxy.websocket import pingable_ws_connect
from tornado import web
from tornado.concurrent import Future
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.httputil import HTTPHeaders
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.websocket import WebSocketClosedError, WebSocketError

from ..core.cluster import TOKEN_HEADER
from ..core.errors import ClusterNotFound, GpuClusterError, HeadUnreachable
from .api import AUTH_RESOURCE, ShowsErrors
from .pages import page

if TYPE_CHECKING:
    from ..state.control_client import Endpoint

# Both ways only what is listed passes.  Cookie and Authorization would hand the user's session to
# the head; so would whatever a login proxy in front of Jupyter adds under a name of its own.
PASSED_TO_HEAD = (
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Cache-Control",
    "If-Modified-Since",
    "If-None-Match",
    "Range",
    "User-Agent",
)
PASSED_TO_BROWSER = (
    "Accept-Ranges",
    "Cache-Control",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-Range",
    "Content-Type",
    "Etag",
    "Expires",
    "Last-Modified",
    "Vary",
)

CLOSED_PATHS = frozenset({"gpucluster", "proxy"})
"""First parts of paths that are no dashboard: the head's control, and Dask's own open proxy."""

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
"""A performance report of a long run takes tens of seconds."""

TRY_AGAIN_LATER = 1013
"""Websocket close code (IANA registry)."""


class DashboardHandler(ShowsErrors, ProxyHandler):  # type: ignore[misc]  # untyped, hence Any
    """Shows the dashboard of a cluster below our own address."""

    SUPPORTED_METHODS = ("GET",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # A plot that draws itself is no sign of a user.
        super().__init__(*args, update_last_activity=False, **kwargs)

    @property
    def content_security_policy(self) -> str:
        """Allow a frame of this very site; JupyterHub's setting forbids frames altogether."""
        return "frame-ancestors 'self'"

    async def prepare(self) -> None:  # type: ignore[override]  # tornado calls it so
        """Find out who asks and for which head, before anything is upgraded to a websocket."""
        await super().prepare()
        if self._finished:  # on the way to the login page
            return
        websocket = self.request.headers.get("Upgrade", "").lower() == "websocket"
        action = "execute" if websocket else "read"
        allowed = self.authorizer.is_authorized(self, self.current_user, action, AUTH_RESOURCE)
        if not await ensure_async(allowed):
            raise web.HTTPError(403)
        self.head_path = open_path(self.path_kwargs["path"])
        self.endpoint: Endpoint = await self.clusters.endpoint(self.path_kwargs["cluster_id"])

    async def http_get(self, cluster_id: str, path: str) -> None:
        """Pass a page on."""
        request = HTTPRequest(
            self.head_uri("http", self.head_path),
            headers=self.proxy_request_headers(),
            ssl_options=self.endpoint.tls(),
            follow_redirects=False,
            decompress_response=False,
            connect_timeout=CONNECT_SECONDS,
            request_timeout=ANSWER_SECONDS,
        )
        client = SimpleAsyncHTTPClient(force_instance=True)
        try:
            answer = await client.fetch(request, raise_error=False)
        except (HTTPClientError, OSError) as error:
            raise HeadUnreachable(
                "The scheduler process does not answer.", detail=str(error)
            ) from error
        finally:
            client.close()
        self.set_status(answer.code, answer.reason)
        for name in PASSED_TO_BROWSER:
            if name in answer.headers:
                self.set_header(name, answer.headers[name])
        if "Location" in answer.headers:
            location = urljoin(request.url, answer.headers["Location"])
            self.set_header("Location", self.below_here(cluster_id, location))
        if answer.body:
            self.write(answer.body)

    async def open(self, cluster_id: str, path: str) -> None:
        """Pass a websocket on.

        ProxyHandler's own way knows neither HTTPS nor the cluster's authority.
        """
        request = HTTPRequest(
            self.head_uri("ws", self.head_path),
            headers=self.proxy_request_headers(),
            ssl_options=self.endpoint.tls(),
            connect_timeout=CONNECT_SECONDS,
        )
        try:
            self.ws = await pingable_ws_connect(
                request=request,
                on_message_callback=self.pass_message,
                on_ping_callback=self.ping,
                subprotocols=self._requested_subprotocols,
            )
        except (HTTPClientError, WebSocketError, OSError) as error:
            self.log.info("No websocket of cluster %s: %s", cluster_id, error)
            self.close(TRY_AGAIN_LATER, "The scheduler process does not answer.")

    def pass_message(self, message: bytes | str | None) -> None:
        """Pass on what the head says, or that it says no more."""
        if message is None:
            self.close()
        else:
            _ = self.write_message(message, binary=isinstance(message, bytes))

    def write_message(
        self, message: bytes | str | dict[str, Any], binary: bool = False
    ) -> Future[None]:
        """Send to the browser; a tab that has just been closed is no error."""
        try:
            sent: Future[None] = super().write_message(message, binary)
        except WebSocketClosedError:
            sent = Future()
            sent.set_result(None)
        # It is not awaited; asyncio would log the error of a closed tab from there.
        sent.add_done_callback(lambda done: done.cancelled() or done.exception())
        return sent

    def ping(self, data: str | bytes = b"") -> None:
        """Pass a ping on; a tab that has just been closed is no error."""
        if self.ws_connection is not None and not self.ws_connection.is_closing():
            super().ping(data)

    def head_uri(self, protocol: str, path: str) -> str:
        """Return the head's address for this request, without Jupyter's token."""
        return self.endpoint.url(quoted(path) + without_token(self.request.query), protocol)

    def proxy_request_headers(self) -> HTTPHeaders:
        """Return what the head may know of the browser, and the head's own token."""
        passed = {n: self.request.headers[n] for n in PASSED_TO_HEAD if n in self.request.headers}
        return HTTPHeaders({**passed, TOKEN_HEADER: self.endpoint.token})

    def below_here(self, cluster_id: str, location: str) -> str:
        """Return a redirect of the head as a path of ours; raises `HTTPError`."""
        url = urlsplit(location)
        home = urlsplit(self.head_uri("http", "/"))
        if (url.scheme, url.netloc) != (home.scheme, home.netloc):
            raise web.HTTPError(502, "The dashboard points to another server.")
        path = quoted(open_path(unquote(url.path)))
        query = without_token(url.query)
        return url_path_join(self.base_url, "gpucluster/dashboard", quote(cluster_id), path) + query

    def compute_etag(self) -> None:
        """Leave the head's own tag as it is."""

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer a small page in our words, which repeats nothing of the request."""
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        status = error.status if isinstance(error, GpuClusterError) else status_code
        self.set_status(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.set_header("Allow", ", ".join(self.SUPPORTED_METHODS))
        self.set_header("Content-Type", "text/html; charset=UTF-8")
        self.write(page(status))


def open_path(path: str) -> str:
    """Return a decoded path of a dashboard; raises `ClusterNotFound` for any other path."""
    first, *rest = path.removeprefix("/").split("/")
    parts = [first, *rest]
    odd = any(part in (".", "..") for part in parts) or "" in parts[:-1]
    if odd or "\\" in path or not path.isprintable() or first.casefold() in CLOSED_PATHS:
        raise ClusterNotFound("A dashboard has no such page.")
    return "/" + "/".join(parts)


def quoted(path: str) -> str:
    """Return a decoded path for a URL; a question mark in it stays part of the path."""
    return quote(path, safe="/:@!$&'()*+,;=-._~")


def without_token(query: str) -> str:
    """Return a query string, question mark included, without Jupyter's token."""
    kept = [p for p in query.split("&") if p and unquote_plus(p.partition("=")[0]) != "token"]
    return f"?{'&'.join(kept)}" if kept else ""
