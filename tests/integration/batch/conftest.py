"""Real batch systems that the tests of this folder share, and clusters on Slurm."""

from __future__ import annotations

import contextlib
import os
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.state.view import ClusterView

from . import kubernetes_place
from .behalf import Work
from .life import Place
from .oar_site import OarSite
from .ordinary_user import Person, ordinary_user
from .places import REAL, SIMULATED, RealPlace, SimulatedPlace
from .real_site import AnySite, running
from .sge_site import SgeSite
from .slurm_site import SlurmSite

WriteProfile = Callable[[str, str], str]
Run = Callable[..., ClusterView]
SECONDS = 90.0
FIXTURES = {"slurm": "site", "sge": "grid_engine", "oar": "oar"}


def fixed(workers: int) -> Target:
    return Target(workers, workers)


def wait_until(
    clusters: Clusters, name: str, reached: Callable[[ClusterView], bool], seconds: float = SECONDS
) -> ClusterView:
    deadline = time.monotonic() + seconds
    while not reached(view := clusters.get(name)):
        assert time.monotonic() < deadline, f"{view.phase.value}: {view.words}; {view.reason}"
        time.sleep(0.1)
    return view


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything here: it starts real daemons."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def site() -> Iterator[SlurmSite]:
    """Start a Slurm of a dozen nodes, and end it after the last test."""
    with as_root(SlurmSite) as slurm:
        yield slurm


@pytest.fixture(scope="module")
def grid_engine() -> Iterator[SgeSite]:
    """Start the machine's Grid Engine for the one module that uses it: its daemons never rest."""
    with as_root(SgeSite) as engine:
        yield engine


@pytest.fixture(scope="module")
def oar() -> Iterator[OarSite]:
    """Start the machine's OAR for the one module that uses it: its daemons never rest."""
    with as_root(OarSite) as site:
        yield site


def as_root(kind: Callable[[Path], AnySite]) -> contextlib.AbstractContextManager[AnySite]:
    """Start a batch system, for which nobody else can."""
    if os.geteuid() != 0:
        pytest.skip("needs root: the daemons of batch systems")
    return running(kind)


@pytest.fixture
def clusters(home: Path, site: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clusters]:
    """Return the clusters of this test's home; what still lives at its end is stopped."""
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    mine = Clusters()
    yield mine
    live = mine.live()
    for view in live:
        mine.stop(view.id)
    for view in live:
        assert mine.wait_stopped(view.id, timeout=SECONDS).phase is Phase.STOPPED
    assert site.queue() == [], "jobs outlived their cluster"


@pytest.fixture
def run(clusters: Clusters, write_profile: WriteProfile) -> Run:
    """Start a cluster on Slurm with a profile of this text, and wait until its workers are ready.

    It is stopped at the end of the test, if it still lives.
    """

    def run(text: str, workers: int = 1, *, name: str = "small") -> ClusterView:
        view = clusters.start(write_profile(name, text), target=fixed(workers))
        return clusters.wait_ready(view.id, timeout=SECONDS)

    return run


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Bring one system up, with an empty queue; the test names which."""
    if request.param in REAL:
        yield real_place(request, request.param)
    elif request.param == "kubernetes":
        with kubernetes_place.running(tmp_path) as served:
            yield served
    else:
        programs, words = SIMULATED[request.param]
        yield SimulatedPlace(tmp_path, request.param, words, programs)


def real_place(request: pytest.FixtureRequest, system: str) -> RealPlace:
    """Return a real system with what users are told there."""
    return RealPlace(request.getfixturevalue(FIXTURES[system]), system, *REAL[system])


@pytest.fixture
def somebody(home: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """Return a user of the system, an ordinary one of real ones; what lives at the end is stopped.

    Where programs stand in for a system, jobs run as whoever runs the tests.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(place, RealPlace):
            user = ordinary_user(place.site.user, place.environment)
            person = stack.enter_context(user)
        else:
            for name, value in place.environment.items():
                monkeypatch.setenv(name, value)
            person = Person(home, Clusters(), Work())
        yield person
        place.open()
        for view in person.clusters.live():
            person.clusters.stop(view.id)
            person.clusters.wait_stopped(view.id, timeout=60)
        assert place.queue() == [], "jobs outlived their cluster"


@pytest.fixture
def write_profile(home: Path) -> WriteProfile:
    """Write a Slurm profile of this user and return its name."""

    def write(name: str, text: str) -> str:
        path = home / "data" / "gpucluster" / "profiles" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parents[1] / "site.yaml").write_text("poll_period: 1 s\n")
        head = f"title: {name}\nbackend: slurm\nnetwork: {{interface: lo}}\n"
        path.write_text(head + textwrap.dedent(text))
        return name

    return write
