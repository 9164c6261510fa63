"""LSF's reasons and refusals in words: the manual's pages on bjobs and on termination reasons."""

from __future__ import annotations

import re

from ...core.job import JobState
from ..refusal import SMALLER_ARRAYS, Cure

ENDED = {
    "TERM_RUNLIMIT": JobState.TIMEOUT,
    "TERM_DEADLINE": JobState.TIMEOUT,
    "TERM_WINDOW": JobState.TIMEOUT,
    "TERM_MEMLIMIT": JobState.OUT_OF_MEMORY,
    "TERM_SWAP": JobState.OUT_OF_MEMORY,
    "TERM_OWNER": JobState.CANCELLED,
    "TERM_FORCE_OWNER": JobState.CANCELLED,
    "TERM_ADMIN": JobState.CANCELLED,
    "TERM_FORCE_ADMIN": JobState.CANCELLED,
    "TERM_BUCKET_KILL": JobState.CANCELLED,
    "TERM_PREEMPT": JobState.PREEMPTED,
    "TERM_RC_RECLAIM": JobState.PREEMPTED,
    "TERM_LOAD": JobState.PREEMPTED,
    "TERM_UNKNOWN": JobState.FAILED,
    "TERM_REMOVE_HUNG_JOB": JobState.NODE_FAIL,
    "TERM_ZOMBIE": JobState.NODE_FAIL,
    "TERM_ORPHAN_SYSTEM": JobState.CANCELLED,
    "TERM_REQUEUE_OWNER": JobState.CANCELLED,
    "TERM_REQUEUE_ADMIN": JobState.CANCELLED,
}
"""Why a job in state EXIT ended; with none of these the script itself ended with its exit code."""

ENDS = (
    ("TERM_RUNLIMIT", "It reached its walltime; ask for a longer one."),
    ("TERM_DEADLINE", "It was still running at its deadline."),
    ("TERM_WINDOW", "The queue's run window closed; choose another queue or a shorter walltime."),
    ("TERM_MEMLIMIT", "It used more memory than its limit; raise job.memory."),
    ("TERM_SWAP", "It used more swap space than its limit; raise job.memory."),
    ("TERM_CPULIMIT", "It used more CPU time than the queue allows; choose another queue."),
    ("TERM_PROCESSLIMIT", "It started more processes than the queue allows."),
    ("TERM_THREADLIMIT", "It started more threads than the queue allows; lower workers.threads."),
    ("TERM_OWNER", "It was cancelled by you."),
    ("TERM_FORCE_OWNER", "It was cancelled by you."),
    ("TERM_ADMIN", "It was cancelled by an administrator: ask the site's support."),
    ("TERM_FORCE_ADMIN", "It was cancelled by an administrator: ask the site's support."),
    ("TERM_BUCKET_KILL", "It was cancelled together with other jobs."),
    ("TERM_PREEMPT", "A job of higher priority took its place."),
    ("TERM_RC_RECLAIM", "Its machine was taken back by the cloud it came from."),
    ("TERM_LOAD", "Its host was overloaded, so LSF ended the job."),
    ("TERM_CWD_NOTEXIST", "Its working directory does not exist on the node: use a shared one."),
    ("TERM_REMOVE_HUNG_JOB", "Its host stopped answering, so LSF gave the job up."),
    ("TERM_ZOMBIE", "Its host stopped answering, so LSF gave the job up."),
    ("TERM_ORPHAN_SYSTEM", "The job that it depends on ended otherwise than it was to."),
    ("TERM_REQUEUE_OWNER", "It was put back into the queue by you."),
    ("TERM_REQUEUE_ADMIN", "It was put back into the queue by an administrator."),
    ("TERM_PRE_EXEC_FAIL", "The queue's command before each job failed: ask the site's support."),
    ("TERM_CHKPNT", "It was ended after a checkpoint."),
    ("TERM_DATA", "Its data could not be brought to its host: ask the site's support."),
    ("TERM_CSM_ALLOC", "The nodes could not be set up for it: ask the site's support."),
    ("TERM_RMS", "The system that runs the nodes ended it: ask the site's support."),
    ("TERM_KUBE", "The container system of the site ended it: ask the site's support."),
    ("TERM_OTHER", "LSF ended it without a reason: see the job's log."),
    ("TERM_UNKNOWN", "LSF ended it and does not know why: see the job's log."),
    ("TERM_EXTERNAL_SIGNAL", "A signal from outside LSF ended it (out of memory on the node?)."),
)
"""Beginning of an exit reason -> sentence."""

