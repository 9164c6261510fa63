"""HTCondor's reasons and refusals in words: the manual's table of HoldReasonCode."""

from __future__ import annotations

import re

from ...core.job import JobState

PAST_WALLTIME = "JobStatus == 2 && time() - JobCurrentStartDate >"
"""The clause of ``periodic_remove`` that ends a job at its walltime."""

OUT_OF_MEMORY = frozenset({34})
OUT_OF_TIME = frozenset({46, 47})


def removed(reason: str, hold_code: int | None) -> JobState:
    """Return the end of an unfinished job, from RemoveReason and the last HoldReasonCode."""
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
    ("disk usage exceeded", "It used more disk than requested: add RequestDisk to "
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

NOT_SEEN = "keep clusters and environments on a file system that the nodes see."
SUPPORT = "ask the site's support."
HELD_CODES = {
    1: "Held by you or by an administrator: release it with `condor_release`, or stop the cluster.",
    3: "A periodic_hold of the job put it on hold: correct it in job.directives, or stop the "
    "cluster.",
    4: "Its credentials are missing or expired: log in again.",
    5: "A periodic expression of the job has no value: correct it in job.directives.",
    6: f"Its script could not be started on the machine: {NOT_SEEN}",
    7: f"Its output cannot be opened: {NOT_SEEN}",
    8: f"Its input cannot be opened: {NOT_SEEN}",
    9: f"Its output cannot be opened: {NOT_SEEN}",
    10: f"Its input cannot be opened: {NOT_SEEN}",
    11: "Its files could not be moved from the machine: release it, or " + SUPPORT,
    12: "Its files could not be moved from the machine: release it, or " + SUPPORT,
    13: "Its files could not be moved to the machine: release it, or " + SUPPORT,
    14: f"Its directory is not on the machine: {NOT_SEEN}",
    15: "It was submitted on hold: release it with `condor_release`, or remove hold from "
    "job.directives.",
    16: "Its input files are still being moved to the pool.",
    17: "The pool's programs do not fit each other: " + SUPPORT,
    18: "Its files could not be moved to or from the machine: release it, or " + SUPPORT,
    19: "A hook of the site failed before it started: " + SUPPORT,
    20: "Its time to start passed while it waited: remove deferral_time from job.directives.",
    21: "The machine put it on hold: release it with `condor_release`, or " + SUPPORT,
    22: f"Its event log cannot be written: {NOT_SEEN}",
    23: "Your account cannot be used on the machine: " + SUPPORT,
    24: "The pool has no program that runs such jobs: " + SUPPORT,
    25: "Its times to start cannot be read: correct cron_* in job.directives.",
    26: "A rule of the pool put it on hold: see its reason, ask for what the rule allows, or "
    + SUPPORT,
    27: "A rule of the pool has no value for it: " + SUPPORT,
    28: "A rule of the pool put it on hold: " + SUPPORT,
    32: "Its input files are larger than allowed.",
    33: "Its output files are larger than allowed.",
    34: "It used more memory than job.memory asks for; ask for more.",
    35: "The container's image cannot be used: check docker_image in job.directives.",
    36: "It could not be checkpointed: " + SUPPORT,
    43: "The command that runs before it failed: " + SUPPORT,
    44: "The command that runs after it failed: " + SUPPORT,
    45: "The container could not be started on the machine: check the image.",
    46: "It lasted longer than allowed_job_duration; ask for more, or a shorter job.walltime.",
    47: "It ran longer than allowed_execute_duration; ask for more, or a shorter job.walltime.",
    48: "A hook of the site failed before it started: " + SUPPORT,
}
"""HoldReasonCode -> sentence, where the reason's words are not known."""

OWN = re.compile("(?=ERROR)")
NOISE = re.compile(r"^Submitting job\(s\)")

REFUSALS = (
    ("not a valid accounting group", "Set job.account to an accounting group of yours."),
    ("accounting_group", "Set job.account to an accounting group of yours."),
    ("RequestMemory", "Change job.memory."),
    ("request_disk", "Add RequestDisk to job.directives."),
    ("RequestDisk", "Add RequestDisk to job.directives."),
    ("request_gpus", "Change the request for GPUs: job.gpus and job.gpu_type."),
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
