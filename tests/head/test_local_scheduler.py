"""The job server of one machine: real processes behind a real socket pair."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.head import local_scheduler
from jupyter_gpucluster.host.processes import start_time
from tests.waiting import until

PROGRAM = Path(local_scheduler.__file__).with_name("__main__.py")
MARK = "gpc-jobsrv-1"
STUBBORN = "trap '' TERM\nwhile :; do sleep 1; done"
HOLDS_THE_GIL = (
    f"exec {sys.executable} -c 'import re, signal; "
    "signal.signal(signal.SIGTERM, lambda *_: None); print(1, flush=True); "
    're.match(r"(a+)+$", "a" * 60 + "b")\''
)


class Server:
    """A job server and our end of its channel."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.logs, self.scratch = directory / "jobsrv" / "logs", directory / "scratch"
        self.logs.mkdir(parents=True)
        self.scratch.mkdir()
        self.channel, theirs = socket.socketpair()
        self.channel.settimeout(30)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", str(PROGRAM), "jobs", "--channel", str(theirs.fileno()),
                 "--logs", str(self.logs), "--scratch", str(self.scratch), *options],
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )  # fmt: skip
        self.answers = self.channel.makefile("rb")
        self.number = 0

    def tell(self, line: bytes) -> dict[str, Any]:
        """Send a line as it is and return the answer."""
        self.channel.sendall(line + b"\n")
        answer: dict[str, Any] = json.loads(self.answers.readline())
        return answer

    def ask(self, *argv: str) -> Any:
        """Send a command that must be taken, and return what it says."""
        self.number += 1
        request = {"number": self.number, "argv": ["jobs", *argv]}
        answer = self.tell(json.dumps(request).encode())
        assert answer["number"] == self.number
        assert answer["exit_code"] == 0, answer
        return json.loads(answer["stdout"])

    def refusal(self, *argv: str) -> str:
        """Send a command that must be refused, and return why."""
        answer = self.tell(json.dumps({"number": 0, "argv": ["jobs", *argv]}).encode())
        assert answer["exit_code"] == 1, answer
        return str(answer["stderr"])

    def submit(self, script: str, *options: str, mark: str = MARK) -> list[str]:
        """Submit a shell script."""
        path = self.logs.parent / f"{mark}.sh"
        path.write_text(script)
        ids: list[str] = self.ask("submit", "--mark", mark, *options, str(path))
        return ids

    def task(self, id: str = f"{MARK}_0") -> dict[str, Any]:
        """Return the status of one job."""
        [found] = [task for task in self.ask("status") if task["id"] == id]
        return dict(found)

    def log(self, id: str = f"{MARK}_0") -> str:
        """Return what a job has written."""
        path = self.logs / f"{id}.log"
        return path.read_text() if path.exists() else ""

    def hang_up(self) -> int:
        """Close the channel, as the kernel does for a head that dies; return the exit code."""
        self.answers.close()
        self.channel.close()
        return self.process.wait(30)


Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    started: list[Server] = []

    def start(*options: str) -> Server:
        started.append(Server(tmp_path, *options))
        return started[-1]

    yield start
    for server in started:
        server.hang_up()


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve()


def gone(pid: int) -> bool:
    return start_time(pid) is None


