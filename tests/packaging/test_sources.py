"""No hosts, no machine paths, one name and version, a reason for every dependency."""

from __future__ import annotations

import ast
import itertools
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.packaging.checkout import files, package_json, pyproject, text

HOSTS = re.compile(
    r"registry\.(npm|yarn)|files\.pythonhosted|pypi\.org/simple|deb\.debian\.org|https?://[^/\s]*:\d+/simple"
)
"""Package registries; a lock file that names one works only where that one is reached."""

MACHINE_PATHS = re.compile(r"(?<![\w.~$}/-])/(work|root)/")
"""Folders that are there on some machines only."""

BINARY = {".png", ".ico", ".gz", ".woff2"}


def readable() -> list[str]:
    return [str(path) for path in files() if path.suffix not in BINARY]


@pytest.mark.parametrize("pattern", [HOSTS, MACHINE_PATHS], ids=["registry hosts", "machine paths"])
def test_no_file_names(pattern: re.Pattern[str]) -> None:
    here = "tests/packaging/test_sources.py"
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name in readable()
        if name != here
        for number, line in enumerate(text(name).splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


def test_lock_files_hold_no_address() -> None:
    locks = files("*yarn.lock", "*package-lock.json")
    assert locks
    assert [str(lock) for lock in locks if "://" in text(lock)] == []


def test_one_name_everywhere() -> None:
    name = "jupyter-gpucluster"
    shared = pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert pyproject()["project"]["name"] == name
    assert package_json()["name"] == name
    assert shared["jupyter_gpucluster/labextension"] == f"share/jupyter/labextensions/{name}"


def test_the_changelog_begins_with_the_version_of_package_json() -> None:
    newest = re.search(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)
    assert newest
    assert newest[1] == package_json()["version"]


def test_the_lab_extension_asks_jupyterlab_for_no_more_than_it_is_written_for() -> None:
    """Without these words the builder asks for the release that it was built beside."""
    package = package_json()
    written_for = package["dependencies"].items()
    asked = package["jupyterlab"]["sharedPackages"].items()
    assert {name: shared["requiredVersion"] for name, shared in asked} == {
        name: wanted for name, wanted in written_for if name.startswith(("@jupyterlab/", "@rjsf/"))
    }
    assert not any(shared["bundled"] for _, shared in asked)


def test_every_make_target_that_the_documents_name_exists() -> None:
    targets = set(re.findall(r"^([a-z ]+):", text("Makefile"), re.MULTILINE))
    known = {target for names in targets for target in names.split()}
    documents = [name for name in readable() if name.endswith(".md")]
    named = {word for name in documents for word in re.findall(r"`?make ([a-z]+)`", text(name))}
    named |= {
        word for name in documents for word in re.findall(r"^make ([a-z]+)", text(name), re.M)
    }
    assert {"lab", "demo", "test"} <= named
    assert named <= known


def test_every_dependency_has_its_reason() -> None:
    project = pyproject()["project"]
    extras = project["optional-dependencies"].values()
    wanted = {required(line) for line in itertools.chain(project["dependencies"], *extras)}
    for package in (package_json(), package_json("ui-tests")):
        wanted |= {*package.get("dependencies", ()), *package.get("devDependencies", ())}
    assert wanted - explained() == set()


def test_every_foreign_import_of_the_package_has_its_reason() -> None:
    distributions = packages_distributions()
    reasons = set(map(plain, explained()))
    unknown = {
        f"{path}: {module}"
        for path in files("jupyter_gpucluster/*.py")
        for module in imported(path)
        if reasons.isdisjoint(map(plain, {module, *distributions.get(module, [])}))
    }
    assert unknown == set()


def explained() -> set[str]:
    """Return every word of the page on dependencies that may be a package's name."""
    return set(re.findall(r"[@\w][\w@/.-]*", text("docs/dependencies.md")))


def plain(name: str) -> str:
    """Return a package's name as indexes compare it."""
    return name.lower().replace("_", "-")


def required(requirement: str) -> str:
    """Return the package's name of one line of requirements."""
    return re.split(r"[\[<>=~!; ]", requirement)[0]


def imported(path: Path) -> set[str]:
    """Return the foreign top-level modules that a file imports anywhere."""
    modules = set()
    for node in ast.walk(ast.parse(text(path))):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules.add(node.module.partition(".")[0])
    return modules - sys.stdlib_module_names - {"jupyter_gpucluster"}
