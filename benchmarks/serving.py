"""A Jupyter server with the extension in a process of its own, and requests at fixed times."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import time
from pathlib import Path

from tornado.httpclient import HTTPResponse
from tornado.simple_httpclient import SimpleAsyncHTTPClient

MIB = 1 << 20
PATIENCE = 60.0


def resident(pid: int) -> float:
    """Return the memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / MIB


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken, on a machine however busy."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """A Jupyter server on loopback, from ``async with`` to its end.

    Parameters
    ----------
    extensions
        Further server extensions to load.
    """

    def __init__(self, *extensions: str) -> None:
        self.extensions = ["jupyter_gpucluster", *extensions]
        self.token = secrets.token_hex()
        self.client = SimpleAsyncHTTPClient(force_instance=True, max_clients=1000)

    async def __aenter__(self) -> Server:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        loaded = {name: True for name in self.extensions}
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"),
            *("--ip=127.0.0.1", f"--port={self.port}", "--ServerApp.port_retries=0"),
            f"--IdentityProvider.token={self.token}",
            f"--ServerApp.jpserver_extensions={loaded}",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        self.pid = self.process.pid
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.get("api/status")
                except OSError:
                    await asyncio.sleep(0.1)
                else:
                    return self

    async def __aexit__(self, *exception: object) -> None:
        self.process.terminate()
        await self.process.wait()
        self.client.close()

    async def get(self, path: str) -> HTTPResponse:
        """Ask for a path; raises where the answer is an error."""
        return await self.request(path)

    async def request(
        self, path: str, method: str = "GET", body: str | None = None
    ) -> HTTPResponse:
        """Send a request as the server's user."""
        return await self.client.fetch(
            f"http://127.0.0.1:{self.port}/{path}",
            method=method,
            body=body,
            headers={"Authorization": f"token {self.token}"},
            request_timeout=PATIENCE,
        )


async def at_fixed_times(server: Server, path: str, count: int, every: float) -> list[float]:
    """Ask at fixed times, whether or not earlier requests are answered; return the seconds.

    Whoever waits for each answer before the next request sees one slow answer where there was a
    stall, and all users behind it see many.
    """

    async def one() -> float:
        began = time.perf_counter()
        await server.get(path)
        return time.perf_counter() - began

    begin = asyncio.get_running_loop().time()
    asked = []
    for number in range(count):
        await asyncio.sleep(max(0.0, begin + number * every - asyncio.get_running_loop().time()))
        asked.append(asyncio.create_task(one()))
    return list(await asyncio.gather(*asked))
