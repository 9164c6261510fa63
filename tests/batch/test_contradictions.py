"""A profile's own directives that say something else than its keys are refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.batch.asked import READERS, asked
from jupyter_gpucluster.batch.contradictions import directives_of
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.core.job import JobShape

GIB = 2**30
FULL = JobShape(
    gpus=2, cpus=8, memory=16 * GIB, walltime=7200, queue="gpu", account="phys", gpu_type="a100"
)
BARE = JobShape(gpus=2, cpus=8, memory=16 * GIB, walltime=7200)
TIMELESS = JobShape(gpus=2, cpus=8, memory=16 * GIB)
TWO_NODES = JobShape(nodes=2, gpus=4, cpus=8, memory=16 * GIB, walltime=7200)


def lines(system: str, job: JobShape, *own: str, skip: tuple[str, ...] = ()) -> list[str]:
    asks = JobShape(**{**job.__dict__, "directives": own, "skip_directives": skip})
    return directives_of(find_backend(system), asks, "gpc-abc123-1", "/c/out")


@pytest.mark.parametrize(
    "system,job,own,said,key",
    [
        ("slurm", BARE, "--gres=gpu:1", "1 GPU, job.gpus for 2 GPUs", "--gpus-per-node="),
        ("slurm", BARE, "--gpus-per-task=4", "4 GPUs, job.gpus for 2", "--gpus-per-node="),
        ("slurm", TWO_NODES, "--gpus=2", "2 GPUs, job.gpus for 4", "--gpus-per-node="),
        ("slurm", BARE, "--tres-per-node=gres/gpu:1", "1 GPU, job.gpus for 2", "skip"),
        ("slurm", BARE, "-N 2", "2 nodes, job.nodes for 1 node", "'-N '"),
        ("slurm", BARE, "-N2", "2 nodes, job.nodes for 1 node", "'-N '"),
        ("slurm", BARE, "-c 4", "4 cores, job.cpus for 8 cores", "--cpus-per-task="),
        ("slurm", BARE, "-n 4", "32 cores, job.cpus for 8 cores", "--cpus-per-task="),
        ("slurm", BARE, "--cpus-per-gpu=8", "16 cores, job.cpus for 8", "skip"),
        ("slurm", BARE, "--mem=64G", "64 GiB, job.memory for 16 GiB", "--mem="),
        ("slurm", BARE, "--mem-per-cpu=1G", "8 GiB, job.memory for 16", "--mem="),
        ("slurm", BARE, "-t 30", "00:30:00, job.walltime for 02:00:00", "'-t '"),
        ("slurm", BARE, "--time=1-0", "24:00:00, job.walltime for 02", "'-t '"),
        ("slurm", FULL, "--partition=cpu", "cpu, job.queue for gpu", "'-p '"),
        ("slurm", FULL, "-A chem", "chem, job.account for phys", "'-A '"),
        ("slurm", FULL, "--gres=gpu:v100:2", "v100, job.gpu_type for a100", "skip"),
        ("slurm", FULL, "--gres=gpu:2", "leaves out job.gpu_type, which asks for a100", "skip"),
        ("pbs", BARE, "-l select=1:ncpus=8:mem=16gb", "leaves out job.gpus", "'-l select='"),
        ("pbs", BARE, "-l select=2:ncpus=8:mem=16gb:ngpus=2", "2 nodes, job.nodes for 1", "skip"),
        ("pbs", BARE, "-l select=1:ncpus=8:mem=16gb:ngpus=1", "1 GPU, job.gpus for 2", "skip"),
        ("pbs", BARE, "-l nodes=1:ppn=4", "4 cores, job.cpus for 8", "skip"),
        ("pbs", BARE, "-l ncpus=4", "4 cores, job.cpus for 8", "skip"),
        ("pbs", BARE, "-l mem=64gb", "64 GiB, job.memory for 16", "skip"),
        ("pbs", BARE, "-l walltime=01:00:00", "01:00:00, job.walltime for 02", "'-l walltime='"),
        ("pbs", BARE, "-l software=x,walltime=600", "00:10:00, job.walltime for 02", "skip"),
        ("pbs", FULL, "-q cpu", "cpu, job.queue for gpu", "'-q '"),
        ("pbs", FULL, "-l gpu_type=v100", "v100, job.gpu_type for a100", "'-l gpu_type='"),
        ("torque", BARE, "-l nodes=1:ppn=8:gpus=1", "1 GPU, job.gpus for 2", "'-l nodes='"),
        ("torque", BARE, "-l nodes=1:ppn=8", "leaves out job.gpus", "'-l nodes='"),
        ("torque", BARE, "-l mem=64gb", "64 GiB, job.memory for 16", "'-l mem='"),
        ("torque", FULL, "-l nodes=1:ppn=8:gpus=2", "leaves out job.gpu_type", "skip"),
        ("torque", BARE, "-l walltime=1:00:00:00", "24:00:00, job.walltime", "skip"),
        ("moab", BARE, "-l nodes=2:ppn=4:gpus=1", "2 nodes, job.nodes for 1", "'-l nodes='"),
        ("sge", BARE, "-l gpu=1", "1 GPU, job.gpus for 2 GPUs", "'-l gpu='"),
        ("sge", BARE, "-pe threads 4", "4 cores, job.cpus for 8", "'-pe '"),
        ("sge", BARE, "-l mem_free=8G", "8 GiB, job.memory for 2 GiB", "'-l mem_free='"),
        ("sge", BARE, "-l h_rt=600", "00:10:00, job.walltime for 02", "'-l h_rt='"),
        ("sge", FULL, "-q all.q", "all.q, job.queue for gpu", "'-q '"),
        ("lsf", BARE, '-gpu "num=1"', "1 GPU, job.gpus for 2", "'-gpu '"),
        ("lsf", BARE, '-R "rusage[ngpus_physical=4]"', "4 GPUs, job.gpus for 2", "skip"),
        ("lsf", BARE, "-n 4", "4 cores, job.cpus for 8", "'-n '"),
        ("lsf", BARE, '-R "span[ptile=4]"', "2 nodes, job.nodes for 1", "span["),
        ("lsf", BARE, "-M 64GB", "job.memory for 16 GiB", "'-M '"),
        ("lsf", BARE, "-W 30", "00:30:00, job.walltime for 02", "'-W '"),
        ("lsf", FULL, "-q normal", "normal, job.queue for gpu", "'-q '"),
        ("oar", TIMELESS, "-l /nodes=1/gpu=1/core=4", "1 GPU, job.gpus for 2", "'-l /nodes='"),
        ("oar", TIMELESS, "-l /nodes=1/core=8", "leaves out job.gpus", "skip"),
        ("oar", BARE, "-l /nodes=1/gpu=2/core=4", "leaves out job.walltime", "skip"),
        ("oar", BARE, "-l /nodes=1/gpu=2/core=4,walltime=1", "01:00:00, job.walltime", "skip"),
        ("oar", FULL, "-p gpu_model='V100'", "V100 and a100, job.gpu_type for a100", "'-p '"),
        ("oar", FULL, "--queue=besteffort", "besteffort, job.queue for gpu", "'-q '"),
        ("htcondor", BARE, "request_gpus = 1", "1 GPU, job.gpus for 2", "'request_gpus = '"),
        ("htcondor", BARE, "request_cpus = 4", "4 cores, job.cpus for 8", "'RequestCpus = '"),
        ("htcondor", BARE, "RequestMemory = 64 GB", "64 GiB, job.memory for 16", "skip"),
        ("cobalt", BARE, "-n 2", "2 nodes, job.nodes for 1", "'-n '"),
        ("cobalt", BARE, "-t 30", "00:30:00, job.walltime for 02", "'-t '"),
        ("demo", BARE, "--gpus=4", "4 GPUs, job.gpus for 2", "'--gpus='"),
    ],
)  # fmt: skip
def test_another_amount_than_the_key_s_is_refused(
    system: str, job: JobShape, own: str, said: str, key: str
) -> None:
    job = JobShape(**{**job.__dict__, "queue": ""}) if system == "htcondor" else job
    with pytest.raises(InvalidInput) as caught:
        lines(system, job, own)
    assert repr(own) in caught.value.message
    assert said in caught.value.message
    assert key in caught.value.hint
    assert "change job." in caught.value.hint


@pytest.mark.parametrize(
    "system,job,own",
    [
        ("slurm", BARE, "--gres=gpu:2"),
        ("slurm", TWO_NODES, "--gpus=4"),
        ("slurm", BARE, "--mem-per-cpu=2G"),
        ("slurm", BARE, "--mem=0"),
        ("slurm", BARE, "--mem=17GB"),
        ("slurm", BARE, "--time=2:00:00"),
        ("slurm", BARE, "--cpus-per-gpu=4"),
        ("pbs", BARE, "-l select=1:ncpus=8:mpiprocs=2:mem=16gb:ngpus=2"),
        ("pbs", BARE, "-l walltime=7200"),
        ("torque", BARE, "-l nodes=1:ppn=8:gpus=2:bigmem"),
        ("sge", BARE, "-pe threads 8"),
        ("lsf", BARE, '-gpu "num=2:mode=shared"'),
        ("lsf", BARE, "-W 02:00"),
        ("oar", BARE, "-l /nodes=1/gpu=2/core=4,walltime=2:00:00"),
        ("htcondor", BARE, "request_memory = 16 GB"),
        ("cobalt", BARE, "-t 120"),
    ],
)
def test_the_same_amount_stands_once_in_the_profile_s_words(
    system: str, job: JobShape, own: str
) -> None:
    prefix = lines(system, job)[0].split(" ")[0]
    merged = lines(system, job, own)
    assert merged[-1] == f"{prefix} {own}"
    assert len(merged) == len(lines(system, job))


def test_several_directives_are_reckoned_together() -> None:
    merged = lines("slurm", BARE, "-n 8", "-c 1", "--gpus-per-task=1", skip=("--gpus-per-node",))
    assert merged[-3:] == ["#SBATCH -n 8", "#SBATCH -c 1", "#SBATCH --gpus-per-task=1"]


def test_what_the_profile_does_not_ask_for_may_be_said_by_its_directives() -> None:
    assert lines("slurm", JobShape(), "-n 6", "-t 10", "--gres=gpu:1")[-1].endswith("gpu:1")
    assert lines("oar", JobShape(), "-l /nodes=1/core=4")[-1] == "#OAR -l /nodes=1/core=4"


def test_a_generated_line_that_is_skipped_contradicts_nothing() -> None:
    assert lines("slurm", BARE, "--gres=gpu:1", skip=("--gpus-per-node",))[-1].endswith("gpu:1")
    none = JobShape(gpus=2, gpu_request="none")
    assert lines("slurm", none, "--gres=gpu:1")[-1].endswith("gpu:1")


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


@pytest.mark.parametrize(
    "system,own",
    [
        ("slurm", "-W"), ("slurm", "--wait"), ("pbs", "-I"), ("pbs", "-W block=true"),
        ("torque", "-I"), ("sge", "-sync y"), ("lsf", "-K"), ("lsf", "-Is"), ("oar", "-I"),
        ("cobalt", "--interactive"),
    ],
)  # fmt: skip
def test_a_submission_that_would_wait_for_its_job_is_refused(system: str, own: str) -> None:
    with pytest.raises(InvalidInput, match="makes the submission wait"):
        lines(system, JobShape(), own)


def test_a_whole_line_of_a_script_is_refused_since_its_beginning_is_put_before_it() -> None:
    with pytest.raises(InvalidInput, match="begins with '#'") as caught:
        lines("slurm", BARE, "#SBATCH -p gpu")
    assert "'#SBATCH'" in caught.value.hint


def test_empty_directives_are_none() -> None:
    assert lines("slurm", BARE, "", "  ") == lines("slurm", BARE)


def test_other_directives_of_the_same_option_are_let_through() -> None:
    assert lines("pbs", JobShape(), "-W group_list=x")[-1] == "#PBS -W group_list=x"
    assert lines("lsf", JobShape(), "-W 30", "-G x")[-2:] == ["#BSUB -W 30", "#BSUB -G x"]


@pytest.mark.parametrize(
    "system, arguments, words",
    [
        ("slurm", ("--gpus", "8"), "The argument '--gpus 8' asks for 8 GPUs, job.gpus for 4 GPUs"),
        ("slurm", ("--qos", "x", "-N4"), "The argument '-N4' asks for 4 nodes"),
        ("slurm", ("--array=0-9",), "makes an array of the job"),
        ("slurm", ("--wait",), "makes the submission wait"),
        ("slurm", ("-p", "a", "-p", "b"), "job.submit_args ask for the same thing twice"),
        ("pbs", ("-N", "mine"), "sets the job's name"),
        ("lsf", ("-J", "mine"), "sets the job's name"),
    ],
)
def test_arguments_of_the_submit_command_say_nothing_else_than_the_script(
    system: str, arguments: tuple[str, ...], words: str
) -> None:
    job = JobShape(gpus=4, submit_args=arguments)
    with pytest.raises(InvalidInput) as caught:
        directives_of(find_backend(system), job, "gpc-abc123-1", "/c/1.out")
    assert words in caught.value.message
    assert caught.value.detail == "job.submit_args"


@pytest.mark.parametrize(
    "system, arguments",
    [
        ("slurm", ("--comment", "it's 4 GPUs", "-M", "cm2", "--gpus-per-node=4")),
        ("htcondor", ("-name", "s", "-append", "request_gpus = 4")),
        ("pbs", ("-W", "umask=077")),
    ],
)
def test_other_arguments_are_let_through(system: str, arguments: tuple[str, ...]) -> None:
    job = JobShape(gpus=4, submit_args=arguments)
    lines = directives_of(find_backend(system), job, "gpc-abc123-1", "/c/1.out")
    assert lines == directives_of(
        find_backend(system), JobShape(gpus=4), "gpc-abc123-1", "/c/1.out"
    )


@pytest.mark.parametrize("own", ["hetjob", "packjob", "--het-group=1", "--pack-group 0"])
def test_heterogeneous_jobs_of_slurm_are_refused_by_name(own: str) -> None:
    with pytest.raises(InvalidInput, match="heterogeneous job") as caught:
        lines("slurm", BARE, own)
    assert "groups" in caught.value.hint


def test_what_pbs_refuses_beside_a_select_is_refused_before() -> None:
    two = JobShape(nodes=2, cpus=8)
    with pytest.raises(InvalidInput, match=r"'#PBS -l mem=4gb', which PBS refuses beside"):
        lines("pbs", two, "-l mem=4gb")
    assert lines("pbs", two, "-l mem=4gb", skip=("select=",))[-1] == "#PBS -l mem=4gb"
    assert "#PBS -l select=1:ncpus=8:mem=4gb" in lines("pbs", JobShape(cpus=8), "-l mem=4gb")


@given(
    prefix=st.sampled_from(sorted(READERS)),
    option=st.sampled_from(
        ["-l", "-n", "-N", "--gres=", "--gpus ", "--mem=", "-t", "-M", "-R", "-gpu", "-pe", "-p",
         "RequestMemory =", "-W", "--time="]
    ),
    text=st.text(alphabet="0123456789gpunodesct=:,+/-[].GMB'\"² ", max_size=30)
    | st.integers(0, 10**30).map(str),
)  # fmt: skip
def test_any_directive_can_be_read(prefix: str, option: str, text: str) -> None:
    for key, amount in asked([f"{prefix} {option} {text}"], "gpu").items():
        assert key.startswith("job.")
        assert amount is None or isinstance(amount, (int, str, frozenset))
