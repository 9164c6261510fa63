"""Environments: real interpreters with made-up packages, asked what they have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_gpucluster.core.errors import InvalidInput, UnsuitableEnvironment
from jupyter_gpucluster.launch import python_environments
from jupyter_gpucluster.launch.python_environments import (
    NEWEST,
    OLDEST_DASK,
    check_python,
    find_kernel,
    list_environments,
    require_suitable,
    require_ucx,
)

ALL = {"dask": "2026.8.0", "distributed": "2026.8.0", "bokeh": "3.9.2", "dask-cuda": "26.10.0"}

MakePython = Callable[..., Path]


@pytest.fixture
def a_python(tmp_path: Path) -> MakePython:
    """Return a call that makes an interpreter which has these distributions and no others.

    ``before`` are shell lines that run first, ``name`` is its file name.
    """

    def make(
        packages: dict[str, str], *, before: str = "", name: str = "python", folder: str = "env"
    ) -> Path:
        site = tmp_path / folder / "site"
        for package, version in packages.items():
            info = site / f"{package.replace('-', '_')}-{version}.dist-info"
            info.mkdir(parents=True)
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
            )
        python = tmp_path / folder / "bin" / name
        python.parent.mkdir(parents=True)
        run = f'PYTHONPATH="{site}" exec "{sys.executable}" -S "$@"'
        python.write_text(f"#!/bin/sh\n{before}\n{run}\n")
        python.chmod(0o755)
        return python

    return make


@pytest.fixture
def a_kernel(home: Path) -> Callable[..., Path]:
    """Return a call that installs a kernel."""

    def install(name: str, *argv: str | Path, language: str = "python", **more: object) -> Path:
        folder = home / "data" / "kernels" / name
        folder.mkdir(parents=True)
        spec = {"argv": [*map(str, argv), "{connection_file}"], "display_name": f"The {name}"}
        (folder / "kernel.json").write_text(json.dumps({**spec, "language": language, **more}))
        return folder

    return install


def test_an_interpreter_with_all_it_needs_is_suitable(a_python: MakePython) -> None:
    python = a_python(ALL)
    found = require_suitable(check_python(python))
    assert (found.suitable, found.problems, found.gpu_problems) == (True, (), ())
    assert found.python == str(python)
    assert found.versions == {
        "python": ".".join(map(str, sys.version_info[:3])),
        "dask": "2026.8.0",
        "distributed": "2026.8.0",
        "bokeh": "3.9.2",
        "dask_cuda": "26.10.0",
    }


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"dask": None, "distributed": None}, "dask and distributed not installed"),
        ({"distributed": None}, "distributed not installed"),
        ({"dask": "2026.1.0", "distributed": "2026.1.0"}, "2026.1.0 not supported (2026.1.1 or"),
        ({"dask": "2025.12.0"}, "dask 2025.12.0 not supported"),
        ({"dask": "2026.7.1"}, "dask 2026.7.1 and distributed 2026.8.0 differ"),
    ],
)
def test_what_is_lacking_is_named_with_its_cure(
    a_python: MakePython, changes: dict[str, str | None], words: str
) -> None:
    packages = {k: v for k, v in {**ALL, **changes}.items() if v is not None}
    python = a_python(packages)
    found = check_python(python)
    assert not found.suitable
    [problem] = found.problems
    assert words in problem
    assert f"`{python} -m pip install 'dask>={OLDEST_DASK}'" in problem
    with pytest.raises(UnsuitableEnvironment, match="cannot run a cluster") as error:
        require_suitable(check_python(python))
    assert error.value.detail == problem
    assert error.value.hint


@pytest.mark.parametrize(
    "version, newer",
    [
        ("2026.1.1", False),
        ("2026.8.0", False),
        ("2026.8.0+3.gabcdef", False),
        ("2026.8.1rc1", False),
        ("2026.9.0", True),
        ("2026.10.0", True),
        ("2027.1", True),
    ],
)
def test_versions_from_the_oldest_on_are_taken_and_a_newer_one_is_a_warning(
    a_python: MakePython, version: str, newer: bool
) -> None:
    found = require_suitable(
        check_python(a_python({**ALL, "dask": version, "distributed": version}))
    )
    warning = f"distributed {version} is newer than the last tested ({NEWEST['distributed']})."
    assert found.problems == ((warning,) if newer else ())


def test_bokeh_and_dask_cuda_may_be_missing_and_are_told(a_python: MakePython) -> None:
    packages = {k: v for k, v in ALL.items() if k not in ("bokeh", "dask-cuda")}
    found = require_suitable(check_python(a_python(packages)))
    [problem] = found.problems
    assert "bokeh is missing, so there is no dashboard; install with `" in problem
    [gpu] = found.gpu_problems
    assert "dask-cuda is missing" in gpu


@pytest.mark.parametrize("name", ["distributed-ucxx", "distributed-ucxx-cu13"])
def test_ucx_needs_its_package_by_any_of_its_names(a_python: MakePython, name: str) -> None:
    with pytest.raises(UnsuitableEnvironment, match="lacks distributed-ucxx") as error:
        require_ucx(check_python(a_python(ALL)))
    assert "pip install distributed-ucxx-cu12` (or cu13)" in error.value.hint
    require_ucx(check_python(a_python({**ALL, name: "0.52.0"}, folder="with")))


def test_an_old_python_is_told_that_it_is_old(a_python: MakePython) -> None:
    said = json.dumps({"python": "3.9.2", "versions": {}, "paths": []})
    python = a_python({}, before=f"echo '{python_environments.PROBE_MARK}{said}'; exit")
    found = check_python(python)
    assert not found.suitable
    assert found.problems[0].startswith("Python 3.9.2 is too old; make an environment with")


def test_the_probe_is_read_by_old_pythons_too() -> None:
    # f-strings, annotations or walrus in it would be syntax errors before they could be told.
    answer = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import ast, sys; ast.parse({python_environments.PROBE!r}, feature_version=(3, 4))",
        ],
        check=False,
    )
    assert answer.returncode == 0


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda p: p / "nothing", "does not exist"),
        (lambda p: p / "env", "is a folder; give"),
        (lambda p: Path("/bin/true"), "is not a Python"),
        (lambda p: p / "env" / "bin" / "python-data", "does not start"),
    ],
)
def test_what_is_no_python_is_not_run(
    a_python: MakePython, tmp_path: Path, make: Callable[[Path], Path], words: str
) -> None:
    data = a_python(ALL).parent / "python-data"
    data.write_text("no program")
    found = check_python(make(tmp_path))
    assert not found.suitable
    assert words in found.problems[0]


@pytest.mark.parametrize("path", ["", "a\nb", "a\x00b", "x" * 5000, "~nobody-here/python"])
def test_a_hostile_path_is_only_unsuitable(path: str) -> None:
    found = check_python(path)
    assert not found.suitable
    assert len(found.problems) == 1


def test_an_interpreter_that_fails_says_its_last_line(a_python: MakePython) -> None:
    python = a_python(ALL, before="echo noise; echo 'cannot load libpython' >&2; exit 3")
    assert check_python(python).problems == (f"{python} fails: cannot load libpython",)


def test_an_interpreter_that_hangs_is_given_up(
    a_python: MakePython, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_environments, "PROBE_SECONDS", 0.2)
    found = check_python(a_python(ALL, before="exec sleep 60"))
    assert "did not answer" in found.problems[0]


def test_noise_at_start_does_no_harm(a_python: MakePython) -> None:
    assert check_python(a_python(ALL, before="echo Welcome; echo '{}'")).suitable


def test_no_secret_reaches_an_interpreter(
    a_python: MakePython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    seen = tmp_path / "seen"
    assert check_python(a_python(ALL, before=f'env > "{seen}"')).suitable
    text = seen.read_text()
    assert "secret" not in text
    assert "PATH=" in text


def test_an_interpreter_is_asked_again_only_after_a_change(
    a_python: MakePython, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    python = a_python(ALL, before=f'echo x >> "{asked}"')
    for _ in range(3):
        assert check_python(python).suitable
    assert asked.read_text().split() == ["x"]
    os.utime(python, ns=(1, 1))
    assert check_python(python).suitable
    assert asked.read_text().split() == ["x", "x"]


def test_one_that_did_not_answer_is_asked_again(a_python: MakePython, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.touch()
    python = a_python(ALL, before=f'test -e "{broken}" && exit 1')
    assert not check_python(python).suitable
    broken.unlink()
    assert check_python(python).suitable


def test_the_environments_are_this_one_and_those_of_python_kernels(
    a_python: MakePython, a_kernel: Callable[..., Path]
) -> None:
    a_kernel("other", a_python(ALL))
    a_kernel("statistics", "R", language="R")
    a_kernel("wrapped", "/bin/sh")
    a_kernel("gone", "/nowhere/python")
    found = {e.name: e for e in list_environments()}
    assert next(iter(found.values())).python == sys.executable
    assert "statistics" not in found
    assert found["other"].suitable
    assert found["other"].title == "The other"
    assert "is not a Python and names none; name" in found["wrapped"].problems[0]
    assert "does not exist" in found["gone"].problems[0]
    assert not found["wrapped"].suitable
    assert not found["gone"].suitable


def test_jupyters_own_python_is_listed_also_without_a_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jupyter_client.kernelspec.KernelSpecManager.get_all_specs", lambda _: {})
    [own] = list_environments()
    assert (own.python, own.name, own.suitable) == (sys.executable, "jupyter", True)
    assert find_kernel("jupyter").python == sys.executable


def test_kernels_that_share_an_interpreter_ask_it_once(
    a_python: MakePython, a_kernel: Callable[..., Path], tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    python = a_python(ALL, before=f'echo x >> "{asked}"')
    for name in ("one", "two"):
        a_kernel(name, python)
    found = {e.name for e in list_environments() if e.python == str(python)}
    assert found == {"one", "two"}
    assert asked.read_text().split() == ["x"]


def test_interpreters_are_asked_at_the_same_time(
    a_python: MakePython, a_kernel: Callable[..., Path], tmp_path: Path
) -> None:
    # Each waits until the other has begun, which one after the other would never be.
    for mine, other in (("a", "b"), ("b", "a")):
        wait = f'touch "{tmp_path / mine}"; until test -e "{tmp_path / other}"; do sleep 0.01; done'
        a_kernel(mine, a_python(ALL, before=wait, folder=mine))
    found = {e.name: e for e in list_environments()}
    assert found["a"].suitable
    assert found["b"].suitable


def test_a_kernel_is_found_by_name(a_python: MakePython, a_kernel: Callable[..., Path]) -> None:
    a_kernel("analysis", a_python(ALL))
    assert require_suitable(find_kernel("analysis")).title == "The analysis"
    with pytest.raises(InvalidInput) as error:
        find_kernel("analisys")
    assert error.value.hint == "Did you mean 'analysis'?"
    assert error.value.detail == "kernel"
    with pytest.raises(InvalidInput, match="No Python kernel") as error:
        find_kernel("zzz")
    assert "analysis" in error.value.hint


def test_a_kernels_own_variables_decide_as_in_jupyter(
    a_python: MakePython, a_kernel: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STACK", str(a_python(ALL).parents[1] / "site"))
    monkeypatch.setenv("PATH", f"{a_python({}, name='python3.99', folder='bare').parent}:/bin")
    plain = Path(sys.executable).resolve()
    values = {"PYTHONPATH": "${STACK}", "OTHER": "$no_such $$"}
    a_kernel("by-path", plain, "-S", env=values)
    a_kernel("by-env", "/usr/bin/env", "A=b=c", plain, env={"PYTHONPATH": "$STACK"})
    a_kernel("by-name", "python3.99", env={"PATH": f"{a_python({}, folder='other').parent}:/bin"})
    found = find_kernel("by-path")
    assert found.variables == {"PYTHONPATH": os.environ["STACK"], "OTHER": "$no_such $"}
    assert found.versions["distributed"] == ALL["distributed"]
    found = find_kernel("by-env")
    assert (found.python, found.variables["A"]) == (str(plain), "b=c")
    assert found.versions["distributed"] == ALL["distributed"]
    assert "'python3.99' does not exist" in find_kernel("by-name").problems[0]


IPYKERNEL = ("-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f")


@pytest.mark.parametrize(
    "argv",
    [
        ("{resource_dir}/start.sh", "{python}", *IPYKERNEL),
        ("bash", "-c", "module load cuda && exec '{python}' -m ipykernel_launcher -f $1", "x"),
        ("{prefix}/bin/python", "-m", "nb_conda_kernels.runner", "/opt", "{env}", "{python}",
         *IPYKERNEL),
        ("{env}/bin/conda", "run", "-p", "{env}", "python", *IPYKERNEL),
        ("{env}/bin/mamba", "run", "--no-capture-output", "--name", "lab", "python", *IPYKERNEL),
    ],
)  # fmt: skip
def test_the_python_behind_a_wrapper_is_found_and_the_wrapper_named(
    a_python: MakePython, a_kernel: Callable[..., Path], argv: tuple[str, ...]
) -> None:
    folder = "env/envs/lab" if "lab" in argv else "env"
    python = a_python(ALL, folder=folder)
    base = python.parents[3 if "lab" in argv else 1]
    for program in ("conda", "mamba"):
        a_program = base / "bin" / program
        a_program.parent.mkdir(parents=True, exist_ok=True)
        a_program.write_text("#!/bin/sh\n")
        a_program.chmod(0o755)
    words = [w.replace("{python}", str(python)).replace("{env}", str(base)) for w in argv]
    start = a_kernel("wrapped", *words) / "start.sh"
    start.write_text('#!/bin/bash\nmodule load cuda\nexec "$@"\n')
    start.chmod(0o755)
    found = require_suitable(find_kernel("wrapped"))
    assert (found.python, found.versions["dask"]) == (str(python), ALL["dask"])
    assert "starts through" in found.problems[0]


@pytest.mark.parametrize(
    "argv",
    [
        ("apptainer", "exec", "image.sif", "{python}", *IPYKERNEL),
        ("bash", "-c", "python -m ipykernel_launcher"),
        ("bash", "-c", "{python} -m ipykernel || /usr/bin/python3 -m ipykernel"),
    ],
)
def test_a_kernel_whose_python_nothing_tells_names_both_ways_out(
    a_python: MakePython, a_kernel: Callable[..., Path], argv: tuple[str, ...]
) -> None:
    python = a_python(ALL)
    (python.parent / "apptainer").symlink_to("/bin/true")
    words = [word.replace("{python}", str(python)) for word in argv]
    a_kernel("hidden", *words, env={"PATH": f"{python.parent}:/bin"})
    [problem] = find_kernel("hidden").problems
    assert "--python PATH" in problem
    assert "kernel PATH" in problem


def test_the_oldest_versions_are_those_of_the_package() -> None:
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    for name in ("dask", "distributed"):
        assert f"{name}>={OLDEST_DASK}" in project["project"]["dependencies"]
    oldest = ".".join(map(str, python_environments.SUPPORTED_PYTHON))
    assert project["project"]["requires-python"] == f">={oldest}"
