"""Job and dialect -> text: the script of a job."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ...batch.base import Backend
from ...batch.contradictions import directives_of, lines_that_set
from ...batch.variables import node_lists
from ...core.cluster import Spec, spec_of_group
from ...core.lease import GUARD_SECONDS, LATE_SECONDS
from ...host.cluster_directory import ClusterDirectory
from ...host.environ import LEFT
from ...host.private_files import write_private
from ...node import guard, node_list, start_worker
from ...profiles import Profile
from ..spec import group_profile
from .containers import inside, preparation, srun_words
from .head import head_lines
from .launchers import find_dialect, layout_of
from .ranks import ARGUMENT_LEFT, ENGLISH, launch_lines, phase_line, prologue_lines, rank_lines
from .worker_command import WORKER_STARTER, seconds_of, worker_lines
from .worker_command import lines as lifetime_lines

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


def group_scripts(
    profile: Profile, spec: Spec, backend: Backend, directory: ClusterDirectory
) -> Iterator[tuple[str, str]]:
    """Yield the names of the worker groups, each with the script of its jobs."""
    for name in profile.groups:
        # The head submits all jobs with the same variables.
        there = tuple(backend.routing(spec.job).variables)
        part = spec_of_group(spec, name)
        own = group_profile(profile, name)
        yield name, render(own, part, backend, directory, unset=there)


def write_node_files(directory: ClusterDirectory) -> None:
    """Write the files that jobs run beside their scripts."""
    for name, module in ((WORKER_STARTER, start_worker), (GUARD_FILE, guard)):
        write_private(directory.jobs / name, Path(str(module.__file__)).read_bytes())
    write_private(directory.jobs / HOST_READER, node_list.reader(node_lists()).encode())


def render(
    profile: Profile,
    spec: Spec,
    backend: Backend,
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
    exports = export_lines({**spec.variables, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
    exports.append(ENGLISH)
    before, command = worker_lines(profile, spec, backend, directory, work)
    if spec.spread:
        return _spread(profile, spec, directory, exports, [*before, command])
    if backend.on_this_machine and not spec.simulated:
        prologue = prologue_lines(profile.environment.prologue)
        # A prologue is written for bash, as in batch jobs: dash has no `source`.
        shell = "/bin/bash" if prologue else "/bin/sh"
        lines = [f"#!{shell}", *exports, *prologue, *before, f"exec {command}"]
        return "\n".join(lines) + "\n"
    output = str(directory.logs / f"{MARK}.out")
    job = replace(spec.job, gpus=spec.job.gpus + profile.head.gpus) if head else spec.job
    given = bool(profile.dask_config)
    directives = directives_of(backend, job, MARK, output, as_given=given)
    if spec.simulated:
        lines = ["#!/bin/sh", *directives, "# Simulation: CPU workers stand for GPUs.", *exports]
        return "\n".join([*lines, *profile.environment.prologue, f"exec {command}"]) + "\n"
    # They came with the submission; a step is of the cluster that the job is on.
    there = backend.routing(job).variables
    exports += [f"unset {name}" for name in dict.fromkeys((*unset, *there))]
    # With the head's own job the cluster ends.
    seconds = 0 if head or work else seconds_of(spec)
    if seconds:
        ours = backend.directives(job, MARK, output)
        if lines_that_set(backend, job, "walltime", directives) != lines_that_set(
            backend, job, "walltime", ours
        ):
            seconds = 0  # a directive of the profile sets the walltime
    launch = _launch(profile, spec, directory, exports, [*before, command], seconds)
    lines = [
        "#!/bin/bash",
        *directives,
        f"export GPUCLUSTER_JOB={MARK}_{backend.task}",
        f"GPUCLUSTER_RESTARTS={backend.restarts}",
        'export GPUCLUSTER_WORKER="$GPUCLUSTER_JOB"',
        '[ "$GPUCLUSTER_RESTARTS" = 0 ] ||'
        ' GPUCLUSTER_WORKER="$GPUCLUSTER_JOB.r$GPUCLUSTER_RESTARTS"',
        f"GPUCLUSTER_DIRECTORY={shlex.quote(str(directory.path))}",
        'exec >>"$GPUCLUSTER_DIRECTORY/logs/$GPUCLUSTER_JOB.log" 2>&1',
        'echo "$GPUCLUSTER_WORKER on $(hostname) since $(date)"',
        *exports,
        *prologue_lines(profile.environment.prologue),
        *(
            head_lines(profile, directory.id, head, launch)
            if head
            else [*launch, *_guarded(_python_of(spec))]
        ),
    ]
    return "\n".join(lines) + "\n"


def export_lines(variables: Mapping[str, str]) -> list[str]:
    """Return the lines of a shell that set these variables."""
    return [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]


def environment_script(profile: Profile, spec: Spec, directory: ClusterDirectory) -> str:
    """Return the script that runs its arguments, or a shell, as the jobs' scripts run workers."""
    container = profile.environment.container
    lines = ["#!/bin/bash", *export_lines({**spec.variables, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})]
    lines += [*profile.environment.prologue, '[ "$#" -gt 0 ] || set -- "${SHELL:-/bin/bash}"']
    if container is None or spec.simulated:
        return "\n".join([*lines, 'exec "$@"']) + "\n"
    gpus = spec.job.gpus > 0
    names = [*spec.variables, "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"]
    words = " ".join(inside(container, directory.path, "", gpus=gpus))
    return "\n".join([*lines, *preparation(container, "", names), f'exec {words} "$@"']) + "\n"