NEVER = ("dependency condition invalid", "dependency condition is invalid", "never satisfied")
"""Parts of reasons that neither time nor the site will ever cure."""
_WORDS = (
    "What it depends on will never happen, so it will never start: remove or correct the "
    "directive -w."
)

WAITING = (
    ("New job is waiting", "Just arrived: LSF has not looked at it yet."),
    *((part, _WORDS) for part in NEVER),
    ("dependency condition", "Waits for another job that it depends on."),
    ("suspended by its owner", "Held by you: release it with `bresume`, or stop the cluster."),
    ("suspended by the user", "Held by you: release it with `bresume`, or stop the cluster."),
    ("suspended by LSF admin", "Held by an administrator: ask the site's support."),
    ("suspended by the LSF admin", "Held by an administrator: ask the site's support."),
    ("user has reached", "Your limit of running jobs is reached; it starts when one of them ends."),
    ("user's job slot limit", "Your limit of job slots is reached; it starts when some are free."),
    ("User's per-processor job slot limit", "Your limit of job slots on these hosts is reached."),
    ("pending job threshold", "You have as many waiting jobs as LSF looks at: wait, or ask for "
     "fewer, larger jobs."),
    ("project's", "The limit of your project is reached; it starts when one of its jobs ends."),
    ("queue has reached its job slot limit", "The queue's limit of job slots is reached."),
    ("queue's", "A limit of the queue is reached: wait, or choose another queue."),
    ("inactivated", "The queue takes jobs but starts none now: choose another queue or wait."),
    ("not accepting jobs", "The hosts take no jobs now: choose another queue or wait."),
    ("dispatch windows", "The queue starts jobs only at certain hours: wait, or choose another."),
    ("run window", "The queue runs jobs only at certain hours: wait, or choose another queue."),
    ("will not finish before", "It would not end before the queue or the hosts close: a shorter "
     "walltime may start sooner."),
    ("pre-exec", "The command that runs before the job failed: LSF tries again; ask the site's "
     "support if it stays so."),
    ("Unable to access job file", "Its script cannot be read on the hosts: keep clusters on a file "
     "system that they see."),
    ("home/working director", "Its directory is not on the hosts: keep clusters on a file system "
     "that they see."),
    ("home or working director", "Its directory is not on the hosts: keep clusters on a file "
     "system that they see."),
    ("input and output files", "Its log cannot be opened on the hosts: keep clusters on a file "
     "system that they see."),
    ("environment variables", "Its environment could not be set up on the host: ask the site's "
     "support if it stays so."),
    ("execution initialization failed", "Its host could not start it; LSF tries another one."),
    ("scheduling of the job is delayed", "LSF looks at it again in a moment."),
    ("migrating job", "It moves to another host and waits for one."),
    ("switching queue", "It was moved to another queue and waits there."),
    ("running element limit", "The array runs no more of its jobs at a time; it starts when one "
     "ends."),
    ("job group", "The limit of its job group is reached; it starts when one of its jobs ends."),
    ("host group", "The limit of these hosts is reached; it starts when jobs on them end."),
    ("guaranteed", "The free hosts are kept for others; it starts when enough are free."),
    ("limit defined", "A limit of the site is reached (see: blimits); it starts when other jobs "
     "end."),
    ("limit for resource", "A limit of the site is reached (see: blimits); it starts when other "
     "jobs end."),
    ("recently started", "Its hosts have just started another job; LSF looks again in a moment."),
    ("just started a job", "Its hosts have just started another job; LSF looks again in a moment."),
    ("load threshold", "The hosts that fit are too busy: wait, or choose another queue."),
    ("thresholds", "The hosts that fit are too busy: wait, or choose another queue."),
    ("locked", "The hosts that fit are locked: wait, or choose another queue."),
    ("not usable to the queue", "The queue may not use the hosts that fit: choose another queue."),
    ("not specified in job submission", "The hosts that it names are not free: remove the "
     "directive -m, or wait."),
    ("preempt", "Waits until jobs of lower priority have made room for it."),
    ("advance reservation", "The hosts are reserved: a shorter walltime may fit before."),
    ("GPU", "Not enough free GPUs that fit: wait, or change job.gpus or job.gpu_type."),
    ("resource requirements not satisfied", "No host has what it asks for now: check -R, job.cpus, "
     "job.memory and job.gpus, or wait."),
    ("resource requirements cannot be satisfied", "No host can ever give what it asks for: check "
     "-R, job.cpus, job.memory and job.gpus."),
    ("Requirement for exclusive", "Waits for a host without other jobs."),
    ("Not enough job slot", "Waits until enough job slots are free on one host."),
    ("Not enough hosts", "Waits until enough hosts are free."),
    ("Not enough processors", "Waits until enough cores are free."),
    ("Job slot limit reached", "The hosts are full; it starts when other jobs end."),
    ("Job's requirements", "No host has what it asks for now: ask for less, or wait."),
    ("Load information unavailable", "The hosts that fit do not answer."),
    ("closed", "The hosts that fit are closed: wait, or choose another queue."),
    ("Unable to reach", "The hosts that fit do not answer."),
    ("license", "Waits for a licence."),
    ("fairshare", "Other users' jobs come first; a smaller or shorter job may start sooner."),
    ("priority", "Other jobs come first; a smaller or shorter job may start sooner."),
    ("Specified start time", "Its earliest start time is still to come."),
    ("start time", "Its earliest start time is still to come."),
)  # fmt: skip
"""Part of a pending reason, in any case -> sentence; the first that fits counts."""

