"""What PBS and Torque say of waiting, ended and refused jobs, and what to change."""

from __future__ import annotations

from ...records import JobState

HOLDS = {
    "u": "Held by you: release it with `qrls`, or stop the cluster.",
    "o": "Held by an operator: ask the site's support.",
    "s": "Held by the system, because of a dependency or after too many failed starts: stop it.",
    "p": "Held because of a bad password: ask the site's support.",
}
"""Letter of Hold_Types -> sentence."""

WAITING = (
    ("Can Never Run: Not enough total nodes", "It asks for more nodes than there are, so it will "
     "never start: lower job.nodes."),
    ("Can Never Run: Insufficient amount of resource: host", "No host is called like the one it "
     "asks for, so it will never start: remove that directive."),
    ("Can Never Run: Insufficient amount of resource: ngpus", "It asks for more GPUs than there "
     "are, so it will never start: lower job.gpus or change job.queue."),
    ("Can Never Run: Insufficient amount of resource: mem", "It asks for more memory than there "
     "is, so it will never start: lower job.memory."),
    ("Can Never Run: Insufficient amount of resource: ncpus", "It asks for more cores than there "
     "are, so it will never start: lower job.cpus."),
    ("Can Never Run", "It asks for what the site can never give ({reason}), so it will never "
     "start: change job.queue or ask for less."),
    ("per-user limit reached", "Your limit in this queue is reached; it starts when one of your "
     "jobs ends."),
    ("per-group limit reached", "Your group's limit in this queue is reached."),
    ("per-project limit reached", "Your project's limit in this queue is reached."),
    ("running job limit", "A limit of running jobs is reached; it starts when one of them ends."),
    ("Queue not started", "The queue takes jobs but starts none now: choose another job.queue or "
     "wait."),
    ("Insufficient amount of resource: ngpus", "Waits until enough GPUs are free; fewer GPUs may "
     "start sooner."),
    ("Insufficient amount of resource: host", "The host that it needs is down or taken."),
    ("Insufficient amount of resource", "Waits until enough is free ({reason})."),
    ("No available resources on nodes", "Waits until a node is free; all are taken or down."),
    ("would conflict with", "Waits, because it would run into a reservation or another job: a "
     "shorter walltime may start sooner."),
    ("cross dedicated time", "Waits for the end of a time that the site keeps for itself: a "
     "shorter walltime may start sooner."),
    ("Execution_Time", "Its earliest start time is still to come."),
    ("Not Running", "PBS lets it wait: {reason}"),
    # What is said of a job that was requeued, before the scheduler looks at it again.
    ("Job run at", "It was put back into the queue and waits again."),
    ("Job was sent for execution", "It is being started."),
)  # fmt: skip
"""Part of a waiting job's comment -> sentence; the first that fits counts."""

ENDED = {
    -1: (JobState.FAILED, "The node could not start it: see the job's log, or try another node."),
    -2: (JobState.FAILED, "The node could not start it; the site's prologue may have failed: see "
         "the job's log."),
    -3: (JobState.FAILED, "The node could not start it and PBS gave up: try another node."),
    -11: (JobState.FAILED, "It was taken off its node to run again, and has not run again."),
    -20: (JobState.NODE_FAIL, "Its node failed."),
    -24: (JobState.FAILED, "It used more cores than job.cpus asks for: ask for more."),
    -25: (JobState.FAILED, "It used more cores than job.cpus asks for: ask for more."),
    -26: (JobState.OUT_OF_MEMORY, "It used more virtual memory than it may: raise the limit "
          "in job.directives."),
    -27: (JobState.OUT_OF_MEMORY, "It used more memory than job.memory asks for: ask for more."),
    -28: (JobState.TIMEOUT, "It used more CPU time than it may: raise the limit cput."),
    -29: (JobState.TIMEOUT, "It reached its walltime: ask for a longer one."),
}  # fmt: skip
"""Exit_status that PBS itself gives (JOB_EXEC_* of its job.h) -> state and sentence."""

REFUSALS = (
    ("Unknown queue", "Set job.queue to a queue of this site (see: qstat -Q)."),
    ("Queue is not enabled", "The queue takes no jobs now: choose another job.queue."),
    ("Unauthorized Request", "You may not use this queue: choose another job.queue."),
    ("Access to queue is denied", "You may not use this queue: choose another job.queue."),
    ("Unknown Host", "job.queue names a server that does not exist: leave out what follows '@'."),
    ("violates queue and/or server resource limits", "Lower job.gpus, job.cpus, job.memory, "
     "job.nodes or job.walltime below the queue's limits (see: qstat -Qf), or change job.queue."),
    ("per-user limit", "You have as many jobs in this queue as it takes: ask for fewer, larger "
     "jobs, or wait until one has ended."),
    ("exceeds server or queue size limit", "Ask for fewer workers: the site allows smaller "
     "arrays."),
    ("Unknown resource", "Change how GPUs are asked for (job.gpu_request), or remove the "
     "directive with the resource that this site does not have."),
    ('cannot be used with "select"', "Remove the directive with -l ncpus, -l mem or -l nodes from "
     "job.directives, or skip ours: skip_directives: ['select=']."),
    ("Illegal attribute or resource value", "Correct the value that is named; if a directive of "
     "yours holds it, correct it there."),
    ("illegal -N value", "Use a shorter cluster name without special characters."),
    ("illegal -A value", "Set job.account to one of your accounts."),
    ("Invalid account", "Set job.account to one of your accounts."),
    ("Bad GID", "Remove or change the directive with group_list."),
    ("directive error", "Remove the directive that PBS does not know from job.directives."),
    ("walltime", "Set job.walltime to what the site asks for."),
    ("pbs conf variables not found", "Start from a host of the site that has PBS's commands."),
    ("command not found", "Start from a host of the site that has PBS's commands."),
    ("qsub: No such file or directory", "Start from a host of the site that has PBS's commands."),
)  # fmt: skip
"""Part of what qsub says -> what to change."""
