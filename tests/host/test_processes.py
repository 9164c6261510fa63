"""Processes are told apart by number and start, and groups end with all that is in them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.host.processes import (
    boot_id,
    end_leftovers,
    is_alive,
    kill_group,
    signal_group,
    start_time,
    this_process,
)
from tests.waiting import until

pytestmark = pytest.mark.slow

Spawn = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start shell scripts, each leading a session, and end them with the test."""
    started: list[subprocess.Popen[str]] = []

    def run(script: str, **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            ["/bin/sh", "-c", script],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **variables},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        signal_group(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def gone(pid: int) -> bool:
    return start_time(pid) is None


def test_this_process_is_alive() -> None:
    me = this_process()
    assert me.pid == os.getpid()
    assert me.start_time > 0
    assert is_alive(me) is True


def test_a_later_process_with_the_same_number_is_another_one() -> None:
    me = this_process()
    assert is_alive(replace(me, start_time=me.start_time - 1)) is False


def test_a_process_of_another_boot_is_not_alive() -> None:
    assert boot_id()
    assert is_alive(replace(this_process(), boot_id="another")) is False


def test_of_a_process_on_another_host_nothing_is_known() -> None:
    assert is_alive(replace(this_process(), host="another")) is None


def test_an_unused_number_is_not_alive() -> None:
    assert start_time(2**22 + 1) is None


def test_a_zombie_is_not_alive(spawn: Spawn) -> None:
    process = spawn("exit 0")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{process.pid}/stat").exists()
    assert start_time(process.pid) is None


def test_a_name_with_blanks_and_parentheses_does_not_confuse(tmp_path: Path) -> None:
    odd = tmp_path / "a) (b c"
    odd.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(odd), "30"])
    try:
        until(lambda: b"a) (b c" in Path(f"/proc/{process.pid}/stat").read_bytes())
        mine = start_time(os.getpid())
        theirs = start_time(process.pid)
        assert mine is not None
        assert theirs is not None
        assert theirs >= mine
    finally:
        process.kill()
        process.wait()


def test_a_group_ends_with_its_grandchildren_even_those_that_ignore_sigterm(spawn: Spawn) -> None:
    process = spawn("trap '' TERM; (trap '' TERM; sleep 60 & echo $!; wait) & wait")
    grandchild = int(first_line(process))
    started = start_time(process.pid)
    assert started is not None
    kill_group(process.pid, started)
    assert process.wait(10) == -signal.SIGKILL
    until(lambda: gone(grandchild))


def test_a_group_under_a_reused_number_is_left_alone(spawn: Spawn) -> None:
    process = spawn("echo; sleep 60")
    first_line(process)
    started = start_time(process.pid)
    assert started is not None
    kill_group(process.pid, started - 1)
    assert process.poll() is None


def test_a_signal_to_a_group_that_is_gone_is_no_error(spawn: Spawn) -> None:
    process = spawn("exit 0")
    process.wait()
    signal_group(process.pid, signal.SIGTERM)


def test_heirs_of_a_cluster_end_wherever_they_went_and_those_of_others_stay(
    spawn: Spawn, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    here = {"GPUCLUSTER_DIRECTORY": str(tmp_path / "link" / "pr0ces")}
    mine = spawn("echo; exec sleep 60", GPUCLUSTER_WORKER="gpc-pr0ces-1_0", **here)
    others = [
        spawn("echo; exec sleep 60", GPUCLUSTER_WORKER="gpc-abc124-1_0", **here),
        spawn("echo; exec sleep 60", OTHER="gpc-pr0ces-1_0", **here),
        spawn("echo; exec sleep 60", GPUCLUSTER_WORKER="gpc-pr0ces-1_0"),
        spawn(
            "echo; exec sleep 60",
            GPUCLUSTER_WORKER="gpc-pr0ces-1_0",
            GPUCLUSTER_DIRECTORY=str(tmp_path / "elsewhere" / "pr0ces"),
        ),
    ]
    for process in (mine, *others):
        first_line(process)
    end_leftovers(tmp_path / "pr0ces")
    assert mine.wait(10) == -signal.SIGKILL
    assert all(process.poll() is None for process in others)


def test_the_module_needs_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; import jupyter_gpucluster.host.processes; "
        "assert not {'distributed', 'pydantic', 'psutil'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
