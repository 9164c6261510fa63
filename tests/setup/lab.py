"""Start JupyterLab beside the recorded Slurm; a program for the browser tests.

With the argument ``inside`` it is in a job of that Slurm, and there are profiles.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import a_home
from tests.server.hub import free_port
from tests.setup.recorded_slurm import put_slurm

PATIENCE = 60.0
SETTINGS = "config/lab/user-settings/@jupyterlab/apputils-extension"
NO_NEWS = '{"fetchNews": "false", "checkForUpdates": false}'


def main() -> None:
    """Print the address, and end with standard input."""
    with a_home() as home, pytest.MonkeyPatch.context() as patch:
        put_slurm(home, patch)
        if sys.argv[1:] == ["inside"]:
            _enter_job(home, patch)
        # Lab otherwise asks whether it may fetch news, in a box over what is tested.
        news = home / SETTINGS / "notification.jupyterlab-settings"
        news.parent.mkdir(parents=True)
        news.write_text(NO_NEWS)
        token, port = secrets.token_hex(8), free_port()
        server = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
                f"--ServerApp.port={port}", f"--IdentityProvider.token={token}",
                "--ServerApp.port_retries=0", "--LabApp.expose_app_in_browser=True",
            ],
            stdin=subprocess.DEVNULL, stdout=sys.stderr, cwd=home,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )  # fmt: skip
        try:
            _wait(f"http://127.0.0.1:{port}/api")
            # In one piece, which the reader takes for the whole line.
            print(f"http://127.0.0.1:{port}/lab?reset&token={token} {home}", flush=True)
            sys.stdin.read()
        finally:
            server.terminate()
            server.wait(PATIENCE)


def _enter_job(home: Path, patch: pytest.MonkeyPatch) -> None:
    folder = home / "data/gpucluster/profiles"
    folder.mkdir(parents=True)
    (folder / "gpu.yaml").write_text("title: Queue gpu\nbackend: slurm\njob: {gpus: 4}\n")
    (folder / "pbs.yaml").write_text("title: Other site\nbackend: pbs\njob: {gpus: 4}\n")
    for name, value in {
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NODELIST": os.uname().nodename,
        "SLURM_JOB_END_TIME": str(int(time.time()) + 7200),
        "CUDA_VISIBLE_DEVICES": "0,1,2,3",
    }.items():
        patch.setenv(name, value)


def _wait(url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(url):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main()
