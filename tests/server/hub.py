"""Start a real JupyterHub with its proxy and a base URL; as a program, for the browser tests."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tools.leftovers import end_processes

CHECKOUT = Path(__file__).parents[2]
PROXY = CHECKOUT / "node_modules" / ".bin" / "configurable-http-proxy"
PATIENCE = 60.0

CONFIG = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}/hub-base/"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.ConfigurableHTTPProxy.command = {proxy!r}
c.ConfigurableHTTPProxy.pid_file = "{place}/proxy.pid"
c.JupyterHub.db_url = "sqlite:///{place}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{place}/secret"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{place}/homes/{{username}}"
c.Spawner.ip = "127.0.0.1"
c.Spawner.args = ["--allow-root"]
c.Spawner.cmd = [{python!r}, "-m", "jupyterhub.singleuser"]
c.Spawner.environment = {{
    "PYTHONPATH": {checkout!r},
    "JUPYTERHUB_SINGLEUSER_APP": "jupyter_server.serverapp.ServerApp",
}}
c.Spawner.env_keep = ["PATH", "LANG", "LC_ALL", "TMPDIR", "JUPYTER_PLATFORM_DIRS"]
c.JupyterHub.services = [{{"name": "test", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [
    {{
        "name": "test",
        "services": ["test"],
        "scopes": ["admin:users", "admin:servers", "tokens", "access:servers"],
    }}
]
"""

CULLER = """
c.JupyterHub.last_activity_interval = 1
c.JupyterHub.services.append(
    {{
        "name": "culler",
        "command": [
            {python!r}, "-m", "jupyterhub_idle_culler", "--timeout={seconds}", "--cull-every=1",
        ],
    }}
)
c.JupyterHub.load_roles.append(
    {{
        "name": "culler",
        "services": ["culler"],
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    }}
)
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@contextlib.contextmanager
def running_hub(place: Path, culled_after: int = 0) -> Iterator[tuple[str, str]]:
    """Run a Hub with its proxy; yield its address and the token of a service that may do all.

    With ``culled_after`` the idle culler ends servers after so many seconds without activity.
    """
    (place / "homes").mkdir()
    port, token = free_port(), secrets.token_hex()
    config = place / "hub.py"
    config.write_text(
        CONFIG.format(
            port=port,
            hub_port=free_port(),
            api_port=free_port(),
            proxy=[shutil.which("node") or "node", str(PROXY.resolve())],
            place=place,
            python=sys.executable,
            checkout=str(CHECKOUT),
            token=token,
        )
    )
    if culled_after:
        with config.open("a") as file:
            file.write(CULLER.format(python=sys.executable, seconds=culled_after))
    with (place / "hub.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(config)],
            cwd=place,
            env={**os.environ, "CONFIGPROXY_AUTH_TOKEN": secrets.token_hex()},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        wait_for(process, place / "hub.log")
        yield f"http://127.0.0.1:{port}/hub-base/", token
    finally:
        process.terminate()  # single-user servers and the proxy go with it
        process.wait(PATIENCE)


def wait_for(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if b"JupyterHub is now running" in log.read_bytes():
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-2000:])


def main() -> str:
    """Print the address and run until standard input ends; return what is left then."""
    with tempfile.TemporaryDirectory(prefix="gpc-hub-") as folder:
        place = Path(folder).resolve()
        with running_hub(place) as (address, _):
            print(address, flush=True)
            sys.stdin.read()
        return "\n".join(end_processes(place))


if __name__ == "__main__":
    sys.exit(main() or None)
