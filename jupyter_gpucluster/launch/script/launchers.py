"""The launchers, which spread one job over its nodes: the layout of ranks, a table, and lines."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...core.cluster import Spec
from ...core.errors import InvalidInput
from ...profiles.sections import Launcher


@dataclass(frozen=True)
class Layout:
    """The layout of a job's workers on its nodes; a rank is one process of a launcher."""

    nodes: int
    ranks: int
    """Of each node."""
    workers: int
    """Of each rank."""
    gpus: int
    """Of each rank."""
    cpus: int | None
    """Of each rank; None = the profile does not say."""

    @property
    def total(self) -> int:
        """All ranks of the job."""
        return self.nodes * self.ranks


def lay_out(launcher: Launcher, *, nodes: int, gpus: int, cpus: int | None, workers: int) -> Layout:
    """Share a job's GPUs, cores and workers among its ranks.

    Parameters
    ----------
    nodes, gpus, cpus, workers
        Of the whole job.

    Raises
    ------
    InvalidInput
        They cannot be shared evenly, or nothing would start workers on all nodes.
    """
    ranks = 1 if launcher.ranks_per_node == "auto" else launcher.ranks_per_node
    if launcher.name == "none" and nodes > 1:
        raise InvalidInput(
            f"The job has {nodes} nodes, but no launcher that starts workers on all of them.",
            hint="Set launcher to what the site uses: srun, mpirun, mpiexec, jsrun, aprun or ssh.",
            detail="launcher",
        )
    if launcher.name == "none" and ranks > 1:
        raise InvalidInput(
            "launcher.ranks_per_node needs a launcher.",
            hint="Without one a single process holds all workers of the node; leave the key out.",
            detail="launcher.ranks_per_node",
        )
    if gpus % nodes:
        raise InvalidInput(
            f"{gpus} GPUs cannot be shared evenly by {nodes} nodes.",
            hint="job.gpus is that of the whole job: a multiple of job.nodes.",
            detail="job.gpus",
        )
    on_a_node = gpus // nodes
    if gpus and (ranks > on_a_node or on_a_node % ranks):
        raise InvalidInput(
            f"{ranks} ranks for {on_a_node} GPUs on each node.",
            hint=f"Set launcher.ranks_per_node to a divisor of {on_a_node}, or leave it out; "
            "the scheduler does not use a rank.",
            detail="launcher.ranks_per_node",
        )
    if gpus and workers != gpus:
        raise InvalidInput(
            f"{workers} workers for the {gpus} GPUs of a job.",
            hint="Each GPU gets one worker; leave workers.per_job out.",
            detail="workers.per_job",
        )
    total = nodes * ranks
    if workers % total:
        raise InvalidInput(
            f"{workers} workers cannot be shared evenly by {total} ranks on {nodes} nodes.",
            hint=f"workers.per_job is that of the whole job: a multiple of {total}.",
            detail="workers.per_job",
        )
    if cpus is not None and cpus < total:
        raise InvalidInput(
            f"{cpus} CPU cores for {total} ranks on {nodes} nodes.",
            hint=f"job.cpus is that of the whole job: {total} or more.",
            detail="job.cpus",
        )
    return Layout(
        nodes, ranks, workers // total, gpus // total, None if cpus is None else cpus // total
    )


