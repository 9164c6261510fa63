"""The wheel in an empty environment without Node.js, used as the README says."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.packaging.checkout import text
from tests.packaging.environment import Installed

pytestmark = pytest.mark.slow


def test_its_requirements_fit_together(installed: Installed) -> None:
    assert "No broken requirements" in installed.run("pip", "check")


def test_lab_and_the_server_see_their_extensions(installed: Installed) -> None:
    lab = installed.run("jupyter", "labextension", "list")
    server = installed.run("jupyter", "server", "extension", "list")
    assert re.search(r"jupyter-gpucluster v\S+ .*enabled.*OK", lab)
    assert re.search(r"jupyter_gpucluster \S+ .*OK", server)


def test_a_server_answers_with_the_profiles(installed: Installed, home: Path) -> None:
    token = "letmein"  # of this test's own server
    command = ["jupyter", "lab", "--no-browser", "--allow-root", "--ServerApp.port=0"]
    with subprocess.Popen(
        [installed.folder / "bin" / command[0], *command[1:]],
        cwd=home,
        env={**installed.variables, "JUPYTER_TOKEN": token},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        try:
            address = address_of(server, home / "run")
            with pytest.raises(urllib.error.HTTPError, match="403"):
                fetch(f"{address}gpucluster/api/profiles", "wrong")
            profiles = fetch(f"{address}gpucluster/api/profiles", token)
            assert "local" in [profile["name"] for profile in json.loads(profiles)["profiles"]]
            assert b"jupyter-gpucluster" in fetch(f"{address}lab", token)
        finally:
            server.send_signal(signal.SIGTERM)
            printed = server.stdout.read() if server.stdout else ""
    assert server.returncode == 0, printed
    assert "Traceback" not in printed


def address_of(server: subprocess.Popen[str], runtime: Path, seconds: float = 60) -> str:
    """Wait until a Jupyter server has said where it listens."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            try:
                address: str = json.loads(path.read_text())["url"]
                fetch(f"{address}api", "")
            except (OSError, ValueError):
                continue  # it is just being written, or does not listen yet
            return address
        time.sleep(0.1)
    raise AssertionError(f"no server after {seconds} s")


def fetch(address: str, token: str) -> bytes:
    request = urllib.request.Request(address, headers={"Authorization": f"token {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        body: bytes = answer.read()
        return body


def example(section: str, page: str = "README.md") -> str:
    """Return the code block of a section of a page."""
    found = re.search(rf"^##+ {section}\n.*?```\w+\n(.*?)```", text(page), re.M | re.S)
    assert found, section
    return found[1]


def test_the_terminal_example_of_the_readme_works(installed: Installed) -> None:
    for line in example("In a terminal").splitlines():
        installed.run(*shlex.split(line, comments=True))
    assert json.loads(installed.run("jupyter", "gpucluster", "list", "--json"))["clusters"] == []


def test_the_python_example_of_the_readme_works(installed: Installed, home: Path) -> None:
    script = home / "example.py"
    script.write_text(example("In Python"), encoding="utf-8")
    assert installed.run("python", str(script)).strip().splitlines()[-1] == "45"


def test_the_notebook_example_of_the_quick_start_works(installed: Installed, home: Path) -> None:
    script = home / "example.ipy"
    script.write_text(example("In a notebook", "docs/quickstart.md"), encoding="utf-8")
    assert "45" in installed.run("ipython", str(script)).split()


def test_the_bundled_notebook_runs_with_what_the_wheel_brings(
    installed: Installed, home: Path
) -> None:
    (notebook,) = installed.folder.glob("lib/python3*/site-packages/*/notebooks/parallel_sum.ipynb")
    copy = shutil.copy(str(notebook), str(home))
    installed.run("jupyter", "execute", "--inplace", copy, timeout=600)
    assert '"image/png"' in (home / notebook.name).read_text(encoding="utf-8")
