"""Commands of Slurm that print what the real one printed."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from tests.batch.recorded import CAPTURED
from tests.commands import put_command

OTHER_USERS = "Invalid account or account/partition combination specified"
SBATCH = f"""account=$(sed -n 's/^#SBATCH -A //p' "$(eval echo \\${{$#}})")
partition=$(sed -n 's/^#SBATCH -p //p' "$(eval echo \\${{$#}})")
case $partition:$account in parent:*) echo 'allocation failure: {OTHER_USERS}' >&2; exit 1;; esac
echo 'sbatch: Job 7 to start at 2026-01-02T03:04:05 using 1 processors' >&2"""

NODES = (
    "g1|gpu|mixed|gpu:h100:4|gpu:h100:1|",
    "g2|gpu|drained|gpu:h100:4||",
    "m1|mixed|idle|gpu:h100:4||",
)
"""One line of sinfo for each node and partition."""


def put_slurm(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the commands on PATH, and no other batch system's."""
    place = CAPTURED / "slurm"
    show = "sed '1,/^--- stdout/d; /^--- stderr/,$d' {}/survey_{}.txt"
    cases = {
        "scontrol": "case $* in *partition*) {partitions};; *node*) {nodes};; *) {config};; esac",
        "sacctmgr": "case $* in *assoc*) {associations};; *) {qos};; esac",
        "sbatch": SBATCH,
    }
    for program in ("squeue", "scancel", "srun"):
        put_command(home, monkeypatch, program, "exit 0")
    put_command(home, monkeypatch, "sinfo", f"printf '%s\\n' {shlex.join(NODES)}")
    for program, script in cases.items():
        for name in ("partitions", "nodes", "config", "associations", "qos"):
            script = script.replace(f"{{{name}}}", show.format(place, name))
        put_command(home, monkeypatch, program, script)
    for program in ("sh", "sed", "id", "bash"):
        (home / "bin" / program).symlink_to(str(shutil.which(program)))
    monkeypatch.setenv("PATH", str(home / "bin"))
    monkeypatch.delenv("SBATCH_ACCOUNT", raising=False)


def accept_only(home: Path, account: str) -> None:
    """Let sbatch refuse the jobs of all other accounts."""
    (home / "bin/sbatch").write_text(
        f"""#!/bin/sh
account=$(sed -n 's/^#SBATCH -A //p' "$(eval echo \\${{$#}})")
[ "$account" = {account} ] || {{ echo 'allocation failure: {OTHER_USERS}' >&2; exit 1; }}
"""
    )
