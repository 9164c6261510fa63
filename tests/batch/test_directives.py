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


CHUNKS = ["#PBS -l select=2:ncpus=8:ngpus=4"]


@pytest.mark.parametrize(
    "generated,own,merged",
    [
        # An own directive replaces what asks for the same, also in another spelling.
        (SLURM, ["--partition=big", "--gres=gpu:a100:4", "--mem-per-cpu=1G"],
         [SLURM[0], "#SBATCH --partition=big", "#SBATCH --gres=gpu:a100:4",
          "#SBATCH --mem-per-cpu=1G"]),
        (SLURM, ["--gres=lscratch:10"], [*SLURM, "#SBATCH --gres=lscratch:10"]),
        (SLURM, ["-C gpu", "-C gpu"], [*SLURM, "#SBATCH -C gpu"]),
        (["#OAR -q default"], ["--queue=besteffort"], ["#OAR --queue=besteffort"]),
        (["#OAR -l /nodes=1"], ["--resource /nodes=2"], ["#OAR --resource /nodes=2"]),
        (["#COBALT -q full-node"], ["--queue single-gpu"], ["#COBALT --queue single-gpu"]),
        (["#COBALT -t 00:30:00"], ["--time 00:10:00"], ["#COBALT --time 00:10:00"]),
        # One for the same GPUs replaces the generated one.
        (["#SBATCH -N 2", "#SBATCH -n 2", "#SBATCH --gpus-per-node=4"], ["--gpus=8"],
         ["#SBATCH -N 2", "#SBATCH -n 2", "#SBATCH --gpus=8"]),
        (["#SBATCH -N 1", "#SBATCH -n 2", "#SBATCH --gres=gpu:4"], ["--gpus-per-task=a100:2"],
         ["#SBATCH -N 1", "#SBATCH -n 2", "#SBATCH --gpus-per-task=a100:2"]),
        (CHUNKS, ["-l select=2:ngpus=4:ncpus=16"], ["#PBS -l select=2:ngpus=4:ncpus=16"]),
        (CHUNKS, ["-l select=1:ngpus=4+1:ngpus=4"], ["#PBS -l select=1:ngpus=4+1:ngpus=4"]),
        (["#$ -l gpu=2"], ["-l gpu=2"], ["#$ -l gpu=2"]),
        # Slurm, OAR and HTCondor heed the last of such lines only.
        (["#SBATCH --gres=gpu:4"], ["--gres=lscratch:10"], ["#SBATCH --gres=gpu:4,lscratch:10"]),
        (["#SBATCH -J m"], ["--gres=gpu:2", "--gres=lscratch:10"],
         ["#SBATCH -J m", "#SBATCH --gres=gpu:2,lscratch:10"]),
        (["#OAR -p kind='a'"], ["-p cluster='b'"], ["#OAR -p \"kind='a' AND cluster='b'\""]),
        (["#OAR -p mem>=4"], ["-p 'a=1 or b=2'"], ['#OAR -p "mem>=4 AND (a=1 or b=2)"']),
        (["#OAR -n m"], ["-p cluster='x'", "-p mem>=4096"],
         ["#OAR -n m", "#OAR -p \"cluster='x' AND mem>=4096\""]),
        (["#CONDOR periodic_remove = (a)"], ["periodic_remove = b"],
         ["#CONDOR periodic_remove = ((a)) || (b)"]),
        (["#COBALT --attrs ssds=required"], ["--attrs enable_ssh=1:mig-mode=True"],
         ["#COBALT --attrs ssds=required:enable_ssh=1:mig-mode=True"]),
        (["#COBALT --env A=1"], ["--env B=2"], ["#COBALT --env A=1:B=2"]),
        # PBS takes no resource of the whole job beside its chunks.
        (["#PBS -l select=1:mem=4GB"], ["-l ncpus=8"], ["#PBS -l select=1:mem=4GB:ncpus=8"]),
        (["#PBS -l select=1:ncpus=8"], ["-l ncpus=8"], ["#PBS -l select=1:ncpus=8"]),
    ],
)  # fmt: skip
def test_own_directives_and_generated_ones_are_merged(
    generated: list[str], own: list[str], merged: list[str]
) -> None:
    assert merge(generated, own, []) == merged


def test_skipping_takes_generated_lines_only_and_blanks_count() -> None:
    merged = merge(SLURM, ["--memory-note"], ["--mem", "-p gpu "])
    assert merged == [
        "#SBATCH -J m",
        "#SBATCH -p gpu",
        "#SBATCH --gpus-per-node=4",
        "#SBATCH --memory-note",
    ]


def test_two_own_directives_that_contradict_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"'#SBATCH --gpus=2' and '#SBATCH --gres=gpu:4'"):
        merge(SLURM, ["--gpus=2", "--gres=gpu:4"], [])


@pytest.mark.parametrize(
    "line, requests",
    [
        ("#PBS -l select=1:ncpus=4", ("-l select",)),
        ("#PBS -l walltime=1:00", ("-l walltime",)),
        ("#$ -l gpu=2", ("-l gpu",)),
        ("#$ -pe smp 4", ("-pe",)),
        ("#SBATCH -G 4", ("GPUs",)),
        ("#SBATCH --time 10", ("--time",)),
        ("#SBATCH -G4", ("GPUs",)),
        ("#CONDOR request_GPUs = 2", ("requestgpus",)),
        ('#BSUB -R "span[ptile=4]"', ("-R span",)),
        ('#BSUB -R "rusage[ngpus_physical=2]"', ("GPUs",)),
        ("#PBS -l nodes=1:ppn=4", ("-l select",)),
        ("#PBS -l walltime=1:00,mem=4gb", ("-l walltime", "-l mem")),
        ("#SBATCH --gres=gpu:2,lscratch:10", ("GPUs", "--gres lscratch:10")),
    ],
)
def test_a_directive_asks_for(line: str, requests: tuple[str, ...]) -> None:
    assert syntax_of(line).requests_of(line) == requests


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
    with pytest.raises(InvalidInput, match="set the same"):
        merge([line], [one, other], [])
