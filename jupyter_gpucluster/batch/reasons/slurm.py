"""Slurm's reasons and refusals in words: https://slurm.schedmd.com/job_reason_codes.html."""

from __future__ import annotations

import re

from ..refusal import (
    BUDGET_USED_UP,
    EMPTY_SCRIPT,
    SITES_RULE,
    SMALLER_ARRAYS,
    UNREADABLE_SCRIPT,
    WINDOWS_LINES,
    Cure,
)

HELD = frozenset(
    {
        "JobHeldUser",
        "JobHeldAdmin",
        "JobHoldMaxRequeue",
        "job requeued in held state",
        "launch failed requeued held",
        "user env retrieval failed requeued held",
    }
)
"""Reasons with which a pending job does not move until a release."""

NEVER = frozenset({"DependencyNeverSatisfied"})
"""Reasons that neither time nor the site will ever cure, and with which the next job would wait."""

WAITING = {
    "Resources": "Next in line: waits until enough nodes or GPUs are free.",
    "Priority": "Other jobs are before it in the queue; a smaller or shorter job may start sooner.",
    "Dependency": "Waits for another job that it depends on.",
    "DependencyNeverSatisfied": "What it depends on failed, so it will never start: remove or "
    "correct the directive --dependency.",
    "BeginTime": "Its earliest start time is still to come (as after a requeue).",
    "JobHeldUser": "Held by you: release it with `scontrol release`, or stop the cluster.",
    "JobHeldAdmin": "Held by an administrator: ask the site's support.",
    "JobHoldMaxRequeue": "Put back into the queue so often that Slurm now holds it: see its log, "
    "then stop the cluster.",
    "job requeued in held state": "Put back into the queue and held: release it with "
    "`scontrol release`, or stop the cluster.",
    "launch failed requeued held": "Its node could not start it, and Slurm holds it now: release "
    "it with `scontrol release`, or stop the cluster.",
    "user env retrieval failed requeued held": "Your login environment could not be read on its "
    "node (a slow or broken ~/.bashrc?), and Slurm holds it now: remove the directive "
    "--get-user-env, or stop the cluster.",
    "JobArrayTaskLimit": "The array allows no more of its tasks at a time.",
    "Prolog": "The node is being prepared.",
    "ReqNodeNotAvail": "Nodes that it needs are down or reserved (maintenance?); ask for other "
    "nodes, or a walltime that ends before the reservation begins.",
    "ReservationInvalid": "Its reservation does not fit it: correct the --reservation directive.",
    "ReservationMaxDurationExceeded": "Its walltime is longer than its reservation allows: ask "
    "for less.",
    "PowerNotAvail": "Not enough power is left for it; it starts when other jobs end.",
    "PowerReserved": "The power that it needs is reserved for others.",
    "FedJobLock": "The clusters of the federation settle which of them starts it.",
    "AccountingPolicy": "A limit of your account or quality of service keeps it waiting: wait, or "
    "use another (see: sacctmgr show assoc, sacctmgr show qos).",
    "AssociationJobLimit": "Your account runs no more jobs at a time; it starts when one ends.",
    "AssociationResourceLimit": "Your account's limit of resources in use is reached; it starts "
    "when some are free.",
    "AssociationTimeLimit": "Your account's time is used up, so it will not start: use another "
    "account.",
    "QOSTimeLimit": "The time of your quality of service is used up, so it will not start: change "
    "the directive --qos.",
    "MaxMemPerLimit": "It asks for more memory per node or core than the site allows, so it will "
    "not start: lower job.memory.",
    "ReservationDeleted": "Its reservation is gone: remove the --reservation directive.",
    "Cleaning": "It was put back into the queue, and its last run is still being cleared away.",
    "SchedDefer": "Slurm starts it at its next look at the queue.",
    "FrontEndDown": "No front end is there to start it.",
    "DeadLine": "It cannot end before its deadline, so it will never start: remove the directive "
    "--deadline or ask for a shorter walltime.",
    "Reservation": "Waits for its reservation to begin.",
    "PartitionDown": "The partition takes jobs but starts none now: choose another queue or wait.",
    "PartitionInactive": "The partition is inactive: choose another queue.",
    # "outside of its partition's current limits", says the manual: of the smallest as well.
    "PartitionNodeLimit": "Its number of nodes is outside the partition's limits, so it will never "
    "start: change job.nodes (see: scontrol show partition) or choose another queue.",
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
    "AssocMaxSubmitJobLimit": "Your account takes no more jobs: wait, or ask for fewer, larger "
    "ones.",
    "AssocGrpCPUMinutesLimit": "Your account's CPU-minutes are used up: use another account.",
    "AssocMaxWallDurationPerJobLimit": "Its walltime is above the limit of your account, so it "
    "will not start: ask for less.",
    "AccountNotAllowed": "Your account may not use this partition: set another job.queue or "
    "job.account.",
    "QOSNotAllowed": "Your account may not use this quality of service here: change the directive "
    "--qos or job.queue.",
    "QOSUsageThreshold": "The use of your quality of service is above its threshold: wait, or use "
    "another.",
    "InvalidAccount": "The account does not exist or you may not use it: set the account.",
    "InvalidQOS": "The quality of service does not exist or you may not use it.",
}
"""Exact reason -> sentence."""

