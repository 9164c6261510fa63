"""Messages of PBS and Torque about waiting, ended and refused jobs, with fixes."""

from __future__ import annotations

import re

from ...core.job import JobState
from ..refusal import SITES_RULE, SMALLER_ARRAYS, UNREADABLE_SCRIPT, WINDOWS_LINES, Cure

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
    ("too many failed attempts", "It could not be started several times, and PBS holds it now: see "
     "its log, then stop the cluster."),
    ("limit on resource", "A limit of what you, your group or your project may have at a time is "
     "reached ({reason}); it starts when some of it is free."),
    ("running limit", "A limit of running jobs is reached; it starts when one of them ends."),
    ("job limit", "A limit of running jobs is reached; it starts when one of them ends."),
    ("run limit", "A limit of running jobs is reached; it starts when one of them ends."),
    ("per-user limit reached", "Your limit in this queue is reached; it starts when one of your "
     "jobs ends."),
    ("per-group limit reached", "Your group's limit in this queue is reached."),
    ("per-project limit reached", "Your project's limit in this queue is reached."),
    ("not an execution queue", "The queue runs no jobs itself: choose another job.queue."),
    ("Queue not started", "The queue takes jobs but starts none now: choose another job.queue or "
     "wait."),
    ("Insufficient amount of resource: ngpus", "Waits until enough GPUs are free; fewer GPUs may "
     "start sooner."),
    ("Insufficient amount of resource: host", "The host that it needs is down or taken."),
    ("Insufficient amount of server resource", "Waits until enough is free of what the whole site "
     "shares ({reason}), such as licences."),
    ("Insufficient amount of queue resource", "Waits until enough is free of what the queue's jobs "
     "share ({reason}); another job.queue may start it sooner."),
    ("Insufficient amount of resource", "Waits until enough is free ({reason})."),
    ("No available resources on nodes", "Waits until a node is free; all are taken or down."),
    ("would conflict with", "Waits, because it would run into a reservation or another job: a "
     "shorter walltime may start sooner."),
    ("enough of the right type of nodes", "Waits until enough nodes of its kind are free; all "
     "are taken or down."),
    ("enough free nodes", "Waits until enough nodes are free; fewer nodes may start sooner."),
    ("exclusive node", "Waits for a node without other jobs; remove the directive -l place=excl "
     "to share one."),
    ("placement set", "No group of nodes that belong together is large enough ({reason}): lower "
     "job.nodes, or wait."),
    ("preempt enough work", "Other jobs could not make enough room for it; it waits until they "
     "end."),
    ("strict sorted order", "Jobs before it in the queue have to start first."),
    ("starving job", "PBS keeps nodes free for a job that has waited long: a shorter walltime may "
     "start sooner."),
    ("interfere with", "Waits, because it would run into a reservation: a shorter walltime may "
     "start sooner."),
    ("nonprimetime", "The queue starts jobs only outside of the site's prime time: wait, or choose "
     "another job.queue."),
    ("primetime", "The queue starts jobs only in the site's prime time: wait, or choose another "
     "job.queue."),
    ("Job will cross into", "It would run into the site's prime time, or out of it: a shorter "
     "walltime may start sooner."),
    ("cross dedicated time", "Waits for the end of a time that the site keeps for itself: a "
     "shorter walltime may start sooner."),
    ("edicated time", "Waits for a time that the site keeps for certain jobs to begin or "
     "end."),
    ("does not exist", "What it asks for does not exist ({reason}), so it will never start: "
     "correct that directive."),
    ("Execution server rejected", "Its node refused it; PBS tries again: ask the site's support if "
     "it stays so."),
    ("PBS Error", "PBS could not start it: {reason}. Ask the site's support if it stays so."),
    ("Execution_Time", "Its earliest start time is still to come."),
    ("Not Running", "PBS lets it wait: {reason}"),
    # What is said of a job that was requeued, before the scheduler looks at it again.
    ("Job run at", "It was put back into the queue and waits again."),
    ("Job was sent for execution", "It is being started."),
)  # fmt: skip
"""Part of a waiting job's comment, in any case -> sentence; the first that fits counts."""

