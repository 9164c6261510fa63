"""Scheduler files that name the job of a head: this run's, or one that is over."""

from __future__ import annotations

import errno
import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.core.cluster import heads_mark
from jupyter_gpucluster.core.errors import ClusterConflict
from jupyter_gpucluster.core.job import Job, JobState
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.state.external import check_answer, check_scheduler
from tests.head.world import a_record
from tests.integration.batch.real_site import free_ports


@pytest.mark.parametrize(
    "job,told",
    [
        ("17", "Job 17 wrote its scheduler file, but its job is 23"),
        ("23", "No scheduler answers at tcp://127.0.0.1"),
    ],
)
def test_a_file_is_of_another_run_by_its_job_or_without_an_answer(
    home: Path, job: str, told: str
) -> None:
    directory = ClusterDirectory(home / "abc123")
    directory.create()
    own = Job(heads_mark("abc123"), 0, JobState.RUNNING, "23")
    made = a_record()
    record = replace(made, spec=replace(made.spec, in_job=True), jobs=(own,))
    directory.write_record(record)
    check_scheduler(directory)  # a head that is yet to come has no file
    [port] = free_ports(1)
    file = {"address": f"tcp://127.0.0.1:{port}", "id": "S-1", "gpucluster": {"job": job}}
    directory.scheduler_file.write_text(json.dumps(file))
    with pytest.raises(ClusterConflict, match=told) as caught:
        check_scheduler(directory)
    assert "start another one" in caught.value.hint
    check_answer(directory, "S-1")
    with pytest.raises(ClusterConflict, match="Another scheduler answers"):
        check_answer(directory, "S-2")


@pytest.mark.parametrize(
    "error", [OSError(errno.EMFILE, "x"), OSError(errno.ENETUNREACH, "x"), FileNotFoundError("x"),
              socket.gaierror(socket.EAI_AGAIN, "x")]
)  # fmt: skip
def test_no_scheduler_is_given_up_for_what_may_be_wrong_on_this_side(
    home: Path, error: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = ClusterDirectory(home / "abc123")
    directory.create()
    directory.write_record(a_record())
    directory.scheduler_file.write_text(json.dumps({"address": "tcp://127.0.0.1:9", "id": "S"}))

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(socket, "create_connection", fail)
    check_scheduler(directory)