FAMILIES = (
    (
        re.compile(r"(Assoc|QOS)Grp\w*RunMinutes(Limit)?"),
        "Your account's running jobs use all its run-minutes ({reason}); this job starts when "
        "some finish, and sooner with a shorter walltime.",
    ),
    (
        # A budget, which waiting does not bring back.
        re.compile(r"(Assoc|QOS)Grp\w*(Minutes|Wall)(Limit)?"),
        "Your account's budget is used up ({reason}): use another account.",
    ),
    (
        re.compile(r"(Assoc|QOS)Max\w*MinutesPerJob(Limit)?"),
        "It asks for more minutes of its resources than one job may ({reason}), so it will not "
        "start: ask for a shorter walltime or fewer GPUs, cores or nodes.",
    ),
    (
        re.compile(r"(Assoc|QOS)Max\w*Per(Job|Node)(Limit)?"),
        "It asks for more than one job may ({reason}), so it will not start: ask for fewer GPUs, "
        "cores or nodes, or less memory.",
    ),
    (
        re.compile(r"QOSMax\w*PerUser(Limit)?|Max\w*PerAccount"),
        "You have reached your account's limit of resources in use ({reason}); this job starts "
        "when some are free.",
    ),
)
"""Families of limits that Slurm spells out for each resource -> sentence."""

ENDED = {
    "JobLaunchFailure": "Its node could not start it, or ended it for more memory than job.memory "
    "asks for: see its log, or ask for more memory.",
    "BadConstraints": "No node has what it asks for: check constraint, GPU type and memory.",
    "OutOfMemory": "It used more memory than job.memory asks for; ask for more.",
    "TimeLimit": "It reached its walltime; ask for a longer one.",
    "DeadLine": "It was still waiting or running at its deadline: remove the directive --deadline.",
    "NodeDown": "Its node failed.",
    "SystemFailure": "Slurm itself failed it: ask the site's support.",
    "InactiveLimit": "It did nothing for longer than the site allows.",
    "ReservationDeleted": "Its reservation was deleted: remove the --reservation directive.",
    "Prolog": "The site's prolog failed on its node: ask the site's support.",
}
"""Reason of a job that has failed -> sentence."""

