"""The command ``doctor`` as it is typed, on this machine and with commands of our own making."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.cli import perform
from jupyter_gpucluster.cli.terminal import Terminal
from jupyter_gpucluster.doctor.cluster import compare_versions
from jupyter_gpucluster.doctor.findings import Result
from jupyter_gpucluster.doctor.prepare import job_files
from tests.cli.doubles import Desk, InMemoryClusters, a_view
from tests.commands import put_command

SLURM = "backend: slurm\nnetwork: {interface: lo}\njob: {cpus: 1, walltime: 5 min, queue: cpu}"


def put_slurm(home: Path, monkeypatch: pytest.MonkeyPatch, sbatch: str = "exit 0") -> Path:
    """Put commands of Slurm before the machine's; return where sbatch writes its arguments."""
    for program in ("squeue", "scancel", "sinfo"):
        put_command(home, monkeypatch, program, "exit 0")
    return put_command(home, monkeypatch, "sbatch", sbatch)


def types(*words: str) -> tuple[int, Any, str]:
    """Type a command; return its exit code, its document and what went beside it."""
    out, err = io.StringIO(), io.StringIO()
    code = perform([*words, "--json"], Terminal(out=out, err=err))
    return code, json.loads(out.getvalue()), err.getvalue()


def checks(document: Any) -> dict[str, Any]:
    return {check["check"]: check for check in document["checks"]}


def write_profile(home: Path, name: str, text: str) -> str:
    path = home / "data" / "gpucluster" / "profiles" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"title: A site\n{text}\n")
    return name


def test_this_machine_needs_no_profile(home: Path) -> None:
    code, told, _ = types("doctor")
    assert (code, told["subject"]) == (0, "this machine")
    assert {"profiles", "GPUs here", "cluster directory", "open files"} <= checks(told).keys()
    assert not (home / "data" / "gpucluster").exists()


def test_the_local_profile_is_fine_here(home: Path) -> None:
    code, told, _ = types("doctor", "local")
    found = checks(told)
    assert (code, told["result"]) == (0, "ok")
    assert "distributed imported in" in found["imports here"]["found"]
    assert "network here" not in found


def test_a_directory_that_others_may_write_to_is_a_failed_check(home: Path) -> None:
    root = home / "data" / "gpucluster" / "clusters"
    root.mkdir(parents=True)
    root.chmod(0o777)
    code, told, _ = types("doctor", "local")
    assert code == 1
    assert "writable by others" in checks(told)["cluster directory"]["found"]


def test_a_profile_that_cannot_be_read_is_a_failed_check(home: Path) -> None:
    code, told, _ = types("doctor", write_profile(home, "site", "backend: slurn"))
    assert code == 1
    assert checks(told)["profile"]["result"] == "failed"
    assert types("doctor")[0] == 1


