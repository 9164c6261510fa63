"""The facts of recorded and real sites, against which the answers of `setup` are measured."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Any

from jupyter_gpucluster.batch import find_backend
from jupyter_gpucluster.core.job import CommandResult
from jupyter_gpucluster.core.site import GpuQueue, Site
from tests.batch.recorded import CAPTURED, FORM

MIB, HOUR = 2**20, 3600
H100 = {"gpus": 4, "cpus_per_gpu": 2, "memory_per_gpu": 4000 * MIB}
A100 = {"gpus": 2, "cpus_per_gpu": 4, "memory_per_gpu": 7500 * MIB}  # 1000 MB are Slurm's own
BOTH = {"accounts": ("chem", "lab1"), "qos": ("long", "normal")}
SLURM: dict[tuple[str, str], dict[str, Any]] = {
    ("gpu", "h100"): H100 | BOTH | {"nodes": 2, "walltime": 1800, "default_walltime": 300},
    ("short", "h100"): H100 | BOTH | {"nodes": 2, "walltime": 120, "default_walltime": 120},
    ("scavenge", "h100"): H100 | BOTH | {"nodes": 2, "walltime": 1800, "default_walltime": 300},
    ("mixed", "a100"): A100 | BOTH | {"nodes": 1, "walltime": 24 * HOUR, "default_walltime": HOUR},
    ("mixed", "h100"): H100 | BOTH | {"nodes": 1, "walltime": 24 * HOUR, "default_walltime": HOUR},
    ("chem", "h100"): H100
    | {"nodes": 2, "walltime": 4 * HOUR, "accounts": ("chem",), "open_to": "accounts chem"},
    ("one", "a100"): A100 | BOTH | {"nodes": 1, "walltime": HOUR, "most_gpus": 1},
    ("long", "a100"): A100 | {"nodes": 1, "walltime": -1, "qos": ("long",), "qos_needed": True},
    ("private", "h100"): {"closed": "it is for the groups daemon"},
    ("closed", "h100"): {"closed": "its state is DOWN"},
    # Its account is the parent of one of the user's: only the rehearsal knows [22.05 refuses].
    ("parent", "h100"): H100 | {"nodes": 2, "walltime": 1800, "open_to": "accounts phys"},
}
SGE = {
    ("gpu.q", ""): {
        "gpus": 4, "cpus_per_gpu": 1, "nodes": 2, "walltime": 8 * HOUR, "open_to": "all users",
        "default_walltime": 8 * HOUR, "memory_per_gpu": "mem_total cannot be requested safely",
    },
}  # fmt: skip
OAR = {
    ("", ""): {
        "gpus": 4, "cpus_per_gpu": 1, "memory_per_gpu": 4096 * MIB, "nodes": 1,
        "gpu_type": "gpumodel is not the property gpu_model that the key requests",
    },
}  # fmt: skip
SHARE = {"gpus": 4, "cpus_per_gpu": 2, "memory_per_gpu": 4096 * MIB, "nodes": 2}
PBS = {
    ("workq", ""): SHARE | {"open_to": "all users"},
    ("short", ""): SHARE | {"walltime": 120, "most_gpus": 2, "default_walltime": 60},
    ("private", ""): {"closed": "it is for the users bob"},
    ("closed", ""): {"closed": "it is disabled or stopped"},
}
"""Facts that the answers contain; a text is the reason why a fact is left as a question."""
TRUTH: dict[str, Mapping[Any, Any]] = {"slurm": SLURM, "sge": SGE, "oar": OAR, "pbs": PBS}
REASONED = ("memory_per_gpu", "gpu_type")

QUEUE = {"queue_type": "Execution", "enabled": "True", "started": "True"}
PBS_QUEUES = {
    "workq": QUEUE,
    "short": QUEUE
    | {"resources_max": {"walltime": "00:02:00", "ngpus": 2}}
    | {"resources_default": {"walltime": "00:01:00"}},
    "private": QUEUE | {"acl_user_enable": "True", "acl_users": "bob"},
    "closed": QUEUE | {"enabled": "False"},
    "routed": QUEUE | {"queue_type": "Route"},
}
"""``qstat -Q -f -F json``, after PBSReferenceGuide 2024.1, RG-206, and recorded listings."""
FILES = {
    ("sge", "queues"): "capacity_qconf_sq",
    ("sge", "hosts"): "capacity_qconf_se",
    ("sge", "instances"): "capacity_qhost_q_F_xml",
    ("sge", "complexes"): "capacity_qconf_sc",
    ("sge", "environments"): "capacity_qconf_sp",
    ("oar", "resources"): "capacity_oarnodes_sql_json",
    ("pbs", "nodes"): "capacity_pbsnodes_json",
}


def recorded(system: str, file: str) -> CommandResult:
    """Return one recorded answer."""
    match = FORM.fullmatch((CAPTURED / system / f"{file}.txt").read_text("utf-8"))
    assert match, file
    command, code, out, err = match.groups()
    return CommandResult(tuple(shlex.split(command, comments=True)), int(code), out, err)


def answers(system: str) -> dict[str, CommandResult]:
    """Return the recorded answers of a system to all commands of its survey."""
    found = {}
    for name, argv in find_backend(system).survey("alice").items():
        if system == "slurm" or (system, name) in FILES:
            found[name] = recorded(system, FILES.get((system, name), f"survey_{name}"))
        else:
            text = {"user": "alice\n", "groups": "users\n", "queues": ""}.get(name, "")
            if (system, name) == ("pbs", "queues"):
                text = json.dumps({"pbs_version": "23.06.06", "Queue": PBS_QUEUES})
            found[name] = CommandResult(tuple(argv), 0, text, "")
    if system == "sge":  # recorded one by one
        hosts, environment = found["hosts"].stdout, found["environments"].stdout
        other = hosts.replace("gpu01", "gpu02")
        smp = environment.replace(" mpi\n", " smp\n").replace("$round_robin", "$pe_slots")
        found["hosts"] = CommandResult(("qconf",), 0, f"{hosts}\n{other}", "")
        found["environments"] = CommandResult(("qconf",), 0, f"{environment}\n{smp}", "")
    return found


def measure(queues: Mapping[tuple[str, str], GpuQueue], truth: Mapping[Any, Any]) -> Counter[str]:
    """Count the facts of queues that are right, left as questions, or wrong."""
    counted: Counter[str] = Counter()
    for key, facts in truth.items():
        for name, value in facts.items():
            found = getattr(queues[key], name)
            empty = not found
            left = empty and (name in REASONED and isinstance(value, str))
            counted["left" if left else "right" if found == value else "wrong"] += 1
    return counted


def by_key(site: Site) -> dict[tuple[str, str], GpuQueue]:
    """Return the queues of a site by name and type of GPU."""
    return {(queue.name, queue.gpu_type): queue for queue in site.queues}