@pytest.mark.slow
class TestProcesses:
    """Tests with real processes."""

    def test_jobs_run_know_their_names_and_log_to_private_files(self, server: Server) -> None:
        ids = server.submit("echo I am $GPUCLUSTER_WORKER", "--count", "2")
        assert ids == [f"{MARK}_0", f"{MARK}_1"]
        until(lambda: all(task["state"] == "ended" for task in server.ask("status")))
        for number, id in enumerate(ids):
            task = server.task(id)
            assert (task["mark"], task["number"], task["exit_code"]) == (MARK, number, 0)
            assert task["started"] <= task["ended"]
            assert server.log(id) == f"I am {id}\n"
            assert stat.S_IMODE((server.logs / f"{id}.log").stat().st_mode) == 0o600

    def test_exit_codes_and_signals_differ(self, server: Server) -> None:
        server.submit("exit 7")
        server.submit("kill -SEGV $$", mark="gpc-jobsrv-2")
        server.submit("exec /no/such/program", mark="gpc-jobsrv-3")
        until(lambda: all(task["state"] == "ended" for task in server.ask("status")))
        codes = {task["mark"]: task["exit_code"] for task in server.ask("status")}
        assert codes == {MARK: 7, "gpc-jobsrv-2": -signal.SIGSEGV, "gpc-jobsrv-3": 127}
        assert "/no/such/program" in server.log("gpc-jobsrv-3_0")

    def test_a_running_job_is_a_process_that_can_be_identified(self, server: Server) -> None:
        server.submit("exec sleep 60")
        task = server.task()
        assert task["state"] == "running"
        assert start_time(task["pid"]) == task["started_ticks"]
        until(lambda: os.getpgid(task["pid"]) == task["pid"])

    def test_a_cancelled_job_is_asked_to_end(self, server: Server) -> None:
        server.submit("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
        until(lambda: "ready" in server.log())
        assert server.ask("cancel", f"{MARK}_0", "gpc-nobody-1_0") == [f"{MARK}_0"]
        until(lambda: server.task()["state"] == "ended")
        assert server.task()["reason"] == "cancelled"
        assert server.task()["exit_code"] == 0
        assert "bye" in server.log()

    def test_a_job_that_has_only_just_begun_is_asked_too(self, server: Server) -> None:
        for number in range(10):
            mark = f"gpc-jobsrv-{number}"
            server.submit("exec sleep 60", mark=mark)
            server.ask("cancel", f"{mark}_0")
        until(lambda: all(task["state"] == "ended" for task in server.ask("status")))
        assert {task["exit_code"] for task in server.ask("status")} == {-signal.SIGTERM}

    def test_a_job_that_ignores_the_request_is_ended(self, server: Server) -> None:
        server.submit(f"echo ready; {STUBBORN}")
        until(lambda: "ready" in server.log())
        server.ask("cancel", f"{MARK}_0")
        server.ask("cancel", f"{MARK}_0")
        until(lambda: server.task()["state"] == "ended")
        assert server.task()["exit_code"] == -signal.SIGKILL
        assert server.task()["reason"] == "cancelled"

    def test_what_a_job_leaves_behind_in_its_group_ends_with_it(self, server: Server) -> None:
        server.submit("(trap '' TERM; exec sleep 60) & echo $!")
        until(lambda: server.task()["state"] == "ended")
        child = int(server.log())
        until(lambda: gone(child))

    def test_gpus_are_given_out_once_and_jobs_wait_for_them(self, serve: Serve) -> None:
        server = serve("--devices", "0,GPU-8a56")
        assert server.ask("capacity") == {"free": 2, "total": 2}
        script = "echo $CUDA_VISIBLE_DEVICES; exec sleep 60"
        server.submit(script, "--count", "3", "--gpus", "1")
        states = [(task["state"], task["devices"]) for task in server.ask("status")]
        assert states == [("running", ["0"]), ("running", ["GPU-8a56"]), ("pending", [])]
        assert server.ask("capacity") == {"free": 0, "total": 2}
        server.ask("cancel", f"{MARK}_1")
        until(lambda: server.task(f"{MARK}_2")["state"] == "running")
        assert server.task(f"{MARK}_2")["devices"] == ["GPU-8a56"]
        until(lambda: server.log(f"{MARK}_2") == "GPU-8a56\n")
        assert server.log(f"{MARK}_0") == "0\n"

    def test_a_waiting_job_is_cancelled_without_ever_starting(self, serve: Serve) -> None:
        server = serve("--devices", "0")
        server.submit("exec sleep 60", "--count", "2", "--gpus", "1")
        server.ask("cancel", f"{MARK}_1")
        task = server.task(f"{MARK}_1")
        assert (task["state"], task["reason"], task["pid"]) == ("ended", "cancelled", 0)

    def test_a_job_without_gpus_keeps_the_variable_as_it_is(
        self, serve: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
        server = serve()
        server.submit("echo $CUDA_VISIBLE_DEVICES")
        until(lambda: server.log() == "-1\n")

    def test_a_limit_changes_unless_the_job_would_end_at_once(self, server: Server) -> None:
        big = f"exec {sys.executable} -c 'x = bytearray(400 << 20); import time; time.sleep(60)'"
        [large] = server.submit(big, "--memory", str(1 << 40))
        [small] = server.submit("exec sleep 60", "--memory", str(1 << 40), mark="gpc-jobsrv-2")
        until(lambda: local_scheduler.resident_bytes(server.task(large)["pid"]) > 300 << 20)
        ids = (large, small, "gpc-jobsrv-9_0")
        assert server.ask("limit", "--memory", str(200 << 20), *ids) == [large]
        time.sleep(3 * local_scheduler.MEMORY_CHECK_SECONDS)
        assert [task["state"] for task in server.ask("status")] == ["running", "running"]
        assert server.ask("limit", "--memory", "100", small) == [small]
        assert server.ask("limit", "--memory", str(1 << 40), *ids) == []

    def test_a_job_above_its_memory_is_ended_and_the_others_go_on(self, server: Server) -> None:
        big = f"exec {sys.executable} -c 'import time; b = b\"x\" * (200 << 20); time.sleep(60)'"
        server.submit(big, "--memory", str(100 << 20))
        server.submit("exec sleep 60", "--memory", str(100 << 20), mark="gpc-jobsrv-2")
        until(lambda: server.task()["state"] == "ended")
        assert server.task()["reason"] == "memory"
        assert server.task()["exit_code"] == -signal.SIGKILL
        assert server.task("gpc-jobsrv-2_0")["state"] == "running"

    def test_when_the_head_goes_everything_ends_and_the_scratch_directory_goes_too(
        self, serve: Serve
    ) -> None:
        server = serve("--devices", "0")
        (server.scratch / "spilled").write_text("data")
        away = "setsid sh -c 'echo $$; exec sleep 60' & (trap \"\" TERM; exec sleep 61) & echo $!"
        server.submit("exec sleep 60")
        server.submit(f"echo 1; {STUBBORN}", mark="gpc-jobsrv-2")
        server.submit(HOLDS_THE_GIL, mark="gpc-jobsrv-3")
        server.submit(f"{away}; {STUBBORN}", mark="gpc-jobsrv-4")
        server.submit("exec sleep 60", "--gpus", "1", "--count", "2", mark="gpc-jobsrv-5")
        until(lambda: len(server.log("gpc-jobsrv-4_0").split()) == 2)
        until(lambda: server.log("gpc-jobsrv-3_0") and server.log("gpc-jobsrv-2_0"))
        pids = [task["pid"] for task in server.ask("status") if task["pid"]]
        pids += [int(word) for word in server.log("gpc-jobsrv-4_0").split()]
        assert len(pids) == 7
        assert server.hang_up() == 0
        until(lambda: all(map(gone, pids)))
        assert not server.scratch.exists()

    def test_a_killed_job_server_takes_its_jobs_along(self, server: Server) -> None:
        server.submit(STUBBORN)
        pid = server.task()["pid"]
        server.process.kill()
        server.process.wait()
        until(lambda: gone(pid))

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_signals_meant_for_a_terminal_end_neither_it_nor_its_jobs(
        self, server: Server, number: signal.Signals
    ) -> None:
        server.submit("exec sleep 60")
        server.process.send_signal(number)
        assert server.task()["state"] == "running"
        assert server.process.poll() is None

    def test_signals_mean_to_a_job_what_they_mean_to_any_program(self, server: Server) -> None:
        server.submit("exec sleep 60")
        os.kill(server.task()["pid"], signal.SIGINT)
        until(lambda: server.task()["state"] == "ended")
        assert server.task()["exit_code"] == -signal.SIGINT

    def test_a_submission_sent_twice_runs_once(self, server: Server) -> None:
        server.submit("exec sleep 60")
        told = server.refusal("submit", "--mark", MARK, "/tmp/x.sh")
        assert "submitted before" in told
        assert len(server.ask("status")) == 1

    def test_more_gpus_than_there_are_will_never_come(self, server: Server) -> None:
        told = server.refusal("submit", "--mark", MARK, "--gpus", "1", "/tmp/x.sh")
        assert told == "1 GPUs requested, 0 in use here"
        assert server.ask("status") == []

    @pytest.mark.parametrize(
        "line",
        [
            b"",
            b"nonsense",
            b"\xff\xfe\x00",
            b"[]",
            b"5",
            b"{}",
            b'{"number": 1}',
            b'{"number": 1, "argv": 5}',
            b'{"number": 1, "argv": []}',
            b'{"number": 1, "argv": ["jobs", "dance"]}',
            b'{"number": 1, "argv": ["jobs", 5]}',
            b'{"number": 1, "argv": ["jobs", "submit"]}',
            b'{"number": 1, "argv": ["jobs", "submit", "--mark", "m", "--count", "x", "s"]}',
            b'{"number": 1, "argv": ["jobs", "submit", "--mark", "m", "--count", "0", "s"]}',
            b'{"number": 1, "argv": ["jobs", "submit", "--mark", "m", "--gpus", "-1", "s"]}',
            b'{"number": 1, "argv": ["jobs", "--help"]}',
            b'{"number": 1, "argv": ["jobs", "cancel"]}',
        ],
    )
    def test_a_request_that_makes_no_sense_is_refused_and_harms_nothing(
        self, server: Server, line: bytes
    ) -> None:
        server.submit("exec sleep 60")
        answer = server.tell(line)
        assert answer["exit_code"] == 1
        assert answer["stderr"]
        assert server.task()["state"] == "running"

    def test_requests_in_pieces_and_in_heaps_are_answered_one_by_one(self, server: Server) -> None:
        one, two = (
            json.dumps({"number": number, "argv": ["jobs", "capacity"]}).encode() + b"\n"
            for number in (1, 2)
        )
        server.channel.sendall(one[:10])
        assert server.process.poll() is None
        server.channel.sendall(one[10:] + two)
        assert [json.loads(server.answers.readline())["number"] for _ in range(2)] == [1, 2]


def test_a_machine_without_room_for_a_process_ends_the_job_and_only_the_last_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", full)
    monkeypatch.setattr(local_scheduler, "KEPT_TASKS", 3)
    mine, theirs = socket.socketpair()
    mine.close()
    server = local_scheduler.JobServer(theirs, tmp_path, tmp_path, [])
    for number in range(6):
        argv = ["jobs", "submit", "--mark", f"gpc-jobsrv-{number}", "/tmp/script.sh"]
        answer = server.answer(json.dumps({"number": 1, "argv": argv}).encode())
        assert answer["exit_code"] == 0
    assert list(server.tasks) == [f"gpc-jobsrv-{number}_0" for number in (3, 4, 5)]
    task = server.tasks["gpc-jobsrv-5_0"]
    assert task.state == "ended"
    assert task.reason == "no process: Resource temporarily unavailable"
    server.channel.close()
