"""Grid Engine's queues and hosts for `setup`: qconf(1), queue_conf(5) and qhost(1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..core.job import CommandResult
from ..core.site import GpuQueue, Site
from .base import answered, xml_of
from .directives import NO_DIRECTIVES

EACH = 'for name in $(qconf "$1"); do qconf "$2" "$name"; echo; done'
"""qconf shows one object a call; the script is fixed, the options are its arguments."""
GPU_NAMES = ("gpu", "gpus", "ngpus")
MEMORY = "h_vmem"
"""The complex of a job's memory, if hosts have an amount of it that jobs consume."""
MEMORY_REQUESTS = {"YES": MEMORY, "JOB": f"{MEMORY}/job"}
"""Its request, by how it is consumed: once a slot or once a job."""
ENVIRONMENT = "smp"
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

Block = Mapping[str, str]


class SgeSurvey:
    """The calls of a dialect that describe a site."""

    def survey(self, user: str) -> dict[str, list[str]]:
        """Return the commands; each only reads."""
        each = ["sh", "-c", EACH, "qconf"]
        return {
            "queues": ["qconf", "-sq", "*"],
            "hosts": [*each, "-sel", "-se"],
            "instances": ["qhost", "-q", "-xml"],
            "complexes": ["qconf", "-sc"],
            "environments": [*each, "-spl", "-sp"],
            "projects": ["qconf", "-sprjl"],
        }

    def parse_survey(self, answers: Mapping[str, CommandResult]) -> Site:
        """Return the site; see `Backend.parse_survey`."""
        for name in ("queues", "hosts", "instances"):
            answered("Grid Engine", answers[name])
        lines = [line.split() for line in answers["complexes"].stdout.splitlines()]
        consumed = {words[0]: words[5] for words in lines if len(words) > 5}
        gpu = next((name for name in GPU_NAMES if name in consumed), "")
        hosts = {block["hostname"]: _values(block) for block in _blocks(answers["hosts"].stdout)}
        instances = _instances(answers["instances"])
        queues = []
        for queue in _blocks(answers["queues"].stdout) if gpu else ():
            name = queue["qname"]
            there = {host: slots for (each, host), slots in instances.items() if each == name}
            kinds: dict[str, list[str]] = {}
            for host in there:
                if _number(hosts.get(host, {}).get(gpu)):
                    kinds.setdefault(hosts[host].get("gpu_type", ""), []).append(host)
            for kind, members in kinds.items():
                counts = {host: _number(hosts[host][gpu]) for host in members}
                shares = [(hosts[host], counts[host], there[host]) for host in members]
                queues.append(_queue(queue, kind, members, shares, consumed, gpu, answers))
        asks = {"account": "Which project is charged?"}
        charged = answers["projects"].stdout.strip()
        return Site(tuple(queues), questions=asks if charged else {})


def _queue(
    queue: Block,
    kind: str,
    hosts: Sequence[str],
    shares: Sequence[tuple[Block, int, int]],
    consumed: Mapping[str, str],
    gpu: str,
    answers: Mapping[str, CommandResult],
) -> GpuQueue:
    environments = {block["pe_name"]: block for block in _blocks(answers["environments"].stdout)}
    usable = environments.get(ENVIRONMENT, {}).get("allocation_rule") == "$pe_slots"
    named = ENVIRONMENT in queue.get("pe_list", "").replace(",", " ").split()
    slots = min(slots // count for _, count, slots in shares)
    memory = min(_bytes(values.get(MEMORY, "")) // count for values, count, _ in shares)
    longest = _seconds(queue.get("h_rt", ""))
    request, keys = gpu, {}
    if not (usable and named):
        slots = 0
    elif consumed[gpu] == "YES":
        # Counted once a slot: a second core for a GPU would take another GPU.
        request, slots = f"{gpu}/slot", 1
    if request != GPU_NAMES[0]:
        keys["gpu_request"] = request
    if memory and consumed.get(MEMORY) in MEMORY_REQUESTS:
        keys["memory_request"] = MEMORY_REQUESTS[consumed[MEMORY]]
    return GpuQueue(
        queue["qname"],
        max(count for _, count, _ in shares),
        kind,
        slots,
        memory if "memory_request" in keys else 0,
        len(hosts),
        walltime=longest,
        default_walltime=longest,
        open_to=_open_to(queue),
        keys=keys,
        address=hosts[0],
    )


def _open_to(queue: Block) -> str:
    lists, no_lists = queue.get("user_lists", "NONE"), queue.get("xuser_lists", "NONE")
    words = "all users" if lists == "NONE" else f"the lists {lists}"
    return words if no_lists == "NONE" else f"{words} except {no_lists}"


# The forms of the answers.


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """Yield the objects of qconf; a line that ends in a backslash goes on in the next one."""
    text = text.replace("\\\n", "")
    for block in re.split(r"\n\s*\n", text):
        pairs = (line.split(None, 1) for line in block.splitlines() if line.strip())
        if found := {pair[0]: pair[1].strip() if len(pair) > 1 else "" for pair in pairs}:
            yield found


def _values(host: Block) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in host.get("complex_values", "").split(","))
    return {name.strip(): value.strip() for name, _, value in pairs if value}


def _instances(answer: CommandResult) -> dict[tuple[str, str], int]:
    """Return the slots of each queue on each host."""
    root = xml_of(answer.stdout, "Grid Engine")
    return {
        (queue.get("name", ""), host.get("name", "")): int(value.text or 0)
        for host in root.iter("host")
        for queue in host.iter("queue")
        for value in queue.iter("queuevalue")
        if value.get("name") == "slots"
    }


def _number(text: str | None) -> int:
    """Read ``2``, ``2.000000`` and ``2(0 1)``."""
    match = re.match(r"\d{1,6}", text or "")
    return int(match[0]) if match else 0


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMGT]?)", text)
    return int(match[1]) * UNITS[match[2]] if match else 0


def _seconds(text: str) -> int:
    return -1 if text == "INFINITY" else NO_DIRECTIVES.seconds(text) or 0
