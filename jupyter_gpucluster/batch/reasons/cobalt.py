"""Cobalt's states and refusals in words: its manual and that of the Argonne computing facility."""

from __future__ import annotations

import re

NOISE = re.compile(
    "^(submitting walltime|Job routed to queue|Memory mode set|WARNING|Auto project)"
)
"""Beginnings of what qsub says of jobs that it takes as well."""

NEVER = "dep_fail"
"""State that neither time nor the site will ever cure."""
WAITING = {
    "starting": "Its nodes are being prepared.",
    "preempted": "A job of higher priority took its place; it starts again by itself.",
    "maxrun_hold": "Your limit of running jobs in this queue is reached; it starts when one ends.",
    "dep_hold": "Waits for another job that it depends on.",
    NEVER: "A job that it depends on failed, so it will never start: remove or correct the "
    "directive --dependencies.",
    "user_hold": "Held by you: release it with `qrls`, or stop the cluster.",
    "admin_hold": "Held by an administrator: ask the site's support.",
    "hold": "Held: release it with `qrls`, or ask the site's support.",
}
"""State -> sentence."""

REFUSALS = (
    ("Not all required arguments", "Set job.walltime and job.account; Cobalt wants both."),
    ("is not executable", "The script must be executable; is the file system mounted noexec?"),
    ("not found, or is not a file", "Keep clusters on a file system that Cobalt's hosts see."),
    ("does not exist", "Set job.queue to a queue of this site (see: qstat -Q)."),
    ("node count out of", "Lower job.nodes."),
    ("nodecount", "Change job.nodes to what the queue allows (see: qstat -Q)."),
    ("invalid time", "Change job.walltime to what the queue allows (see: qstat -Q)."),
    ("walltime limit", "Change job.walltime to what the queue allows (see: qstat -Q)."),
    ("Walltime", "Change job.walltime to what the queue allows (see: qstat -Q)."),
    ("valid project", "Set job.account to one of your projects."),
    ("Project", "Set job.account to one of your projects."),
    ("not permitted", "Choose a queue that you may use (see: qstat -Q)."),
    ("is not in state", "The queue takes no jobs now: choose another one (see: qstat -Q)."),
    ("limit", "You have as many jobs as the queue takes: wait, or ask for fewer workers."),
    ("queue", "Set job.queue to a queue of this site (see: qstat -Q)."),
    ("no such option", "Remove the directive that Cobalt does not know from job.directives."),
    ("command not found", "Start from a host of the site that has Cobalt's commands."),
    ("No such file or directory", "Start from a host of the site that has Cobalt's commands."),
)  # fmt: skip
"""Part of what qsub says -> what to change."""