ENDED = {
    -1: (JobState.FAILED, "The node could not start it: see the job's log, or try another node."),
    -2: (JobState.FAILED, "The node could not start it; the site's prologue may have failed: see "
         "the job's log."),
    -3: (JobState.FAILED, "The node could not start it and PBS gave up: try another node."),
    -4: (JobState.NODE_FAIL, "Its node was restarted, which ended it."),
    -5: (JobState.NODE_FAIL, "Its node was restarted, which ended it."),
    -6: (JobState.NODE_FAIL, "Its node was restarted, which ended it."),
    -7: (JobState.FAILED, "It could not be restarted from its checkpoint."),
    -10: (JobState.FAILED, "Your account is not known on its node: ask the site's support."),
    -12: (JobState.FAILED, "It was ended for a checkpoint."),
    -13: (JobState.FAILED, "Your password is not known on its node: ask the site's support."),
    -14: (JobState.NODE_FAIL, "One of its nodes failed as it was started."),
    -15: (JobState.FAILED, "It was taken off its node as the node restarted."),
    -16: (JobState.FAILED, "A hook of the site failed as it was started: ask the site's support."),
    -17: (JobState.FAILED, "A hook of the site failed and deleted it: ask the site's support."),
    -18: (JobState.FAILED, "A hook of the site sent it back: ask the site's support."),
    -19: (JobState.FAILED, "A hook of the site deleted it: ask the site's support."),
    -11: (JobState.FAILED, "It was taken off its node to run again, and has not run again."),
    -20: (JobState.NODE_FAIL, "Its node failed."),
    -21: (JobState.FAILED, "Its node found its files unsafe: ask the site's support."),
    -22: (JobState.FAILED, "A hook of the site failed: ask the site's support."),
    -23: (JobState.FAILED, "Its Kerberos ticket could not be used: log in again (kinit)."),
    -24: (JobState.FAILED, "It used more cores than job.cpus asks for: ask for more."),
    -25: (JobState.FAILED, "It used more cores than job.cpus asks for: ask for more."),
    -26: (JobState.OUT_OF_MEMORY, "It used more virtual memory than it may: raise the limit "
          "in job.directives."),
    -27: (JobState.OUT_OF_MEMORY, "It used more memory than job.memory asks for: ask for more."),
    -28: (JobState.TIMEOUT, "It used more CPU time than it may: raise the limit cput."),
    -29: (JobState.TIMEOUT, "It reached its walltime: ask for a longer one."),
    -30: (JobState.FAILED, "Its nodes could not join it: another node may work."),
}  # fmt: skip
"""Exit_status that PBS itself gives (JOB_EXEC_* of its job.h) -> state and sentence."""

OWN = re.compile("qsub: |ERROR: +")
GENERAL = re.compile("administratively rejected|more detailed explanation prior")
"""Torque's addition to the message of a site's submit filter."""
NOISE = re.compile(r"\(errno=\d+\)|^No such file or directory$")

REFUSALS: tuple[Cure, ...] = (
    ("Unknown queue", "Set job.queue to a queue of this site (see: qstat -Q)."),
    ("Queue is not enabled", "The queue takes no jobs now: choose another job.queue."),
    ("Unauthorized Request", "You may not use this queue: choose another job.queue."),
    ("Access to queue is denied", "You may not use this queue: choose another job.queue."),
    ("Unknown Host", "job.queue names a server that does not exist: leave out what follows '@'."),
    # PBS says so of values below resources_min, too.
    ("violates queue and/or server resource limits", "Set job.gpus, job.cpus, job.memory, "
     "job.nodes and job.walltime within the queue's limits (resources_max and resources_min in "
     "qstat -Qf), or change job.queue."),
    ("per-user limit", "You have as many jobs in this queue as it takes: ask for fewer, larger "
     "jobs, or wait until one has ended."),
    (re.compile("would exceed .*limit on resource"), "You, your group or your project have as "
     "much of it in this queue as the limit allows: wait until one of the jobs has ended, or lower "
     "what is named."),
    ("exceeds server or queue size limit", SMALLER_ARRAYS),
    ("Unknown resource", "Change the request for GPUs (job.gpu_request), or remove the "
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
    ("illegal -J value", "Remove the directive -J from job.directives: the number of workers "
     "sets the size of the array."),
    (re.compile("(?<=illegal )-[A-Za-z](?= value)"), "Remove or correct the directive {reason} in "
     "job.directives."),
    ("invalid option", "Remove the option that PBS does not know from job.submit_args and "
     "job.directives."),
    ("script contains cr, lf", WINDOWS_LINES),
    ("script file:", UNREADABLE_SCRIPT),
    (re.compile(r"\bwalltime\b"), "Set job.walltime to what the site asks for."),
    ("administratively rejected", SITES_RULE),
    ("pbs conf variables not found", "Start from a host of the site that has PBS's commands."),
    ("command not found", "Start from a host of the site that has PBS's commands."),
    ("qsub: No such file or directory", "Start from a host of the site that has PBS's commands."),
)  # fmt: skip
"""Part of what qsub says -> what to change."""
