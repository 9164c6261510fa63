"""Job and dialect -> text: the script of a job."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...batch import arguments_elsewhere, elsewhere, find_backend
from ...batch.contradictions import directives_of, lines_that_set
from ...batch.variables import node_lists
from ...core.cluster import Spec, spec_of_group
from ...core.errors import InvalidInput
from ...core.lease import GUARD_SECONDS, LATE_SECONDS
from ...host.cluster_directory import ClusterDirectory
from ...host.environ import LEFT
from ...host.private_files import write_private
from ...node import guard, node_list, start_worker
from ...profiles import Profile
from ..spec import group_profile
from .launchers import (
    ARGUMENT_LEFT,
    ENGLISH,
    find_dialect,
    launch_lines,
    layout_of,
    phase_line,
    prologue_lines,
    rank_lines,
)
from .worker_command import (
    WORKER_STARTER,
    inside,
    lifetime_lines,
    seconds_of,
    srun_words,
    worker_lines,
)

MARK = "@MARK@"
"""Stands for the submission's mark in a script; the head fills it in."""
HOST_READER = "hostlists.py"
GUARD_FILE = "guard.py"
"""Files of `node` beside the scripts: jobs may not see this package."""
WAIT = """\
trap 'kill "$worker" 2>/dev/null' TERM INT
wait "$worker"
code=$?
while kill -0 "$worker" 2>/dev/null; do wait "$worker"; code=$?; done"""
"""Lines that wait for the workers, hand a request to end on to them, and keep their exit code."""
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


def group_scripts(
    profile: Profile, spec: Spec, directory: ClusterDirectory
) -> Iterator[tuple[str, str]]:
    """Yield the names of the worker groups, each with the script of its jobs."""
    for name in profile.groups:
        # The head submits all jobs with the same variables.
        there = tuple(elsewhere(spec.backend, spec.job))
        part = spec_of_group(spec, name)
        yield name, render(group_profile(profile, name), part, directory, unset=there)


def write_node_files(directory: ClusterDirectory) -> None:
    """Write the files that jobs run beside their scripts."""
    for name, module in ((WORKER_STARTER, start_worker), (GUARD_FILE, guard)):
        write_private(directory.jobs / name, Path(str(module.__file__)).read_bytes())
    write_private(directory.jobs / HOST_READER, node_list.reader(node_lists()).encode())


def render(
    profile: Profile,
    spec: Spec,
    directory: ClusterDirectory,
    head: str = "",
    work: str = "",
    unset: Sequence[str] = (),
) -> str:
    """Return the script of one job, with `MARK` where the mark goes.

    Parameters
    ----------
    head
        The command of the head that the job also runs; empty for any other job.
    work
        What each rank runs in place of its workers; empty for a cluster's own jobs.
    unset
        Variables of the submission that are none of the job's.
    """
    script = _Script(profile, spec, directory, work)
    if spec.spread:
        lines = script.spread()
    elif spec.shared_memory is not None:
        lines = script.local()
    else:
        lines = script.batch(head, unset)
    return "\n".join(lines) + "\n"


