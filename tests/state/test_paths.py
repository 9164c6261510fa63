"""Our clusters lie where Jupyter keeps a user's data, without asking Jupyter's own code."""

from __future__ import annotations

from pathlib import Path

import pytest
from jupyter_core.paths import jupyter_data_dir

from jupyter_gpucluster.core.errors import StateError
from jupyter_gpucluster.state.paths import check_place, data_directory, default_root

SETTINGS = [
    {},
    {"JUPYTER_DATA_DIR": "/somewhere/data"},
    {"JUPYTER_DATA_DIR": ""},
    {"JUPYTER_DATA_DIR": "relative"},
    {"XDG_DATA_HOME": "/shared"},
    {"XDG_DATA_HOME": ""},
    {"JUPYTER_PLATFORM_DIRS": "1"},
    {"JUPYTER_PLATFORM_DIRS": "0", "XDG_DATA_HOME": "/shared"},
    {"JUPYTER_PLATFORM_DIRS": "1", "XDG_DATA_HOME": "/shared"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_it_is_the_directory_that_jupyter_names(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JUPYTER_DATA_DIR", "XDG_DATA_HOME", "JUPYTER_PLATFORM_DIRS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert data_directory() == jupyter_data_dir()


def test_a_home_behind_a_link_is_resolved_as_jupyter_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("JUPYTER_DATA_DIR", "XDG_DATA_HOME", "JUPYTER_PLATFORM_DIRS"):
        monkeypatch.delenv(name, raising=False)
    assert data_directory() == jupyter_data_dir()


def test_the_path_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUPYTER_DATA_DIR", "here")
    assert default_root() == tmp_path / "here" / "gpucluster" / "clusters"


@pytest.mark.parametrize(
    "name",
    ["new\nline", "bell\x07", "\x9b", "\udcff", "{name}", "a{scheduler}b", "@MARK@"],
    ids=ascii,
)
def test_a_directory_that_scripts_would_garble_is_refused_in_a_line(name: str) -> None:
    with pytest.raises(StateError, match="cannot be used") as caught:
        check_place(Path("/data", name), "JUPYTER_DATA_DIR")
    assert "JUPYTER_DATA_DIR" in caught.value.hint
    assert caught.value.message.isascii()
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("name", ["a b'\"$HOME;#%j*", "ü", "{}", "MARK", "x" * 250])
def test_any_other_directory_will_do(name: str) -> None:
    check_place(Path("/data", name), "JUPYTER_DATA_DIR")
