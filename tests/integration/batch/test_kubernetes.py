"""Clusters on Kubernetes: a real kubectl, pods that really run, an API server that stands in."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import arguments_elsewhere, elsewhere, find_backend
from jupyter_gpucluster.batch.directives import merge
from jupyter_gpucluster.batch.queue import ProcessRunner, Queue
from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable
from jupyter_gpucluster.core.job import JobShape, JobState, JobStatus, Submission
from tests.integration.local.driving import head_of
from tests.waiting import until

from .kubernetes_place import IMAGE, OWN, WORDS, KubernetesPlace
from .life import (
    SECONDS,
    Life,
    grow_and_shrink_through_the_relay,
    live_and_end_clean,
    write_profile,
)
from .ordinary_user import Person
from .systems import pods

MARK = "gpc-abc123-1"
USUAL = JobShape(cpus=1, walltime=600, directives=(IMAGE,))
RUNNING, FAILED, PENDING = JobState.RUNNING, JobState.FAILED, JobState.PENDING
pytestmark = pytest.mark.parametrize("place", ["kubernetes"], indirect=True)


def suffer(life: Life, place: KubernetesPlace) -> None:
    """End what runs: for its time, for another's sake, and with its node."""
    first, second, third = life.living()
    with place.doing_to(first, second, third) as (site, (one, two, three)):
        one.walltime = 0.0
        pods.disturb(site, [two], "eviction")
        pods.disturb(site, [three], "node")
    wanted = (JobState.TIMEOUT, JobState.PREEMPTED, JobState.NODE_FAIL)
    for job, state in zip((first, second, third), wanted, strict=True):
        assert life.lost(job).state is state
    life.ready(3)


def test_a_cluster_lives_and_ends_clean(place: KubernetesPlace, somebody: Person) -> None:
    live_and_end_clean(place, somebody, lambda life: suffer(life, place))
    assert place.left() == []