class _Script:
    """The lines of one job's script; each kind of job has a method."""

    def __init__(
        self, profile: Profile, spec: Spec, directory: ClusterDirectory, work: str
    ) -> None:
        self.profile, self.spec, self.directory, self.work = profile, spec, directory, work
        self.exports = [*_exports(spec), ENGLISH]
        self.prologue = prologue_lines(profile.environment.prologue)
        before, command = worker_lines(profile, spec, directory, work)
        self.commands = [*before, command]

    def local(self) -> list[str]:
        """Return the script of a process group of this machine."""
        # A prologue is written for bash, as in batch jobs: dash has no `source`.
        shell = "/bin/bash" if self.prologue else "/bin/sh"
        *before, command = self.commands
        return [f"#!{shell}", *self.exports, *self.prologue, *before, f"exec {command}"]

    def spread(self) -> list[str]:
        """Return the script of the one local job that fills the allocation that the head is in."""
        gpus = self.spec.job.gpus // self.spec.job.nodes
        if gpus:
            numbers = ",".join(map(str, range(gpus)))
            # Where the launcher does not tell a node's GPUs, they are its first ones.
            limit = f'export CUDA_VISIBLE_DEVICES="${{CUDA_VISIBLE_DEVICES:-{numbers}}}"'
            self.commands.insert(0, limit)
        return [
            "#!/bin/bash",
            'export GPUCLUSTER_JOB="$GPUCLUSTER_WORKER"',
            *self.exports,
            *self.prologue,
            *self.launch(),
            "worker=$!",
            *WAIT.splitlines(),
            'exit "$code"',
        ]

    def batch(self, head: str, unset: Sequence[str]) -> list[str]:
        """Return the script of a job of a batch system, or of the simulated one."""
        profile, spec, backend = self.profile, self.spec, find_backend(self.spec.backend)
        output = str(self.directory.logs / f"{MARK}.out")
        job = replace(spec.job, gpus=spec.job.gpus + profile.head.gpus) if head else spec.job
        generated = backend.directives(job, MARK, output)
        given = bool(profile.dask_config)
        directives = directives_of(backend, job, generated, as_given=given)
        if spec.simulated:
            lines = ["#!/bin/sh", *directives, "# Simulation: CPU workers stand for GPUs."]
            command = f"exec {self.commands[-1]}"
            return [*lines, *self.exports, *profile.environment.prologue, command]
        # They came with the submission; a step is of the cluster that the job is on.
        there = backend.routing(job).variables
        self.exports += [f"unset {name}" for name in dict.fromkeys((*unset, *there))]
        # With the head's own job the cluster ends.
        seconds = 0 if head or self.work else seconds_of(spec)
        timed = [lines_that_set(backend, job, "walltime", each) for each in (directives, generated)]
        if timed[0] != timed[1]:
            seconds = 0  # a directive of the profile sets the walltime
        launch = self.launch(seconds)
        ending = _guarded(_python_of(spec))
        return [
            "#!/bin/bash",
            *directives,
            f"export GPUCLUSTER_JOB={MARK}_{backend.task}",
            f"GPUCLUSTER_RESTARTS={backend.restarts}",
            'export GPUCLUSTER_WORKER="$GPUCLUSTER_JOB"',
            '[ "$GPUCLUSTER_RESTARTS" = 0 ] ||'
            ' GPUCLUSTER_WORKER="$GPUCLUSTER_JOB.r$GPUCLUSTER_RESTARTS"',
            f"GPUCLUSTER_DIRECTORY={shlex.quote(str(self.directory.path))}",
            'exec >>"$GPUCLUSTER_DIRECTORY/logs/$GPUCLUSTER_JOB.log" 2>&1',
            'echo "$GPUCLUSTER_WORKER on $(hostname) since $(date)"',
            *self.exports,
            *self.prologue,
            *(head_lines(profile, self.directory.id, head, launch) if head else launch + ending),
        ]

    def launch(self, seconds: int = 0) -> list[str]:
        """Return the lines that start all workers of the job in the background.

        Parameters
        ----------
        seconds
            After how many seconds of the job they leave by themselves; 0 = they do not.
        """
        launcher, spec, exports = self.profile.launcher, self.spec, self.exports
        # After the prologue, which may take minutes and may have set Dask's variable.
        net = lifetime_lines(str(seconds)) if seconds else []
        if launcher.name == "none":
            *before, command = self.commands
            return [*net, *before, phase_line("starting Python"), f"{command} &"]
        reader = f'{_python_of(spec)} "$GPUCLUSTER_DIRECTORY/jobs/{HOST_READER}"'
        extra = srun_words(self.profile.environment.container, self.directory.path)
        if spec.spread:
            extra += find_dialect(launcher).beside_jupyter
        # Over ssh a rank runs the prologue again, and gets what was left before.
        there = lifetime_lines(LEFT) if seconds else []
        if seconds:  # a prologue may have arguments of its own
            exports = [f"{LEFT}={ARGUMENT_LEFT}", *exports]
        layout = layout_of(spec)
        return [
            *net,
            'GPUCLUSTER_RANK_FILE="$GPUCLUSTER_DIRECTORY/jobs/$GPUCLUSTER_JOB.rank.sh"',
            "cat >\"$GPUCLUSTER_RANK_FILE\" <<'END OF RANK'",
            *rank_lines(launcher, layout, [*exports, *self.prologue, *there], self.commands),
            "END OF RANK",
            *launch_lines(launcher, layout, extra, reader),
        ]


def _exports(spec: Spec) -> list[str]:
    return export_lines({**spec.variables, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})


def export_lines(variables: Mapping[str, str]) -> list[str]:
    """Return the lines of a shell that set these variables."""
    return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]


def environment_script(profile: Profile, spec: Spec, directory: ClusterDirectory) -> str:
    """Return the script that runs its arguments, or a shell, as the jobs' scripts run workers."""
    container = None if spec.simulated else profile.environment.container
    before, words = inside(container, spec, directory.path, "") if container else ([], [])
    lines = ["#!/bin/bash", *_exports(spec), *profile.environment.prologue]
    lines += ['[ "$#" -gt 0 ] || set -- "${SHELL:-/bin/bash}"', *before]
    return "\n".join([*lines, " ".join(["exec", *words, '"$@"'])]) + "\n"


def _python_of(spec: Spec) -> str:
    """Return a Python of the node, as a word of the shell."""
    # The environment's Python may be of the image, or of a file system that is only on the nodes.
    return f'"$(command -v {shlex.quote(spec.python)} python3 | head -n 1)"'


def _guarded(python: str) -> list[str]:
    """Return the lines that wait for the workers, and end them if the cluster is lost."""
    return f"""\
worker=$!
guard() {{
    trap 'kill $! 2>/dev/null; exit' TERM
    {python} -IS "$GPUCLUSTER_DIRECTORY/jobs/{GUARD_FILE}" "$GPUCLUSTER_DIRECTORY" \\
        "$GPUCLUSTER_JOB" "$worker" {LATE_SECONDS:.0f} {GUARD_SECONDS} &
    if wait $!; [ $? = {guard.LOST} ]; then
        kill "$worker" 2>/dev/null
        sleep 15 & wait $!
        kill -KILL 0
    fi
}}
guard &
guard=$!
{WAIT}
kill "$guard" 2>/dev/null
# The disk may hang, which must not keep the job.
{{
    rm -f "$GPUCLUSTER_DIRECTORY/exit/.$GPUCLUSTER_JOB"
    echo "$code" >"$GPUCLUSTER_DIRECTORY/exit/$GPUCLUSTER_JOB"
}} &
for ((tries = 0; tries < 100; tries++)); do
    kill -0 "$!" 2>/dev/null || break
    sleep 0.1
done
kill -KILL "$!" 2>/dev/null
exit "$code\"""".splitlines()


# The head in a job.


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
