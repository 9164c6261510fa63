"""Commands that the relay runs for a head, and those that it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import (
    BACKENDS,
    cancel_command,
    find_backend,
    on_this_machine,
    submit_command,
)
from jupyter_gpucluster.batch.kubernetes.dialect import Kubernetes
from jupyter_gpucluster.core.cluster import Phase, Process, Record, Spec, Target
from jupyter_gpucluster.core.job import (
    CommandResult,
    Job,
    JobShape,
    JobState,
    Submission,
)
from jupyter_gpucluster.core.serialize import from_json, to_json
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.processes import this_process
from jupyter_gpucluster.state.relay import answer, clean_up, permitted
from tests.commands import put_command

SYSTEMS = sorted(name for name in BACKENDS if not on_this_machine(name))


def cluster(root: Path, backend: str) -> tuple[ClusterDirectory, Record]:
    root.mkdir(parents=True)
    directory = ClusterDirectory(root / "abc123")
    directory.create()
    directory.relay.mkdir()
    (directory.jobs / "gpc-abc123-2.sh").write_text("#!/bin/bash\n#BSUB -J x\ntrue\n")
    record = Record(
        "abc123",
        "mine",
        Spec("p", "P", backend, "python"),
        Target(3, 3),
        0.0,
        jobs=(
            Job("gpc-abc123-1", 0, JobState.RUNNING, id="71"),
            Job("gpc-abc123-2", 0),
            Job("gpc-abc123-2", 1),
        ),
        head=this_process(),
    )
    directory.write_record(record)
    return directory, record


@pytest.mark.parametrize("backend", SYSTEMS)
def test_what_the_dialect_says_for_the_record_is_run_and_nothing_else(
    root: Path, backend: str
) -> None:
    directory, record = cluster(root, backend)
    dialect = find_backend(backend)
    script = directory.jobs / "gpc-abc123-2.sh"
    sent = Submission("gpc-abc123-2", str(script), 2, text=script.read_text())
    submit, stdin = dialect.submit(sent), dialect.stdin(sent)
    assert permitted(directory, record, submit, stdin)
    assert permitted(directory, record, dialect.status("me", ["71"]), "")
    for reads in (
        dialect.history(["71", "72"]),
        dialect.find(["gpc-abc123-1", "gpc-abc123-2"]),
        dialect.look_up("71"),
    ):
        assert reads is None or permitted(directory, record, reads, "")
    assert permitted(directory, record, dialect.cancel(["71"]), "")
    assert not permitted(directory, record, dialect.cancel(["72"]), "")
    assert not permitted(directory, record, dialect.cancel(["71", "72"]), "")
    assert not permitted(directory, record, [*dialect.cancel(["71"]), "--all"], "")
    for words in (["rm", "-r", "/"], ["sh", "-c", "rm -r /"], ["env", "A=B", "rm", "-r", "/"]):
        assert not permitted(directory, record, words, "")
    assert not permitted(directory, record, ["scontrol", "update", "JobId=71", "Priority=1"], "")
    assert not permitted(directory, record, [], "")
    other = replace(sent, script="/tmp/other.sh", text="#!/bin/bash\nfalse\n")
    assert not permitted(directory, record, dialect.submit(other), dialect.stdin(other))
    assert not permitted(directory, record, submit, f"{stdin}\nfalse")


@pytest.mark.parametrize("backend", SYSTEMS)
def test_the_profile_s_own_arguments_are_run_as_they_are_on_record(
    root: Path, backend: str
) -> None:
    directory, record = cluster(root, backend)
    job = JobShape(submit_args=("-name", "s; true"), cancel_args=("-name", "s; true"))
    record = replace(record, spec=replace(record.spec, job=job))
    dialect = find_backend(backend)
    script = directory.jobs / "gpc-abc123-2.sh"
    sent = Submission("gpc-abc123-2", str(script), 2, text=script.read_text())
    stdin = dialect.stdin(sent)
    for arguments, right in ((job.submit_args, True), ((), False), (("-name", "other"), False)):
        submit = submit_command(dialect, replace(sent, arguments=arguments))
        assert permitted(directory, record, submit, stdin) is right
        assert permitted(directory, record, cancel_command(dialect, ["71"], arguments), "") is right
    assert not permitted(directory, record, cancel_command(dialect, ["72"], job.cancel_args), "")


@pytest.mark.parametrize("failures,calls", [(0, 1), (1, 2), (9, 2)])
def test_the_pod_of_a_head_that_is_over_is_deleted_where_the_cluster_was_started(
    root: Path, monkeypatch: pytest.MonkeyPatch, failures: int, calls: int
) -> None:
    directory, record = cluster(root, "kubernetes")
    where = ("--context=far", "--namespace=physics")
    job = JobShape(account="physics", submit_args=where[:1], cancel_args=where)
    own = Job("gpc-abc123-0", 0, JobState.DONE, id="gpc-abc123-0-0", ended=1.0)
    spec = replace(record.spec, job=job, in_job=True)
    directory.write_record(replace(record, spec=spec, jobs=(own,), phase=Phase.STOPPED))
    monkeypatch.setattr(Kubernetes, "hurry_seconds", 0.0)
    asked = root.parent / "kubectl.calls"
    put_command(root.parent, monkeypatch, "kubectl", f"[ $(wc -l <{asked}) -gt {failures} ]")
    clean_up(directory)
    words = " ".join([*where, "delete pods --wait=false --ignore-not-found gpc-abc123-0-0"])
    assert asked.read_text().splitlines() == [words] * calls


@pytest.mark.parametrize("mine", [True, False])
def test_only_the_head_on_record_is_answered(
    root: Path, monkeypatch: pytest.MonkeyPatch, mine: bool
) -> None:
    directory, record = cluster(root, "slurm")
    put_command(root.parent, monkeypatch, "squeue", "echo listed")
    asker = record.head if mine else Process("elsewhere", "", 1, 1)
    question = directory.relay / "1.ask"
    argv = find_backend("slurm").status("me", [])
    question.write_text(json.dumps({"head": to_json(asker), "argv": argv, "stdin": ""}))
    answer(directory, question)
    assert not question.exists()
    result = from_json(CommandResult, json.loads((directory.relay / "1.answer").read_bytes()))
    assert (result.exit_code, result.stdout) == ((0, "listed\n") if mine else (126, ""))


def test_a_damaged_question_is_thrown_away(root: Path) -> None:
    directory, _ = cluster(root, "slurm")
    question = directory.relay / "1.ask"
    question.write_text("[")
    answer(directory, question)
    assert list(directory.relay.iterdir()) == []


def test_only_pods_of_the_cluster_s_own_submissions_are_deleted_for_its_head(root: Path) -> None:
    directory, record = cluster(root, "kubernetes")
    job = JobShape(account="physics", cancel_args=("--namespace=physics",))
    known = Job("gpc-abc123-1", 0, JobState.RUNNING, id="gpc-abc123-1-0")
    jobs = (known, Job("gpc-abc123-2", 0), Job("gpc-abc123-2", 1))
    record = replace(record, jobs=jobs, spec=replace(record.spec, job=job))
    dialect = find_backend("kubernetes")

    def allowed(*ids: str, arguments: tuple[str, ...] = job.cancel_args) -> bool:
        return permitted(directory, record, cancel_command(dialect, ids, arguments), "")

    # Those of a submission that was refused in part have no ids on record.
    assert allowed("gpc-abc123-1-0", "gpc-abc123-2-0", "gpc-abc123-2-1")
    for other in ("gpc-abc123-3-0", "gpc-xyz789-1-0", "jupyter-ann", "--all", "--selector=a=b", ""):
        assert not allowed(other)
        assert not allowed("gpc-abc123-1-0", other)
    assert not allowed("gpc-abc123-1-0", arguments=("--namespace=other",))
    assert not allowed("gpc-abc123-1-0", arguments=())
    for words in (["kubectl", "get", "secrets"], ["kubectl", "exec", "x"], ["kubectl"]):
        assert not permitted(directory, record, words, "")
