"""A profile's own directives that set what its keys set are refused by name."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpucluster.batch import BACKENDS, find_backend
from jupyter_gpucluster.batch.contradictions import directives_of, keys_of, set_twice, unasked
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.core.job import JobShape

GIB = 2**30
FULL = JobShape(
    gpus=2, cpus=8, memory=16 * GIB, walltime=7200, queue="gpu", account="phys", gpu_type="a100"
)
BARE = JobShape(gpus=2, cpus=8, memory=16 * GIB, walltime=7200)
TIMELESS = JobShape(gpus=2, cpus=8, memory=16 * GIB)
TWO_NODES = JobShape(nodes=2, gpus=4, cpus=8, memory=16 * GIB, walltime=7200)


def merged(system: str, job: JobShape) -> list[str]:
    backend = find_backend(system)
    return directives_of(backend, job, backend.directives(job, "gpc-abc123-1", "/c/out"))


def lines(system: str, job: JobShape, *own: str, skip: tuple[str, ...] = ()) -> list[str]:
    asks = JobShape(**{**job.__dict__, "directives": own, "skip_directives": skip})
    return merged(system, asks)


@pytest.mark.parametrize(
    "system,job,own,key,line",
    [
        ("slurm", BARE, "--gres=gpu:1", "job.gpus", "--gpus-per-node="),
        ("slurm", BARE, "--gpus-per-task=4", "job.gpus", "--gpus-per-node="),
        ("slurm", TWO_NODES, "--gpus=2", "job.gpus", "--gpus-per-node="),
        ("slurm", BARE, "--tres-per-node=gres/gpu:1", "job.gpus", "skip"),
        ("slurm", BARE, "-N 2", "job.nodes", "'-N '"),
        ("slurm", BARE, "-N2", "job.nodes", "'-N '"),
        ("slurm", BARE, "-c 4", "job.cpus", "--cpus-per-task="),
        ("slurm", BARE, "-n 4", "job.cpus", "--cpus-per-task="),
        ("slurm", BARE, "--cpus-per-gpu=8", "job.cpus", "skip"),
        ("slurm", BARE, "--mem=64G", "job.memory", "--mem="),
        ("slurm", BARE, "--mem-per-cpu=1G", "job.memory", "--mem="),
        ("slurm", BARE, "-t 30", "job.walltime", "'-t '"),
        ("slurm", BARE, "--time=1-0", "job.walltime", "'-t '"),
        ("slurm", FULL, "--partition=cpu", "job.queue", "'-p '"),
        ("slurm", FULL, "-A chem", "job.account", "'-A '"),
        ("slurm", FULL, "--gres=gpu:v100:2", "job.gpu_type", "skip"),
        ("slurm", FULL, "--gres=gpu:2", "job.gpu_type", "skip"),
        ("pbs", BARE, "-l select=1:ncpus=8:mem=16gb", "job.gpus", "'-l select='"),
        ("pbs", BARE, "-l select=2:ncpus=8:mem=16gb:ngpus=2", "job.nodes", "skip"),
        ("pbs", BARE, "-l select=1:ncpus=8:mem=16gb:ngpus=1", "job.gpus", "skip"),
        ("pbs", BARE, "-l nodes=1:ppn=4", "job.cpus", "skip"),
        ("pbs", BARE, "-l ncpus=4", "job.cpus", "skip"),
        ("pbs", BARE, "-l mem=64gb", "job.memory", "skip"),
        ("pbs", BARE, "-l walltime=01:00:00", "job.walltime", "'-l walltime='"),
        ("pbs", BARE, "-l software=x,walltime=600", "job.walltime", "skip"),
        ("pbs", FULL, "-q cpu", "job.queue", "'-q '"),
        ("pbs", FULL, "-l gpu_type=v100", "job.gpu_type", "'-l gpu_type='"),
        ("torque", BARE, "-l nodes=1:ppn=8:gpus=1", "job.gpus", "'-l nodes='"),
        ("torque", BARE, "-l nodes=1:ppn=8", "job.gpus", "'-l nodes='"),
        ("torque", BARE, "-l mem=64gb", "job.memory", "'-l mem='"),
        ("torque", FULL, "-l nodes=1:ppn=8:gpus=2", "job.gpu_type", "skip"),
        ("torque", BARE, "-l walltime=1:00:00:00", "job.walltime", "skip"),
        ("moab", BARE, "-l nodes=2:ppn=4:gpus=1", "job.nodes", "'-l nodes='"),
        ("sge", BARE, "-l gpu=1", "job.gpus", "'-l gpu='"),
        ("sge", BARE, "-pe threads 4", "job.cpus", "'-pe '"),
        ("sge", BARE, "-l mem_free=8G", "job.memory", "'-l mem_free='"),
        ("sge", BARE, "-l h_rt=600", "job.walltime", "'-l h_rt='"),
        ("sge", FULL, "-q all.q", "job.queue", "'-q '"),
        ("lsf", BARE, '-gpu "num=1"', "job.gpus", "'-gpu '"),
        ("lsf", BARE, '-R "rusage[ngpus_physical=4]"', "job.gpus", "skip"),
        ("lsf", BARE, "-n 4", "job.cpus", "'-n '"),
        ("lsf", BARE, '-R "span[ptile=4]"', "job.nodes", "span["),
        ("lsf", BARE, "-M 64GB", "job.memory", "'-M '"),
        ("lsf", BARE, "-W 30", "job.walltime", "'-W '"),
        ("lsf", FULL, "-q normal", "job.queue", "'-q '"),
        ("oar", TIMELESS, "-l /nodes=1/gpu=1/core=4", "job.gpus", "'-l /nodes='"),
        ("oar", TIMELESS, "-l /nodes=1/core=8", "job.gpus", "skip"),
        ("oar", BARE, "-l /nodes=1/gpu=2/core=4", "job.walltime", "skip"),
        ("oar", BARE, "-l /nodes=1/gpu=2/core=4,walltime=1", "job.walltime", "skip"),
        ("oar", FULL, "-p gpu_model='V100'", "job.gpu_type", "'-p '"),
        ("oar", FULL, "--queue=besteffort", "job.queue", "'-q '"),
        ("htcondor", BARE, "request_gpus = 1", "job.gpus", "'request_gpus = '"),
        ("htcondor", BARE, "request_cpus = 4", "job.cpus", "'RequestCpus = '"),
        ("htcondor", BARE, "RequestMemory = 64 GB", "job.memory", "skip"),
        ("cobalt", BARE, "-n 2", "job.nodes", "'-n '"),
        ("cobalt", BARE, "-t 30", "job.walltime", "'-t '"),
        ("demo", BARE, "--gpus=4", "job.gpus", "'--gpus='"),
        # Amounts are not compared.
        ("slurm", BARE, "--gres=gpu:2", "job.gpus", "--gpus-per-node="),
        ("slurm", BARE, "--tres-per-node=gres/gpu=2", "job.gpus", "skip"),
        ("kubernetes", BARE, "spec.containers[0].resources.limits.memory = 16Gi", "job.memory",
         "skip"),
    ],
)  # fmt: skip
def test_a_directive_that_sets_what_a_key_sets_is_refused(
    system: str, job: JobShape, own: str, key: str, line: str
) -> None:
    job = JobShape(**{**job.__dict__, "queue": ""}) if system == "htcondor" else job
    with pytest.raises(InvalidInput) as caught:
        lines(system, job, own)
    assert f"{own!r} sets what job." in caught.value.message
    assert key in caught.value.message
    assert "Remove the directive and use job." in caught.value.hint
    assert line in caught.value.hint


@pytest.mark.parametrize(
    "own,spelling", [("--gres=gpu:1", "job.gpu_request"), ("--mem=64G", "job.memory_request")]
)
def test_the_key_that_sets_the_spelling_is_named(own: str, spelling: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lines("slurm", BARE, own)
    assert f"{spelling} sets its spelling" in caught.value.hint


UNCOUNTED = JobShape(gpus=2, gpu_request="none", memory=GIB, memory_request="none")


@pytest.mark.parametrize(
    "system,job,own,skip",
    [
        # The profile does not ask for it.
        ("slurm", JobShape(), ("-n 6", "-t 10", "--gres=gpu:1"), ()),
        # Our line is skipped, or the key does not write one.
        ("slurm", BARE, ("--gres=gpu:1",), ("--gpus-per-node",)),
        ("slurm", UNCOUNTED, ("--gres=gpu:1",), ()),
        ("slurm", UNCOUNTED, ("--mem=64G",), ()),
        ("oar", JobShape(), ("-l /nodes=1/core=4",), ("-l /nodes",)),
        ("pbs", UNCOUNTED, ("-l select=1:ngpus=4:mem=9gb",), ("-l select",)),
        # Other directives of the same option.
        ("pbs", JobShape(), ("-W group_list=x",), ()),
        ("lsf", JobShape(), ("-W 30", "-G x"), ()),
    ],
)
def test_a_directive_stands_where_no_line_of_ours_sets_the_same(
    system: str, job: JobShape, own: tuple[str, ...], skip: tuple[str, ...]
) -> None:
    prefix = find_backend(system).syntax.prefix
    expected = [f"{prefix} {text}" for text in own]
    assert lines(system, job, *own, skip=skip)[-len(own) :] == expected


@pytest.mark.parametrize(
    "system,own",
    [
        ("slurm", "-J mine"), ("slurm", "--job-name=mine"), ("slurm", "-a 0-3"), ("pbs", "-N x"),
        ("pbs", "-J 0-3"), ("torque", "-t 0-3"), ("sge", "-N x"), ("sge", "-t 1-4"),
        ("oar", "--name=x"), ("oar", "--array 4"), ("lsf", "-J x"), ("cobalt", "--jobname x"),
        ("htcondor", "JobBatchName = x"), ("htcondor", "batch_name = x"), ("htcondor", "queue 5"),
        ("htcondor", "Queue"),
    ],
)  # fmt: skip
def test_names_and_arrays_are_up_to_the_cluster(system: str, own: str) -> None:
    with pytest.raises(InvalidInput, match=r"by which the cluster finds it|up to the cluster"):
        lines(system, JobShape(), own)


def test_a_whole_line_of_a_script_is_refused_since_its_beginning_is_put_before_it() -> None:
    with pytest.raises(InvalidInput, match="begins with '#'") as caught:
        lines("slurm", BARE, "#SBATCH -p gpu")
    assert "'#SBATCH'" in caught.value.hint


def test_empty_directives_are_none() -> None:
    assert lines("slurm", BARE, "", "  ") == lines("slurm", BARE)


@pytest.mark.parametrize(
    "system, arguments, words",
    [
        ("slurm", ("--gpus", "8"), "The argument '--gpus 8' sets what job.gpus sets"),
        ("slurm", ("--qos", "x", "-N4"), "The argument '-N4' sets what job.nodes sets"),
        ("slurm", ("--array=0-9",), "makes an array of the job"),
        ("slurm", ("--wait",), "must return at once"),
        ("slurm", ("-p", "a", "-p", "b"), "job.submit_args set the same"),
        ("pbs", ("-N", "mine"), "sets the job's name"),
        ("lsf", ("-J", "mine"), "sets the job's name"),
    ],
)
def test_arguments_of_the_submit_command_that_set_what_the_script_sets_are_refused(
    system: str, arguments: tuple[str, ...], words: str
) -> None:
    job = JobShape(gpus=4, submit_args=arguments)
    with pytest.raises(InvalidInput) as caught:
        directives_of(
            find_backend(system),
            job,
            find_backend(system).directives(job, "gpc-abc123-1", "/c/1.out"),
        )
    assert words in caught.value.message
    assert caught.value.detail == "job.submit_args"


@pytest.mark.parametrize(
    "system, arguments",
    [
        ("slurm", ("--comment", "it's 4 GPUs", "-M", "cm2", "--qos=long")),
        ("htcondor", ("-name", "s", "-append", "request_gpus = 4")),
        ("pbs", ("-W", "umask=077")),
    ],
)
def test_other_arguments_are_let_through(system: str, arguments: tuple[str, ...]) -> None:
    job = JobShape(gpus=4, submit_args=arguments)
    lines = merged(system, job)
    assert lines == merged(system, JobShape(gpus=4))


@pytest.mark.parametrize("own", ["hetjob", "packjob", "--het-group=1", "--pack-group 0"])
def test_heterogeneous_jobs_of_slurm_are_refused_by_name(own: str) -> None:
    with pytest.raises(InvalidInput, match=r"heterogeneous job.*`groups`"):
        lines("slurm", BARE, own)


def test_what_pbs_refuses_beside_a_select_is_refused_before() -> None:
    two = JobShape(nodes=2, cpus=8)
    with pytest.raises(InvalidInput, match=r"'#PBS -l mem=4gb', which PBS refuses beside"):
        lines("pbs", two, "-l mem=4gb")
    assert lines("pbs", two, "-l mem=4gb", skip=("select=",))[-1] == "#PBS -l mem=4gb"
    assert "#PBS -l select=1:ncpus=8:mem=4gb" in lines("pbs", JobShape(cpus=8), "-l mem=4gb")


@lru_cache
def generated(system: str) -> list[str]:
    return find_backend(system).directives(JobShape(gpus=2, cpus=8, memory=GIB), "m", "/o")


@given(
    system=st.sampled_from(sorted({*BACKENDS} - {"local", "kubernetes"})),
    option=st.sampled_from(
        ["-l", "-n", "-N", "--gres=", "--gpus ", "--mem=", "-t", "-M", "-R", "-gpu", "-pe", "-p",
         "RequestMemory =", "-W", "--time="]
    ),
    text=st.text(alphabet="0123456789gpunodesct=:,+/-[].GMB'\"² ", max_size=30)
    | st.integers(0, 10**30).map(str),
)  # fmt: skip
def test_any_directive_can_be_read(system: str, option: str, text: str) -> None:
    job = JobShape(gpus=2, cpus=8, memory=GIB, directives=(f"{option} {text}",))
    for _, keys, _ in set_twice(find_backend(system), job, generated(system), job.directives):
        assert keys


@pytest.mark.parametrize("system", sorted({*BACKENDS} - {"local"}))
def test_each_line_that_a_dialect_writes_for_a_key_is_declared(system: str) -> None:
    dialect = find_backend(system)
    full: dict[str, Any] = {
        "gpus": 2,
        "cpus": 8,
        "memory": GIB,
        "walltime": 60,
        "queue": "q",
        "account": "a",
    }
    # HTCondor has no queues, and its walltime is part of periodic_remove.
    absent = {
        "htcondor": {"queue", "walltime"}, "cobalt": {"cpus", "memory"}, "oar": {"memory"},
        "demo": {"cpus", "memory"},
    }.get(system, set())  # fmt: skip
    job = JobShape(**{key: value for key, value in full.items() if key not in absent})
    found = {
        key
        for line in dialect.directives(job, "mark", "/out")
        for key in keys_of(dialect, job, line)
    }
    assert found >= full.keys() - absent


@pytest.mark.parametrize(
    "system,job,keys",
    [
        ("cobalt", BARE, ["job.cpus", "job.gpus", "job.memory"]),
        ("cobalt", JobShape(gpus=2, gpu_request="gpus"), []),
        ("oar", BARE, ["job.memory"]),
        ("oar", JobShape(memory=GIB, memory_request="mem_core"), []),
        ("slurm", FULL, []),
    ],
)
def test_amounts_that_a_system_is_not_asked_for_are_named(
    system: str, job: JobShape, keys: list[str]
) -> None:
    assert unasked(find_backend(system), job) == keys
