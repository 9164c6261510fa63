"""Commands at the edge: what they answer, that they do not, and how often they are asked."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import cancel_command, find_backend
from jupyter_gpucluster.batch import queue as queue_module
from jupyter_gpucluster.batch.local import Local
from jupyter_gpucluster.batch.queue import (
    JobServerRunner,
    ProcessRunner,
    Queue,
    personal_settings,
    user_name,
)
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable
from jupyter_gpucluster.core.job import CommandResult, JobState, Submission
from jupyter_gpucluster.head import local_scheduler
from jupyter_gpucluster.host.processes import start_time
from tests.commands import put_command
from tests.waiting import until

pytestmark = pytest.mark.slow


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


# Commands as processes.


@pytest.mark.parametrize(
    "argv,code,stdout,stderr",
    [
        (python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), 3,
         "out\n", "err\n"),
        (["/bin/sh", "-c", "kill -9 $$"], -signal.SIGKILL, "", ""),
        (["printf", "\\377\\376 ok"], 0, "\ufffd\ufffd ok", ""),
        (["/no/such/sbatch", "x"], 127, "", "/no/such/sbatch: No such file or directory"),
        # A command that asks for input gets an end of file.
        (python("import sys; print(repr(sys.stdin.read()))"), 0, "''\n", ""),
        (python("print('x' * 5_000_000)"), 0, "x" * 5_000_000 + "\n", ""),
    ],
    ids=["exit code", "signal", "no text", "no command", "input", "flood"],
)  # fmt: skip
async def test_output_and_code_of_a_command_are_kept_apart(
    argv: list[str], code: int, stdout: str, stderr: str
) -> None:
    assert await ProcessRunner().run(argv) == CommandResult(tuple(argv), code, stdout, stderr)


async def test_a_command_that_may_not_be_run_is_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    result = await ProcessRunner().run([str(tmp_path / "sbatch")])
    assert result.exit_code == 127
    assert "Permission denied" in result.stderr


async def test_a_command_that_hangs_counts_as_unanswered_and_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "COMMAND_SECONDS", 1.0)
    script = f"trap '' TERM; sleep 60 & echo $! $$ >{tmp_path}/pids; wait"
    result = await ProcessRunner().run(["/bin/sh", "-c", script])
    assert result.exit_code is None
    pids = [int(word) for word in (tmp_path / "pids").read_text().split()]
    until(lambda: all(start_time(pid) is None for pid in pids))


async def test_commands_speak_english_whatever_the_user_speaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    result = await ProcessRunner().run(["sh", "-c", "echo $LC_ALL"])
    assert result.stdout == "C\n"


async def test_arguments_reach_a_command_as_they_are_without_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_command(tmp_path, monkeypatch, "tell", 'for a; do echo "<$a>"; done')
    hostile = ["$HOME", "a b", "'", '"', "; touch /tmp/x", "*", "\n"]
    result = await ProcessRunner(os.environ).run(["tell", *hostile])
    assert result.stdout == "".join(f"<{argument}>\n" for argument in hostile)


# The job server.

PROGRAM = Path(local_scheduler.__file__).with_name("__main__.py")


class Burial:
    """Counts the job servers that were found dead."""

    count = 0

    def __call__(self) -> None:
        self.count += 1


@asynccontextmanager
async def a_job_server(
    home: Path, clean_up: Callable[[], None] = lambda: None
) -> AsyncIterator[JobServerRunner]:
    """Run a job server for as long as the block lasts."""
    logs = home / "abc123" / "logs"
    logs.mkdir(parents=True)

    def command(channel: int) -> list[str]:
        return [sys.executable, "-P", str(PROGRAM), "jobs", "--channel", str(channel),
                "--logs", str(logs), "--scratch", str(home / "scratch")]  # fmt: skip

    made = JobServerRunner(command, os.environ, clean_up)
    try:
        yield made
    finally:
        await made.close()


def a_submission(tmp_path: Path, script: str, count: int = 1, gpus: int = 0) -> Submission:
    path = tmp_path / "job.sh"
    path.write_text(script)
    return Submission("gpc-abc123-1", str(path), count, gpus=gpus)


def test_a_user_without_a_name_goes_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert user_name() == str(os.geteuid())


async def test_jobs_are_submitted_listed_and_cancelled_through_the_dialect(tmp_path: Path) -> None:
    async with a_job_server(tmp_path) as runner:
        queue = Queue(Local(), runner)
        ids = await queue.submit(a_submission(tmp_path, "exec sleep 60", count=2))
        listed = await queue.poll(ids)
        assert listed is not None
        assert [(listed[id].mark, listed[id].task) for id in ids] == [
            ("gpc-abc123-1", 0),
            ("gpc-abc123-1", 1),
        ]
        assert {status.state for status in listed.values()} == {JobState.RUNNING}
        await queue.cancel(ids[:1])
        while (await queue.poll(ids) or {})[ids[0]].state is JobState.RUNNING:
            pass
        listed = await queue.poll(ids)
        assert listed is not None
        assert listed[ids[0]].state is JobState.CANCELLED
        assert listed[ids[1]].state is JobState.RUNNING


async def test_a_refusal_is_told_in_the_job_server_s_words(tmp_path: Path) -> None:
    async with a_job_server(tmp_path) as runner:
        queue = Queue(Local(), runner)
        with pytest.raises(BackendError) as caught:
            await queue.submit(a_submission(tmp_path, "exit 0", gpus=1))
        assert "1 GPUs requested, 0 in use here" in caught.value.detail


async def test_a_dead_job_server_is_replaced_and_its_jobs_are_gone(tmp_path: Path) -> None:
    burial = Burial()
    async with a_job_server(tmp_path, burial) as runner:
        queue = Queue(Local(), runner)
        await queue.submit(a_submission(tmp_path, "exec sleep 60"))
        listed = await queue.poll([])
        assert listed is not None
        [status] = listed.values()
        runner.process.kill()
        assert await queue.poll([]) == {}
        assert burial.count == 1
        until(lambda: start_time(status.process[0]) is None)
        assert await queue.submit(a_submission(tmp_path, "exit 0"))


async def test_a_job_server_that_dies_of_every_request_is_given_up() -> None:
    runner = JobServerRunner(lambda channel: python("raise SystemExit(5)"), os.environ)
    result = await runner.run(["jobs", "status"])
    assert result.exit_code == 127
    assert "exit code 5" in result.stderr
    assert await Queue(Local(), runner).poll([]) is None
    await runner.close()


async def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_job_server(tmp_path) as runner:
        queue = Queue(Local(), runner)
        await queue.poll([])
        runner.process.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(queue_module, "COMMAND_SECONDS", 0.3)
        with pytest.raises(BackendUnavailable):
            await queue.submit(a_submission(tmp_path, "exec sleep 60"))
        monkeypatch.setattr(queue_module, "COMMAND_SECONDS", 30.0)
        runner.process.send_signal(signal.SIGCONT)
        listed = await queue.poll([])
        assert listed is not None
        assert [status.mark for status in listed.values()] == ["gpc-abc123-1"]


async def test_a_status_of_very_many_jobs_is_read_whole(tmp_path: Path) -> None:
    async with a_job_server(tmp_path) as runner:
        queue = Queue(Local(), runner)
        await queue.submit(a_submission(tmp_path, "exit 0", count=250))
        listed = await queue.poll([])
        assert listed is not None
        assert len(listed) == 250


async def test_closing_ends_the_job_server_and_its_jobs(tmp_path: Path) -> None:
    async with a_job_server(tmp_path) as runner:
        queue = Queue(Local(), runner)
        await queue.submit(a_submission(tmp_path, "exec sleep 60"))
        listed = await queue.poll([])
        assert listed is not None
        [status] = listed.values()
        await runner.close()
        assert runner.process.returncode == 0
        assert start_time(status.process[0]) is None


# What the queue makes of answers.


class Says:
    """Answers every command alike."""

    def __init__(self, exit_code: int | None) -> None:
        self.exit_code = exit_code

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        return CommandResult(tuple(argv), self.exit_code, "", "words")


async def test_the_profile_s_own_arguments_go_behind_the_command_s_name() -> None:
    class Notes(Says):
        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            asked.append(list(argv))
            return CommandResult(tuple(argv), 0, "12\n", "")

    asked: list[list[str]] = []
    queue = Queue(find_backend("slurm"), Notes(0), cancel_args=("--quiet",))
    sent = Submission("gpc-abc123-1", "/s.sh", arguments=("--comment", "it's; $HOME"))
    assert await queue.submit(sent) == ("12_0",)
    await queue.cancel(["12_0"])
    assert asked == [
        ["sbatch", "--comment", "it's; $HOME", "--parsable", "--array=0-0", "/s.sh"],
        ["scancel", "--quiet", "12_0"],
    ]


@pytest.mark.parametrize("exit_code", [None, 1, 127])
async def test_a_listing_that_fails_in_any_way_is_no_answer(exit_code: int | None) -> None:
    assert await Queue(Local(), Says(exit_code)).poll(["x"]) is None


async def test_a_lost_submission_and_a_refused_one_are_different_errors() -> None:
    asked = Submission("gpc-abc123-1", "/tmp/x.sh")
    with pytest.raises(BackendUnavailable):
        await Queue(Local(), Says(None)).submit(asked)
    with pytest.raises(BackendError) as caught:
        await Queue(Local(), Says(1)).submit(asked)
    assert not isinstance(caught.value, BackendUnavailable)


async def test_what_was_accepted_of_a_refused_submission_is_taken_back() -> None:
    class Quota:
        async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
            asked.append(list(argv))
            return CommandResult(tuple(argv), 1, "pod/gpc-abc123-1-0\n", "exceeded quota")

    asked: list[list[str]] = []
    queue = Queue(find_backend("kubernetes"), Quota(), cancel_args=("--namespace=small",))
    with pytest.raises(BackendError, match="exceeded quota"):
        await queue.submit(Submission("gpc-abc123-1", "/s.sh", 2))
    assert asked[-1] == cancel_command(queue.backend, ["gpc-abc123-1-0"], queue.cancel_args)
    assert len(asked) == 2


@pytest.mark.parametrize(
    "system, file, text, named",
    [
        ("sge", ".sge_qstat", "-l arch=none\n", True),
        ("sge", ".sge_qstat", "# -l arch=none\n\n", False),
        ("sge", ".sge_qstat", "", False),
        ("htcondor", ".condor/user_config", "SCHEDD_HOST = elsewhere\n", True),
        ("slurm", ".slurm/defaults", "sbatch:*:wait=\n", True),
    ],
)
async def test_an_answer_that_cannot_be_read_names_the_file_that_changes_commands(
    home: Path, monkeypatch: pytest.MonkeyPatch, system: str, file: str, text: str, named: bool
) -> None:
    monkeypatch.setenv("HOME", str(home))
    (home / file).parent.mkdir(exist_ok=True)
    (home / file).write_text(text)
    queue = Queue(find_backend(system), Says(1))
    assert await queue.poll(["7"]) is None
    assert (f"Your file ~/{file} may be the cause" in queue.fix) is named
    assert (personal_settings(queue.backend) != "") is named
