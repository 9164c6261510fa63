"""An ordinary user of batch systems, and a Python with Dask that this user may run."""

from __future__ import annotations

import contextlib
import os
import pickle
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from jupyter_gpucluster.clusters import Clusters
from tools.leftovers import end_processes, processes_of

from .behalf import Work
from .real_site import NEUTRAL, OPEN_TO_ALL

CHECKOUT = Path(__file__).parents[3]


@dataclass
class Person:
    """Somebody who has clusters: a home, the verbs, and what is done with a cluster."""

    home: Path
    clusters: Clusters
    work: Work
    name: str = ""
    """Empty = who runs the tests."""
    variables: str = ""
    """Variables that a profile must hand on, since some systems hand on nothing."""

    def write_profile(self, name: str, text: str) -> str:
        """Write a profile of this user and return its name."""
        folder = self.home / "data/gpucluster/profiles"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(f"{text}\n{self.variables}")
        (folder.parent / "site.yaml").write_text("poll_period: 1 s\n")
        if self.name:
            for path in (folder.parent.parent, folder.parent, folder):
                shutil.chown(path, self.name)
        return name

    def owners(self) -> set[str]:
        """Return whose the processes and logs are that belong to this home."""
        logs = self.home.glob("data/gpucluster/clusters/*/logs/*")
        processes = (Path(f"/proc/{pid}") for pid in processes_of(self.home))
        return {path.owner() for path in (*logs, *processes)}


class Behalf:
    """An object in a process of the user's own, whose methods are called from here."""

    def __init__(self, process: subprocess.Popen[bytes], name: str) -> None:
        self.process = process
        self.name = name

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            pickle.dump((self.name, method, values, named), self.process.stdin)
            self.process.stdin.flush()
            done, answer = pickle.load(self.process.stdout)  # noqa: S301  # from our own process
            assert done, answer
            return answer

        return call


@contextlib.contextmanager
def ordinary_user(name: str, site: Mapping[str, str]) -> Iterator[Person]:
    """Give the user a home and a process for a while; no process may outlive it."""
    home = Path(tempfile.mkdtemp(prefix="user-", dir=OPEN_TO_ALL))
    shutil.chown(home, name)
    environment = {
        **NEUTRAL,
        **site,
        "HOME": str(home),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "run"),
        "TMPDIR": str(home),
        # OAR takes the directory from there.
        "PWD": str(home),
    }
    try:
        with python_for_anybody(name) as (python, folders):
            environment["PYTHONPATH"] = os.pathsep.join(map(str, folders))
            program = folders[0] / Path(__file__).with_name("behalf.py").relative_to(CHECKOUT)
            with subprocess.Popen(
                [python, str(program)],
                env=environment,
                cwd=home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                user=name,
                group=pwd.getpwnam(name).pw_gid,
                extra_groups=[],
            ) as process:
                yield Person(
                    home,
                    cast(Clusters, Behalf(process, "clusters")),
                    cast(Work, Behalf(process, "work")),
                    name,
                    f"environment: {{variables: {{PYTHONPATH: '{environment['PYTHONPATH']}'}}}}\n",
                )
                assert process.stdin is not None
                process.stdin.close()
    finally:
        left = end_processes(home)
        shutil.rmtree(home)
    assert left == []


@contextlib.contextmanager
def python_for_anybody(user: str) -> Iterator[tuple[str, Sequence[Path]]]:
    """Find a Python that the user may run, and the path on which it finds us and Dask."""
    folders = [CHECKOUT, Path(sysconfig.get_path("purelib"))]
    if found := runnable(user, folders):
        yield found, folders
        return
    with contextlib.ExitStack() as stack:
        shown = [stack.enter_context(shown_to_all(each)) for each in folders]
        if not (found := runnable(user, shown)):
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            pytest.fail(f"no Python {version} is where ordinary users may run it, as in /usr/bin")
        yield found, shown


def runnable(user: str, folders: Sequence[Path]) -> str:
    """Return a Python that the user may run and that finds what is needed; empty for none."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        argv = ["runuser", "-u", user, "--", python, "-c", "import distributed, pydantic"]
        environment = NEUTRAL | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
        tried = subprocess.run(argv, env=environment, cwd="/", capture_output=True, check=False)
        if tried.returncode == 0:
            return python
    return ""


@contextlib.contextmanager
def shown_to_all(folder: Path) -> Iterator[Path]:
    """Show a folder, to be read only, where all may go: a checkout in root's home is closed."""
    place = Path(tempfile.mkdtemp(prefix="shown-", dir=OPEN_TO_ALL))
    place.chmod(0o755)
    try:
        subprocess.run(["mount", "-o", "bind,ro", folder, place], check=True)
        try:
            yield place
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)
    finally:
        place.rmdir()
