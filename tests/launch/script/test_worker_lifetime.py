"""The net below the head: when workers leave by themselves, and what becomes of their results."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

from jupyter_gpucluster.head.reconcile.model import MOSTLY
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.host.environ import LIFETIME
from jupyter_gpucluster.launch.script.job import render
from jupyter_gpucluster.launch.script.worker_command import seconds_of
from jupyter_gpucluster.profiles import Profile

from ...integration.batch.ssh_site import SshSite
from ...launcher_programs import text_of
from ...waiting import until, workers_of
from .test_launchers import Job, spec_of, ssh

__all__ = ["ssh"]

HOUR = 3600
TELL = f'echo "leaves after ${{{LIFETIME}-its job}}."'


@pytest.mark.parametrize(
    "walltime, drain_before, seconds",
    [
        (HOUR, 120, HOUR - 60),
        (HOUR, 600, HOUR - 60),
        (HOUR, 20, HOUR - 10),
        (HOUR, 1, 0),
        (HOUR, None, 0),
        (None, 120, 0),
        (60, 120, 45),
        (3, 120, 0),
    ],
)
def test_workers_leave_after_the_head_would_have_had_them_leave_and_before_the_walltime(
    walltime: int | None, drain_before: int | None, seconds: int
) -> None:
    spec = spec_of(job={"walltime": walltime}, policy={"drain_before": drain_before})
    assert seconds_of(spec) == seconds
    if seconds and walltime and drain_before:
        assert max(walltime - drain_before, MOSTLY * walltime) < seconds < walltime


def test_who_has_no_walltime_of_a_queueing_system_has_no_net() -> None:
    assert seconds_of(spec_of(backend="local", job={"walltime": HOUR})) == 0
    assert seconds_of(spec_of(backend="demo", job={"walltime": HOUR})) == 0


def test_a_job_that_runs_the_head_or_other_work_has_no_net(tmp_path: Path) -> None:
    profile = Profile.model_validate({"title": "x", "backend": "slurm", "job": {"walltime": HOUR}})
    spec, directory = spec_of(job={"walltime": HOUR}), ClusterDirectory(tmp_path)
    for ways in ({"head": "the head"}, {"work": "other work"}):
        assert LIFETIME not in render(profile, spec, directory, **ways)
    assert LIFETIME in render(profile, spec, directory)


@pytest.mark.parametrize(
    "own, skipped, net",
    [
        (["--time=24:00:00"], ["-t "], False),
        ([], ["-t "], False),
        (["--qos=normal"], [], True),
    ],
)
def test_where_a_directive_has_the_last_word_on_the_walltime_there_is_no_net(
    tmp_path: Path, own: list[str], skipped: list[str], net: bool
) -> None:
    job = {"walltime": HOUR, "directives": own, "skip_directives": skipped}
    script = Job(tmp_path, backend="slurm", job=job).script
    assert (LIFETIME in script) is net


def told(home: Path, *prologue: str, variables: Any = (), **changes: Any) -> str:
    """Run a job of one hour by a real shell and return when its worker is to leave."""
    job = Job(
        home,
        TELL,
        job={"walltime": HOUR, **changes.pop("job", {})},
        environment={"prologue": prologue, "variables": dict(variables)},
        **changes,
    )
    assert job.start().wait(60) == 0, job.log()
    [line] = {line for line in job.log().splitlines() if line.startswith("leaves after ")}
    return line.removeprefix("leaves after ").removesuffix(".")


def test_a_worker_leaves_a_minute_before_its_job_s_walltime(tmp_path: Path) -> None:
    assert int(told(tmp_path).removesuffix(" s")) in range(3500, 3541)


def test_the_time_that_the_prologue_took_counts(tmp_path: Path) -> None:
    assert int(told(tmp_path, "SECONDS=600").removesuffix(" s")) in range(2900, 2941)


def test_a_prologue_that_took_all_the_time_leaves_the_end_to_the_walltime(tmp_path: Path) -> None:
    assert told(tmp_path, "SECONDS=3541") == "its job"


def test_what_profile_prologue_or_environment_say_of_the_lifetime_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("profile", "prologue", "environment"):
        (tmp_path / place).mkdir()
    assert told(tmp_path / "profile", variables={LIFETIME: "20 min"}) == "20 min"
    assert told(tmp_path / "prologue", f"export {LIFETIME}='20 min'") == "20 min"
    monkeypatch.setenv(LIFETIME, "20 min")
    assert told(tmp_path / "environment") == "20 min"


def test_containers_with_a_clean_environment_are_told(tmp_path: Path) -> None:
    box = {"runtime": "apptainer", "image": "x", "args": ["--cleanenv"]}
    script = Job(tmp_path, job={"walltime": HOUR}, environment={"container": box}).script
    assert f"export APPTAINERENV_{LIFETIME}=" in script
    assert script.index(f"export {LIFETIME}=") < script.index(f"export APPTAINERENV_{LIFETIME}=")


@pytest.mark.slow
def test_ranks_on_other_nodes_know_what_is_left_of_their_job(tmp_path: Path, ssh: SshSite) -> None:
    launcher = {"name": "ssh", "args": ["-F", str(ssh.config)]}
    nodes = {"nodes": 2, "gpus": 4}
    # It runs in the job's script, then once more in each rank's, whose arguments it may replace.
    prologue = ("SECONDS=600", "set -- a b c /d")
    left = told(tmp_path, *prologue, job=nodes, launcher=launcher, policy={"drain_before": 20})
    assert int(left.removesuffix(" s")) in range(HOUR - 10 - 1200 - 60, HOUR - 10 - 1200 + 1)


@pytest.mark.slow
def test_workers_without_a_head_hand_their_results_over_before_the_walltime(
    tmp_path: Path, module_home: Path
) -> None:
    job = Job(
        tmp_path,
        f'exec {sys.executable} "$@"',
        job={"walltime": 10, "nodes": 2, "cpus": 2, "memory": 2**30},
        network={"protocol": "tcp", "interface": "lo"},
        launcher="srun",
    )
    job.put("srun", text_of("srun"))
    with (
        LocalCluster(
            n_workers=1, processes=False, dashboard_address="127.0.0.1:0", protocol="tcp"
        ) as cluster,
        Client(cluster) as client,
    ):
        [heir] = workers_of(client)
        identity = {"address": cluster.scheduler_address, "type": "Scheduler"}
        job.directory.scheduler_file.write_text(json.dumps(identity))
        process = job.start()
        until(lambda: process.poll() is not None or len(ranks(client)) == 2)
        kept = [client.submit(bytes, 7, workers=[rank], pure=False) for rank in ranks(client)]
        client.gather(kept)
        assert process.wait(60) == 0, job.log()
        until(lambda: not ranks(client))
        assert all(holders == (heir,) for holders in client.who_has(kept).values()), job.log()
        assert job.log().count("worker-lifetime-reached") >= 2
    assert job.directory.exit_codes() == {"gpc-abc123-1_0": 0}


def ranks(client: Client) -> list[str]:
    workers = workers_of(client)
    return [each for each, worker in workers.items() if str(worker["name"]).startswith("gpc-")]
