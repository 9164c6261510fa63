"""The rooms of the package: what may run where, and that each says so."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest

import jupyter_gpucluster
from tests.packaging.test_interpreters import interpreter

PACKAGE = Path(jupyter_gpucluster.__file__).parent
ROOMS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))
NODE = sorted((PACKAGE / "node").glob("*.py"))
OLDEST = (3, 8)
NEWER_MODULES = {"graphlib", "tomllib", "zoneinfo"}
"""Of the standard library since 3.9: https://docs.python.org/3/library/."""

IMPORT_ALL = """
import importlib, runpy, sys
allowed, main, names = {allowed!r}, {main!r}, {names!r}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in allowed and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {{top!r}} in a bare environment", name=top)
sys.meta_path.insert(0, Refuse())
runpy.run_path(main)["put_package_in_place"]()
for name in names:
    importlib.import_module(name)
"""


def names_of(room: str) -> list[str]:
    """Return the modules of a room."""
    folder = PACKAGE / room
    return [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(folder.rglob("*.py"))
        if path.name not in ("__main__.py", "job_writer.py")
    ]


def brought_by(distribution: str, known: set[str]) -> set[str]:
    """Return a distribution and all that it requires."""
    if distribution in known:
        return known
    known.add(distribution)
    try:
        lines = requires(distribution) or []
    except PackageNotFoundError:  # for another platform or Python
        return known
    for line in lines:
        if "extra ==" not in line:
            name = re.split(r"[\[<>=~!;( ]", line)[0]
            brought_by(re.sub(r"[-_.]+", "-", name).lower(), known)
    return known


def test_what_runs_in_the_clusters_python_imports_where_only_distributed_is() -> None:
    brought = brought_by("distributed", set())
    modules = {
        module
        for module, distributions in packages_distributions().items()
        if any(re.sub(r"[-_.]+", "-", name).lower() in brought for name in distributions)
    }
    names = [name for room in ("core", "node", "host", "batch", "head") for name in names_of(room)]
    code = IMPORT_ALL.format(
        allowed=sorted(modules | {"jupyter_gpucluster"}),
        main=str(PACKAGE / "head" / "__main__.py"),
        names=names,
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("path", NODE, ids=lambda path: path.name)
def test_what_runs_on_a_node_needs_python_3_8_and_its_standard_library_only(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=OLDEST)
    imported: set[str] = set()
    deferred: set[str] = set()
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name.partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a file that is copied has no neighbours"
            names = [str(node.module).partition(".")[0]]
        (deferred if node not in tree.body else imported).update(names)
    assert imported <= sys.stdlib_module_names - NEWER_MODULES
    # What a user's script or a worker needs is there when it runs.
    assert deferred - sys.stdlib_module_names <= {"dask", "distributed"}


@pytest.mark.parametrize("version", ["3.8", "3.9"])
def test_what_runs_on_a_node_can_be_read_by_an_old_python(version: str) -> None:
    python = interpreter(version)
    for path in NODE:
        code = f"import runpy; runpy.run_path({str(path)!r}, run_name='read')"
        subprocess.run([python, "-I", "-B", "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: path.name)
def test_a_room_says_what_it_is_who_runs_it_and_what_it_may_import(room: Path) -> None:
    module = importlib.import_module(f"jupyter_gpucluster.{room.name}")
    lines = [line for line in str(module.__doc__).strip().splitlines() if line]
    assert len(lines) == 3
    assert lines[1].startswith("Runs ")
    assert lines[2].startswith("May import ")


def test_the_package_s_own_folder_holds_the_facade_and_what_python_asks_for() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {
        "__init__.py",
        "__main__.py",
        "clusters.py",
        "magic.py",
    }