def test_a_value_that_may_be_meant_otherwise_is_a_warning(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_slurm(home, monkeypatch)
    name = write_profile(home, "site", SLURM.replace("5 min", "24"))
    code, told, _ = types("doctor", name)
    found = checks(told)["profile files"]
    assert (code, found["result"]) == (0, "warning")
    assert "site.yaml:4:26: `job.walltime`: 24 has no unit" in found["found"]


def test_an_option_that_is_missing_is_told_beside_all_that_can_be_looked_at(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "sbatch: Job 7 to start at 2026-01-02T03:04:05 using 1 processors on nodes c1"
    calls = put_slurm(home, monkeypatch, f"echo '{words}' >&2")
    text = SLURM.replace("queue: cpu", 'queue: cpu, account: "{account}"')
    options = "\noptions: {account: {type: string, required: true}}"
    name = write_profile(home, "site", text + options)
    code, told, _ = types("doctor", name)
    assert code == 1
    assert "`account` is required" in checks(told)["profile"]["found"]
    assert checks(told)["batch system"]["result"] == "ok"
    code, told, _ = types("doctor", name, "--option", "account=abc")
    assert (code, checks(told)["profile"]["result"]) == (0, "ok")
    assert "would accept the job: Job 7 to start at 2026" in checks(told)["submission"]["found"]
    [call] = calls.read_text().splitlines()
    assert call.startswith("--test-only ")


def test_a_queueing_system_that_does_not_answer_is_told_in_its_own_words(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "squeue: error: Unable to contact slurm controller (connect failure)"
    put_command(home, monkeypatch, "squeue", f"echo '{said}' >&2; exit 1")
    calls = [put_command(home, monkeypatch, program, "exit 0") for program in ("sbatch", "scancel")]
    code, told, _ = types("doctor", write_profile(home, "site", SLURM), "--job")
    found = checks(told)
    assert code == 1
    assert said in found["batch system"]["evidence"]
    assert "Not submitted" in found["probe job"]["found"]
    assert not any(path.exists() for path in calls)


def test_a_refused_job_leaves_its_reason_and_no_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "sbatch: error: invalid partition specified: cpu"
    put_slurm(home, monkeypatch, f"echo '{said}' >&2; exit 1")
    code, told, err = types("doctor", write_profile(home, "site", SLURM), "--job")
    assert (code, err) == (1, "")
    assert said in checks(told)["probe job"]["evidence"]
    assert list((home / "data" / "gpucluster" / "doctor").iterdir()) == []


def test_who_interrupts_a_check_is_told_of_a_job_that_could_not_be_cancelled(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, once = home / "queue", home / "once"
    put_command(
        home,
        monkeypatch,
        "sbatch",
        'for script; do :; done; mark=$(basename "$script" .sh)\n'
        f'echo "77_0|PENDING|Resources||N/A|N/A|0|$mark" >{queue}; echo 77',
    )
    interrupt = f"[ -e {once} ] || {{ touch {once}; kill -INT $PPID; }}"
    put_command(home, monkeypatch, "squeue", f"[ -e {queue} ] || exit 0; cat {queue}; {interrupt}")
    put_command(home, monkeypatch, "scancel", "exit 1")
    err = io.StringIO()
    words = ["doctor", write_profile(home, "site", SLURM), "--job"]
    with pytest.raises(KeyboardInterrupt):
        perform(words, Terminal(out=io.StringIO(), err=err))
    assert "scancel 77_0" in err.getvalue()
    # The hidden files count the commands of the last minute.
    left = (home / "data" / "gpucluster" / "doctor").iterdir()
    assert [path for path in left if not path.name.startswith(".slurm-")] == []


def test_files_that_another_check_takes_away_meanwhile_are_no_trouble(tmp_path: Path) -> None:
    place = tmp_path / "doctor"
    place.mkdir(mode=0o700)
    (place / "gone").symlink_to("nowhere")
    with job_files(tmp_path / "clusters") as directory:
        assert directory.path.parent == place


@pytest.mark.parametrize("answer, words", [("n", "Not submitted."), ("y", "invalid partition")])
def test_the_cost_of_a_job_is_named_and_the_user_asked_before_it_is_submitted(
    home: Path, monkeypatch: pytest.MonkeyPatch, answer: str, words: str
) -> None:
    calls = put_slurm(home, monkeypatch, "echo 'invalid partition' >&2; exit 1")
    options = "\noptions: {gpus: {type: integer, minimum: 1, maximum: 8, default: 4}}"
    name = write_profile(home, "site", SLURM.replace("queue: cpu", "queue: gpu") + options)
    asked = []

    def answers(terminal: Terminal, question: str) -> str:
        asked.append(question)
        return answer

    monkeypatch.setattr(Terminal, "ask", answers)
    _, told, _ = types("doctor", name, "--job")
    assert asked == ["Submit a job of 1 GPU for 5 min at most, queue gpu? [y/N] "]
    finding = checks(told)["probe job"]
    assert words in finding["found"] + finding["evidence"]
    assert calls.exists() == (answer == "y")
    types("doctor", name, "--job", "--yes")
    assert len(asked) == 1


@pytest.mark.parametrize(
    "words, locked, changed",
    [
        (("--fix", "--yes"), "", True),
        (("--fix",), "", False),  # no terminal: the change is shown only
        (("--fix", "--yes"), "locked: [head]", False),
    ],
)
def test_a_value_that_a_check_found_is_written_and_the_rest_of_the_file_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], locked: str, changed: bool
) -> None:
    put_slurm(home, monkeypatch)
    monkeypatch.setattr("jupyter_gpucluster.node.probe.interfaces", lambda: {"ib0": "10.0.0.1"})
    text = SLURM.replace("network: {interface: lo}", "head:\n  interface: old0  # its reason")
    name = write_profile(home, "site", f"# keep this\n{text}\n{locked}")
    file = home / "data" / "gpucluster" / "profiles" / "site.yaml"
    before = file.read_text()
    out, err = io.StringIO(), io.StringIO()
    perform(["doctor", name, *words], Terminal(out=out, err=err))
    assert ("+  interface: ib0" in err.getvalue()) == (not locked)
    expected = before.replace("interface: old0  #", "interface: ib0   #") if changed else before
    assert file.read_text().split() == expected.split()
    assert "# keep this" in file.read_text()
    copy = file.with_name("site.yaml.bak")
    assert (copy.read_text() if copy.exists() else before) == before
    assert copy.exists() == changed


@pytest.mark.parametrize(
    "words, message",
    [
        (("nosuch",), "no profile and no cluster named 'nosuch'"),
        (("local", "--job"), "submits no jobs"),
        (("--job",), "needs a profile"),
    ],
)
def test_what_cannot_be_examined_is_wrong_usage(
    home: Path, words: tuple[str, ...], message: str
) -> None:
    code, told, _ = types("doctor", *words)
    assert code == 2
    assert message in told["message"]


def test_a_scheduler_of_somebody_else_is_called(home: Path) -> None:
    text = "backend: existing\nexisting: {address: 'tcp://127.0.0.1:1'}"
    code, told, _ = types("doctor", write_profile(home, "theirs", text))
    assert code == 1
    assert "tcp://127.0.0.1:1 cannot be reached" in checks(told)["scheduler"]["found"]


def test_a_cluster_that_has_ended_says_why(home: Path) -> None:
    from jupyter_gpucluster.core.cluster import Phase

    desk = Desk(InMemoryClusters(a_view("omega", Phase.FAILED)))
    assert desk.types("doctor", "omega") == 1
    assert desk.out.startswith("failed   cluster  omega waits for a free GPU.")


@pytest.mark.parametrize(
    "client, worker, result, words",
    [
        ({}, {}, Result.OK, "2 workers"),
        ({"python": "3.11.9.final.0"}, {}, Result.OK, "2 workers"),
        ({"dask": "2026.7.1"}, {}, Result.FAILED, "dask 2026.7.1 in this process; dask 2026.8.0"),
        ({}, {"numpy": "1.26"}, Result.WARNING, "numpy 2.0 in this process and scheduler"),
    ],
)
def test_versions_of_client_scheduler_and_workers_are_compared(
    client: dict[str, str], worker: dict[str, str], result: Result, words: str
) -> None:
    usual = {"python": "3.11.7.final.0", "dask": "2026.8.0", "distributed": "2026.8.0"}
    usual["numpy"] = "2.0"
    finding = compare_versions(
        {**usual, **client}, usual, [{**usual, **worker}, {**usual, **worker}]
    )
    assert (finding.result, words in finding.found) == (result, True)
