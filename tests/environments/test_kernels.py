"""Kernels are registered by the environment's own ipykernel, and started by Jupyter's client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import start_new_kernel

from jupyter_gpucluster.core.errors import InvalidInput, StateError, UnsuitableEnvironment
from jupyter_gpucluster.environments.kernels import (
    Kernel,
    activation,
    plan_registration,
    register,
    remove_kernels,
)
from jupyter_gpucluster.launch.python_environments import (
    KERNEL_METADATA,
    find_kernel,
    list_environments,
    require_suitable,
)
from jupyter_gpucluster.profiles import LoadedProfile, Profile, find_profile

SITE = r"""
title: A site
backend: slurm
job: {account: "{project}"}
environment:
  prologue: ["export FROM_PROLOGUE=it\\'s", "module load {stack} || STACK={stack}", "export STACK"]
  variables: {CUDA_ROOT: "/opt/cuda $HOME 'x'"}
options:
  project: {type: string, required: true}
  stack: {type: string, default: nvidia}
"""


@pytest.fixture
def site(home: Path) -> LoadedProfile:
    """Return a site's profile."""
    file = home / "data" / "gpucluster" / "profiles" / "site.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(SITE)
    return find_profile("site")


@pytest.fixture
def python(home: Path) -> str:
    """Return the Python of an environment with our packages, in a folder of odd signs."""
    place = home / "it's {prefix} $HOME"
    venv.create(place, symlinks=True)
    [packages] = place.glob("lib/python*/site-packages")
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return str(place / "bin" / "python")


def registered(python: str, title: str = "GPU (CUDA 12)", **more: Any) -> Kernel:
    return register(plan_registration(title, python, **more))


def told_by(kernel: str, code: str) -> str:
    """Start a kernel as Jupyter does and return what code prints there."""
    manager, client = start_new_kernel(kernel_name=kernel)
    printed: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
            printed.append(message["content"]["text"])

    try:
        client.execute_interactive(code, output_hook=hear, timeout=60)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
    return "".join(printed)


@pytest.mark.slow
def test_a_kernel_runs_where_the_profile_says_as_its_jobs_do(
    python: str, site: LoadedProfile
) -> None:
    # The project is no matter of the environment.
    kernel = registered(python, profile=site, options={"stack": "a 'b'"})
    assert (kernel.name, kernel.profile, kernel.listed) == ("gpu-cuda-12", "site", True)
    names = ("FROM_PROLOGUE", "STACK", "CUDA_ROOT")
    code = f"import os, sys, json; print(json.dumps([sys.executable, *map(os.getenv, {names})]))"
    told = json.loads(told_by("gpu-cuda-12", code))
    assert told == [python, "it's", "a 'b'", "/opt/cuda $HOME 'x'"]
    # Those who choose an environment for a cluster see its Python, not the launcher.
    found = require_suitable(find_kernel("gpu-cuda-12"))
    assert (found.python, found.title) == (python, "GPU (CUDA 12)")
    assert python in {environment.python for environment in list_environments()}


@pytest.mark.slow
def test_a_kernel_without_a_profile_starts_also_where_jupyter_would_fill_in_names(
    python: str,
) -> None:
    registered(python, "Plain")
    assert told_by("plain", "import sys; print(sys.executable)") == f"{python}\n"


def test_a_users_kernel_is_private(home: Path, site: LoadedProfile) -> None:
    made = registered(sys.executable, profile=site, options={"stack": "cuda"})
    files = [Path(made.directory), *Path(made.directory).iterdir()]
    assert not any(file.stat().st_mode & 0o077 for file in files)


def test_a_plain_kernel_is_started_by_its_python(home: Path) -> None:
    kernel = registered(sys.executable, "Plain")
    spec = json.loads((Path(kernel.directory) / "kernel.json").read_text())
    assert spec["argv"][0] == sys.executable
    assert spec["argv"][-1] == "{connection_file}"
    assert spec["display_name"] == "Plain"
    assert (Path(kernel.directory) / "logo-64x64.png").exists()


