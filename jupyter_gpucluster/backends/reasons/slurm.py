"""Slurm's reasons and refusals in words: https://slurm.schedmd.com/job_reason_codes.html."""

from __future__ import annotations

HELD = frozenset(
    {"JobHeldUser", "JobHeldAdmin", "job requeued in held state", "launch failed requeued held"}
)
"""Reasons with which a pending job does not move until somebody releases it."""

WAITING = {
    "Resources": "Next in line: waits until enough nodes or GPUs are free.",
    "Priority": "Other jobs are before it in the queue; a smaller or shorter job may start sooner.",
    "Dependency": "Waits for another job that it depends on.",
    "DependencyNeverSatisfied": "What it depends on failed, so it will never start: stop it.",
    "BeginTime": "Its earliest start time is still to come (as after a requeue).",
    "JobHeldUser": "Held by you: release it with `scontrol release`, or stop the cluster.",
    "JobHeldAdmin": "Held by an administrator: ask the site's support.",
    "JobArrayTaskLimit": "The array allows no more of its tasks at a time.",
    "Prolog": "The node is being prepared.",
    "ReqNodeNotAvail": "Nodes that it needs are down or reserved (maintenance?); ask for other "
    "nodes, or a walltime that ends before the reservation begins.",
    "Reservation": "Waits for its reservation to begin.",
    "PartitionDown": "The partition takes jobs but starts none now: choose another queue or wait.",
    "PartitionInactive": "The partition is inactive: choose another queue.",
    "PartitionNodeLimit": "It asks for more nodes than the partition allows, so it will never "
    "start: ask for fewer nodes or another queue.",
    "PartitionTimeLimit": "Its walltime is above the partition's limit, so it will never start: "
    "ask for a shorter walltime or another queue.",
    "PartitionConfig": "The partition can never give what it asks for: fewer cores, GPUs or "
    "memory per node, or another queue.",
    "NodeDown": "A node that it needs is down.",
    "BadConstraints": "No node has what it asks for: check constraint, GPU type and memory.",
    "Licenses": "Waits for a licence.",
    "QOSMaxJobsPerUserLimit": "Your quality of service runs no more jobs of yours at a time; "
    "it starts when one of them ends.",
    "QOSMaxSubmitJobPerUserLimit": "Your quality of service takes no more jobs of yours.",
    "QOSMaxWallDurationPerJobLimit": "Its walltime is above the limit of the quality of service: "
    "ask for less.",
    "AssocMaxJobsLimit": "Your account runs no more jobs of yours at a time.",
    "AssocGrpGRES": "Your account's limit of GPUs in use is reached; it starts when some are free.",
    "AssocGrpGRESMinutes": "Your account's GPU-minutes are used up, so it will not start: use "
    "another account.",
    "AssocGrpCPUMinutesLimit": "Your account's CPU-minutes are used up: use another account.",
    "InvalidAccount": "The account does not exist or you may not use it: set the account.",
    "InvalidQOS": "The quality of service does not exist or you may not use it.",
}
"""Exact reason -> sentence."""

WAITING_PREFIXES = (
    ("ReqNodeNotAvail", WAITING["ReqNodeNotAvail"]),
    ("QOSMax", "A limit of your quality of service is reached ({reason}); ask for less, or wait."),
    ("QOSGrp", "The limit that all users of this quality of service share is reached ({reason})."),
    ("QOS", "The quality of service does not allow it ({reason}): ask for less."),
    ("AssocGrp", "A limit that your account's users share is reached ({reason})."),
    ("Assoc", "A limit of your account is reached ({reason})."),
    ("MaxGRESPerAccount", "Your account's limit of GPUs is reached."),
    ("Partition", "The partition does not allow it ({reason}): choose another queue."),
)
"""Beginning of a reason -> sentence, for the families of limits that Slurm spells out."""

REFUSALS = (
    ("invalid partition", "Set job.queue to a partition of this site (see: sinfo -s)."),
    ("Invalid account", "Set job.account to an account of yours (see: sacctmgr show assoc)."),
    ("Invalid qos", "Remove or change the --qos directive (see: sacctmgr show qos)."),
    ("Invalid feature", "Change the constraint (-C) to a feature of the site (sinfo -o '%P %f')."),
    ("generic resource", "Change how GPUs are asked for: job.gpu_request and job.gpu_type."),
    ("Requested node configuration is not available", "No node of this partition has that many "
     "GPUs, cores or that GPU type: lower job.gpus or job.cpus, or change job.queue or gpu_type."),
    ("Memory specification", "Lower job.memory, or leave it out: skip_directives: ['--mem']."),
    ("time limit is invalid", "Lower job.walltime below the partition's limit."),
    ("Node count specification", "Lower job.nodes below the partition's limit."),
    ("More processors requested", "Lower job.cpus."),
    ("QOSMaxSubmitJobPerUserLimit", "You have as many jobs as your quality of service takes: ask "
     "for fewer, larger jobs, or wait until one has ended."),
    ("not permitted to use this partition", "Choose a partition that your group may use."),
    ("Required partition not available", "The partition takes no jobs now: choose another queue."),
    ("Invalid job array specification", "Ask for fewer workers: the site allows smaller arrays."),
    ("reservation", "Remove or change the --reservation directive."),
    ("unrecognized option", "Remove the directive that Slurm does not know from job.directives."),
    ("Invalid license", "Remove or change the --licenses directive."),
    ("command not found", "Start from a host of the site that has Slurm's commands."),
    ("No such file or directory", "Start from a host of the site that has Slurm's commands."),
)  # fmt: skip
"""Part of what sbatch says -> what to change."""
