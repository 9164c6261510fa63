"""Clusters on a system whose dialect is from another package, which only the starter has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from tests.batch import example_dialect

from .behalf import Work
from .life import Life
from .ordinary_user import Person
from .places import SimulatedPlace, Words
from .systems import flux

JOB = "job: {cpus: 1, walltime: 10 min}\nnetwork: {interface: lo}\n"
START = """
import sys
sys.path.insert(0, sys.argv[1])
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Target
print(Clusters().start(sys.argv[2], target=Target(1, 1)).id)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Install a package with the example dialect into a folder of its own."""
    folder = tmp_path / "elsewhere"
    about = folder / "flux_dialect-1.0.dist-info"
    about.mkdir(parents=True)
    shutil.copy(str(example_dialect.__file__), folder / "flux_dialect.py")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: flux-dialect\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[jupyter_gpucluster.backends]\nflux = flux_dialect:Flux\n"
    )
    return folder


@pytest.fixture
def person(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """Return a user of a simulated Flux; what lives at the end is stopped."""
    place = SimulatedPlace(tmp_path, "flux", Words("", "", "", "", 0, "", ""), flux.PROGRAMS)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    place.open()
    yield Person(home, Clusters(), Work())
    mine = Clusters()
    for view in mine.live():
        mine.stop(view.id)
        mine.wait_stopped(view.id, timeout=60)
    assert place.queue() == [], "jobs outlived their cluster"


def started(person: Person, package: Path, more: str = "") -> Life:
    """Start a cluster by a process that has the package; this process lacks it."""
    name = person.write_profile("on-flux", f"title: Flux\nbackend: flux\n{JOB}{more}")
    argv = [sys.executable, "-c", START, str(package), name]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    life = Life.__new__(Life)
    life.clusters, life.id = person.clusters, run.stdout.strip()
    return life


@pytest.mark.parametrize("head", ["", "head: {placement: job, submit: relay}\n"])
def test_whoever_handles_the_cluster_uses_the_copy_beside_it(
    head: str, person: Person, package: Path
) -> None:
    life = started(person, package, head)
    directory = ClusterDirectory(person.clusters.root / life.id)
    copy = directory.read_record().spec.dialect
    assert copy is not None
    assert (directory.path / copy.file).read_bytes() == (package / "flux_dialect.py").read_bytes()
    assert (directory.path / copy.file).stat().st_mode & 0o777 == 0o600
    shutil.rmtree(package)  # uninstalled while the cluster runs
    life.ready(1)
    terminal = [sys.executable, "-m", "jupyter_gpucluster"]
    listed = subprocess.run([*terminal, "list"], capture_output=True, text=True, check=True)
    assert "on-flux" in listed.stdout
    subprocess.run([*terminal, "scale", life.id, "--workers", "2"], check=True, timeout=60)
    life.ready(2)
    assert all(job.id.isdigit() for job in life.living())
    life.stop()


def test_a_changed_copy_is_refused_and_others_do_not_notice(person: Person, package: Path) -> None:
    life = started(person, package)
    life.ready(1)
    file = person.clusters.root / life.id / "dialect.py"
    was = file.read_bytes()
    record = ClusterDirectory(file.parent).read_record()
    argv = [sys.executable, "-c", CHANGED, str(file.parent)]
    file.write_bytes(was + b"\nimport os\n")
    told = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "is not the file that the cluster was started with" in told.stdout
    file.write_bytes(was)
    assert record.spec.backend == "flux"
    life.stop()


CHANGED = """
import sys
from pathlib import Path
from jupyter_gpucluster.batch import find_backend, keeps_ended, on_this_machine
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
name = ClusterDirectory(Path(sys.argv[1])).read_record().spec.backend
assert not keeps_ended(name) and not on_this_machine(name)
try:
    find_backend(name)
except Exception as error:
    print(error.message)
"""


FIND = """
import sys
sys.path.insert(0, sys.argv[1])
from jupyter_gpucluster.batch import find_backend
try:
    find_backend("flux")
except Exception as error:
    print(error.message)
"""


@pytest.mark.parametrize(
    "text,why",
    [
        ("import numpy\n", "imports numpy"),
        ("from . import other\n", "imports its own package"),
        ("class Flux: pass\nraise ValueError('x')\n", "fails: ValueError: x"),
        ("def\n", "cannot be read"),
    ],
)
def test_a_dialect_is_one_file_that_runs_anywhere(text: str, why: str, package: Path) -> None:
    (package / "flux_dialect.py").write_text(text)
    argv = [sys.executable, "-c", FIND, str(package)]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert why in run.stdout, run.stderr
