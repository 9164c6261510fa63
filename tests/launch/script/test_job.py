"""Scripts of jobs: what is quoted means itself, and what is not is meant to be expanded."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.batch import BACKENDS, find_backend
from jupyter_gpucluster.core.cluster import Spec, WorkerShape
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.core.job import Submission
from jupyter_gpucluster.head.local_scheduler import request_parser
from jupyter_gpucluster.head.worker import parse
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.host.log_diagnosis import remarks
from jupyter_gpucluster.launch.script.job import MARK, render
from jupyter_gpucluster.launch.script.worker_command import core_lines
from jupyter_gpucluster.launch.sizes import sizes_of
from jupyter_gpucluster.profiles import Profile
from tests.launch.specs import spec_for

GIB = 2**30
STATE = Path("/state/abc123")
CPUS = Machine(cpus=8, memory=16 * GIB)
GPUS = Machine(cpus=8, memory=16 * GIB, gpus=("0", "1"))
LINES = "x\ntouch owned"
HOSTILE = [
    "with blank",
    "it's",
    'double"quote',
    "$HOME",
    "$(touch owned)",
    "`touch owned`",
    "a;touch owned",
    "a&touch owned",
    "a|b",
    "*",
    "back\\slash",
    "#comment",
    "~",
    "ünï",
]


def a_profile(**changes: Any) -> Profile:
    return Profile.model_validate({"title": "Here", "backend": "local", **changes})


def a_spec(
    profile: Profile,
    directory: Path = STATE,
    *,
    machine: Machine = CPUS,
    workers: int = 2,
    python: str = "/opt/env/bin/python",
) -> Spec:
    return spec_for(
        profile,
        ClusterDirectory(directory),
        workers=workers,
        machine=machine,
        python=python,
        scratch=Path("/tmp/gpc-abc123-x"),
    )


def script_of(profile: Profile, spec: Spec, directory: Path = STATE) -> str:
    return render(profile, spec, ClusterDirectory(directory)).replace(MARK, "gpc-abc123-1")


def run(script: str, place: Path, shell: str = "sh", **variables: str) -> list[str]:
    """Run a script whose Python prints its arguments one by one; return them."""
    subprocess.run([shell, "-n"], input=script, text=True, check=True)
    done = subprocess.run(
        [shell, "-s"],
        input=script,
        text=True,
        check=True,
        capture_output=True,
        cwd=place,
        env={**os.environ, "GPUCLUSTER_WORKER": "gpc-abc123-1_0", **variables},
    )
    return done.stdout.split("\0")[:-1]


def put_python(path: Path, then: str = "") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\"\n{then}\n")
    path.chmod(0o755)
    return str(path)


# The whole script.

CPU_SCRIPT = """\
#!/bin/sh
export OMP_NUM_THREADS=1
export MKL_NUM_THREADS=1
export OPENBLAS_NUM_THREADS=1
export MALLOC_TRIM_THRESHOLD_=65536
export DASK_DISTRIBUTED__WORKER__HTTP__ROUTES='[]'
export CUDA_DEVICE_ORDER=PCI_BUS_ID
[ -n "${LC_ALL-}${LC_MESSAGES-}" ] || LC_MESSAGES=C  # of this shell alone
exec /opt/env/bin/python /state/abc123/jobs/workerstart.py -m distributed.cli.dask_worker \
--scheduler-file /state/abc123/scheduler.json --nthreads 4 --memory-limit 8589934592 \
--death-timeout 60 --host 127.0.0.1 --no-dashboard --dashboard-address 127.0.0.1:0 \
--protocol tls --tls-ca-file /state/abc123/tls/ca.pem \
--tls-cert /state/abc123/tls/worker-cert.pem --tls-key /state/abc123/tls/worker-key.pem \
--local-directory /tmp/gpc-abc123-x --name "$GPUCLUSTER_WORKER"
"""


def test_a_local_cpu_script_is_exactly_this() -> None:
    profile = a_profile()
    assert script_of(profile, a_spec(profile)) == CPU_SCRIPT


def test_a_local_gpu_script_differs_in_the_worker_and_its_share() -> None:
    profile = a_profile(workers={"device_memory_limit": "10 GiB"})
    spec = a_spec(profile, machine=GPUS)
    script = CPU_SCRIPT.replace("_NUM_THREADS=1", "_NUM_THREADS=4")  # one Dask thread on 4 cores
    expected = script.replace("distributed.cli.dask_worker", "dask_cuda.cli").replace(
        "--nthreads 4 --memory-limit 8589934592 --death-timeout 60",
        "--nthreads 1 --memory-limit 8589934592 --death-timeout 60"
        f" --device-memory-limit {10 * GIB}",
    )
    assert script_of(profile, spec) == expected
    assert spec.job.gpus == 1
    assert spec.devices == ("0", "1")


def test_a_forked_gpu_worker_is_told_what_its_script_would_tell_it() -> None:
    profile = a_profile(workers={"resources": {"GPU": 1}, "extra_args": ["--pre-import", "a b"]})
    spec = a_spec(profile, Path("/state/it's"), machine=GPUS)
    line = script_of(profile, spec, Path("/state/it's")).splitlines()[-1]
    words = shlex.split(line)
    starter = "/state/it's/jobs/workerstart.py"
    assert words[:5] == ["exec", "/opt/env/bin/python", starter, "-m", "dask_cuda.cli"]
    assert [*spec.worker_argv[:-1], "$GPUCLUSTER_WORKER"] == words[5:]
    assert spec.worker_argv[-2:] == ("--name", "{name}")


@pytest.mark.parametrize("machine", [CPUS, GPUS], ids=["cpu", "gpu"])
@pytest.mark.parametrize(
    "needs_a_shell",
    [
        {"environment": {"prologue": ["module load cuda"]}},
        {"workers": {"local_directory": "$TMPDIR/dask"}},
    ],
    ids=["prologue", "variable"],
)
def test_what_needs_a_shell_is_not_forked(machine: Machine, needs_a_shell: dict[str, Any]) -> None:
    profile = a_profile(**needs_a_shell)
    assert a_spec(profile, machine=machine).worker_argv == ()


def test_plain_tcp_is_asked_for_in_so_many_words() -> None:
    profile = a_profile(network={"protocol": "tcp"})
    spec = a_spec(profile)
    script = script_of(profile, spec)
    assert not spec.encrypted
    assert "--protocol tcp" in script
    assert "tls" not in script


# Quoting.


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_paths_reach_the_worker_as_they_are(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name / "abc123"
    python = put_python(tmp_path / name / "bin" / "python")
    profile = a_profile()
    spec = a_spec(profile, directory, python=python)
    argv = run(script_of(profile, spec, directory), tmp_path)
    assert argv[:5] == [
        str(directory / "jobs" / "workerstart.py"),
        "-m",
        "distributed.cli.dask_worker",
        "--scheduler-file",
        str(directory / "scheduler.json"),
    ]
    assert argv[-2:] == ["--name", "gpc-abc123-1_0"]
    assert str(directory / "tls" / "worker-key.pem") in argv
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_of_a_profile_mean_only_themselves(tmp_path: Path, value: str) -> None:
    python = put_python(tmp_path / "python", 'printf "%s\\0" "$SETTING"')
    profile = a_profile(
        environment={"variables": {"SETTING": value}},
        workers={"extra_args": [f"--resources={value}"]},
    )
    argv = run(script_of(profile, a_spec(profile, tmp_path, python=python), tmp_path), tmp_path)
    assert argv[-1] == value
    assert f"--resources={value}" in argv
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    "given, expected",
    [
        ("$TMPDIR/dask", "/node/local/dask"),
        ("${TMPDIR}/dask", "/node/local/dask"),
        ("/scratch/$USER_NAME", "/scratch/ann b"),
        ("/a b/$(touch owned)", "/a b/$(touch owned)"),
        ("/a/`touch owned`", "/a/`touch owned`"),
        ("${TMPDIR:-$(touch owned)}", "${TMPDIR:-$(touch owned)}"),
        ('/a"$(touch owned)"', '/a"$(touch owned)"'),
    ],
)
def test_variables_of_the_node_are_expanded_in_the_local_directory_and_nothing_else_is(
    tmp_path: Path, given: str, expected: str
) -> None:
    python = put_python(tmp_path / "python")
    profile = a_profile(workers={"local_directory": given})
    script = script_of(profile, a_spec(profile, tmp_path, python=python), tmp_path)
    argv = run(script, tmp_path, TMPDIR="/node/local", USER_NAME="ann b")
    assert argv[argv.index("--local-directory") + 1] == expected
    assert not (tmp_path / "owned").exists()


def test_the_prologue_runs_before_the_worker_and_may_set_its_environment(tmp_path: Path) -> None:
    python = put_python(tmp_path / "python", 'printf "%s\\0" "$FROM_PROLOGUE"')
    profile = a_profile(environment={"prologue": ["FROM_PROLOGUE=yes", "export FROM_PROLOGUE"]})
    spec = a_spec(profile, tmp_path, python=python)
    assert spec.worker_argv == ()
    assert run(script_of(profile, spec, tmp_path), tmp_path, "bash")[-1] == "yes"


@pytest.mark.parametrize("backend", sorted({*BACKENDS} - {"local"}))
@pytest.mark.parametrize("hostile", [{"queue": LINES}, {"account": LINES}], ids=str)
def test_a_line_end_never_gets_into_a_directive(
    tmp_path: Path, backend: str, hostile: dict[str, Any]
) -> None:
    profile = a_profile(backend=backend)
    spec = a_spec(profile, tmp_path)
    with contextlib.suppress(InvalidInput):
        script = script_of(profile, replace(spec, job=replace(spec.job, **hostile)), tmp_path)
        assert "touch owned" not in script.splitlines()


# The worker that needs no script.


@pytest.mark.parametrize(
    "threads, per_job, cores, said",
    [
        (4, 2, "0", "Warning: 1 cores for 8 threads"),
        (1, 2, "0", "Warning: 1 cores for 2 threads"),
        (1, 2, "0,1", ""),
        (1, 1, "0", ""),
    ],
)
def test_a_rank_that_is_bound_to_too_few_cores_says_so_in_the_log(
    threads: int, per_job: int, cores: str, said: str
) -> None:
    if {int(each) for each in cores.split(",")} - os.sched_getaffinity(0):
        pytest.skip("this process may not use these cores")
    shape = WorkerShape(threads=threads, per_job=per_job)
    lines = core_lines(Spec(profile="p", title="P", backend="slurm", python="p", worker=shape))
    ran = subprocess.run(
        ["taskset", "-c", cores, "bash", "-c", "\n".join(lines)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.strip() == said
    assert remarks(f"on n1\n{ran.stdout}") == remarks(said)
    assert bool(remarks(said)) == bool(said)


def test_the_worker_s_own_command_is_read_as_it_was_written(tmp_path: Path) -> None:
    directory = tmp_path / "it's a; $(place)"
    spec = a_spec(a_profile(), directory)
    argv = find_backend("local").submit(
        Submission("gpc-abc123-1", "/x.sh", 2, spec.worker_argv, 0, 5 * GIB)
    )
    request = request_parser().parse_args(argv[1:])
    assert (request.mark, request.count, request.memory) == ("gpc-abc123-1", 2, 5 * GIB)
    assert tuple(request.worker_argv) == spec.worker_argv
    worker = parse([part.replace("{name}", "gpc-abc123-1_0") for part in request.worker_argv])
    assert worker.name == "gpc-abc123-1_0"
    assert worker.tls_directory == directory / "tls"
    assert worker.memory_limit == 8 * GIB
    assert worker.host == "127.0.0.1"


@pytest.mark.parametrize("own", [["--name", "mine"], ["--name=mine"]])
def test_a_worker_keeps_the_name_by_which_its_cluster_knows_it(
    tmp_path: Path, own: list[str]
) -> None:
    profile = a_profile(backend="slurm", workers={"extra_args": own})
    lines = script_of(profile, a_spec(profile, tmp_path), tmp_path).splitlines()
    line = next(line for line in lines if "dask_worker" in line)
    assert line.partition(" mine")[2] or line.partition("=mine")[2]
    assert line.rpartition(" --name ")[2] == '"$GPUCLUSTER_WORKER" &'


@pytest.mark.parametrize("backend", ["slurm", "pbs", "moab", "lsf", "sge", "oar", "htcondor"])
@pytest.mark.parametrize("limit", [512, 22_906_492_245, None])
def test_a_memory_limit_is_written_to_the_byte(
    tmp_path: Path, backend: str, limit: int | None
) -> None:
    profile = a_profile(backend=backend, workers={"memory_limit": limit, "per_job": 3})
    script = script_of(profile, a_spec(profile, tmp_path), tmp_path)
    [line] = [line for line in script.splitlines() if "workerstart.py" in line]
    words = shlex.split(line.removesuffix(" &"))
    found = [words[at + 1] for at, word in enumerate(words) if word == "--memory-limit"]
    assert found == ([] if limit is None else [str(limit)])


# Shares of the machine.


@pytest.mark.parametrize(
    "workers, threads, memory",
    [(1, 8, 16), (2, 4, 8), (3, 2, 16 / 3), (8, 1, 2), (100, 1, 16 / 100)],
)
def test_local_workers_share_cores_and_memory(workers: int, threads: int, memory: float) -> None:
    spec = a_spec(a_profile(), workers=workers)
    assert spec.worker.threads == threads
    assert spec.worker.memory_limit == int(memory * GIB)


def test_what_the_profile_says_counts_more_than_the_machine() -> None:
    profile = a_profile(
        job={"cpus": 4, "memory": "4 GiB"}, workers={"threads": 3, "memory_limit": None}
    )
    spec = a_spec(profile)
    assert spec.worker.threads == 3
    assert spec.worker.memory_limit is None
    shared = a_spec(a_profile(job={"cpus": 4, "memory": "4 GiB"}))
    assert (shared.worker.threads, shared.worker.memory_limit) == (2, 2 * GIB)


@pytest.mark.parametrize(
    "changes, machine, default, maximum, gpus",
    [
        ({}, CPUS, 4, None, False),
        ({}, Machine(cpus=2, memory=GIB), 2, None, False),
        ({}, GPUS, 2, 2, True),
        ({"limits": {"workers": 1}}, GPUS, 1, 1, True),
        ({"limits": {"workers": 9}}, CPUS, 4, 9, False),
        ({"job": {"gpus": 0}}, GPUS, 4, None, False),
    ],
)
def test_sizes_follow_the_machine_and_the_profile_s_limits(
    changes: dict[str, Any], machine: Machine, default: int, maximum: int | None, gpus: bool
) -> None:
    sizes = sizes_of(a_profile(**changes), machine)
    assert (sizes.default, sizes.maximum, sizes.gpus) == (default, maximum, gpus)
