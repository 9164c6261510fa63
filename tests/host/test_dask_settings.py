"""Settings that may break a cluster are named, and files without any are not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jupyter_gpucluster.host.dask_settings import own_settings


@pytest.fixture(autouse=True)
def nobodys(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(home / "environment"))
    for name in [name for name in os.environ if name.startswith("DASK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DASK_ROOT_CONFIG", str(home / "none"))


def write(home: Path, name: str, text: str) -> Path:
    path = home / ".config" / "dask" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_settings_nothing_is_said(home: Path) -> None:
    write(home, "distributed.yaml", "# distributed:\n#   comm: {}\n\n")
    write(home, "notes.txt", "not: read")
    assert own_settings() == ""


def test_files_and_variables_are_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = write(home, "mine.yaml", "distributed: {comm: {offload: never}}\n")
    other = home / "other.yaml"
    other.write_text("{broken")
    monkeypatch.setenv("DASK_CONFIG", str(other))
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__RETRY", "3")
    told = f"{mine}, {other}, DASK_DISTRIBUTED__COMM__RETRY"
    assert own_settings() == f"Dask settings of your own are in force: {told}."


def test_the_file_of_this_package_is_not_the_user_s_but_its_neighbours_are(home: Path) -> None:
    etc = home / "environment" / "etc" / "dask"
    etc.mkdir(parents=True)
    (etc / "jupyter_gpucluster.yaml").write_text("distributed: {client: {}}\n")
    assert own_settings() == ""
    site = etc / "site.yaml"
    site.write_text("distributed: {comm: {}}\n")
    assert own_settings() == f"Dask settings of your own are in force: {site}."
