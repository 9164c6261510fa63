"""Worker groups of a profile, and their jobs."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_gpucluster.core.cluster import Spec
from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.core.serialize import from_json, to_json
from jupyter_gpucluster.launch.script.job import group_scripts
from jupyter_gpucluster.profiles import Profile
from tests.launch.specs import DIRECTORY, spec_for

GIB = 2**30
JOB = {"gpus": 4, "cpus": 64, "memory": 256 * GIB, "queue": "gpu", "account": "p", "walltime": 3600}


def a_profile(**group: Any) -> Profile:
    return Profile.model_validate(
        {"title": "x", "backend": "slurm", "job": JOB, "groups": {"io": {"count": 6, **group}}}
    )


def spec_of(profile: Profile) -> Spec:
    return spec_for(profile, workers=4)


def test_a_group_has_its_own_job_in_the_same_account_and_nothing_of_the_gpus() -> None:
    job = {"cpus": 8, "memory": 16 * GIB, "queue": "cpu"}
    profile = a_profile(job=job, workers={"per_job": 2, "resources": {"IO": 3, "SLOW": 1}})
    spec = spec_of(profile)
    [group] = spec.groups
    assert (group.name, group.workers, group.worker.per_job) == ("io", 6, 2)
    assert (group.worker.threads, group.worker.memory_limit) == (4, 8 * GIB)
    assert (spec.job.gpus, spec.worker.per_job) == (4, 4)
    [(name, script)] = group_scripts(profile, spec, DIRECTORY)
    assert name == "io"
    for line in ("-p cpu", "-A p", "-t 01:00:00", "--cpus-per-task=8"):
        assert f"#SBATCH {line}\n" in script
    assert "gpu" not in "".join(x for x in script.splitlines() if x.startswith("#SBATCH"))
    assert "distributed.cli.dask_worker" in script
    assert "--resources IO=3,SLOW=1" in script
    assert "--nworkers 2" in script


@pytest.mark.parametrize("own", [{}, {"directives": ["-M cm2"]}])
def test_a_group_on_another_cluster_of_slurm_is_refused_and_one_on_the_same_is_not(
    own: dict[str, Any],
) -> None:
    profile = a_profile(job={"cpus": 8, "directives": ["--clusters=far"]})
    profile = profile.model_copy(update={"job": profile.job.model_copy(update=own)})
    with pytest.raises(InvalidInput, match="Group io sends its jobs to far") as caught:
        spec_of(profile)
    assert str(caught.value.detail) == "groups.io.job.directives"
    assert "two profiles" in caught.value.hint
    same = profile.job.model_copy(update={"directives": ("-M far",)})
    profile = profile.model_copy(update={"job": same})
    [(_, script)] = group_scripts(profile, spec_of(profile), DIRECTORY)
    assert script.count("unset SLURM_CLUSTERS") == 1
    profile = profile.model_copy(update={"groups": a_profile(job={"cpus": 8}).groups})
    [(_, script)] = group_scripts(profile, spec_of(profile), DIRECTORY)
    assert script.count("unset SLURM_CLUSTERS") == 1


def test_groups_are_on_record() -> None:
    spec = spec_of(a_profile(job={"cpus": 8}))
    assert from_json(Spec, to_json(spec)) == spec


def test_a_group_of_several_nodes_uses_the_profile_s_launcher() -> None:
    profile = a_profile(job={"nodes": 2, "cpus": 8})
    with pytest.raises(InvalidInput, match="no launcher"):
        spec_of(profile)
    launched = Profile.model_validate({**profile.model_dump(), "launcher": "srun"})
    [(_, script)] = group_scripts(launched, spec_of(launched), DIRECTORY)
    assert "srun --nodes=2 --ntasks=2" in script


def test_gpus_in_a_group_are_refused_since_nobody_would_count_them() -> None:
    with pytest.raises(InvalidInput, match="Group io asks for GPUs") as caught:
        spec_of(a_profile(job={"gpus": 1}))
    assert caught.value.detail == "groups.io.job.gpus"
    assert caught.value.hint