def _spread(
    profile: Profile,
    spec: Spec,
    directory: ClusterDirectory,
    exports: Sequence[str],
    commands: Sequence[str],
) -> str:
    """Return the script of the one local job that fills the allocation that the head is in."""
    gpus = spec.job.gpus // spec.job.nodes
    numbers = ",".join(map(str, range(gpus)))
    # Where the launcher does not tell a node's GPUs, they are its first ones.
    limit = [f'export CUDA_VISIBLE_DEVICES="${{CUDA_VISIBLE_DEVICES:-{numbers}}}"'] if gpus else []
    lines = [
        "#!/bin/bash",
        'export GPUCLUSTER_JOB="$GPUCLUSTER_WORKER"',
        *exports,
        *prologue_lines(profile.environment.prologue),
        *_launch(profile, spec, directory, exports, [*limit, *commands]),
        "worker=$!",
        *WAIT.splitlines(),
        'exit "$code"',
    ]
    return "\n".join(lines) + "\n"


def _launch(
    profile: Profile,
    spec: Spec,
    directory: ClusterDirectory,
    exports: Sequence[str],
    commands: Sequence[str],
    seconds: int = 0,
) -> list[str]:
    """Return the lines that start all workers of the job in the background.

    Parameters
    ----------
    seconds
        After how many seconds of the job they leave by themselves; 0 = they do not.
    """
    launcher, layout = profile.launcher, layout_of(spec)
    # After the prologue, which may take minutes and may have set Dask's variable.
    net = lifetime_lines(str(seconds)) if seconds else []
    if launcher.name == "none":
        return [*net, *commands[:-1], phase_line("starting Python"), f"{commands[-1]} &"]
    reader = f'{_python_of(spec)} "$GPUCLUSTER_DIRECTORY/jobs/{HOST_READER}"'
    prologue = prologue_lines(profile.environment.prologue)
    extra = srun_words(profile.environment.container, directory.path)
    if spec.spread:
        extra = [*extra, *find_dialect(launcher).beside_jupyter]
    # Over ssh a rank runs the prologue again, and is told what was left before.
    there = lifetime_lines(LEFT) if seconds else []
    if seconds:  # a prologue may have arguments of its own
        exports = [f"{LEFT}={ARGUMENT_LEFT}", *exports]
    return [
        *net,
        'GPUCLUSTER_RANK_FILE="$GPUCLUSTER_DIRECTORY/jobs/$GPUCLUSTER_JOB.rank.sh"',
        "cat >\"$GPUCLUSTER_RANK_FILE\" <<'END OF RANK'",
        *rank_lines(launcher, layout, [*exports, *prologue, *there], commands),
        "END OF RANK",
        *launch_lines(launcher, layout, extra, reader),
    ]


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