def layout_of(spec: Spec) -> Layout:
    """Return how the workers of a settled cluster's jobs lie on their nodes."""
    job, total = spec.job, spec.job.nodes * spec.job.ranks
    cpus = None if job.cpus is None else job.cpus // total
    return Layout(job.nodes, job.ranks, spec.worker.per_job // total, job.gpus // total, cpus)


@dataclass(frozen=True)
class Dialect:
    """Options of one launcher, and the ways in which its ranks differ from those of others."""

    rank: str
    """A rank's number in the job, as a shell expands it there."""
    slot: str
    """Its number on its node; ``{ranks}`` stands for the ranks of a node."""
    options: Callable[[Layout], list[tuple[str, ...]]]
    """The options, each with its value; one that the profile's own arguments name is left out."""
    hosts: str = ""
    """A line of the file of hosts that it reads; ``{ranks}`` as above, ``{}`` is the host."""
    hosts_option: str = ""
    unexported: str = ""
    """Patterns of a node's, a shell's and its own variables, if arguments must name all others."""
    logs_in: bool = False
    """True if each rank is a login, without the job's variables."""
    inside_only: bool = False
    """True if it works only in the script of the job whose nodes it uses."""
    has_launch_node: bool = False
    """True if the first host of an allocation may be one without ranks."""
    beside_jupyter: tuple[str, ...] = ()
    """Its arguments in a job that Jupyter may run in, whose resources the workers then share."""
    container_runtime: str = ""
    """The container runtime that is a part of it."""


def _srun(layout: Layout) -> list[tuple[str, ...]]:
    # One rank that fails or ends takes the others with it: a job is whole, or is replaced.
    options: list[tuple[str, ...]] = [
        (f"--nodes={layout.nodes}",),
        (f"--ntasks={layout.total}",),
        (f"--ntasks-per-node={layout.ranks}",),
        ("--export=ALL",),
        ("--kill-on-bad-exit=1",),
        ("--wait=30",),
        # dask-cuda binds its workers itself, and fails where their cores are taken away before.
        ("--cpu-bind=none",),
    ]
    # Since 22.05 a step does not inherit it: https://slurm.schedmd.com/srun.html#OPT_cpus-per-task
    return options if layout.cpus is None else [*options, (f"--cpus-per-task={layout.cpus}",)]


def _openmpi(layout: Layout) -> list[tuple[str, ...]]:
    return [
        ("-np", str(layout.total)),
        ("--map-by", f"ppr:{layout.ranks}:node"),
        # By default each of two ranks is bound to one core, and its threads with it.
        ("--bind-to", "none"),
    ]


def _mpich(layout: Layout) -> list[tuple[str, ...]]:
    return [("-n", str(layout.total)), ("-ppn", str(layout.ranks)), ("-genvall",)]


def _pals(layout: Layout) -> list[tuple[str, ...]]:
    options = [("-n", str(layout.total)), ("--ppn", str(layout.ranks)), ("--cpu-bind", "none")]
    depth = [] if layout.cpus is None else [("--depth", str(layout.cpus))]
    return [*options, *depth]


def _jsrun(layout: Layout) -> list[tuple[str, ...]]:
    if layout.cpus is None and layout.ranks > 1:
        raise InvalidInput(
            "jsrun needs to know the cores of each resource set.",
            hint="Set job.cpus, which is that of the whole job.",
            detail="job.cpus",
        )
    return [
        ("-n", str(layout.total)),
        ("-r", str(layout.ranks)),
        ("-a", "1"),
        ("-c", "ALL_CPUS" if layout.cpus is None else str(layout.cpus)),
        ("-g", str(layout.gpus)),
        # The default, packed:1, puts all threads on one core.
        ("--bind", "rs"),
    ]


def _aprun(layout: Layout) -> list[tuple[str, ...]]:
    options = [("-n", str(layout.total)), ("-N", str(layout.ranks)), ("-cc", "none")]
    depth = [] if layout.cpus is None else [("-d", str(layout.cpus))]
    # -b: the shell is on the compute nodes; aprun need not send it there.
    return [*options, *depth, ("-b",)]


def _ssh(layout: Layout) -> list[tuple[str, ...]]:
    return [
        ("-T",),
        ("-oBatchMode=yes",),
        ("-oConnectTimeout=30",),
        ("-oServerAliveInterval=30",),
    ]


OPENMPI = Dialect(
    "OMPI_COMM_WORLD_RANK",
    "$OMPI_COMM_WORLD_LOCAL_RANK",
    _openmpi,
    hosts="{} slots={ranks}",
    hosts_option="--hostfile",
    # It passes on no other variables where it reaches nodes by ssh.
    unexported="BASH_FUNC_*|CUDA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|HOSTNAME|OLDPWD|OMPI_*|PMIX_*"
    "|PRTE_*|PWD|SHLVL|SLURM_*|TMPDIR|_",
)
MPICH = Dialect(
    "PMI_RANK",
    "${MPI_LOCALRANKID:-$((PMI_RANK % {ranks}))}",
    _mpich,
    hosts="{}:{ranks}",
    hosts_option="-hostfile",
)
PALS = Dialect("PALS_RANKID", "$PALS_LOCAL_RANKID", _pals, inside_only=True)
DIALECTS = {
    ("srun", "auto"): Dialect(
        "SLURM_PROCID",
        "$SLURM_LOCALID",
        _srun,
        # Jupyter may be a step of the same job.
        beside_jupyter=("--overlap",),
        container_runtime="pyxis",
    ),
    ("jsrun", "auto"): Dialect(
        "PMIX_RANK",
        "$((PMIX_RANK % {ranks}))",
        _jsrun,
        inside_only=True,
        has_launch_node=True,
    ),
    ("aprun", "auto"): Dialect(
        "ALPS_APP_PE", "$((ALPS_APP_PE % {ranks}))", _aprun, inside_only=True
    ),
    ("ssh", "auto"): Dialect("GPUCLUSTER_RANK", "$GPUCLUSTER_SLOT", _ssh, hosts="{}", logs_in=True),
    ("mpirun", "auto"): OPENMPI,
    ("mpiexec", "auto"): MPICH,
    **{
        (name, mpi): dialect
        for name in ("mpirun", "mpiexec")
        for mpi, dialect in (("openmpi", OPENMPI), ("mpich", MPICH), ("pals", PALS))
    },
}
SAME = {
    "--cpus-per-task": "-c", "--nodes": "-N", "--ntasks": "-n", "-b": "--bind", "--nrs": "-n",
    "--rs_per_host": "-r", "--tasks_per_rs": "-a", "--cpu_per_rs": "-c", "--gpu_per_rs": "-g",
    "--np": "-n", "-np": "-n", "-ppn": "--ppn", "-d": "--depth", "-f": "-hostfile",
    "--hostfile": "-hostfile", "-machinefile": "-hostfile", "--machinefile": "-hostfile",
    "--cpu_bind": "--cpu-bind", "-genvnone": "-genvall", "-bind-to": "--bind-to",
    "-map-by": "--map-by", "-npernode": "--map-by", "--npernode": "--map-by",
}  # fmt: skip
"""Spellings of one option; the launchers do not contradict each other here, but for aprun's -b."""


def find_dialect(launcher: Launcher) -> Dialect:
    """Return a launcher's entry.

    Raises
    ------
    InvalidInput
        ``mpi`` does not go with this launcher.
    """
    try:
        return DIALECTS[launcher.name, launcher.mpi]
    except KeyError:
        raise InvalidInput(
            f"launcher.mpi is for mpirun and mpiexec, not for {launcher.name}.",
            hint="Leave launcher.mpi out.",
            detail="launcher.mpi",
        ) from None


def options_of(dialect: Dialect, launcher: Launcher, layout: Layout) -> list[str]:
    """Return a launcher's arguments, ours and the profile's own."""
    given = named(launcher.args)
    kept = [words for words in dialect.options(layout) if not named(words[:1]) & given]
    return [word for words in (*kept, launcher.args) for word in words]


def named(args: Sequence[str]) -> set[str]:
    """Return the options that arguments name, each in one spelling."""
    names = {arg.split("=")[0] for arg in args if arg.startswith("-")}
    return {SAME.get(name, name) for name in names} | names


# Lines of scripts.

HOSTS = '"$GPUCLUSTER_HOSTS"'
RANK_FILE = '"$GPUCLUSTER_RANK_FILE"'
ARGUMENT_LEFT = "$4"
"""Over ssh: the seconds after which a rank's workers leave by themselves, where they do."""
ENGLISH = '[ -n "${LC_ALL-}${LC_MESSAGES-}" ] || LC_MESSAGES=C  # of this shell alone'
"""Logs are searched for a shell's English words; it is not exported, so that programs keep theirs.
An exported LC_ALL cannot be changed for the shell alone."""


def phase_line(words: str) -> str:
    """Return the line of a script that says in the log how far it has got, and since when."""
    return f'echo "gpucluster: {words} since $(date +%FT%T%z)"'


PROLOGUE_CHECK = """\
prologue_failed() {
    [ "$4" = "$prologue_depth" ] || return 0  # a file that the prologue reads may fail in parts
    line=$(sed -n "$2p" "$0" 2>/dev/null)
    case $1 in
        126) words=": command cannot be executed" ;;
        127) words=": command not found" ;;
        *) words= ;;
    esac
    echo "gpucluster: environment.prologue: exit code $1$words: ${line:-$3}"
    [ -z "$words" ] || exit "$1"
}
prologue_depth=${#BASH_SOURCE[@]}
trap 'prologue_failed $? $LINENO "$BASH_COMMAND" ${#BASH_SOURCE[@]}' ERR"""
"""Name each line of the prologue that fails; end the job at a command that is missing."""


def prologue_lines(prologue: Sequence[str]) -> list[str]:
    """Return a profile's own lines, after a word that they run now."""
    if not prologue:
        return []
    return [phase_line("in environment.prologue"), PROLOGUE_CHECK, *prologue, "trap - ERR"]


def launch_lines(
    launcher: Launcher, layout: Layout, extra: Sequence[str], host_reader: str
) -> list[str]:
    """Return the lines of the job's script that start all ranks, in the background.

    Parameters
    ----------
    extra
        More arguments of the launcher, already quoted for the shell.
    host_reader
        The command that prints the job's hosts, without its two arguments; see `node_list.main`.
    """
    dialect = find_dialect(launcher)
    lines = [phase_line(f"starting its ranks with {launcher.name}")]
    if dialect.hosts:
        line = dialect.hosts.replace("{ranks}", str(layout.ranks))
        lines += [
            'GPUCLUSTER_HOSTS="$GPUCLUSTER_DIRECTORY/jobs/$GPUCLUSTER_JOB.hosts"',
            f"{host_reader} {layout.nodes} {shlex.quote(line)} >{HOSTS} || exit",
        ]
    words = [shlex.quote(launcher.command or launcher.name)]
    words += map(shlex.quote, options_of(dialect, launcher, layout))
    words += extra
    rank = f'/bin/bash {RANK_FILE} "$GPUCLUSTER_WORKER"'
    if dialect.logs_in:
        return [*lines, *_ssh_lines(" ".join(words), layout.ranks)]
    if dialect.hosts_option and not named([dialect.hosts_option]) & named(launcher.args):
        words += [dialect.hosts_option, HOSTS]
    if dialect.unexported:
        words.append('"${exported[@]}"')
        lines += [
            "exported=()",
            "for variable in $(compgen -e); do",
            f'    case "$variable" in {dialect.unexported}) ;;',
            '        *) exported+=(-x "$variable") ;; esac',
            "done",
        ]
    return [*lines, f"{' '.join(words)} {rank} &"]


def _ssh_lines(command: str, ranks: int) -> list[str]:
    """Start all ranks over ssh; one that ends takes the others with it, as other launchers do."""
    return f"""\
spread() {{
    local place host slot file rank=0 pid tries pids=()
    # Every ssh reads from a pipe that only this process writes to.  It closes with this process,
    # whatever ends it, and then the other sides end their workers.
    place=$(mktemp -d) && mkfifo "$place/tether" || return
    exec 9<>"$place/tether" 8<"$place/tether"
    rm -r "$place"
    trap 'exec 9>&-' TERM
    printf -v file %q {RANK_FILE}
    while read -r host; do
        for ((slot = 0; slot < {ranks}; slot++)); do
            {command} "$host" \\
                "/bin/bash -l $file $GPUCLUSTER_WORKER $rank $slot $GPUCLUSTER_LEFT" \\
                <&8 8<&- 9>&- &
            pids+=($!)
            rank=$((rank + 1))
        done
    done <{HOSTS}
    exec 8<&-
    while kill -0 $$ 2>/dev/null; do
        for pid in "${{pids[@]}}"; do
            kill -0 "$pid" 2>/dev/null || break 2
        done
        sleep 1 9>&- &
        wait $!
    done
    exec 9>&-
    for ((tries = 0; tries < 100; tries++)); do
        kill -0 "${{pids[@]}}" 2>/dev/null || break
        sleep 0.2
    done
    kill "${{pids[@]}}" 2>/dev/null
    wait "$pid"
}}
spread &""".splitlines()


def rank_lines(
    launcher: Launcher, layout: Layout, environment: Sequence[str], commands: Sequence[str]
) -> list[str]:
    """Return the script of one rank, whose arguments are the worker's name and what ssh adds.

    Parameters
    ----------
    environment
        Lines that make the environment where the launcher does not carry it over.
    commands
        What the rank runs; the last starts its workers.
    """
    dialect = find_dialect(launcher)
    lines = ["export GPUCLUSTER_WORKER=$1"]
    if dialect.logs_in:
        lines += ["GPUCLUSTER_RANK=$2 GPUCLUSTER_SLOT=$3", *environment]
    else:
        words = f"{launcher.name} did not give this process its rank; see launcher.mpi"
        lines.append(ENGLISH)
        lines.append(f'GPUCLUSTER_RANK="${{{dialect.rank}:?{words}}}"')
        lines.append(f'GPUCLUSTER_SLOT="{dialect.slot.replace("{ranks}", str(layout.ranks))}"')
    lines.append('GPUCLUSTER_WORKER="$GPUCLUSTER_WORKER-n$GPUCLUSTER_RANK"')
    lines.append('echo "$GPUCLUSTER_WORKER on ${HOSTNAME:-?} since $(date)"')
    if layout.gpus and layout.ranks > 1:
        lines += _pinning(layout)
    *before, command = commands
    last = _tethered(command) if dialect.logs_in else [f"exec {command}"]
    return [*lines, *before, phase_line("starting Python"), *last]


def _pinning(layout: Layout) -> list[str]:
    all_of_node = ",".join(map(str, range(layout.ranks * layout.gpus)))
    return f"""\
IFS=, read -ra gpus <<<"${{CUDA_VISIBLE_DEVICES:-{all_of_node}}}"
if [ "${{#gpus[@]}}" -eq {layout.ranks * layout.gpus} ]; then
    gpus=("${{gpus[@]:GPUCLUSTER_SLOT*{layout.gpus}:{layout.gpus}}}")
elif [ "${{#gpus[@]}}" -ne {layout.gpus} ]; then
    echo "Error: {layout.ranks} ranks with {layout.gpus} GPUs each, and ${{#gpus[@]}} GPUs here"
    exit 1
fi
export CUDA_VISIBLE_DEVICES=$(IFS=,; echo "${{gpus[*]}}")""".splitlines()


def _tethered(command: str) -> list[str]:
    """Run the workers as a group of their own, which ends when ssh's standard input does."""
    return f"""\
exec 3<&0 </dev/null
set -m
{command} 3<&- &
workers=$!
set +m
{{
    read -r <&3
    kill -TERM -- "-$workers"
    for ((tries = 0; tries < 75; tries++)); do
        kill -0 -- "-$workers" || exit
        sleep 0.2
    done
    kill -KILL -- "-$workers"
}} 2>/dev/null &
tether=$!
exec 3<&-
wait "$workers"
code=$?
kill "$tether" 2>/dev/null
kill -KILL -- "-$workers" 2>/dev/null
exit "$code\"""".splitlines()
