"""What OAR says of waiting, ended and refused jobs, and what to change."""

from __future__ import annotations

from ...records import JobState

ENDED = (
    ("WALLTIME", JobState.TIMEOUT, "It reached its walltime; ask for a longer one."),
    ("BESTEFFORT_KILL", JobState.PREEMPTED, "A job that is not besteffort took its place."),
    ("EXIT_VALUE_OAREXEC", JobState.NODE_FAIL, "Its node could not start it, and OAR suspects the "
     "node now."),
    ("PROLOGUE_ERROR", JobState.NODE_FAIL, "The site's prologue failed on its node."),
    ("CANNOT_CREATE_TMP_DIRECTORY", JobState.NODE_FAIL, "Its node could not start it."),
    ("PING_CHECKER_NODE_SUSPECTED", JobState.NODE_FAIL, "Its node does not answer."),
    ("USER_SHELL", JobState.FAILED, "Your login shell does not exist on its node."),
    ("WORKING_DIRECTORY", JobState.FAILED, "Its working directory does not exist on its node: is "
     "the cluster's directory seen by the nodes?"),
    ("OUTPUT_FILES", JobState.FAILED, "Its log could not be opened: is the cluster's directory "
     "seen by the nodes?"),
    ("FRAG_JOB_REQUEST", JobState.CANCELLED, ""),
)  # fmt: skip
"""Event of a job in state Error -> state and sentence; the first that happened counts."""

WAITING = (
    ("due to dependency", "Waits for another job that it depends on."),
    ("quota", "A quota of yours or of your project is reached ({reason})."),
    ("no enough resources", "There is less than it asks for: lower job.gpus, job.cpus or "
     "job.nodes."),
    ("Cannot find enough resources", "There is less than it asks for: lower job.gpus, job.cpus or "
     "job.nodes, or correct the property (-p)."),
)  # fmt: skip
"""Part of a waiting job's message -> sentence."""

REFUSALS = (
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
    ("Cannot open the file", "The cluster's directory must be readable here."),
    ("command not found", "Start from a host of the site that has OAR's commands."),
    ("oarsub: No such file or directory", "Start from a host of the site that has OAR's commands."),
)  # fmt: skip
"""Part of what oarsub says -> what to change."""
