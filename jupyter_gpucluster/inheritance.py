"""Which variables of a process are its own matter, and none of what it starts or submits."""

from __future__ import annotations

from collections.abc import Mapping

BATCH_JOBS = {
    "SLURM_JOB_ID": "Slurm",
    "PBS_JOBID": "PBS",
    "LSB_JOBID": "LSF",
    "OAR_JOB_ID": "OAR",
    "COBALT_JOBID": "Cobalt",
    "_CONDOR_SLOT": "HTCondor",
    "JOB_ID": "Grid Engine",
}
"""By which variable a process knows that it is in a batch job, and in whose."""
OF_THE_JOB = (
    *(f"{name.split('_')[0]}_" for name in BATCH_JOBS if name not in ("_CONDOR_SLOT", "JOB_ID")),
    "JOB_ID",
    "SBATCH_", "PBS_", "PE_", "SGE_", "_CONDOR_",
)  # fmt: skip
NOT_INHERITED = (
    # What belongs to the process that starts the cluster, not to the cluster: its secrets.
    "JUPYTERHUB_", "JUPYTER_TOKEN", "JPY_",
    # A cluster that a worker's task starts is not that worker's.
    "GPUCLUSTER_",
)  # fmt: skip
LIFETIME = "DASK_DISTRIBUTED__WORKER__LIFETIME__DURATION"
"""Dask's own variable; ``dask cuda worker`` has no option for it."""
LEFT = "GPUCLUSTER_LEFT"
"""Seconds that a job's workers have when its script comes to start them; ranks inherit it.  Where
the script makes a lifetime of them, that is the job's own matter, too."""
INHERITED = frozenset(
    # Where the queueing systems' commands find their system.
    {"SLURM_CONF", "SLURM_CLUSTERS", "PBS_CONF_FILE", "PBS_DEFAULT", "PBS_EXEC", "PBS_SERVER",
     "LSF_ENVDIR", "LSF_SERVERDIR", "LSF_LIBDIR", "LSF_BINDIR",
     "SGE_ROOT", "SGE_CELL", "SGE_CLUSTER_NAME", "SGE_QMASTER_PORT", "SGE_EXECD_PORT",
     "OARCONFFILE", "OARDIR", "COBALT_CONFIG_FILES",
     "_CONDOR_SCHEDD_HOST", "_CONDOR_COLLECTOR_HOST"}
)  # fmt: skip


def inherited(environment: Mapping[str, str], *, with_job: bool = False) -> dict[str, str]:
    """Return the variables that a head, or a submitted job, takes over.

    Parameters
    ----------
    with_job
        Whether it works inside the batch job that this process is in.
    """
    left = NOT_INHERITED if with_job else (*NOT_INHERITED, *OF_THE_JOB)
    if environment.get(LIFETIME) == f"{environment.get(LEFT)} s":
        left = (*left, LIFETIME)
    return {
        name: value
        for name, value in environment.items()
        if name in INHERITED or not name.startswith(left)
    }