SYSTEM = re.compile(r"Job not submitted\.?$")
GENERAL = re.compile("Request aborted by esub")
"""Stands after the words of the site's own check."""

REFUSALS: tuple[Cure, ...] = (
    ("easy mode", "This site gives whole nodes: set job.gpu_request: nnodes, or skip -n, -R and -M "
     "and add the directive -nnodes."),
    ("-nnodes", "This site gives whole nodes: set job.gpu_request: nnodes."),
    ("Project not specified", "Set job.account to one of your projects."),
    ("Not a member of the specified project", "Set job.account to one of your projects."),
    ("No such queue", "Set job.queue to a queue of this site (see: bqueues)."),
    ("Queue does not accept", "Choose another queue (see: bqueues)."),
    ("User cannot use the queue", "Choose a queue that you may use (see: bqueues -u $USER)."),
    ("cannot use the specified queue", "Choose a queue that you may use (see: bqueues -u $USER)."),
    ("queue has been closed", "The queue takes no jobs now: choose another one (see: bqueues)."),
    ("Run time limit", "Lower job.walltime below the queue's limit (see: bqueues -l)."),
    ("RUNLIMIT", "Lower job.walltime below the queue's limit (see: bqueues -l)."),
    ("Cannot exceed queue's hard limit", "Lower job.walltime or job.memory below the "
     "queue's limits (see: bqueues -l)."),
    ("Cannot exceed queue's resource", "Lower what -R rusage asks for below the queue's limits."),
    ("MEMLIMIT", "Lower job.memory below the queue's limit (see: bqueues -l)."),
    ("Bad resource requirement", "Correct the -R directive."),
    ("Too many processors requested", "Lower job.cpus below the queue's limit."),
    ("processors requested", "Change job.cpus to what the queue allows (see: bqueues -l)."),
    ("Pending job threshold reached", "You have as many waiting jobs as the site takes: wait, or "
     "ask for fewer, larger jobs."),
    ("Job array index too large", SMALLER_ARRAYS),
    ("MAX_JOB_ARRAY_SIZE", SMALLER_ARRAYS),
    ("Bad GPU", "Change the request for GPUs: job.gpu_request and job.gpu_type."),
    # Only LSF's own lines: a site's may name GPUs for another reason.
    (re.compile(r"\b(gpu|GPU)\b.*Job not submitted"), "Change the request for GPUs: "
     "job.gpu_request and job.gpu_type."),
    ("Illegal option", "Remove the directive that LSF does not know from job.directives."),
    ("illegal option", "Remove the directive that LSF does not know from job.directives."),
    ("command not found", "Start from a host of the site that has LSF's commands."),
    ("No such file or directory", "Start from a host of the site that has LSF's commands."),
    ("aborted by esub", "The site's own check refused the job; its words are above."),
)  # fmt: skip
"""Part of what bsub says -> what to change."""
