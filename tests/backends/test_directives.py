"""A profile's own directives and the dialect's: merged by what they ask for."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.backends.directives import merge, request_of
from jupyter_gpucluster.errors import InvalidInput

SLURM = ["#SBATCH -J m", "#SBATCH -p gpu", "#SBATCH --mem=4M", "#SBATCH --gpus-per-node=4"]


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
        ("#CONDOR request_GPUs = 2", "request_gpus"),
    ],
)
def test_a_directive_asks_for(line: str, request_: str) -> None:
    assert request_of(line) == request_


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
