"""A server extension that times everything its loop runs, for `loop_lag.py`."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.serverapp import ServerApp
from jupyter_server.utils import url_path_join
from tornado import web

LONGEST: dict[str, tuple[float, str]] = {}


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "loop_probe"}]


def _load_jupyter_server_extension(server: ServerApp) -> None:
    watch()
    where = url_path_join(server.base_url, "loop-probe")
    server.web_app.add_handlers(".*", [(where, ProbeHandler)])


def watch() -> None:
    """Time each callback of the loop: on the clock, and on the processor alone."""
    run = asyncio.Handle._run

    def timed(handle: Any) -> None:
        wall, processor = time.perf_counter(), time.thread_time()
        run(handle)
        note("wall", time.perf_counter() - wall, handle)
        note("processor", time.thread_time() - processor, handle)

    setattr(asyncio.Handle, "_run", timed)  # noqa: B010  # its type is asyncio's own


def note(kind: str, took: float, handle: object) -> None:
    if took > LONGEST.get(kind, (0.0, ""))[0]:
        LONGEST[kind] = took, repr(handle)[:200]


class ProbeHandler(APIHandler):
    """Tells what took longest since it was last asked."""

    @web.authenticated
    def get(self) -> None:
        _ = self.finish({kind: {"seconds": s, "what": what} for kind, (s, what) in LONGEST.items()})
        LONGEST.clear()