WAITING_PREFIXES = (
    ("ReqNodeNotAvail", WAITING["ReqNodeNotAvail"]),
    (
        "QOSMin",
        "The quality of service is for larger jobs ({reason}): ask for more, or change the "
        "directive --qos.",
    ),
    ("QOSMax", "A limit of your quality of service is reached ({reason}); ask for less, or wait."),
    (
        "RequiresReservation",
        "The partition takes only jobs with a reservation: add a --reservation directive or choose "
        "another queue.",
    ),
    ("QOSGrp", "The limit that all users of this quality of service share is reached ({reason})."),
    (
        "QOS",
        "The quality of service does not allow it ({reason}): see its limits with "
        "`sacctmgr show qos`, or change the directive --qos.",
    ),
    ("AssocGrp", "A limit that your account's users share is reached ({reason})."),
    ("Assoc", "A limit of your account is reached ({reason})."),
    ("MaxGRESPerAccount", "Your account's limit of GPUs is reached."),
    ("Max", "A limit of your account is reached ({reason}); ask for less, or wait."),
    ("BurstBuffer", "Its burst buffer is being prepared ({reason})."),
    ("Partition", "The partition does not allow it ({reason}): choose another queue."),
)
"""Beginning of a reason -> sentence, for the families of limits that Slurm spells out."""

OWN = re.compile("(error|fatal): (Batch job submission failed: )?|allocation failure: ")
SYSTEM = re.compile(r"Batch job submission failed: |allocation failure: ")
GENERAL = re.compile(r"Job violates accounting/QOS policy|Unspecified error")
"""Sentences that stand after the name of a limit, or after what the site's plugin says."""
NOISE = re.compile(
    r'^Try "sbatch --help"|instead of expected UNIX line breaks|^Invalid time specification'
)

LIMITS: tuple[Cure, ...] = (
    (
        re.compile(r"\bQOSMin[A-Z]\w*|\bMin(GRES|TRES|CPU|Cpu|Node|Mem)\w*"),
        "{reason} is a minimum: raise what it names in the profile (job.gpus, job.cpus, "
        "job.memory or job.nodes), or change the directive --qos (see: sacctmgr show qos).",
    ),
    (
        re.compile(r"\b(Assoc|QOS)Grp\w*RunMinutes(Limit)?\b"),
        "The running jobs of your account use all its run-minutes: wait until some end, or set a "
        "shorter job.walltime.",
    ),
    (
        re.compile(
            r"\b(Assoc|QOS)Grp\w*(Minutes|Mins|Wall)(Limit)?\b|\bAssociationTimeLimit\b"
            r"|\bQOSTimeLimit\b|\bQOSUsageThreshold\b"
        ),
        f"{BUDGET_USED_UP} A directive --qos with a budget of its own may help, too.",
    ),
    (
        re.compile(
            r"\b(Assoc|QOS)(Grp|Max)(Submit)?Jobs?(Per(User|Account))?(Limit)?\b|\bQOSJobLimit\b"
            r"|\bAssociationJobLimit\b|\bMax(Submit)?JobsPerAccount\b"
        ),
        "You have as many jobs as your account or quality of service takes: ask for fewer, larger "
        "jobs, or wait until one has ended.",
    ),
    (
        re.compile(r"\b(Assoc|QOS)MaxWall\w*"),
        "Lower job.walltime: that of one job has a limit ({reason}).",
    ),
    (
        re.compile(r"\b(Assoc|QOS)Max\w*(Minutes|Mins)PerJob(Limit)?\b"),
        "One job may use fewer minutes of its resources ({reason}): lower job.walltime, job.gpus, "
        "job.cpus or job.nodes.",
    ),
    (
        re.compile(r"\b(Assoc|QOS)Max\w*Per(Job|Node)(Limit)?\b|\bMaxMemPerLimit\b"),
        "It asks for more than one job may have ({reason}): lower what it names (job.gpus, "
        "job.cpus, job.memory or job.nodes).",
    ),
    (
        re.compile(
            r"\b(Assoc|QOS)Max\w*Per(User|Account)(Limit)?\b|\bMax\w+PerAccount\b"
            r"|\b(Assoc|QOS)Grp[A-Z]\w*|\bAssociationResourceLimit\b|\bQOSResourceLimit\b"
        ),
        "It asks for more than you or your account may have at a time ({reason}): wait until other "
        "jobs end, or lower what it names.",
    ),
    (
        re.compile(r"\bQOSNotAllowed\b|\bInvalidQOS\b"),
        "Change the directive --qos or job.queue (see: sacctmgr show assoc).",
    ),
    (
        re.compile(r"\bAccountNotAllowed\b|\bInvalidAccount\b"),
        "Set another job.account or job.queue (see: sacctmgr show assoc).",
    ),
    (
        re.compile(r"\b(QOS|Assoc)[A-Z]\w+"),
        "Your account or quality of service does not allow it ({reason}; see: sacctmgr show assoc, "
        "sacctmgr show qos).",
    ),
)
"""Names of limits with which Slurm refuses jobs (the reasons to wait, by another tense) -> cure."""

