"""Clusters on a real Slurm: start, wait, scale, die, be refused, stop."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from jupyter_gpucluster.client.connect import connect
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import ENDED, Phase
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from tests.waiting import until

from .conftest import SECONDS, Run, WriteProfile, fixed, wait_until
from .life import Life, live_and_end_clean, worker_of
from .ordinary_user import Person
from .places import RealPlace
from .slurm_site import SlurmSite

SMALL = """
job: {cpus: 1, memory: 500 MiB, walltime: "00:10:00", queue: cpu}
"""


@pytest.mark.parametrize("place", ["slurm"], indirect=True)
def test_an_ordinary_user_s_cluster_lives_and_ends_clean(
    place: RealPlace, somebody: Person
) -> None:
    def suffer(life: Life) -> None:
        lost, *_ = life.living()
        somebody.work.kill(worker_of(lost))
        assert life.lost(lost).state is JobState.FAILED
        assert "signal 9" in life.now(lost).cause
        life.ready(3)
        assert somebody.owners() == {somebody.name}

    live_and_end_clean(place, somebody, suffer)


@pytest.mark.parametrize("place", ["slurm"], indirect=True)
def test_an_ordinary_user_s_doctor_tells_what_the_nodes_of_a_job_see(
    place: RealPlace, somebody: Person
) -> None:
    job = '{nodes: 2, cpus: 2, memory: 1000 MiB, walltime: "00:10:00", queue: cpu}'
    text = f"title: T\nbackend: slurm\nnetwork: {{interface: lo}}\nlauncher: srun\njob: {job}\n"
    profile = somebody.write_profile("examined", text)
    code, said = somebody.work.command("doctor", profile, "--job", "--json")
    report = json.loads(said)
    found = {each["check"]: each for each in report["checks"]}
    assert code == 0, said
    assert {answer["host"] for answer in report["job"]["answers"]} == {"c1", "c2"}
    for check in ("batch system", "probe job", "imports there", "node to node"):
        assert found[check]["result"] == "ok"
    assert "c1, c2: seen, and written to" in found["shared directory"]["found"]
    assert "lo (127.0.0.1): reached" in found["nodes to here"]["found"]
    until(lambda: place.queue() == [])
    assert list(somebody.home.glob("data/gpucluster/doctor/*")) == []

    somebody.write_profile(
        "examined", text.replace("queue: cpu", "queue: cpu, directives: [--hold]")
    )
    code, said = somebody.work.command("doctor", profile, "--job", "--wait", "1", "--json")
    assert code == 3
    assert "Held by you" in json.loads(said)["message"]
    for queue, word in (("cpu", "would accept the job: Job "), ("nosuch", "invalid partition")):
        somebody.write_profile("examined", text.replace("queue: cpu", f"queue: {queue}"))
        code, said = somebody.work.command("doctor", profile)
        assert (code, word in said) == (int(queue == "nosuch"), True)
    until(lambda: place.queue() == [])


def test_jobs_that_depend_on_one_that_failed_are_not_waited_for(
    clusters: Clusters, site: SlurmSite, write_profile: WriteProfile
) -> None:
    failed = site.run("sbatch", "--parsable", "-p", "cpu", "--wait", "--wrap", "false", check=False)
    keys = f"directives: [--dependency=afterok:{failed}, --comment=x]"
    keys += ', submit_args: ["--comment", "it is; $HOME"]'
    text = SMALL.replace("queue: cpu}", f"queue: cpu, {keys}}}")
    view = clusters.start(write_profile("dependent", text), target=fixed(2))
    ended = wait_until(clusters, view.id, lambda view: view.phase in ENDED)
    assert ended.phase is Phase.FAILED
    assert "What it depends on failed, so it will never start" in ended.reason
    wait_until(clusters, view.id, lambda _: site.queue() == [])
    assert len([event for event in clusters.events(view.id) if event.kind == "submit"]) == 1


def test_held_and_suspended_jobs_are_kept_until_they_may_go_on(
    clusters: Clusters, site: SlurmSite, write_profile: WriteProfile
) -> None:
    held = SMALL.replace("queue: cpu", "queue: cpu, directives: ['--hold']")
    profile = write_profile("held", held)
    view = clusters.start(profile, target=fixed(1))
    view = wait_until(clusters, view.id, lambda v: "Held by you" in v.reason)
    assert view.phase is Phase.PENDING
    [id] = site.queue()
    site.run("scontrol", "release", id)
    assert clusters.wait_ready(view.id, timeout=SECONDS).phase is Phase.RUNNING

    site.run("scontrol", "suspend", id)
    view = wait_until(clusters, view.id, lambda v: v.workers.ready == 0)
    assert (view.phase, view.workers.pending) == (Phase.DEGRADED, 1)
    assert view.reason == "Suspended by the site; it continues when it is resumed."
    site.run("scontrol", "resume", id)
    view = clusters.wait_ready(view.id, timeout=SECONDS)
    with connect(view.name) as client:
        assert client.submit(lambda: 42).result() == 42
    assert site.queue() == [id]


def test_a_terminal_with_another_slurm_conf_ends_the_jobs_where_they_were_submitted(
    clusters: Clusters, site: SlurmSite, write_profile: WriteProfile, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    held = SMALL.replace("queue: cpu", "queue: cpu, directives: ['--hold']")
    view = clusters.start(write_profile("held", held), target=fixed(2))
    wait_until(clusters, view.id, lambda _: len(site.queue()) == 2)
    other = tmp_path / "slurm.conf"
    text = Path(site.environment["SLURM_CONF"]).read_text()
    other.write_text(re.sub(r"SlurmctldPort=\d+", "SlurmctldPort=1", text))
    monkeypatch.setenv("SLURM_CONF", str(other))
    head = ClusterDirectory(Path(view.directory)).read_process()
    assert head is not None
    os.kill(head.pid, signal.SIGKILL)
    ended = wait_until(clusters, view.id, lambda v: v.phase is Phase.FAILED)
    assert "Its jobs were cancelled" in ended.reason
    assert site.queue() == []


def test_results_outlive_the_walltime_of_the_job_that_holds_them(
    clusters: Clusters, site: SlurmSite, run: Run
) -> None:
    view = run(SMALL + "policy: {replacements: 0, drain_before: 10 min, at_walltime: replace}\n")
    [first] = site.queue()
    with connect(view.name) as client:
        kept = client.scatter(list(range(30)))
        # Half of that is over soon: time to ask for a successor, which a busy machine starts late.
        site.run("scontrol", "update", f"jobid={first}", "EndTime=now+40")
        wait_until(clusters, view.id, lambda _: site.queue() not in ([first], []))
        wait_until(clusters, view.id, lambda _: first not in site.queue())
        assert client.gather(kept) == list(range(30))
    view = wait_until(clusters, view.id, lambda _: clusters.jobs(view.id)[0].ended is not None)
    assert (view.phase, view.workers.ready) == (Phase.RUNNING, 1)
    [before, after] = clusters.jobs(view.id)
    assert (before.state, before.cause, after.connected) == (JobState.CANCELLED, "", True)
    assert [clock.job for clock in view.clocks] == [f"{after.mark}_0"]


@pytest.mark.parametrize("hangs", [False, True])
def test_a_cluster_without_a_head_leaves_no_job_behind(
    clusters: Clusters, site: SlurmSite, run: Run, hangs: bool
) -> None:
    view, other = run(SMALL, 2), run(SMALL, name="other")
    head = ClusterDirectory(Path(view.directory)).read_record().head
    assert head is not None
    if hangs:
        os.kill(head.pid, signal.SIGSTOP)
        over = clusters.stop(view.id, force=True)
        assert over.phase is Phase.STOPPED
    else:
        os.kill(head.pid, signal.SIGKILL)
        over = wait_until(clusters, view.id, lambda v: v.phase in ENDED)
        assert over.phase is Phase.FAILED
    assert "Its jobs were cancelled" in over.reason
    wait_until(clusters, other.id, lambda _: len(site.queue()) == 1)
    assert {job.state for job in clusters.jobs(view.id)} == {JobState.CANCELLED}