def test_only_what_the_environment_needs_is_asked_of_a_profile(site: LoadedProfile) -> None:
    lines = activation(site.profile, {})
    assert lines == [
        "export CUDA_ROOT='/opt/cuda $HOME '\"'\"'x'\"'\"''",
        r"export FROM_PROLOGUE=it\'s",
        "module load nvidia || STACK=nvidia",
        "export STACK",
    ]
    with pytest.raises(InvalidInput, match="unknown option"):
        activation(site.profile, {"stak": "x"})
    assert activation(Profile(title="x", backend="local"), {}) == []


def test_options_without_a_profile_are_refused() -> None:
    with pytest.raises(InvalidInput, match="--profile"):
        plan_registration("A", sys.executable, options={"stack": "x"})


@pytest.mark.parametrize(
    "title, name, expected",
    [
        ("GPU", "", "gpu"),
        ("  GPU / CUDA-12.4 ", "", "gpu-cuda-12.4"),
        ("GPU", "Mine_2", "mine_2"),
        ("中", "", "env"),
    ],
)
def test_names_are_made_of_titles(home: Path, title: str, name: str, expected: str) -> None:
    assert plan_registration(title, "/x/env/bin/python", name=name).kernel.name == expected


@pytest.mark.parametrize(
    "title, name, words",
    [
        ("", "", "title"),
        ("a\nb", "", "title"),
        ("中", "", "cannot be the name"),
        ("A", "a b", "cannot be the name"),
        ("A", "../a", "cannot be the name"),
        ("A", "..", "cannot be the name"),
        ("A", "x" * 101, "cannot be the name"),
    ],
)
def test_names_that_cannot_be_are_refused(home: Path, title: str, name: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        plan_registration(title, "/中/bin/python", name=name)


def test_a_taken_name_is_given_only_to_who_says_so(home: Path) -> None:
    first = registered(sys.executable, "One")
    with pytest.raises(InvalidInput, match="already") as refused:
        registered(sys.executable, "ONE")
    assert "--replace" in refused.value.hint
    # `environment --kernel` again is no surprise, another environment is.
    assert registered(sys.executable, "ONE", again=True).title == "ONE"
    with pytest.raises(InvalidInput, match="already"):
        plan_registration("One", "/other/bin/python", again=True)
    second = registered(sys.executable, "Two", name="one", replace=True)
    assert second.directory == first.directory
    assert KernelSpecManager().get_kernel_spec("one").display_name == "Two"


def test_a_name_that_is_taken_elsewhere_cannot_be_replaced(home: Path) -> None:
    with pytest.raises(InvalidInput, match="python3") as refused:
        plan_registration("Python 3", sys.executable, name="python3", replace=True)
    assert "--replace" not in refused.value.hint


def test_a_sites_kernel_is_readable_by_all_also_where_jupyter_does_not_search(
    tmp_path: Path,
) -> None:
    old = os.umask(0o077)
    try:
        kernel = registered(sys.executable, "Site", prefix=str(tmp_path))
    finally:
        os.umask(old)
    place = tmp_path / "share" / "jupyter" / "kernels" / "site"
    assert (kernel.directory, kernel.listed) == (str(place), False)
    assert place.stat().st_mode & 0o777 == 0o755
    assert {entry.stat().st_mode & 0o777 for entry in place.iterdir()} == {0o644}
    with pytest.raises(InvalidInput, match="already"):
        plan_registration("Site", sys.executable, prefix=str(tmp_path))
    [gone] = remove_kernels(sys.executable, prefix=str(tmp_path))
    assert gone.name == "site"
    assert not place.exists()


def test_a_place_that_cannot_be_written_is_reported(home: Path) -> None:
    plan = plan_registration("A", sys.executable, prefix="/proc")
    with pytest.raises(StateError, match="Cannot write") as refused:
        register(plan)
    assert "--prefix" in refused.value.hint


@pytest.mark.parametrize("said", ["", "gpucluster-probe:x", "gpucluster-probe:[]"])
def test_a_program_that_says_no_sense_is_no_python(home: Path, said: str) -> None:
    python = home / "python"
    python.write_text(f"#!/bin/sh\necho '{said}'\n")
    python.chmod(0o755)
    with pytest.raises(UnsuitableEnvironment, match="fails"):
        registered(str(python))


@pytest.mark.parametrize("target", ["", "gone"])
def test_files_and_links_are_not_replaced(home: Path, target: str) -> None:
    place = Path(KernelSpecManager().user_kernel_dir) / "a"
    place.parent.mkdir(parents=True)
    if target:
        place.symlink_to(target)
    else:
        place.touch()
    with pytest.raises(InvalidInput, match="already"):
        plan_registration("A", sys.executable, replace=True)


def test_a_spec_of_odd_values_and_a_home_of_no_user_are_wrong_input(home: Path) -> None:
    odd = Path(KernelSpecManager().user_kernel_dir) / "odd" / "kernel.json"
    odd.parent.mkdir(parents=True)
    odd.write_text(json.dumps({"display_name": 1, "metadata": {KERNEL_METADATA: {"python": []}}}))
    with pytest.raises(InvalidInput, match="registered no kernel"):
        remove_kernels(sys.executable)
    with pytest.raises(InvalidInput, match="a home directory that does not exist"):
        plan_registration("A", sys.executable, prefix="~nobody-here")


def test_a_python_without_ipykernel_is_refused_with_the_cure(home: Path) -> None:
    venv.create(home / "bare", symlinks=True)
    bare = str(home / "bare" / "bin" / "python")
    with pytest.raises(UnsuitableEnvironment, match="no ipykernel") as refused:
        registered(bare)
    assert f"{bare} -m pip install ipykernel" in refused.value.hint
    with pytest.raises(UnsuitableEnvironment, match="does not exist"):
        registered("/no/python")
    assert "gpu-cuda-12" not in KernelSpecManager().find_kernel_specs()


Write = Callable[[str, object], Path]


@pytest.fixture
def foreign(home: Path) -> Write:
    """Return a call that writes a kernel that was not registered here."""

    def write(name: str, document: object) -> Path:
        folder = home / "data" / "kernels" / name
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(json.dumps(document))
        return folder

    return write


def test_only_what_was_registered_here_is_removed(home: Path, foreign: Write) -> None:
    spec = {"argv": [sys.executable], "display_name": "Theirs", "language": "python"}
    kept = [
        foreign("theirs", spec),
        foreign("odd", {**spec, "metadata": {"gpucluster": "odd"}}),
        foreign("odder", {**spec, "metadata": []}),
    ]
    registered(sys.executable, "One")
    registered(sys.executable, "Two")
    with pytest.raises(InvalidInput, match="registered no kernel"):
        remove_kernels("/other/env")
    with pytest.raises(InvalidInput, match="'theirs'"):
        remove_kernels(sys.executable, name="theirs")
    assert [k.name for k in remove_kernels(sys.executable, name="One")] == ["one"]
    folder = str(Path(sys.executable).parent.parent)
    assert [k.name for k in remove_kernels(folder)] == ["two"]
    assert all(folder.exists() for folder in kept)
    assert {"theirs", "odd"} <= {environment.name for environment in list_environments()}


@pytest.mark.slow
def test_the_verb_registers_and_removes(home: Path) -> None:
    def gpucluster(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "jupyter_gpucluster", "kernel", sys.executable, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    answer = gpucluster("--title", "One", "--json")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert json.loads(answer.stdout)["name"] == "one"
    assert gpucluster().returncode == 2
    assert gpucluster("--remove", "--title", "One").returncode == 2
    assert gpucluster("--remove").stdout == "one (One): removed\n"
