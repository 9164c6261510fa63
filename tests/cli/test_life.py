"""The life of a cluster from the command line, each command a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import CommandLine

pytestmark = pytest.mark.slow

SCRIPT = """
import os, sys, time
from distributed import Client, get_worker

def where():
    return os.path.basename(get_worker().local_directory).split("-")[0]

if __name__ == "__main__":
    client = Client()
    print(client.submit(where).result(), len(client.scheduler_info()["workers"]), *sys.argv[1:])
    sys.stdout.flush()
    time.sleep(float(os.environ.get("SCRIPT_SECONDS", "0")))
    sys.exit(7)
"""


def test_a_cluster_lives_through_all_commands(gpucluster: CommandLine) -> None:
    started = gpucluster("start", "local", "--name", "alpha", "--workers", "2", "--wait", "60")
    assert (started.code, started.out.splitlines()[0]) == (
        0,
        "alpha: running: 2 of 2 workers ready",
    )
    assert started.err.splitlines()[0] == "started cluster alpha"
    assert started.out.splitlines()[0] not in started.err

    [view] = gpucluster("list", "--json").json["clusters"]
    assert (view["name"], view["phase"], view["workers"]["ready"]) == ("alpha", "running", 2)

    taken = gpucluster("start", "local", "--name", "alpha")
    assert (taken.code, "exists already" in taken.err) == (1, True)

    scaled = gpucluster("scale", "alpha", "--workers", "1", "--wait", "60")
    assert (scaled.code, "scaling to 1 worker" in scaled.out) == (0, True)
    too_many = gpucluster("scale", "alpha", "--workers", "100000")
    assert (too_many.code, "Traceback" in too_many.err) == (2, False)
    adaptive = gpucluster("scale", "alpha", "--adapt", "1", "2", "--json")
    assert adaptive.json["target"] == {"minimum": 1, "maximum": 2}

    examined = gpucluster("doctor", "alpha", "--json")
    assert (examined.code, examined.json["result"]) == (0, "ok")
    names = {each["check"] for each in examined.json["checks"]}
    assert names == {"cluster", "scheduler", "versions"}

    shown = gpucluster("show", "alpha", "--json").json
    assert {job["state"] for job in shown["jobs"]} <= {"running", "cancelled", "ending", "done"}
    job = f"{shown['jobs'][0]['mark']}_{shown['jobs'][0]['task']}"
    assert f"==> {job}.log <==" in gpucluster("logs", "alpha", "--job", job).out
    assert "==> head.log <==" in gpucluster("logs", "alpha").out
    assert "alpha is running" in gpucluster("why", "alpha").out

    inside = gpucluster("shell", "alpha", "--", "sh", "-c", "echo $OMP_NUM_THREADS; exit 5")
    assert (inside.code, inside.out) == (5, "1\n")
    assert inside.err.startswith("runs: /bin/bash /")

    code = gpucluster("connect", "alpha", "--form", "dask").out
    (gpucluster.directory / "client.py").write_text(
        code.removesuffix("client\n") + "\nprint(client.submit(sum, [1, 2]).result())\n"
    )
    client = [sys.executable, str(gpucluster.directory / "client.py")]
    assert subprocess.run(client, capture_output=True, check=True).stdout == b"3\n"

    stopped = gpucluster("stop", "alpha", "--wait", "60")
    assert (stopped.code, stopped.out) == (0, "alpha: Stopped by you.\n")
    assert gpucluster("list").out == "no clusters; list --all shows those that ended\n"
    assert "alpha" in gpucluster("list", "--all").out
    assert gpucluster("forget", "alpha").code == 0
    assert gpucluster("list", "--all").out == "no clusters\n"


def test_a_wait_that_is_too_short_exits_with_3_and_the_cluster_goes_on(
    gpucluster: CommandLine,
) -> None:
    answer = gpucluster("start", "local", "--workers", "1", "--wait", "0", "--json")
    assert answer.code == 3
    assert "not ready after 0 s" in answer.json["message"]
    name = answer.json["cluster"]["name"]
    assert gpucluster("scale", name, "--workers", "1", "--wait", "60").code == 0


def test_ctrl_c_while_waiting_leaves_the_cluster(gpucluster: CommandLine) -> None:
    with gpucluster.begin("start", "local", "--workers", "1", "--wait") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "started cluster local-1\n"
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    # A fast machine may have been ready before.
    if process.returncode != 0:
        assert process.returncode == 130
        assert "cluster local-1 continues." in err
    assert "Traceback" not in err
    assert gpucluster("scale", "local-1", "--workers", "1", "--wait", "60").code == 0


def test_logs_are_followed_until_the_cluster_ends(gpucluster: CommandLine) -> None:
    gpucluster("start", "local", "--name", "alpha", "--workers", "1", "--wait", "60")
    with gpucluster.begin("logs", "alpha", "--follow") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "==> head.log <==\n"
        gpucluster("stop", "alpha", "--wait", "60")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.endswith("\nalpha has ended.\n")


def test_run_gives_the_script_a_client_and_passes_its_exit_code_on(gpucluster: CommandLine) -> None:
    (gpucluster.directory / "script.py").write_text(SCRIPT)
    answer = gpucluster("run", "script.py", "--workers", "2", "--", "--workers", "b c")
    assert (answer.code, answer.out) == (7, "worker 2 --workers b c\n")
    [view] = gpucluster("list", "--all", "--json").json["clusters"]
    assert (view["phase"], view["reason"]) == ("stopped", "The command that started it has ended.")


PLAIN = """
import multiprocessing, os, sys
import dask

