"""The content of the wheel, and nothing else."""

from __future__ import annotations

import email
import re
import zipfile
from pathlib import Path

import pytest

from tests.packaging.checkout import package_json, pyproject

pytestmark = pytest.mark.slow

JUPYTERLAB_4_2 = {
    "@jupyterlab/apputils": "4.3.0",
    "@jupyterlab/coreutils": "6.2.0",
    "@jupyterlab/services": "7.2.0",
    "@lumino/commands": "2.3.0",
    "@lumino/coreutils": "2.1.2",
    "@lumino/disposable": "2.1.2",
    "@lumino/dragdrop": "2.1.4",
    "@lumino/messaging": "2.0.1",
    "@lumino/polling": "2.1.2",
    "@lumino/signaling": "2.1.2",
    "@lumino/widgets": "2.3.2",
    "@rjsf/validator-ajv8": "5.14.3",
    "react": "18.2.0",
}
"""Packages that JupyterLab 4.2.0 shares with extensions; its others are 4.2.0."""


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def shared(names: list[str]) -> list[str]:
    """Return what is installed beside the package, relative to the environment's folder."""
    return [name.partition(".data/data/")[2] for name in names if ".data/data/" in name]


def test_the_wheel_is_pure_python_of_the_version_in_package_json(wheel: Path) -> None:
    assert wheel.name == f"jupyter_gpucluster-{package_json()['version']}-py3-none-any.whl"


def test_every_file_of_the_package_is_shipped_and_nothing_beside_it(
    source: Path, names: list[str]
) -> None:
    inside = {name for name in names if ".dist-info/" not in name and ".data/" not in name}
    # The built Lab extension lies there too, and is shipped beside the package instead.
    built = source / "jupyter_gpucluster" / "labextension"
    package = [path for path in (source / "jupyter_gpucluster").rglob("*") if path.is_file()]
    assert inside == {
        str(path.relative_to(source)) for path in package if built not in path.parents
    }


@pytest.mark.parametrize(
    "pattern",
    [
        r"jupyter_gpucluster/py\.typed",
        r"jupyter_gpucluster/notebooks/\w+\.ipynb",
        r"jupyter_gpucluster/profiles/sites/\w+\.yaml",
        r"jupyter_gpucluster/profiles/schema\.json",
        r"jupyter_gpucluster/server/openapi\.yaml",
        r".*\.dist-info/licenses/LICENSE",
    ],
)
def test_the_wheel_holds(pattern: str, names: list[str]) -> None:
    assert any(re.fullmatch(pattern, name) for name in names), pattern


def test_the_lab_extension_is_a_production_build(wheel: Path, shared: list[str]) -> None:
    root = "share/jupyter/labextensions/jupyter-gpucluster"
    assert f"{root}/package.json" in shared
    assert f"{root}/install.json" in shared
    assert f"{root}/static/style.js" in shared
    assert f"{root}/schemas/jupyter-gpucluster/plugin.json" in shared
    assert any(re.fullmatch(rf"{root}/static/remoteEntry\.\w+\.js", name) for name in shared)
    assert not [name for name in shared if name.endswith(".map")]


def test_the_lab_extension_takes_what_jupyterlab_shares_from_4_2_on(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (entry,) = (name for name in archive.namelist() if "/static/remoteEntry." in name)
        built = archive.read(entry).decode()
    consumed = re.findall(
        r'shareKey:"([^"]+)",import:([^,]+),requiredVersion:"([^"]+)",strictVersion:!1', built
    )
    assert len(consumed) == built.count("shareKey:") > 20
    for package, bundled, wanted in consumed:
        assert bundled == "null", f"{package} is Lab's own; a second copy knows none of its tokens"
        # A caret takes whatever is newer and has the same first number: 4.6, too.
        assert wanted.startswith("^"), package
        there = JUPYTERLAB_4_2.get(package, "4.2.0")
        assert numbers(wanted) <= numbers(there), f"{package} {there} is no {wanted}"
        assert numbers(wanted)[0] == numbers(there)[0], package


def numbers(version: str) -> list[int]:
    """Return the three numbers of a version or of a range."""
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def test_no_file_names_the_folder_that_it_was_built_in(wheel: Path, source: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        found = [name for name in archive.namelist() if bytes(source) in archive.read(name)]
    assert found == []


def test_the_server_extension_is_switched_on_by_installing(shared: list[str]) -> None:
    assert "etc/jupyter/jupyter_server_config.d/jupyter_gpucluster.json" in shared
    assert "etc/dask/jupyter_gpucluster.yaml" in shared


def test_the_metadata_say_what_the_package_is(wheel: Path, names: list[str]) -> None:
    (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(name))
    classifiers = metadata.get_all("Classifier", [])
    assert "Framework :: Jupyter :: JupyterLab :: Extensions :: Prebuilt" in classifiers
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra", [])) == set(
        pyproject()["project"]["optional-dependencies"]
    )
