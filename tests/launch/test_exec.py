"""The job, and the node, that a shell enters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_gpucluster.core.cluster import HeldJob, Phase, Record, Spec, Target
from jupyter_gpucluster.core.errors import ClusterConflict, ClusterNotFound, InvalidInput
from jupyter_gpucluster.core.job import Job, JobShape, JobState
from jupyter_gpucluster.launch.exec import entry_of
from jupyter_gpucluster.state.view import Look
from tests.launch.specs import DIRECTORY

ONE, TWO = "gpc-abc123-1", "gpc-abc123-2"
SPEC = Spec("gpu", "GPUs", "slurm", "/usr/bin/python3", job=JobShape(nodes=2, ranks=2))
JOBS = (
    Job(ONE, 0, JobState.FAILED, "12_0", nodes=("g1",), cause="It ended.", ended=1.0),
    Job(ONE, 1, JobState.RUNNING, "12_1", nodes=("g[2-3]",)),
    Job(TWO, 0, JobState.RUNNING, "13", nodes=("g7", "g8")),
    Job(TWO, 1, JobState.PENDING, "14", reason="Next in line."),
)


def look_of(spec: Spec = SPEC, jobs: tuple[Job, ...] = JOBS, phase: Phase = Phase.RUNNING) -> Look:
    record = Record("abc123", "mine", spec, Target(3, 3), 0.0, phase, jobs=jobs)
    return Look(DIRECTORY, record, None)


def entered(look: Look, *words: str, job: str = "", worker: str = "") -> str:
    return " ".join(entry_of(look, job=job, worker=worker, words=words, terminal=False))


def test_by_default_it_is_the_first_node_of_the_first_job_that_runs() -> None:
    told = entered(look_of(), "nvidia-smi", "-L")
    assert " 12_1 " in told
    assert "--nodelist=g2 " in told
    assert told.endswith("/bin/bash /state/abc123/jobs/environment.sh nvidia-smi -L")


@pytest.mark.parametrize("name", ["13", TWO, f"{TWO}_0"])
def test_a_job_is_named_by_its_number_or_its_mark(name: str) -> None:
    assert "--jobid=13 " in entered(look_of(), job=name)


@pytest.mark.parametrize(
    "worker, node",
    [(f"{TWO}_0", "g7"), (f"{TWO}_0-1", "g7"), (f"{TWO}_0-n1-0", "g7"), (f"{TWO}_0.r2-n2", "g8")],
)
def test_a_worker_is_found_on_the_node_of_its_rank(worker: str, node: str) -> None:
    assert f"--jobid=13 --overlap --nodes=1 --ntasks=1 --nodelist={node} " in entered(
        look_of(), worker=worker
    )


def test_workers_in_an_allocation_are_entered_through_that() -> None:
    held = HeldJob("slurm", "99", "Slurm job 99", "c[1-2]")
    spec = replace(SPEC, backend="local", spread=True, allocation=held)
    job = Job(ONE, 0, JobState.RUNNING, f"{ONE}_0")
    told = entered(look_of(spec, (job,)), worker=f"{ONE}_0-n2-0")
    assert told.startswith("srun --jobid=99 ")
    assert "--nodelist=c2 " in told
    with pytest.raises(ClusterConflict, match="not known here"):
        entered(look_of(replace(spec, allocation=None), (job,)))


@pytest.mark.parametrize(
    "changes,words",
    [
        ({"job": replace(SPEC.job, directives=("-M cm2",))}, "env SLURM_CLUSTERS=cm2 sh -c "),
        # Variables of the terminal select nothing.
        ({"routing": {}}, "env --unset=SLURM_CONF sh -c "),
        ({"routing": {"SLURM_CONF": "/a"}}, "env SLURM_CONF=/a sh -c "),
    ],
)
def test_a_job_is_entered_on_the_system_of_its_cluster(
    changes: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", "/b")
    assert entered(look_of(replace(SPEC, **changes))).startswith(words)


def test_a_pod_is_entered_in_its_namespace() -> None:
    spec = replace(SPEC, backend="kubernetes", job=JobShape(account="physics"))
    job = Job(ONE, 0, JobState.RUNNING, f"{ONE}-0")
    told = entered(look_of(spec, (job,)), "date")
    assert told.startswith(f"kubectl --namespace=physics exec --stdin {ONE}-0 -- /bin/bash ")


def test_on_this_machine_it_is_a_shell_here_that_sees_the_worker_s_gpu() -> None:
    job = Job(ONE, 0, JobState.RUNNING, f"{ONE}_0", devices=("3",))
    told = entered(look_of(replace(SPEC, backend="local"), (job,)))
    assert told == "env CUDA_VISIBLE_DEVICES=3 /bin/bash /state/abc123/jobs/environment.sh"


def test_a_node_that_nobody_tells_cannot_be_reached_by_ssh() -> None:
    job = Job(ONE, 0, JobState.RUNNING, "12.head")
    with pytest.raises(ClusterConflict, match="does not show the node"):
        entered(look_of(replace(SPEC, backend="pbs"), (job,)))


def test_what_cannot_be_entered_is_told_with_the_reason() -> None:
    with pytest.raises(ClusterNotFound) as caught:
        entered(look_of(), job="77")
    assert f"{ONE}_1" in caught.value.hint
    with pytest.raises(ClusterConflict, match=f"{TWO}_1 is pending .Next in line"):
        entered(look_of(), job="14")
    with pytest.raises(ClusterConflict, match="no job runs"):
        entered(look_of(jobs=()))
    with pytest.raises(ClusterConflict, match="is stopped"):
        entered(look_of(phase=Phase.STOPPED))
    with pytest.raises(ClusterConflict, match="another user"):
        entered(look_of(replace(SPEC, backend="existing")))
    with pytest.raises(InvalidInput, match="not the name of a worker"):
        entered(look_of(), worker="tls://1.2.3.4:5")
