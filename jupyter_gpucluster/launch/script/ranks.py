"""The lines of a job's script that start its ranks, and the script that each rank runs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ...profiles.sections import Launcher
from .launchers import Layout, find_dialect, named, options_of

HOSTS = '"$GPUCLUSTER_HOSTS"'
RANK_FILE = '"$GPUCLUSTER_RANK_FILE"'
ARGUMENT_LEFT = "$4"
"""Over ssh: the seconds after which a rank's workers leave by themselves, where they do."""
ENGLISH = '[ -n "${LC_ALL-}${LC_MESSAGES-}" ] || LC_MESSAGES=C  # of this shell alone'
"""Logs are searched for a shell's English words; it is not exported, so that programs keep theirs.
An exported LC_ALL cannot be changed for the shell alone."""
NOT_EXPORTED = (
    # What belongs to one node, one shell, or to the launcher itself.
    "BASH_FUNC_*", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HOSTNAME", "OLDPWD", "OMPI_*",
    "PMIX_*", "PRTE_*", "PWD", "SHLVL", "SLURM_*", "TMPDIR", "_",
)  # fmt: skip


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
        The command that prints the job's hosts, but for its two arguments; see `node_list.main`.
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
    if dialect.names_variables:
        words.append('"${exported[@]}"')
        lines += [
            "exported=()",
            "for variable in $(compgen -e); do",
            f'    case "$variable" in {"|".join(NOT_EXPORTED)}) ;;',
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
