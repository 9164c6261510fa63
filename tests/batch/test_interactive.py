"""Commands for a person in a job: one asks for a job as the profile does, one gets into a job."""

from __future__ import annotations

import shlex

import pytest

from jupyter_gpucluster.batch import BACKENDS, find_backend
from jupyter_gpucluster.batch.contradictions import directives_of
from jupyter_gpucluster.core.job import JobShape

SHAPE = JobShape(
    gpus=2, cpus=4, memory=8 * 2**30, walltime=3600, queue="gpu", account="abc", gpu_type="a100"
)
LINES = {
    "slurm": "salloc -p gpu -A abc -n 1 --cpus-per-task=4 --mem=8192M -t 01:00:00 -N 1"
    " --gpus-per-node=a100:2",
    "pbs": "qsub -I -q gpu -A abc -l select=1:ncpus=4:mem=8192MB:ngpus=2 -l walltime=01:00:00"
    " -l gpu_type=a100",
    "torque": "qsub -I -q gpu -A abc -l nodes=1:ppn=4:gpus=2:a100 -l walltime=01:00:00"
    " -l mem=8192MB",
    "moab": "msub -I -q gpu -A abc -l nodes=1:ppn=4:gpus=2:a100 -l walltime=01:00:00 -l mem=8192MB",
    "lsf": "bsub -Is -q gpu -P abc -n 4 -R 'span[hosts=1]' -M 8589935"
    " -W 01:00 -gpu num=2:gmodel=a100:j_exclusive=yes bash",
    "sge": "qrsh -q gpu -P abc -l h_rt=01:00:00 -cwd -pe smp 4 -l mem_free=2048M -l gpu=2"
    " -l gpu_type=a100",
    "oar": "oarsub -I -q gpu --project abc -l /nodes=1/gpu=2/core=2,walltime=01:00:00"
    """ -p 'gpu_model='"'"'a100'"'"''""",
    "cobalt": "qsub -I -q gpu -A abc -t 01:00:00 -n 1",
}


def test_each_system_with_such_a_command_is_tried() -> None:
    assert {name for name, dialect in BACKENDS.items() if dialect.interactive} == LINES.keys()


@pytest.mark.parametrize("name", LINES)
def test_it_has_what_the_script_asks_for_and_nothing_about_files(name: str) -> None:
    shape = SHAPE if name != "cobalt" else JobShape(queue="gpu", account="abc", walltime=3600)
    lines = directives_of(
        find_backend(name), shape, find_backend(name).directives(shape, "gpc-abc123-1", "/logs/out")
    )
    assert find_backend(name).interactive_line(lines) == LINES[name]


def test_a_profile_s_own_directives_and_arguments_are_in_it() -> None:
    shape = JobShape(directives=("-C 'a&b'", "--requeue", "--comment='it''s"))
    lines = directives_of(
        find_backend("slurm"), shape, find_backend("slurm").directives(shape, "m", "/logs/out")
    )
    line = find_backend("slurm").interactive_line(lines, ["-M", "other"])
    assert line.startswith("salloc -M other -n 1")
    assert "-C 'a&b'" in line
    assert "requeue" not in line


def test_htcondor_describes_its_sessions_in_a_file() -> None:
    assert find_backend("htcondor").interactive_line(["#CONDOR request_gpus = 1"]) == ""


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
