"""Grid Engine's messages about waiting, ended and refused jobs, with fixes."""

from __future__ import annotations

import re

from ..refusal import EMPTY_SCRIPT, SMALLER_ARRAYS, Cure

ERROR = "error state"
"""Reason of a job that Grid Engine could not start and keeps in the queue (Eqw)."""
HELD = "hold"
"""Reason of a job that a user, an operator or a dependency holds; the listing does not tell."""
BY_QUEUE, BY_LOAD, BY_USER = "suspended by queue", "suspended by load", "suspended by user"

WAITING = {
    ERROR: "Grid Engine could not start it and will not try again: see 'error reason' in "
    "`qstat -j {number}`, then stop the cluster.",
    HELD: "Held by you, by an operator or by a dependency: see `qstat -j {number}`; release it "
    "with `qrls`, or stop the cluster.",
    BY_QUEUE: "Suspended because its queue gives way to a busier one; it continues by itself.",
    BY_LOAD: "Suspended because its node is overloaded; it continues by itself.",
    BY_USER: "Suspended by you or by the site; it continues when it is resumed.",
}

FAILED = {
    1: "The node could not start it: another node may work.",
    3: "The node could not write its files: ask the site's support.",
    4: "The node could not write its files: ask the site's support.",
    5: "The node could not read its files: ask the site's support.",
    6: "The node could not set its processors apart: ask the site's support.",
    7: "The site's prolog failed: ask the site's support.",
    8: "The site's prolog failed: ask the site's support.",
    9: "The parallel environment could not be set up: ask the site's support.",
    10: "The parallel environment could not be set up: ask the site's support.",
    11: "The node failed just before it started it: another node may work.",
    12: "The parallel environment could not be taken down: ask the site's support.",
    13: "The parallel environment could not be taken down: ask the site's support.",
    14: "The site's epilog failed: ask the site's support.",
    15: "The site's epilog failed: ask the site's support.",
    16: "The node could not free its processors: ask the site's support.",
    17: "It was killed by a signal, as qdel does.",
    18: "The node's shepherd died with it; the node may be out of memory.",
    19: "The node lost track of it; the node may have restarted.",
    20: "The node's shepherd met an error: ask the site's support.",
    21: "The node does not know it: the node may have restarted.",
    26: "Its log could not be opened: is the cluster's directory seen by the nodes?",
    27: "The node has no shell of that name: change the directive -S.",
    28: "Its working directory does not exist on the node: is it seen by the nodes?",
    29: "The node could not set up AFS for it: log in again, or ask the site's support.",
    30: "It ended with exit code 100, which Grid Engine takes for an error of the application.",
    31: "The node could not use your password: ask the site's support.",
    32: "The node could not use your password: ask the site's support.",
    33: "The node could not use your password: ask the site's support.",
    34: "The node's helper service failed: ask the site's support.",
    35: "The node's helper service failed: ask the site's support.",
    36: "The node could not start it: ask the site's support.",
    38: "The node could not set the job's group: ask the site's support.",
}
"""Number after `failed` in qacct (its table is in sge_status(5)) -> sentence; 25, 37 and 100 have
rules of their own."""

OWN = re.compile("Unable to run job: |qsub: |verification: ")
NOISE = re.compile(r"^Exiting\.?$")

REFUSALS: tuple[Cure, ...] = (
    ("does not exist", "The site does not have what is named: set job.queue, job.account or the "
     "directive -pe to one that it has (see: qconf -sql, qconf -sprjl, qconf -spl)."),
    ("unknown queue", "Set job.queue to a queue of this site (see: qconf -sql)."),
    ("use parallel environments", "Set job.cpus, and remove the directive with slots=."),
    ("unknown resource", "Change job.gpu_request to what this site calls GPUs, or skip the "
     "directive with the resource that it does not have (see: qconf -sc)."),
    ("no suitable queues", "No queue gives what it asks for: lower job.gpus, job.cpus, job.memory "
     "or job.walltime, or change job.queue (`qsub -w v` shows each queue's reason)."),
    ("cannot run in queue", "No queue gives what it asks for: lower job.gpus, job.cpus, job.memory "
     "or job.walltime, or change job.queue."),
    (re.compile(r"more than \d+ tasks"), SMALLER_ARRAYS),
    ("no script in your request", EMPTY_SCRIPT),
    ("Error reading answer list", "Remove values with blanks or letters such as \u00e9 from "
     "job.directives (-N): qmaster could not read the request."),
    ("not a time value", "Correct the time in the directive that is named."),
    ("can't resolve hostname", "Remove or correct the directive with hostname=."),
    ("positive submission priority", "Remove the directive -p."),
    ("object name", "Use a cluster name that begins with a letter."),
    ("argument to -N", "Use a cluster name without special characters."),
    ("invalid option argument", "Remove the directive that Grid Engine does not know from "
     "job.directives; it reads those below the first command too."),
    ("SGE_ROOT", "Start from a host of the site that has Grid Engine's commands."),
    ("cell directory", "Start from a host of the site that has Grid Engine's commands."),
    ("command not found", "Start from a host of the site that has Grid Engine's commands."),
    ("qsub: No such file or directory", "Start from a host of the site that has Grid Engine's "
     "commands."),
)  # fmt: skip
"""Part of what qsub says -> what to change."""
