"""What OAR says of waiting, ended and refused jobs, and what to change."""

from __future__ import annotations

import re

from ...core.job import JobState
from ..refusal import Cure

ENDED = (
    ("WALLTIME", JobState.TIMEOUT, "It reached its walltime; ask for a longer one."),
    ("BESTEFFORT_KILL", JobState.PREEMPTED, "A job that is not besteffort took its place."),
    ("EXIT_VALUE_OAREXEC", JobState.NODE_FAIL, "Its node could not start it, and OAR suspects the "
     "node now."),
    ("PROLOGUE_ERROR", JobState.NODE_FAIL, "The site's prologue failed on its node."),
    ("CANNOT_CREATE_TMP_DIRECTORY", JobState.NODE_FAIL, "Its node could not start it."),
    ("PING_CHECKER_NODE_SUSPECTED", JobState.NODE_FAIL, "Its node does not answer."),
    ("USER_SHELL", JobState.FAILED, "Your login shell does not exist on its node."),
    ("LAUNCHING_OAREXEC_TIMEOUT", JobState.NODE_FAIL, "Its node took too long to start it."),
    ("SSH_TRANSFER_TIMEOUT", JobState.NODE_FAIL, "Its node took too long to start it."),
    ("BAD_HASHTABLE_DUMP", JobState.NODE_FAIL, "Its node answered nonsense as it was started."),
    ("CPUSET_ERROR", JobState.NODE_FAIL, "Its node could not set the job's cores apart, and OAR "
     "suspects the node now."),
    ("CANNOT_WRITE_NODE_FILE", JobState.NODE_FAIL, "Its node could not write the job's files: is "
     "its disk full?"),
    ("CANNOT_WRITE_PID_FILE", JobState.NODE_FAIL, "Its node could not write the job's files: is "
     "its disk full?"),
    ("SERVER_PROLOGUE_TIMEOUT", JobState.FAILED, "The site's prologue took too long: ask the "
     "site's support."),
    ("SERVER_PROLOGUE_EXIT_CODE_ERROR", JobState.FAILED, "The site's prologue failed: ask the "
     "site's support."),
    ("SUSPEND_ERROR", JobState.FAILED, "It could not be suspended, so OAR ended it."),
    ("RESUME_ERROR", JobState.FAILED, "It could not be resumed, so OAR ended it."),
    ("RESERVATION_NO_NODE", JobState.FAILED, "None of the nodes that were reserved for it was "
     "there: remove the directive -r, or choose another time."),
    ("WORKING_DIRECTORY", JobState.FAILED, "Its working directory does not exist on its node: is "
     "the cluster's directory seen by the nodes?"),
    ("OUTPUT_FILES", JobState.FAILED, "Its log could not be opened: is the cluster's directory "
     "seen by the nodes?"),
    ("FRAG_JOB_REQUEST", JobState.CANCELLED, ""),
)  # fmt: skip
"""Event of a job in state Error -> state and sentence; the first that happened counts."""

WAITING = (
    ("due to dependency", "Waits for another job that it depends on."),
    ("cannot determine scheduling time due to dependency", "Waits for another job that it depends "
     "on."),
    ("will never run", "It can never run ({reason}): correct the directive -t, or stop it."),
    ("does not exist", "The container job that it is to run in does not exist: correct the "
     "directive -t inner=."),
    ("inner job", "Waits for the container job that it is to run in."),
    ("enough Tokens", "Waits for a licence or another token ({reason})."),
    ("reservation", "Its reservation cannot be kept ({reason}): remove or change the directive "
     "-r."),
    ("not responding", "Nodes that it was to have do not answer; OAR looks for others."),
    ("FIFO scheduling OK", "It is planned and waits for its turn."),
    ("quota", "A quota of yours or of your project is reached ({reason})."),
    ("no enough matching resources", "There is less than it asks for: lower job.gpus, job.cpus or "
     "job.nodes, or correct the property (-p)."),
    ("no enough resources", "There is less than it asks for: lower job.gpus, job.cpus or "
     "job.nodes."),
    ("Cannot find enough resources", "There is less than it asks for: lower job.gpus, job.cpus or "
     "job.nodes, or correct the property (-p)."),
)  # fmt: skip
"""Part of a waiting job's message, in any case -> sentence."""

OWN = re.compile(r"\[ERROR\] |ERROR : |\[ADMISSION RULE\] (Error: )?")
SYSTEM = re.compile("^DBD::|^Bad resource request")
NOISE = re.compile(
    "Modify resource description|Set default|Generate a job key|^OAR_(JOB|ARRAY)_ID="
    r"|^LINE \d+: |^\^ at /|Oarsub failed|^Reservation mode: waiting"
    "|current transaction is aborted"
)

REFUSALS: tuple[Cure, ...] = (
    ("column \"", "Correct the property: the site has none of that name (see: oarnodes)."),
    ("Bad resource request", "Correct the directive -p or -l: a name in it is not a property of "
     "this site (see: oarnodes)."),
    ("There are not enough resources", "The site has less than that: lower job.gpus, job.cpus or "
     "job.nodes, or change job.gpu_request, job.gpu_type or the property (-p)."),
    ("The queue", "Set job.queue to a queue of this site."),
    ("in the admin queue", "Choose another job.queue."),
    ("Walltime too", "Lower job.walltime below the site's limit."),
    ("unknown job type", "Remove or correct the directive -t."),
    ("Cannot recognize", "Correct the resources (-l): job.gpu_request, job.walltime, or a "
     "directive of yours."),
    ("Not able to scan file line", "Remove the directive that OAR does not know from "
     "job.directives: in scripts it knows few."),
    ("Reservation not valid", "Remove or correct the directive -r."),
    ("reservation date", "Remove or correct the directive -r."),
    ("syntax error at or near", "Leave quotes out of names and properties."),
    ("An array job must have", "Remove the directive --array from job.directives: the number of "
     "workers sets the size of the array."),
    ("Cannot open the file", "The cluster's directory must be readable here."),
    ("command not found", "Start from a host of the site that has OAR's commands."),
    ("oarsub: No such file or directory", "Start from a host of the site that has OAR's commands."),
)  # fmt: skip
"""Part of what oarsub says -> what to change."""
