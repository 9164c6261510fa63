"""The job of a process, from its variables, and the owner of the variables."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.batch import BACKENDS, routing_of
from jupyter_gpucluster.batch.variables import of_all_systems, surrounding_job
from jupyter_gpucluster.core.job import JobShape


@pytest.mark.parametrize(
    "variables, words",
    [
        ({"SLURM_JOB_ID": "12"}, "Slurm job 12"),
        ({"PBS_JOBID": "12.head"}, "PBS job 12.head"),
        ({"LSB_JOBID": "12"}, "LSF job 12"),
        ({"OAR_JOB_ID": "12"}, "OAR job 12"),
        ({"COBALT_JOBID": "12"}, "Cobalt job 12"),
        ({"_CONDOR_SLOT": "slot1_1"}, "HTCondor job slot1_1"),
        ({"JOB_ID": "12", "SGE_ROOT": "/sge"}, "Grid Engine job 12"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "the pod"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "SLURM_JOB_ID": "12"}, "Slurm job 12"),
        # Too plain a name to mean Grid Engine by itself; set and empty is no job.
        ({"JOB_ID": "12"}, ""),
        ({"SLURM_JOB_ID": ""}, ""),
        ({}, ""),
    ],
)
def test_a_process_knows_its_job(variables: dict[str, str], words: str) -> None:
    assert surrounding_job(variables) == words


@pytest.mark.parametrize(
    "name, variables",
    [
        ("slurm", {"SLURM_CONF": "/a", "SLURM_CLUSTERS": "cm2"}),
        ("sge", {"SGE_ROOT": "/a", "SGE_CELL": "b", "SGE_CLUSTER_NAME": "p6444"}),
        ("pbs", {"PBS_SERVER": "a", "PBS_CONF_FILE": "/b"}),
        ("lsf", {"LSF_ENVDIR": "/a"}),
        ("oar", {"OARCONFFILE": "/a"}),
        ("kubernetes", {"KUBECONFIG": "/a"}),
        ("local", {}),
    ],
)
def test_variables_that_select_a_system_are_put_on_record(
    name: str, variables: dict[str, str]
) -> None:
    assert routing_of(name, JobShape(), {**variables, "PATH": "/bin"}) == variables


def test_the_variables_of_each_dialect_s_job_are_filtered() -> None:
    known = of_all_systems()
    for name, dialect in BACKENDS.items():
        for variable in dialect.job_variables[:1]:
            assert name == "kubernetes" or variable.startswith(known.job)
