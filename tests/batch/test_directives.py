"""A profile's own directives and the dialect's: merged by what they ask for."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.batch import BACKENDS
from jupyter_gpucluster.batch.directives import Syntax
from jupyter_gpucluster.batch.directives import merge as merge_with
from jupyter_gpucluster.core.errors import InvalidInput

SLURM = ["#SBATCH -J m", "#SBATCH -p gpu", "#SBATCH --mem=4M", "#SBATCH --gpus-per-node=4"]

SYNTAXES = {backend.syntax.prefix: backend.syntax for backend in BACKENDS.values()}


def syntax_of(line: str) -> Syntax:
    return SYNTAXES[line.partition(" ")[0]]


def merge(generated: list[str], extra: list[str], skip: list[str]) -> list[str]:
    return merge_with(syntax_of(generated[0]), generated, extra, skip)


def test_an_own_directive_replaces_what_asks_for_the_same() -> None:
    merged = merge(SLURM, ["--partition=big", "--gres=gpu:a100:4", "--mem-per-cpu=1G"], [])
    assert merged == [
        "#SBATCH -J m",
        "#SBATCH --partition=big",
        "#SBATCH --gres=gpu:a100:4",
        "#SBATCH --mem-per-cpu=1G",
    ]


def test_skipping_takes_generated_lines_only_and_blanks_count() -> None:
    merged = merge(SLURM, ["--memory-note"], ["--mem", "-p gpu "])
    assert merged == [
        "#SBATCH -J m",
        "#SBATCH -p gpu",
        "#SBATCH --gpus-per-node=4",
        "#SBATCH --memory-note",
    ]


def test_a_gres_that_is_no_gpu_stands_beside_the_gpus() -> None:
    assert "#SBATCH --gpus-per-node=4" in merge(SLURM, ["--gres=lscratch:10"], [])


def test_two_own_directives_that_contradict_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"'#SBATCH --gpus=2' and '#SBATCH --gres=gpu:4'"):
        merge(SLURM, ["--gpus=2", "--gres=gpu:4"], [])


def test_the_same_directive_twice_stands_once() -> None:
    assert merge(SLURM, ["-C gpu", "-C gpu"], [])[-1] == "#SBATCH -C gpu"


@pytest.mark.parametrize(
    "line, request_",
    [
        ("#PBS -l select=1:ncpus=4", "-l select"),
        ("#PBS -l walltime=1:00", "-l walltime"),
        ("#$ -l gpu=2", "-l gpu"),
        ("#$ -pe smp 4", "-pe"),
        ("#SBATCH -G 4", "GPUs"),
        ("#SBATCH --time 10", "--time"),
        ("#SBATCH -G4", "GPUs"),
        ("#CONDOR request_GPUs = 2", "requestgpus"),
        ('#BSUB -R "span[ptile=4]"', "-R span"),
        ('#BSUB -R "rusage[ngpus_physical=2]"', "GPUs"),
        ("#PBS -l nodes=1:ppn=4", "-l select"),
    ],
)
def test_a_directive_asks_for(line: str, request_: str) -> None:
    assert syntax_of(line).requests_of(line) == (request_,)


def test_a_list_asks_for_several_things() -> None:
    for line, requests in (
        ("#PBS -l walltime=1:00,mem=4gb", ("-l walltime", "-l mem")),
        ("#SBATCH --gres=gpu:2,lscratch:10", ("GPUs", "--gres lscratch:10")),
    ):
        assert syntax_of(line).requests_of(line) == requests


@pytest.mark.parametrize(
    "generated,own",
    [
        ("#OAR -q default", "--queue=besteffort"),
        ("#OAR -l /nodes=1", "--resource /nodes=2"),
        ("#COBALT -q full-node", "--queue single-gpu"),
        ("#COBALT -t 00:30:00", "--time 00:10:00"),
    ],
)
def test_a_long_spelling_replaces_a_short_one(generated: str, own: str) -> None:
    prefix = generated.split(" ")[0]
    assert merge([generated], [own], []) == [f"{prefix} {own}"]


@pytest.mark.parametrize(
    "generated, own",
    [
        (["#SBATCH -N 2", "#SBATCH -n 2", "#SBATCH --gpus-per-node=4"], "--gpus=8"),
        (["#SBATCH -N 1", "#SBATCH -n 2", "#SBATCH --gres=gpu:4"], "--gpus-per-task=a100:2"),
        (["#PBS -l select=2:ncpus=8:ngpus=4"], "-l select=2:ngpus=4:ncpus=16"),
        (["#PBS -l select=2:ncpus=8:ngpus=4"], "-l select=1:ngpus=4+1:ngpus=4"),
        (["#$ -l gpu=2"], "-l gpu=2"),
    ],
)
def test_a_directive_for_the_same_gpus_replaces_the_generated_one(
    generated: list[str], own: str
) -> None:
    prefix = generated[0].partition(" ")[0]
    assert merge(generated, [own], []) == [*generated[:-1], f"{prefix} {own}"]


@pytest.mark.parametrize(
    "generated,own,merged",
    [
        # Slurm, OAR and HTCondor heed the last of such lines only.
        ("#SBATCH --gres=gpu:4", "--gres=lscratch:10", "#SBATCH --gres=gpu:4,lscratch:10"),
        ("#OAR -p kind='a'", "-p cluster='b'", "#OAR -p \"kind='a' AND cluster='b'\""),
        ("#OAR -p mem>=4", "-p 'a=1 or b=2'", '#OAR -p "mem>=4 AND (a=1 or b=2)"'),
        ("#CONDOR periodic_remove = (a)", "periodic_remove = b",
         "#CONDOR periodic_remove = ((a)) || (b)"),
        ("#COBALT --attrs ssds=required", "--attrs enable_ssh=1:mig-mode=True",
         "#COBALT --attrs ssds=required:enable_ssh=1:mig-mode=True"),
        ("#COBALT --env A=1", "--env B=2", "#COBALT --env A=1:B=2"),
        # PBS takes no resource of the whole job beside its chunks.
        ("#PBS -l select=1:mem=4GB", "-l ncpus=8", "#PBS -l select=1:mem=4GB:ncpus=8"),
        ("#PBS -l select=1:ncpus=8", "-l ncpus=8", "#PBS -l select=1:ncpus=8"),
    ],
)  # fmt: skip
def test_what_a_system_would_take_once_is_put_into_one_line(
    generated: str, own: str, merged: str
) -> None:
    assert merge([generated], [own], []) == [merged]


@pytest.mark.parametrize(
    "line, one, other",
    [
        ("#SBATCH -J m", "--requeue", "--no-requeue"),
        ("#SBATCH -J m", "--exclusive", "-s"),
        ("#SBATCH -J m", "-b now", "--begin=now+1hour"),
        ("#COBALT --jobname m", "--attrs mig-mode=True", "--attrs ssds=any:mig-mode=False"),
        ("#CONDOR batch_name = m", "requirements = (a)", "Requirements = (b)"),
    ],
)
def test_two_own_directives_for_opposite_things_are_refused(
    line: str, one: str, other: str
) -> None:
    with pytest.raises(InvalidInput, match="ask for the same thing twice"):
        merge([line], [one, other], [])


def test_two_own_lists_of_resources_become_one() -> None:
    lines = merge(["#SBATCH -J m"], ["--gres=gpu:2", "--gres=lscratch:10"], [])
    assert lines == ["#SBATCH -J m", "#SBATCH --gres=gpu:2,lscratch:10"]


def test_two_own_conditions_of_oar_become_one_with_their_quotes() -> None:
    lines = merge(["#OAR -n m"], ["-p cluster='x'", "-p mem>=4096"], [])
    assert lines == ["#OAR -n m", "#OAR -p \"cluster='x' AND mem>=4096\""]
