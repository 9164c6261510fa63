"""How one gets into a job that runs: the command that starts a shell, or a program, on its node."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from . import on_this_machine

SRUN_INTO_TASK = (
    'id=$(squeue -h -o %A -j "$1") && shift && [ "$id" ] && exec srun --jobid="$id" "$@"'
)
"""srun takes no number of an array's task ("Invalid numeric value"); the script is fixed, and what
is named its argument."""


def enter(backend: str, id: str, node: str, words: Sequence[str], *, terminal: bool) -> list[str]:
    """Return the command that runs other words inside a job.

    Systems without a way of their own (PBS, Torque, Moab, LSF, Grid Engine, Cobalt) get ssh, which
    many sites allow on the nodes of one's own jobs; it is outside of the job's limits there.

    Parameters
    ----------
    backend
        The queueing system.
    id, node
        The job, and the one of its nodes that is meant; an empty node is the job's first.
    terminal
        Whether somebody sits at a terminal, which the words then get.
    """
    if on_this_machine(backend):
        return list(words)
    if backend == "slurm":
        # Another step beside the workers, which hold all that the job has.
        options = ["--overlap", "--nodes=1", "--ntasks=1"]
        options += [*([f"--nodelist={node}"] if node else []), *(["--pty"] if terminal else [])]
        if "_" in id:
            return ["sh", "-c", SRUN_INTO_TASK, "srun", id, *options, *words]
        return ["srun", f"--jobid={id}", *options, *words]
    if backend == "htcondor":
        return ["condor_ssh_to_job", id, shlex.join(words)]
    if backend == "kubernetes":
        return ["kubectl", "exec", "--stdin", *(["--tty"] if terminal else []), id, "--", *words]
    tty = ["-t"] if terminal else []
    if backend == "oar":
        return ["env", f"OAR_JOB_ID={id}", "oarsh", *tty, node, shlex.join(words)]
    return ["ssh", *tty, node, shlex.join(words)]
