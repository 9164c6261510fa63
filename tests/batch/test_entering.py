"""The command that gets into a job, for each batch system."""

from __future__ import annotations

import shlex

import pytest

from jupyter_gpucluster.batch import find_backend

WORDS = ["/bin/bash", "/state/it's/environment.sh", "nvidia-smi"]


@pytest.mark.parametrize(
    "backend, id, begins, at_a_terminal",
    [
        (
            "slurm",
            "12",
            ["srun", "--jobid=12", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist=n1"],
            "--pty",
        ),
        ("oar", "12", ["env", "OAR_JOB_ID=12", "oarsh", "n1"], "-t"),
        ("htcondor", "12.0", ["condor_ssh_to_job", "12.0"], ""),
        ("kubernetes", "gpc-abc123-1-0", ["kubectl", "exec", "--stdin"], "--tty"),
        ("pbs", "12.head", ["ssh", "n1"], "-t"),
        ("lsf", "12", ["ssh", "n1"], "-t"),
        ("local", "gpc-abc123-1_0", [], ""),
    ],
)
def test_a_job_is_entered_by_the_system_s_own_way_else_by_ssh(
    backend: str, id: str, begins: list[str], at_a_terminal: str
) -> None:
    argv = find_backend(backend).enter(id, "n1", WORDS, terminal=False)
    assert argv[: len(begins)] == begins
    rest = argv[len(begins) :]
    rest = rest[rest.index("--") + 1 :] if "--" in rest else rest
    # What passes through a shell on the other side is quoted for it.
    assert rest == WORDS or shlex.split(rest[0]) == WORDS
    there = find_backend(backend).enter(id, "n1", WORDS, terminal=True)
    assert [word for word in there if word not in argv] == (
        [at_a_terminal] if at_a_terminal else []
    )


def test_srun_is_told_the_number_behind_an_array_s_task() -> None:
    argv = find_backend("slurm").enter("12_3", "n1", WORDS, terminal=False)
    assert argv[:2] == ["sh", "-c"]
    assert argv[3:5] == ["srun", "12_3"]
    assert argv[-3:] == WORDS
