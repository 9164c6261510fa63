"""The lines of a job's script that run a head, and the job's workers beside it."""

from __future__ import annotations

from collections.abc import Sequence

from ...batch import arguments_elsewhere, elsewhere
from ...core.errors import InvalidInput
from ...profiles import Profile

BEFORE = """\
rm -f "$GPUCLUSTER_DIRECTORY/scheduler.json"
GPUCLUSTER_SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/gpc-@ID@-XXXXXXXX") || exit
# A process group of their own: the head ends its workers and lives on.  They wait for its file.
set -m
{"""
BETWEEN = """\
worker=$!
trap 'kill "$worker" 2>/dev/null' TERM
wait "$worker"
code=$?
while kill -0 "$worker" 2>/dev/null; do wait "$worker"; code=$?; done
echo "$code" >"$GPUCLUSTER_DIRECTORY/exit/$GPUCLUSTER_JOB"
} &
workers=$!
set +m
# Before the head is there, too: the shell alone would end, and leave it behind.
told= head=
trap 'told=1; kill "$head" 2>/dev/null' TERM INT"""
AFTER = """\
head=$!
[ -z "$told" ] || kill "$head" 2>/dev/null
wait "$head"
code=$?
while kill -0 "$head" 2>/dev/null; do wait "$head"; code=$?; done
kill -TERM -- "-$workers" 2>/dev/null
for ((tries = 0; tries < 50; tries++)); do
    kill -0 -- "-$workers" 2>/dev/null || break
    sleep 0.2
done
kill -KILL -- "-$workers" 2>/dev/null
rm -rf "$GPUCLUSTER_SCRATCH"
exit "$code\""""


def head_lines(profile: Profile, id: str, head: str, launch: Sequence[str]) -> list[str]:
    """Return the end of the script of the job that a head runs in.

    Parameters
    ----------
    head
        The command of the head, without its scratch directory and its workers.
    launch
        The lines that start the job's workers in the background.

    Raises
    ------
    InvalidInput
        GPUs are asked for the head, and the job is spread by a launcher.
    """
    there = elsewhere(profile.backend, profile.job)
    # Where pods are sent is settled at each start, and arguments say it to all that look for them.
    if there and not arguments_elsewhere(profile.backend, profile.job):
        raise InvalidInput(
            "With head.placement: job, a profile cannot send jobs to another cluster: the state of "
            "the scheduler's job is asked here.",
            hint=f"Remove that from job.directives and job.submit_args, and set {', '.join(there)} "
            "where Jupyter starts.",
            detail="job.directives",
        )
    words = f'{head} --scratch "$GPUCLUSTER_SCRATCH" --workers "$workers"'
    share = []
    if profile.head.gpus:
        share = gpu_lines(profile)
        words = f'CUDA_VISIBLE_DEVICES="$GPUCLUSTER_HEAD_GPUS" {words}'
    start = f'{words} >>"$GPUCLUSTER_DIRECTORY/logs/head.log" 2>&1 &'
    before = BEFORE.replace("@ID@", id).splitlines()
    return [*share, *before, *launch, *BETWEEN.splitlines(), start, *AFTER.splitlines()]


def gpu_lines(profile: Profile) -> list[str]:
    """Return the lines that share the GPUs of the head's job: the last ones are the head's."""
    if profile.launcher.name != "none":
        raise InvalidInput(
            "head.gpus is for jobs of one node without a launcher.",
            hint="A launcher gives the GPUs of each node to the workers; leave head.gpus out, and"
            " the scheduler uses those of its node together with them.",
            detail="head.gpus",
        )
    own = profile.head.gpus
    every = own + (0 if profile.job.gpus == "auto" else profile.job.gpus)
    numbers = ",".join(map(str, range(every)))
    return f"""\
IFS=, read -ra gpus <<<"${{CUDA_VISIBLE_DEVICES:-{numbers}}}"
GPUCLUSTER_HEAD_GPUS=$(IFS=,; echo "${{gpus[*]:{every - own}}}")
export CUDA_VISIBLE_DEVICES=$(IFS=,; echo "${{gpus[*]:0:{every - own}}}")""".splitlines()
