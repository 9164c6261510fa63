"""Workers in containers: what goes before their command, and what cannot work."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch.script.job import render
from jupyter_gpucluster.profiles import Profile
from tests.commands import put_command
from tests.launch.specs import spec_for

IMAGE = "/images/my rapids.sif"
STARTER = "/state/abc123/jobs/workerstart.py"


def script_of(directory: str = "/state/abc123", backend: str = "slurm", **profile: Any) -> str:
    parsed = Profile.model_validate({"title": "x", "backend": backend, **profile})
    place = ClusterDirectory(Path(directory))
    spec = spec_for(parsed, place)
    return render(parsed, spec, place)


def a_container(runtime: str, *args: str) -> dict[str, Any]:
    return {"container": {"runtime": runtime, "image": IMAGE, "args": list(args)}}


@pytest.mark.parametrize("runtime", ["apptainer", "singularity"])
def test_workers_run_in_the_image_with_its_python_and_see_what_they_need(runtime: str) -> None:
    script = script_of(
        environment=a_container(runtime, "--bind", "/data"),
        job={"gpus": 2},
        workers={"local_directory": "$TMPDIR/dask"},
    )
    [line] = [line for line in script.splitlines() if line.startswith(f"{runtime} exec")]
    assert line.startswith(
        f'{runtime} exec --nv --bind /state/abc123 --bind "$TMPDIR"/dask --bind /data '
        f"'{IMAGE}' python {STARTER} -m dask_cuda.cli --scheduler-file /state/abc123/scheduler.json"
    )
    assert 'mkdir -p "$TMPDIR"/dask\n' in script


def test_without_gpus_no_driver_is_asked_for() -> None:
    assert "--nv" not in script_of(environment=a_container("apptainer"))


def test_a_clean_environment_is_given_the_workers_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = a_container("apptainer", "--cleanenv") | {"variables": {"SETTING": "it's $HOME"}}
    script = script_of(backend="local", environment=environment)
    put_command(tmp_path, monkeypatch, "apptainer", 'printf %s "$APPTAINERENV_SETTING"')
    local = script.replace("/tmp/x", str(tmp_path))
    told = subprocess.run(["sh"], input=local, text=True, check=True, capture_output=True)
    assert told.stdout == "it's $HOME"
    assert "APPTAINERENV" not in script_of(environment=a_container("apptainer"))


def test_shifter_is_told_the_image() -> None:
    script = script_of(environment=a_container("shifter", "--module=gpu"))
    assert f"shifter --image='{IMAGE}' --module=gpu python {STARTER} -m distributed" in script


def test_pyxis_is_told_by_srun_s_own_options() -> None:
    script = script_of(environment=a_container("pyxis"), launcher="srun", job={"nodes": 2})
    [line] = [line for line in script.splitlines() if line.startswith("srun")]
    words = shlex.split(line.removesuffix(" &"))
    assert f"--container-image={IMAGE}" in words
    assert "--container-mounts=/state/abc123:/state/abc123" in words
    assert f"\nexec python {STARTER} -m distributed" in script


def test_each_rank_starts_a_container_of_its_own() -> None:
    script = script_of(environment=a_container("apptainer"), launcher="mpirun", job={"nodes": 2})
    assert "\nexec apptainer exec --bind /state/abc123" in script
    assert "command -v /opt/python python3" in script


@pytest.mark.parametrize(
    "directory, profile, words",
    [
        ("/state/abc123", {"environment": a_container("pyxis")}, "Pyxis is a part of srun"),
        ("/a:b/abc123", {"environment": a_container("apptainer")}, "cannot be bound"),
        ("/a,b/abc123", {"environment": a_container("singularity")}, "cannot be bound"),
    ],
)
def test_what_cannot_work_is_refused(directory: str, profile: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        script_of(directory, **profile)
    assert str(caught.value.detail).startswith("environment.container")
    assert caught.value.hint


def test_a_group_on_one_node_has_no_srun_for_pyxis() -> None:
    group = {"count": 1, "job": {"cpus": 2}}
    with pytest.raises(InvalidInput, match="Pyxis is a part of srun"):
        script_of(
            environment=a_container("pyxis"),
            launcher="srun",
            job={"nodes": 2},
            groups={"readers": group},
        )


def test_a_pod_s_image_is_a_field_of_the_pod_and_nothing_goes_before_the_command() -> None:
    image = {"runtime": "pod", "image": "registry.example.org/dask:1", "python": "/opt/py"}
    script = script_of(backend="kubernetes", environment={"container": image})
    assert "#KUBERNETES spec.containers[0].image = registry.example.org/dask:1\n" in script
    assert f"\n/opt/py {STARTER} " in script


@pytest.mark.parametrize(
    "backend,changes",
    [
        ("slurm", {}),
        ("kubernetes", {"args": ["--privileged"]}),
        ("kubernetes", {"image": "x\n#KUBERNETES spec.hostPID = true"}),
    ],
)
def test_a_pod_s_image_elsewhere_and_what_is_none_are_refused(
    backend: str, changes: dict[str, Any]
) -> None:
    container = {"runtime": "pod", "image": "dask:1", **changes}
    with pytest.raises((InvalidInput, ValueError)):
        script_of(backend=backend, environment={"container": container})
