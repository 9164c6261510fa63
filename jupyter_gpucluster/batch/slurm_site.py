"""Slurm's partitions, nodes and associations for `setup`: scontrol(1) and sacctmgr(1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..core.fast_dataclass import frozen
from ..core.job import CommandResult
from ..core.site import GpuQueue, Site
from .base import answered
from .directives import NO_DIRECTIVES

ASSOCIATED = "format=Cluster,Account,Partition,QOS,DefaultQOS,MaxWall,MaxTRES,GrpTRES"
QUALITIES = "format=Name,MaxWall,MaxTRES,MaxTRESPU,GrpTRES"
GRES = re.compile(r"(?:^|,)gpu(?::([^:,()]+))?:(\d+)")
FIELD = re.compile(r"(?:^|\s)(\w+)(?:=| += *)(\S*)", re.MULTILINE)
GPU_LIMIT = re.compile(r"(?:^|,)gres/gpu=(\d+)")
UNSET = ("", "(null)", "N/A", "NONE")
LEAST_MEBIBYTES = 1024
"""Less memory than this was never configured: RealMemory is 1 by default."""
PREEMPTING = ("REQUEUE", "CANCEL", "SUSPEND")
USUAL_QOS = "normal"
"""The QoS of jobs that name none, if the association has no DefaultQOS."""

Row = Mapping[str, str]


@frozen
class Node:
    """Amounts of one node."""

    gpus: int
    """Those of one type."""
    every_gpu: int
    cpus: int
    threads: int
    """CPUs of a core, which Slurm gives together."""
    mebibytes: int
    address: str


class SlurmSurvey:
    """The calls of a dialect that describe a site."""

    def survey(self, user: str) -> dict[str, list[str]]:
        """Return the commands; each only reads."""
        listed = ["sacctmgr", "-n", "-P", "show"]
        return {
            "partitions": ["scontrol", "-a", "show", "partition", "-o"],
            "nodes": ["scontrol", "-a", "show", "node", "-o"],
            "config": ["scontrol", "show", "config"],
            "associations": [*listed, "assoc", f"user={user}", ASSOCIATED],
            "qos": [*listed, "qos", QUALITIES],
            "groups": ["id", "-Gn", user],
        }

    def parse_survey(self, answers: Mapping[str, CommandResult]) -> Site:
        """Return the site; see `Backend.parse_survey`."""
        for name in ("partitions", "nodes"):
            answered("Slurm", answers[name])
        config = fields_of(_output(answers, "config"))
        cluster = config.get("ClusterName", "")
        mine = [
            row for row in _table(answers, "associations") if row.get("Cluster", cluster) == cluster
        ]
        qos = {row["Name"]: row for row in _table(answers, "qos")}
        kinds = _kinds(_output(answers, "nodes"))
        groups = _output(answers, "groups").split()
        queues = []
        for line in _output(answers, "partitions").splitlines():
            partition = fields_of(line)
            name = partition.get("PartitionName", "")
            for (where, gpu_type), nodes in kinds.items():
                if where == name:
                    described = _queue(partition, config, gpu_type, nodes)
                    queues.append(_for_user(described, partition, mine, qos, groups))
        questions = {}
        if not mine and config.get("AccountingStorageType") == "accounting_storage/slurmdbd":
            questions["account"] = "Which account is charged? Slurm's accounting did not answer."
        return Site(
            tuple(queues),
            ("SBATCH_ACCOUNT", "SLURM_ACCOUNT"),
            {name: _limits(row) for name, row in qos.items()},
            "--qos={qos}",
            questions,
        )


# The nodes and the partition.


def _kinds(text: str) -> dict[tuple[str, str], list[Node]]:
    """Return the nodes with GPUs by partition and type."""
    found: dict[tuple[str, str], list[Node]] = {}
    for line in text.splitlines():
        node = fields_of(line)
        gpus = [(kind, int(count)) for kind, count in GRES.findall(node.get("Gres", ""))]
        for kind in dict.fromkeys(kind for kind, count in gpus if count):
            described = Node(
                sum(count for each, count in gpus if each == kind),
                sum(count for _, count in gpus),
                _number(node.get("CPUEfctv") or node.get("CPUTot")),
                _number(node.get("ThreadsPerCore")) or 1,
                _number(node.get("RealMemory")) - _number(node.get("MemSpecLimit")),
                node.get("NodeAddr", ""),
            )
            for partition in node.get("Partitions", "").split(","):
                found.setdefault((partition, kind), []).append(described)
    return found


def _queue(partition: Row, config: Row, gpu_type: str, nodes: Sequence[Node]) -> GpuQueue:
    """Return what is so for all users; every node has the amounts for each of its GPUs."""
    most = _number(partition.get("MaxCPUsPerNode"))
    cpus = min(
        (min(node.cpus, most or node.cpus) // node.every_gpu // node.threads) * node.threads
        for node in nodes
    )
    largest, per_cpu = (_number(partition.get(f"MaxMemPer{each}")) for each in ("Node", "CPU"))
    memory = min(
        min(node.mebibytes, largest or node.mebibytes) // node.every_gpu
        if node.mebibytes >= LEAST_MEBIBYTES
        else 0
        for node in nodes
    )
    longest = _seconds(partition.get("MaxTime", ""))
    mode = partition.get("PreemptMode", "OFF")
    preempts = mode in PREEMPTING and config.get("PreemptType", "none").rpartition("/")[2] != "none"
    return GpuQueue(
        partition["PartitionName"],
        max(node.gpus for node in nodes),
        gpu_type,
        cpus,
        min(memory, per_cpu * cpus or memory) * 2**20,
        len(nodes),
        partition.get("OverSubscribe") == "EXCLUSIVE"
        or config.get("SelectType") == "select/linear",
        longest,
        _seconds(partition.get("DefaultTime", "")) or longest,
        remark=f"Jobs may be preempted (PreemptMode={mode})." if preempts else "",
        # Other plugins know GPUs only as generic resources.
        keys={}
        if "cons_tres" in config.get("SelectType", "cons_tres")
        else {"gpu_request": "gres"},
        address=nodes[0].address,
    )


# The user.


def _for_user(
    queue: GpuQueue, partition: Row, mine: Sequence[Row], qos: Mapping[str, Row], groups: list[str]
) -> GpuQueue:
    """Return the queue with what this user may do there."""
    rows = [row for row in mine if row.get("Partition", "") in ("", queue.name)]
    allowed, refused = _names(partition, "AllowAccounts"), _names(partition, "DenyAccounts")
    accounts = dict.fromkeys(row["Account"] for row in rows)
    listed = [name for name in accounts if name in allowed]
    # Newer versions let in the accounts below a listed one, too; a rehearsal knows.
    usable = [name for name in listed or accounts if name not in refused]
    rows = [row for row in rows if row["Account"] in usable]
    all_mine = dict.fromkeys(name for row in rows for name in row.get("QOS", "").split(",") if name)
    open_qos, no_qos = _names(partition, "AllowQos"), _names(partition, "DenyQos")
    choices = [n for n in all_mine if n not in no_qos and (not open_qos or n in open_qos)]
    usual = {row.get("DefaultQOS") or USUAL_QOS for row in rows}
    limiting = [qos[each] for each in [partition.get("QoS", "")] if each in qos]
    limiting += [qos[name] for name in choices if len(choices) == 1 and name in qos]
    if len(usable) == 1:
        limiting += [row for row in rows if row["Account"] in usable]
    words = {"AllowGroups": "groups", "AllowAccounts": "accounts", "AllowQos": "QoS"}
    open_to = [f"{word} {partition[key]}" for key, word in words.items() if _names(partition, key)]
    longest = [_seconds(row.get("MaxWall", "")) for row in limiting]
    return replace(
        queue,
        walltime=_least([queue.walltime, *longest]),
        default_walltime=_least([queue.default_walltime, *longest]),
        most_gpus=max(0, _least(_gpus(row) for row in limiting)),
        open_to=", ".join(open_to) or "all users",
        closed=_closed(partition, groups, bool(all_mine) and not choices),
        accounts=tuple(usable),
        qos=tuple(choices),
        qos_needed=bool(choices) and not usual <= set(choices),
    )


def _closed(partition: Row, groups: list[str], no_qos: bool) -> str:
    """Return why the user may not submit; a rehearsal finds the other reasons."""
    if partition.get("State", "UP") != "UP":
        return f"its state is {partition['State']}"
    if (allowed := _names(partition, "AllowGroups")) and not {*allowed} & {*groups}:
        return f"it is for the groups {', '.join(allowed)}"
    return f"it is for the QoS {partition['AllowQos']}" if no_qos else ""


def _gpus(row: Row) -> int:
    """Return the limit of GPUs of an association or a QoS; 0 = none."""
    found = (GPU_LIMIT.search(row.get(key, "")) for key in ("MaxTRES", "MaxTRESPU", "GrpTRES"))
    return min((int(match[1]) for match in found if match), default=0)


def _limits(row: Row) -> str:
    words = {"MaxWall": "", "MaxTRES": " a job", "MaxTRESPU": " a user", "GrpTRES": " together"}
    return ", ".join(f"{row[key]}{word}" for key, word in words.items() if row.get(key))


# The forms of the answers.


def _output(answers: Mapping[str, CommandResult], name: str) -> str:
    answer = answers[name]
    return answer.stdout if answer.exit_code == 0 else ""


def fields_of(text: str) -> dict[str, str]:
    """Read ``Name=value``; the first counts, since a node's last fields hold a site's own text."""
    found: dict[str, str] = {}
    for name, value in FIELD.findall(text):
        found.setdefault(name, "" if value in UNSET else value)
    return found


def _table(answers: Mapping[str, CommandResult], name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of sacctmgr, whose columns are those of the command."""
    columns = answers[name].argv[-1].removeprefix("format=").split(",")
    for line in _output(answers, name).splitlines():
        yield dict(zip(columns, line.split("|"), strict=False))


def _names(partition: Row, key: str) -> list[str]:
    """Return the names of a list; empty if it is for all."""
    text = partition.get(key, "ALL")
    return [] if text == "ALL" else [name for name in text.split(",") if name]


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def _seconds(text: str) -> int:
    return -1 if text == "UNLIMITED" else NO_DIRECTIVES.seconds(text) or 0


def _least(limits: Iterable[int]) -> int:
    """Return the smallest limit; -1 where there is none, 0 where nothing is reported."""
    known = list(limits)
    return min((each for each in known if each > 0), default=min(known, default=0))
