"""Head and workers run in the user's environment, which has Dask but not this package."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import textwrap
import venv
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import TOKEN_HEADER, Phase
from jupyter_gpucluster.core.errors import StateError
from jupyter_gpucluster.environments.kernels import plan_registration, register
from jupyter_gpucluster.profiles import find_profile

from .conftest import Start, WriteProfile
from .driving import client_of, ended, fixed, traces_of, until
from .tasks import double


def required(name: str, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the plain names of what a distribution always needs, itself included."""
    known |= {plain(name)}
    with suppress(PackageNotFoundError):  # for other systems or other Pythons
        for line in requires(name) or ():
            needed = re.match(r"[\w.-]+", line)
            if needed and "extra ==" not in line and plain(needed[0]) not in known:
                known |= required(needed[0], known)
    return known


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


DASK_ALONE = required("distributed") | {"pip", "setuptools"}
MISSING = sorted(
    {
        "jupyter_gpucluster",  # from the checkout, which is no distribution
        *(
            module
            for module, distributions in packages_distributions().items()
            # A distribution with a script in ../share counts as a module named "..".
            if module.isidentifier() and not DASK_ALONE & {plain(name) for name in distributions}
        ),
    }
)
"""Packages beside Dask and its needs: this package, Jupyter, NumPy, Bokeh ..."""
BLOCK = """
    import sys

    class Block:
        def find_spec(self, name, path=None, target=None):
            if name in {names!r}:
                raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

    sys.meta_path.insert(0, Block())
"""

TRY = """
import importlib

found = []
for name in {names!r}:
    try:
        importlib.import_module(name)
        found.append(name)
    except ModuleNotFoundError:
        pass
print(found)
"""

MakeEnvironment = Callable[[str, list[str]], str]


@pytest.fixture
def make_environment(home: Path) -> MakeEnvironment:
    """Make an environment with the packages of this one except some; return its Python."""

    def make(name: str, without: list[str]) -> str:
        place = home / name
        venv.create(place, symlinks=True)
        [site] = place.glob("lib/python*/site-packages")
        # Not as sitecustomize: Debian's own Python has one that would hide it.
        (site / "dask.pth").write_text(sysconfig.get_path("purelib") + "\nimport blocked\n")
        (site / "blocked.py").write_text(textwrap.dedent(BLOCK.format(names=without)))
        return str(place / "bin" / "python")

    return make


def test_a_cluster_needs_only_dask_there(
    start: Start, make_environment: MakeEnvironment, clusters: Clusters
) -> None:
    assert {"jupyter_gpucluster", "numpy", "bokeh", "pydantic", "cryptography"} <= set(MISSING)
    python = make_environment("bare", MISSING)
    tried = subprocess.run(
        [python, "-P", "-c", TRY.format(names=MISSING)], capture_output=True, text=True, check=True
    )
    assert tried.stdout == "[]\n"
    view = start(workers=2, python=python)
    assert view.python == python
    with client_of(view) as client:
        assert client.submit(double, 21).result() == 42
        [executable] = set(client.run(lambda: sys.executable).values())
        assert executable == python
        [scheduler] = {client.run_on_scheduler(lambda: sys.executable)}
        assert scheduler == python
        client.restart(timeout=60)
        assert client.submit(double, 21).result() == 42
    endpoint = clusters.endpoint(view.id)
    page = Request(
        f"http://{endpoint.host}:{endpoint.port}/status", headers={TOKEN_HEADER: endpoint.token}
    )
    with pytest.raises(HTTPError) as refused:
        urlopen(page)
    told = refused.value.read().decode()
    assert refused.value.code == 501
    assert "No module named 'bokeh'" in told
    assert f"{python} -m pip install bokeh" in told
    clusters.stop(view.id)
    assert clusters.wait_stopped(view.id, timeout=30).phase is Phase.STOPPED


def test_a_cluster_runs_on_a_kernel_that_a_launcher_starts(
    start: Start, make_environment: MakeEnvironment, write_profile: WriteProfile
) -> None:
    python = make_environment("launched", [])
    site = find_profile(write_profile("site", "environment: {variables: {A: b}}"))
    kernel = register(plan_registration("Launched", python, profile=site))
    view = start(workers=1, kernel=kernel.name)
    assert (view.python, view.environment) == (python, "launched")
    with client_of(view) as client:
        [executable] = client.run(lambda: sys.executable).values()
        assert executable == python


def test_a_dask_that_cannot_be_imported_fails_the_cluster_at_once_in_words(
    clusters: Clusters, make_environment: MakeEnvironment
) -> None:
    python = make_environment("broken", ["distributed.scheduler"])
    view = clusters.start("local", target=fixed(1), python=python)
    over = until(lambda: ended(clusters, view), 20)
    assert over.phase is Phase.FAILED
    assert "No module named 'distributed.scheduler'" in over.reason
    assert not traces_of(view.id)


def test_a_python_that_cannot_even_begin_is_refused_at_start(
    clusters: Clusters, make_environment: MakeEnvironment, temporary: Path
) -> None:
    python = make_environment("hopeless", ["asyncio"])
    with pytest.raises(StateError) as caught:
        clusters.start("local", target=fixed(1), python=python)
    assert "No module named 'asyncio'" in caught.value.message
    assert caught.value.hint
    assert clusters.list(ended=True) == []
    assert not list(temporary.glob("gpc-*"))
