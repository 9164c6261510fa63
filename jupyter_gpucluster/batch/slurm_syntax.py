"""The directives of sbatch: https://slurm.schedmd.com/sbatch.html."""

from __future__ import annotations

import re

from .directives import Syntax


class SlurmSyntax(Syntax):
    """Directives of sbatch, whose lists of resources ask for GPUs in several ways."""

    def requests_of(self, line: str) -> tuple[str, ...]:
        option, value = self.option_of(line)
        if option != "--gres" and not option.startswith("--tres-per-"):
            return super().requests_of(line)
        return tuple(
            "GPUs" if re.match(r"(gres[:/])?gpu\b", each) else f"{option} {each}"
            for each in value.split(",")
        )


HETEROGENEOUS = (
    "begins another part of a heterogeneous job; the jobs of a cluster have one part, and workers"
    " of another kind go into `groups`"
)
SYNTAX = SlurmSyntax(
    "#SBATCH",
    keys={
        "--partition": ("queue",), "--account": ("account",), "--time": ("walltime",),
        "--nodes": ("nodes",), "--ntasks": ("cpus",), "--cpus-per-task": ("cpus",),
        "--cpus-per-gpu": ("cpus",), "--mem": ("memory",), "--mem-per-cpu": ("memory",),
        "--mem-per-gpu": ("memory",), "--gpus": ("gpus", "gpu_type"),
        "--gpus-per-*": ("gpus", "gpu_type"), "--gres gpu": ("gpus", "gpu_type"),
        "--tres-per-* gpu": ("gpus", "gpu_type"),
    },
    name="--job-name",
    arrays=("--array",),
    waits=("--wait", "--test-only"),
    others=(
        "--qos=", "--constraint=", "--reservation=", "--exclusive", "--exclude=", "--nodelist=",
        "--licenses=", "--nice=", "--requeue", "--mail-type=", "--mail-user=", "--dependency=",
    ),
    refused=dict.fromkeys(("hetjob", "packjob", "--het-group", "--pack-group"), HETEROGENEOUS),
    synonyms={
        "-A": "--account", "-C": "--constraint", "-G": "--gpus", "-J": "--job-name",
        "-L": "--licenses", "-M": "--clusters", "-N": "--nodes", "-W": "--wait", "-a": "--array",
        "-b": "--begin", "-c": "--cpus-per-task", "-d": "--dependency", "-e": "--error",
        "-n": "--ntasks", "-o": "--output", "-p": "--partition", "-q": "--qos",
        "-s": "--oversubscribe", "-t": "--time", "-w": "--nodelist", "-x": "--exclude",
    },
    alike={
        # Of these Slurm takes one: https://slurm.schedmd.com/sbatch.html#OPT_gpus-per-task.
        "--gpus": "GPUs", "--gpus-per-node": "GPUs", "--gpus-per-task": "GPUs",
        "--gpus-per-socket": "GPUs", "--mem": "memory", "--mem-per-cpu": "memory",
        "--mem-per-gpu": "memory", "--cpus-per-gpu": "--cpus-per-task",
        "--no-requeue": "--requeue", "--oversubscribe": "--exclusive",
    },
    joined={"--gres": "#SBATCH --gres={0},{1}"},
    glued=True,
    clock={1: (60,), 2: (60, 1), 3: (3600, 60, 1)},
)  # fmt: skip
