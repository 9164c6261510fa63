"""Environments are made by the real venv, pip and uv, of small packages that lie beside them."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from jupyter_gpucluster.core.errors import (
    InstallationFailed,
    InvalidInput,
    StateError,
    UnsuitableEnvironment,
)
from jupyter_gpucluster.environments.virtualenvs import (
    UNFINISHED,
    Made,
    Wanted,
    environment_place,
    make_environment,
    requirements_for,
)

from ..cli.doubles import Desk, InMemoryClusters
from ..conftest import a_home
from ..waiting import until
from ..wheels import make_repository, make_source, make_wheel

OWN = version("dask")
PINNED = "2026.7.1"
"""The Dask that the dask-cuda of these tests is made for."""
CUDA = (
    f"Requires-Dist: dask=={PINNED}\nRequires-Dist: distributed=={PINNED}\nProvides-Extra: cu12\n"
)
WHEELS = (
    *((name, number, "") for name in ("dask", "distributed") for number in {OWN, PINNED}),
    ("bokeh", "3.9.0", ""),
    ("bokeh", "3.10.0", ""),  # newer than what was tested
    ("ipykernel", "7.0.0", ""),
    ("cupy-cuda12x", "14.0.0", ""),
    ("nvidia-ml-py", "13.0.0", ""),
    ("dask-cuda", "26.10.0", CUDA),
    ("tiny", "1.0", ""),
    ("tiny", "2.0", ""),
)
UV = Path(sys.prefix) / "bin" / "uv"


@pytest.fixture(scope="module")
def module_home() -> Iterator[Path]:
    """Give all tests here one home, where installers find the packages above and no index."""
    with a_home() as home:
        wheels = home / "wheels"
        wheels.mkdir()
        for wheel in WHEELS:
            make_wheel(wheels, *wheel)
        profiles = home / "data" / "gpucluster" / "profiles"
        profiles.mkdir(parents=True)
        (profiles / "site.yaml").write_text("title: Site\nbackend: slurm\njob: {gpus: 1}\n")
        os.environ |= {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_FIND_LINKS": str(wheels),
            "PIP_NO_INDEX": "1",
            "PIP_USER": "1",  # as sites' configurations say
            "UV_CACHE_DIR": str(home / "uv"),
            "UV_FIND_LINKS": str(wheels),
            "UV_NO_CONFIG": "1",
            "UV_OFFLINE": "1",
            "PATH": f"{UV.parent}{os.pathsep}{os.environ['PATH']}",
        }
        yield home


@pytest.fixture(scope="module")
def made(module_home: Path) -> Made:
    """Make one environment with everything: a list, a git repository, dask-cuda, odd signs."""
    wanted = module_home / "list.txt"
    wanted.write_text("# What we use\ntiny==1.0  # not the newest\n")
    repository = make_repository(module_home / "repository", "from-git")
    return make_environment(
        Wanted(
            module_home / "envs" / "it's {a} $HOME",
            packages=(f"git+{repository.as_uri()}",),
            requirements=(wanted,),
            cuda="12",
            installer="pip",
        ),
        lambda line: None,
    )


def locked(made: Made) -> list[str]:
    """Return the pinned list without its heading."""
    return made.lock.read_text().splitlines()[1:]


@pytest.mark.slow
def test_an_environment_has_what_clusters_need_and_what_was_asked_for(made: Made) -> None:
    found = made.environment
    assert made.new
    assert (found.suitable, found.problems, found.gpu_problems) == (True, (), ())
    # dask-cuda decides which Dask it is, though a newer one is there.
    assert found.versions == {
        "python": ".".join(map(str, sys.version_info[:3])),
        "dask": PINNED,
        "distributed": PINNED,
        "dask_cuda": "26.10.0",
        "bokeh": "3.9.0",
        "ipykernel": "7.0.0",
    }
    [from_git] = [line for line in locked(made) if "git+" in line]
    assert from_git.startswith("from-git @ git+file://")
    assert len(from_git.rpartition("@")[2]) == 40  # the commit
    assert "tiny==1.0" in locked(made)
    assert not (made.lock.parent / UNFINISHED).exists()


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pip", *(["uv"] if UV.exists() else [])])
def test_what_is_there_is_completed_and_keeps_its_dask(made: Made, installer: str) -> None:
    package = {"pip": "tiny==2.0", "uv": "tiny==1.0"}[installer]
    words = ["environment", str(made.lock.parent), "--installer", installer, package, "--json"]
    words += ["--profile", "site"]
    answer = subprocess.run(
        [sys.executable, "-m", "jupyter_gpucluster", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    document = json.loads(answer.stdout)
    assert not document["new"]
    assert document["environment"]["versions"] == made.environment.versions
    assert document["lock"] == str(made.lock)
    assert package in locked(made)
    assert document["start"].split()[:4] == ["jupyter", "gpucluster", "start", "site"]
    unseen, no_cuda = document["warnings"]
    assert "the nodes of site may not see" in unseen
    assert "--cuda" in no_cuda
    desk = Desk(InMemoryClusters())
    assert desk.types(*words[:-3]) == 0
    assert f"{made.lock.parent} (updated)\n" in desk.out
    assert "installing with" in desk.err
    # The profile line is YAML also with such a path.
    line = yaml.safe_load(document["in_a_profile"])
    assert line == {"environment": {"python": made.environment.python}}


@pytest.mark.slow
def test_a_failure_in_what_was_there_before_takes_nothing_away(
    made: Made, module_home: Path
) -> None:
    before = locked(made)
    broken = make_source(module_home / "broken", "broken")
    with pytest.raises(InstallationFailed, match="pip failed") as failed:
        make_environment(
            Wanted(made.lock.parent, packages=(str(broken),), installer="pip"), lambda line: None
        )
    assert "metadata-generation-failed" in failed.value.detail
    with pytest.raises(InstallationFailed, match="pip failed") as failed:
        make_environment(
            Wanted(made.lock.parent, packages=("no-such-thing",), installer="pip"),
            lambda line: None,
        )
    assert "no-such-thing" in failed.value.detail
    assert locked(made) == before
    assert Path(made.environment.python).exists()


@pytest.mark.slow
def test_a_pinned_list_makes_the_same_elsewhere_also_where_one_was_killed_on_the_way(
    made: Made, module_home: Path
) -> None:
    other = Wanted(module_home / "other", requirements=(made.lock,))
    (other.place / "lib").mkdir(parents=True)
    (other.place / "pyvenv.cfg").touch()
    mark = other.place / UNFINISHED
    with mark.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StateError, match="Another process"):
            make_environment(other, lambda line: None)
    assert (other.place / "pyvenv.cfg").exists()
    copy = make_environment(other, lambda line: None)
    assert copy.new
    assert locked(copy) == locked(made)
    assert not mark.exists()


@pytest.mark.slow
def test_an_interrupted_one_leaves_nothing(module_home: Path) -> None:
    source = make_source(module_home / "endless", "endless")
    begun = module_home / "begun"
    place = module_home / "new" / "folders" / "env"
    words = ["environment", str(place), str(source), "--installer", "pip"]
    with subprocess.Popen(
        [sys.executable, "-m", "jupyter_gpucluster", *words],
        env={**os.environ, "BUILD_BEGUN": str(begun)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        until(begun.exists)
        os.kill(process.pid, signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert f"deleted what was created in {place}" in said
    assert not place.parent.parent.exists()
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(place) not in left.stdout


# What needs no environment.


def test_a_python_without_a_venv_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "empty"
    place.mkdir()
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *venv*) mkdir "{place}/lib"; ln -s / "{place}/lib64";'
        " echo 'ensurepip is not available'; exit 1;; esac\n"
        f'exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    said: list[str] = []
    with pytest.raises(InstallationFailed, match="venv failed") as failed:
        make_environment(Wanted(place, python=str(python)), said.append)
    assert "python3-venv" in failed.value.hint
    assert "ensurepip is not available" in said
    assert list(place.iterdir()) == []  # as it was before


def test_without_dask_cuda_it_is_the_dask_of_this_process() -> None:
    lines = requirements_for(Wanted(Path("/x")), has_cuda=False)
    assert {f"dask=={OWN}", f"distributed=={OWN}", "ipykernel"} <= set(lines)
    [bokeh] = [line for line in lines if line.startswith("bokeh")]
    assert "<3.10" in bokeh


@pytest.mark.parametrize(
    "text", ["dask==2026.7.1", "dask-cuda", "Dask_CUDA[cu12] ~= 26.10 # why", "distributed \\"]
)
def test_a_dask_that_users_name_is_theirs(text: str, tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text(f"--no-binary x\n\ngit+https://example.org/x\n{text}\n")
    for wanted in (
        Wanted(Path("/x"), packages=(text.rstrip(" \\"),)),
        Wanted(Path("/x"), requirements=(listed,)),
    ):
        assert not {line for line in requirements_for(wanted, has_cuda=False) if "==" in line}


@pytest.mark.parametrize("text", ["", "  ", "a\nb", "a:b", "a\x00", "~nobody-here/env"])
def test_a_path_that_no_environment_can_have_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        environment_place(text)
    assert refused.value.detail == "path"


def test_a_path_is_made_absolute_and_keeps_links(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("/usr")
    assert environment_place("~/env") == home / "env"
    assert environment_place("link/env") == tmp_path / "link" / "env"
    assert environment_place("../env") == tmp_path.parent.resolve() / "env"


@pytest.mark.parametrize(
    "entry, words",
    [("work.py", "not a virtual environment"), ("conda-meta", "not a virtual environm")],
)
def test_what_is_no_environment_is_left_alone(tmp_path: Path, entry: str, words: str) -> None:
    (tmp_path / entry).mkdir()
    with pytest.raises(InvalidInput, match=words) as refused:
        make_environment(Wanted(tmp_path), lambda line: None)
    assert ("conda" in refused.value.hint) == (entry == "conda-meta")
    assert [child.name for child in tmp_path.iterdir()] == [entry]


def test_what_is_put_there_meanwhile_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "env"
    # It is asked how old it is after the place was seen to be free.
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nmkdir -p "{place}"\ntouch "{place}/pyvenv.cfg"\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    with pytest.raises(StateError, match="Another process"):
        make_environment(Wanted(place, python=str(python)), lambda line: None)
    assert [child.name for child in place.iterdir()] == ["pyvenv.cfg"]


def test_a_mark_that_is_a_link_leads_nowhere(tmp_path: Path) -> None:
    place = tmp_path / "env"
    place.mkdir()
    (place / UNFINISHED).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match="Cannot create"):
        make_environment(Wanted(place), lambda line: None)
    assert not (tmp_path / "elsewhere").exists()


def test_an_environment_whose_python_is_gone_is_reported(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").touch()
    with pytest.raises(UnsuitableEnvironment, match="does not exist") as refused:
        make_environment(Wanted(tmp_path), lambda line: None)
    assert refused.value.hint == f"Delete {tmp_path} to have it created again."


def test_files_and_dead_links_are_no_places(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("file", "file/below", "link"):
        with pytest.raises(InvalidInput, match=name):
            make_environment(Wanted(tmp_path / name), lambda line: None)


def test_what_would_fail_later_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "env"
    wanted = Wanted(place, requirements=(tmp_path / "missing.txt",))
    with pytest.raises(InvalidInput, match=r"missing\.txt"):
        make_environment(wanted, lambda line: None)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="pipe"):
        make_environment(Wanted(place, requirements=(tmp_path / "pipe",)), lambda line: None)
    with pytest.raises(UnsuitableEnvironment, match="does not exist"):
        make_environment(Wanted(place, python="/no/python"), lambda line: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInput, match="no uv"):
        make_environment(Wanted(place, installer="uv"), lambda line: None)
    assert not place.exists()