def where():
    from distributed import get_worker
    try:
        return os.path.basename(get_worker().local_directory).split("-")[0]
    except ValueError:
        return "here"

@dask.delayed
def task(number):
    return where()

def computed(number):
    return dask.compute(task(number), scheduler=None)[0]

if __name__ == "__main__":
    print(computed(1), dask.delayed(sum)([1, 2]).compute())
    for how in ("spawn", "fork"):
        with multiprocessing.get_context(how).Pool(1) as pool:
            print(how, pool.map(computed, [1])[0])
"""


def test_a_script_without_a_client_computes_on_the_cluster_and_its_children_do_not(
    gpucluster: CommandLine,
) -> None:
    (gpucluster.directory / "script.py").write_text(PLAIN)
    answer = gpucluster("run", "script.py", "--workers", "1")
    assert answer.code == 0, answer.err
    assert answer.out.splitlines() == ["worker 3", "spawn here", "fork here"]
    assert "script.py runs on this host (" in answer.err
    assert "its Dask work goes to cluster local-1 (1 worker)" in answer.err
    assert "cluster local-1 ran 2 tasks" in answer.err
    assert "warning" not in answer.err


def test_a_script_that_used_no_worker_is_reported(gpucluster: CommandLine) -> None:
    text = "def main():\n    print('done')\n\nif __name__ == '__main__':\n    main()\n    1 / 0\n"
    (gpucluster.directory / "script.py").write_text(text)
    answer = gpucluster("run", "script.py", "--workers", "1")
    assert (answer.code, answer.out) == (1, "done\n")
    assert "warning: cluster local-1 ran no task; the script did its work on this host." in (
        answer.err
    )
    [_, first, *_] = answer.err.partition("Traceback")[2].splitlines()
    assert first.startswith('  File "script.py", line 6')


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_run_ends_script_and_cluster(
    gpucluster: CommandLine, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("SCRIPT_SECONDS", "600")
    (gpucluster.directory / "script.py").write_text(SCRIPT)
    with gpucluster.begin("run", "script.py", "--workers", "1") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("worker 1")
        os.kill(process.pid, number)
        process.communicate(timeout=60)
    assert process.returncode in (128 + number, 1)  # a script that catches it chooses its own
    [view] = gpucluster("list", "--all", "--json").json["clusters"]
    assert view["phase"] == "stopped"


def test_bench_starts_measures_writes_and_stops(gpucluster: CommandLine) -> None:
    report = gpucluster.directory / "report.json"
    size = ["--shape", "400x200", "--chunks", "100"]
    answer = gpucluster("bench", "sum", "--workers", "1", "--json", str(report), *size)
    assert answer.code == 0, answer.err
    assert "Using Distributed Dask" in answer.out
    assert json.loads(report.read_text())["workers"] == 1
    assert json.loads(report.read_text())["start_seconds"] > 0
    again = gpucluster("bench", "sum", "--compare", str(report), str(report))
    assert "speed-up" in again.out
    [view] = gpucluster("list", "--all", "--json").json["clusters"]
    assert view["phase"] == "stopped"


def test_nothing_is_left_of_a_start_that_cannot_be(gpucluster: CommandLine, root: Path) -> None:
    for words in (
        ["start", "lokal"],
        ["start", "local", "--workers", "100000"],
        ["start", "local", "--name", "../x"],
        ["start", "local", "--name", "a\nb"],
        ["start", "local", "--name", "x" * 300],
        ["start", "local", "--python", "/no/such/python"],
        ["start", "local", "--kernel", "no-such-kernel"],
        ["start", "local", "--option", "thread=1"],
        ["start", "local", "--option", "threads=0"],
        ["start", "local", "--gpus", "1"],
    ):
        answer = gpucluster(*words)
        assert answer.code == 2, words
        assert answer.err.startswith("error: "), words
        assert "Traceback" not in answer.err
        assert len(answer.err.splitlines()) <= 3, answer.err
    assert not list(root.glob("*")) or [path.name for path in root.iterdir()] == [".lock"]