def test_a_head_in_a_pod_grows_and_shrinks_through_the_relay(
    place: KubernetesPlace, somebody: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.words = replace(WORDS, job=f"{{{OWN}}}")

    def let_pods_start() -> None:
        place.switch_away()  # the head's pod waits by now
        KubernetesPlace.open(place)

    monkeypatch.setattr(place, "open", let_pods_start)
    grow_and_shrink_through_the_relay(place, somebody)
    assert place.left() == []


def test_pods_are_like_the_one_that_jupyter_is_in_and_go_with_it(
    place: KubernetesPlace, somebody: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.open()
    own = os.uname().nodename
    spec = {
        "containers": [{"name": "notebook", "image": "lab:1", "command": ["sleep", "300"]}],
        "securityContext": {"fsGroup": 100},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": own}, "spec": spec}
    assert place.kubectl("create", "--filename=-", stdin=json.dumps(pod)).code == 0
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    life = Life(somebody, write_profile(somebody, place, "{cpus: 1}"), 1)
    head = head_of(life.ready(1))
    [job] = life.living()
    told = json.loads(place.kubectl("get", "pod", job.id, "--output=json").out)
    assert told["spec"]["containers"][0]["image"] == "lab:1"
    assert told["spec"]["securityContext"] == {"fsGroup": 100}
    os.kill(head, signal.SIGKILL)
    place.delete(own)
    until(lambda: place.left() == [])


def test_a_cluster_stays_where_it_began_whatever_kubectl_is_switched_to(
    place: KubernetesPlace, somebody: Person
) -> None:
    place.open()
    profile = write_profile(somebody, place, f"{{{OWN}}}")
    life, lost = Life(somebody, profile, 1), Life(somebody, profile, 1)
    life.ready(1)
    head = head_of(lost.ready(1))
    place.switch_away()
    life.scale(2)
    shell = somebody.clusters.entry(life.id, ["true"], terminal=False)
    assert shell[:4] == ["kubectl", "--context=site", "--namespace=physics", "exec"]
    os.kill(head, signal.SIGKILL)
    assert lost.ended().reason.endswith(f"cancelled: gpc-{lost.id}-1-0.")
    life.stop()
    until(lambda: place.left() == [])


class Pods:
    """Submissions of a script, beside any cluster."""

    def __init__(self, place: KubernetesPlace, home: Path) -> None:
        self.place, self.home = place, home
        self.backend = find_backend("kubernetes")
        self.queue = self.queue_to(USUAL)

    def queue_to(self, job: JobShape) -> Queue:
        """Return the queue that a job is sent to."""
        variables = {**os.environ, **self.place.environment, **elsewhere("kubernetes", job)}
        arguments = arguments_elsewhere("kubernetes", job)
        return Queue(self.backend, ProcessRunner(variables), cancel_args=arguments)

    def submit(self, script: str, count: int = 1, job: JobShape = USUAL) -> tuple[str, ...]:
        """Submit, and return the ids of the jobs."""
        self.queue = self.queue_to(job)
        lines = self.backend.directives(job, MARK, str(self.home / "out"))
        lines = merge(self.backend.syntax, lines, job.directives, ())
        file = self.home / "job.sh"
        file.write_text("\n".join(["#!/bin/bash", *lines, script]) + "\n")
        text = file.read_text()
        sent = Submission(MARK, str(file), count, text=text, arguments=job.submit_args)
        return asyncio.run(self.queue.submit(sent))

    def listed(self) -> list[JobStatus]:
        """Return what is listed, in the order of the tasks."""
        found = asyncio.run(self.queue.poll(())) or {}
        return sorted(found.values(), key=lambda job: job.task)

    def until(self, *states: JobState) -> list[JobStatus]:
        """Wait until the jobs are in these states, and return them."""
        deadline = time.monotonic() + SECONDS
        while [job.state for job in self.listed()] != list(states):
            assert time.monotonic() < deadline, self.listed()
            time.sleep(0.1)
        return self.listed()

    def told(self, job: JobStatus) -> str:
        return self.backend.explain(job)

    def cancel(self) -> None:
        """End them all, and wait until nothing is left of them."""
        if ids := [job.id for job in self.listed()]:
            asyncio.run(self.queue.cancel(ids))
        until(lambda: self.place.left() == [])


@pytest.fixture
def submitted(place: KubernetesPlace, home: Path) -> Iterator[Pods]:
    """Return what submits scripts; nothing may be left of them in the end."""
    place.open()
    kept = Pods(place, home)
    yield kept
    kept.cancel()


FATES = {
    "": (JobState.RUNNING, ""),
    "itself": (JobState.FAILED, "exit code 3"),
    "memory": (JobState.OUT_OF_MEMORY, "job.memory"),
    "walltime": (JobState.TIMEOUT, "walltime"),
    "eviction": (JobState.PREEMPTED, "low on resource: memory"),
    "shutdown": (JobState.NODE_FAIL, "node"),
    "node": (JobState.NODE_FAIL, "node"),
}
"""Ends of pods, and the messages for their user."""


def test_what_becomes_of_pods_is_told(place: KubernetesPlace, submitted: Pods) -> None:
    ids = submitted.submit("[ $GPUCLUSTER_TASK = 1 ] && exit 3; sleep 60", len(FATES))
    submitted.until(RUNNING, FAILED, *[RUNNING] * 5)
    with place.doing_to_pods(*ids) as (site, jobs):
        for job, fate in zip(jobs, [fate for fate in FATES if fate != "itself"], strict=True):
            if fate == "memory":
                site.starve([job])
            elif fate == "walltime":
                job.walltime = 0.0
            elif fate:
                pods.disturb(site, [job], fate)
    found = submitted.until(*(state for state, _ in FATES.values()))
    for each, (_, words) in zip(found, FATES.values(), strict=True):
        assert words in submitted.told(each)


@pytest.mark.parametrize(
    "job,words",
    [
        (replace(USUAL, gpus=3), "GPU"),
        (replace(USUAL, gpus=5), "GPU"),
        (replace(USUAL, gpus=1, gpu_type="H900"), "job.gpu_type"),
        (replace(USUAL, directives=("spec.containers[0].image = nosuch:1",)), "nosuch:1"),
    ],
)
def test_a_pod_that_waits_is_told_for_what(submitted: Pods, job: JobShape, words: str) -> None:
    """Two nodes have four GPUs each, so that the last of three pods waits."""
    submitted.submit("sleep 60", 3, job)
    until(lambda: words in submitted.told(submitted.listed()[-1]))
    assert submitted.listed()[-1].state is PENDING


def test_nothing_is_left_of_a_submission_that_is_partly_refused(
    place: KubernetesPlace, submitted: Pods
) -> None:
    with pytest.raises(BackendError) as caught:
        submitted.submit("sleep 60", 2, replace(USUAL, gpus=1, account="small"))
    assert not isinstance(caught.value, BackendUnavailable)
    assert "exceeded quota" in caught.value.message
    until(lambda: place.left() == [])


def test_a_submission_whose_answer_was_lost_is_not_repeated(submitted: Pods) -> None:
    taken = submitted.submit("sleep 60", 2)
    assert submitted.submit("sleep 60", 2) == taken
    assert [job.id for job in submitted.until(RUNNING, RUNNING)] == list(taken)


def test_pods_are_left_alone_while_their_context_is_missing(
    place: KubernetesPlace, submitted: Pods
) -> None:
    job = replace(USUAL, submit_args=("--context=site",))
    submitted.submit("sleep 60", 1, job)
    submitted.until(RUNNING)
    place.configure("rename-context", "site", "moved")
    assert asyncio.run(submitted.queue.poll(())) is None
    assert "rename-context OTHER site" in submitted.queue.fix
    with pytest.raises(BackendUnavailable, match="lacks the context 'site'"):
        submitted.submit("sleep 60", 1, job)
    place.configure("rename-context", "moved", "site")
    submitted.until(RUNNING)
    assert submitted.queue.fix == ""
