"""HTCondor's reasons and refusals in words: the manual's table of HoldReasonCode."""

from __future__ import annotations

from ...records import JobState

PAST_WALLTIME = "JobStatus == 2 && time() - JobCurrentStartDate >"
"""The clause of ``periodic_remove`` that ends a job at its walltime."""

OUT_OF_MEMORY = frozenset({34})
OUT_OF_TIME = frozenset({46, 47})


def removed(reason: str, hold_code: int | None) -> JobState:
    """Tell from RemoveReason and the last HoldReasonCode why a job left the queue unfinished."""
    if "PeriodicRemove" not in reason and "periodic" not in reason.lower():
        return JobState.CANCELLED
    if hold_code in OUT_OF_MEMORY:
        return JobState.OUT_OF_MEMORY
    if hold_code in OUT_OF_TIME or not hold_code:
        return JobState.TIMEOUT
    return JobState.FAILED


HELD = (
    ("via condor_hold", "Held by you: release it with `condor_release`, or stop the cluster."),
    ("memory usage exceeded", "It used more memory than job.memory asks for; ask for more."),
    ("over memory limit", "It used more memory than job.memory asks for; ask for more."),
    ("cgroup memory limit", "It used more memory than job.memory asks for; ask for more."),
    ("disk usage exceeded", "It used more disk than it asked for: add RequestDisk to "
     "job.directives."),
    ("Failed to initialize user log", "The directory of its event log cannot be written."),
    ("Failed to open", "A file for its output cannot be opened on the node: keep clusters on a "
     "file system that the nodes see."),
    ("No such file or directory", "A file or directory that it needs is not on the node: keep "
     "clusters and environments on a file system that the nodes see."),
    ("Permission denied", "The node may not read the script or write its output."),
    ("Exec format error", "The script could not be run on the node: another architecture?"),
    ("transfer", "Its files could not be moved to or from the node."),
    ("docker", "The container could not be started on the node: check the image."),
    ("singularity", "The container could not be started on the node: check the image."),
    ("CREDENTIAL", "Its credentials are missing or expired: log in again."),
    ("spool", "Its input files are still being moved to the pool."),
)  # fmt: skip
"""Part of a hold reason, in any case -> sentence."""

REFUSALS = (
    ("not a valid accounting group", "Set job.account to an accounting group of yours."),
    ("accounting_group", "Set job.account to an accounting group of yours."),
    ("RequestMemory", "Change job.memory."),
    ("request_disk", "Add RequestDisk to job.directives."),
    ("RequestDisk", "Add RequestDisk to job.directives."),
    ("request_gpus", "Change how GPUs are asked for: job.gpus and job.gpu_type."),
    ("Parse error", "Correct the line of job.directives that HTCondor cannot read."),
    ("Failed to parse", "Correct the line of job.directives that HTCondor cannot read."),
    ("MAX_JOBS_PER_OWNER", "You have as many jobs as the pool takes: ask for fewer workers."),
    ("MAX_JOBS_SUBMITTED", "The pool is full: wait, or ask for fewer workers."),
    ("MAX_JOBS_PER_SUBMISSION", "Ask for fewer workers: the pool allows smaller submissions."),
    ("can't open", "The file that HTCondor names cannot be read or written."),
    ("Requirements", "Correct the requirements in job.directives."),
    ("requirement", "The pool demands something that is not in the profile: add it to "
     "job.directives."),
    ("AUTHENTICATE", "Log in to the pool again (see: condor_ping)."),
    ("command not found", "Start from a host of the site that has HTCondor's commands."),
    ("No such file or directory", "Start from a host of the site that has HTCondor's commands."),
)  # fmt: skip
"""Part of what condor_submit says -> what to change."""