REFUSALS: tuple[Cure, ...] = (
    *LIMITS,
    ("invalid partition", "Set job.queue to a partition of this site (see: sinfo -s)."),
    ("Invalid account", "Set job.account to an account of yours (see: sacctmgr show assoc)."),
    ("Invalid qos", "Remove or change the --qos directive (see: sacctmgr show qos)."),
    ("Invalid feature", "Change the constraint (-C) to a feature of the site (sinfo -o '%P %f')."),
    ("generic resource", "Change the request for GPUs: job.gpu_request and job.gpu_type."),
    ("Memory specification", "Lower job.memory, or leave it out: skip_directives: ['--mem']."),
    ("Requested node configuration is not available", "No node of this partition has that many "
     "GPUs, cores or that GPU type: lower job.gpus or job.cpus, or change job.queue or gpu_type."),
    ("time limit is invalid", "Set job.walltime, at most the partition's limit (see: sinfo -o "
     "'%P %l')."),
    # Slurm says so of fewer nodes than MinNodes, too.
    ("Node count specification", "Set job.nodes within the partition's limits, MinNodes and "
     "MaxNodes (see: scontrol show partition)."),
    ("More processors requested", "Lower job.cpus."),
    ("not permitted to use this partition", "Choose a partition that your group may use."),
    ("Required partition not available", "The partition takes no jobs now: choose another queue."),
    ("Invalid job array specification", SMALLER_ARRAYS),
    # Slurm's own sentences; the bare word stands in greetings and checks of sites, too.
    (re.compile(r"[Rr]equested reservation\b|[Ii]nvalid reservation\b|[Rr]eservation (name )?\S* ?"
     r"(not found|is invalid|has expired)|requires? .*[Rr]eservation"), "Remove or change the "
     "--reservation directive."),
    ("Job dependency problem", "Remove or correct the --dependency directive."),
    ("Invalid node name", "Remove or correct the --nodelist directive (-w)."),
    ("Invalid --time", "Correct the --time directive (-t), or use job.walltime instead."),
    ("Invalid --begin", "Remove or correct the --begin directive."),
    ("Batch script contains DOS line breaks", WINDOWS_LINES),
    ("Batch script is empty", EMPTY_SCRIPT),
    ("Unable to open file", UNREADABLE_SCRIPT),
    # General: stands after a name from LIMITS or a site's own sentence, and may be a minimum.
    ("Job violates accounting/QOS policy", "Slurm names no limit: compare job.gpus, job.cpus, "
     "job.nodes and job.walltime with those of your account and quality of service (see: sacctmgr "
     "show assoc, sacctmgr show qos)."),
    ("Unspecified error", SITES_RULE),
    ("unrecognized option", "Remove the directive that Slurm does not know from job.directives."),
    ("Invalid license", "Remove or change the --licenses directive."),
    ("command not found", "Start from a host of the site that has Slurm's commands."),
    ("No such file or directory", "Start from a host of the site that has Slurm's commands."),
)  # fmt: skip
"""Part of what sbatch says -> what to change."""
