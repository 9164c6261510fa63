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
STEERING = (
    # Variables by which users filter, format, delay or answer for the client commands of batch
    # systems, by their manuals.  Those of SLURM_, SBATCH_, PBS_, LSB_, SGE_, OAR_, COBALT_ and
    # _CONDOR_ are above; HTCondor reads its settings in small letters, too.
    "SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_", "SCONTROL_", "SREPORT_",
    "PBSDEBUG", "PBSAPITIMEOUT", "MSUBQUERYINTERVAL", "QSTAT_HEADER", "CQSTAT_HEADER",
    # BSUB_QUIET hides the number of a job, BSUB_BLOCK waits for its end.
    "BSUB_", "LSF_CMD_LOG", "LSF_DEBUG_CMD", "LSF_TIME_CMD", "LSF_NIOS_", "LSF_INTERACTIVE_STDERR",
    "_condor_", "KUBECTL_", "KUBERC",
)  # fmt: skip
FOR_COMMANDS = {
    # The words that are matched, and no other form of numbers and times.
    "LC_ALL": "C",
    # The user's file of kubectl's defaults may make `delete` ask, or `get` show other things.
    "KUBERC": "off",
}
"""Variables of every command of a batch system."""
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
    {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT", "SLURM_CLUSTERS", "PBS_CONF_FILE",
     "PBS_DEFAULT", "PBS_EXEC", "PBS_SERVER",
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
    left = (*NOT_INHERITED, *STEERING, *(() if with_job else OF_THE_JOB))
    if environment.get(LIFETIME) == f"{environment.get(LEFT)} s":
        left = (*left, LIFETIME)
    return {
        name: value
        for name, value in environment.items()
        if name in INHERITED or not name.startswith(left)
    }


def for_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a batch system's command whose answer is read here.

    A user's settings of that command, and the job that this process may be in, do not reach it:
    they hide jobs, and change forms that are read.  What leads to the system stays.
    """
    left = (*STEERING, *OF_THE_JOB)
    kept = {n: v for n, v in environment.items() if n in INHERITED or not n.startswith(left)}
    return {**kept, **FOR_COMMANDS}
