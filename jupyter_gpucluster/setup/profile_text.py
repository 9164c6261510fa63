"""The text of a profile: each value with its reason, what is not reported as a question."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator, Sequence

from ..batch import find_backend
from ..batch.base import Backend
from ..core.fast_dataclass import frozen
from ..core.site import GpuQueue, Site
from ..profiles.values import format_duration, format_memory
from .decisions import Decision

HOUR = 3600
CHECKED_LATER = "guessed: doctor --job checks it"
COLUMN, WIDTH = 40, 110


@frozen
class Choices:
    """The values of a profile that do not come from the batch system."""

    python: Decision
    placement: Decision
    interface: Decision
    account: str = ""
    accounts: tuple[str, ...] = ()
    """The accounts that a rehearsal accepted."""
    for_site: bool = False


def profile_text(name: str, site: Site, queues: Sequence[GpuQueue], choices: Choices) -> str:
    """Return the profile of queues that differ in their names only."""
    backend, host, day = find_backend(name), socket.gethostname(), time.strftime("%Y-%m-%d")
    lines = [
        f"# Written by `jupyter gpucluster setup` on {host}, {day}, from the answers of"
        f" {backend.title}.",
        *_head(backend, queues[0]),
        *_job(site, queues, choices),
        *_places(choices),
        *_options(site, queues, choices),
        "policy:",
        _line("  idle_timeout: 1 h", "ends when no task ran for so long"),
        *(_limits(queues[0]) if choices.for_site else []),
    ]
    return "\n".join(lines) + "\n"


def template(backend: Backend) -> str:
    """Return the profile of a system whose answers this version cannot read: questions only."""
    return f"""\
# Answer the questions, then remove the # before the key.
title: {_text(backend.title)}
backend: {backend.name}
job:
  nodes: 1
  # queue:    # Which queue leads to GPUs?
  # account:  # Which account is charged?
  # gpus:     # How many GPUs has a job?
  # cpus:     # How many cores?
  # memory:   # How much memory, such as 64 GiB?
  # walltime: # How long, such as 1 h?
policy:
  idle_timeout: 1 h
"""


def allocation_text(job: str, launcher: str) -> str:
    """Return the profile of the batch job that this host is in."""
    spread = f"launcher: {launcher}  # starts workers on all nodes of the job\n" if launcher else ""
    return f"""\
# Written by `jupyter gpucluster setup` in {job}: this node cannot submit jobs.
title: This allocation
summary: Workers on the nodes of the batch job that Jupyter runs in.
backend: local
{spread}policy:
  idle_timeout: 1 h
"""


def _head(backend: Backend, queue: GpuQueue) -> Iterator[str]:
    kind = f" ({queue.gpu_type})" if queue.gpu_type else ""
    yield f"title: {_text(f'{backend.title}: {queue.name}{kind}')}"
    nodes = f"{queue.nodes} {'node' if queue.nodes == 1 else 'nodes'}" if queue.nodes else "Nodes"
    gpus = "1 GPU" if queue.gpus == 1 else f"{queue.gpus} GPUs"
    yield f"summary: {_text(f'{nodes} with {gpus}. {queue.remark}'.strip())}"
    yield f"backend: {backend.name}"


def _job(site: Site, queues: Sequence[GpuQueue], choices: Choices) -> Iterator[str]:
    queue, several = queues[0], len(queues) > 1
    yield "job:"
    name = '"{queue}"' if several else _text(queue.name)
    if queue.name:
        yield _line(f"  queue: {name}", f"open to {queue.open_to}")
    else:
        yield _line("  # queue:", site.questions.get("queue", ""))
    if len(choices.accounts) > 1 or (choices.for_site and choices.accounts):
        yield '  account: "{account}"'
    elif choices.accounts:
        why = "" if choices.account else "your only one for this queue"
        yield _line(f"  account: {_text(choices.accounts[0])}", why)
    elif words := site.questions.get("account"):
        yield _line("  # account:", words)
    yield f"  gpus: {queue.gpus if queue.whole_nodes else 1}"
    if queue.gpu_type:
        yield f"  gpu_type: {_text(queue.gpu_type)}"
    if queue.cpus_per_gpu:
        yield _line(
            f"  cpus_per_gpu: {queue.cpus_per_gpu}", "the nodes' cores, shared by their GPUs"
        )
    else:
        yield _line("  # cpus_per_gpu:", "How many cores has a node for each GPU?")
    if queue.memory_per_gpu:
        yield _line(f"  memory_per_gpu: {format_memory(queue.memory_per_gpu)}", "likewise")
    else:
        yield _line("  # memory_per_gpu:", "How much memory has a node for each GPU?")
    for key, value in queue.keys.items():
        yield f"  {key}: {_text(value)}"
    if _chooses_qos(queue, choices):
        yield f"  directives: [{_text(site.qos_directive)}]"
    elif queue.qos_needed:
        yield f"  directives: [{_text(site.qos_directive.replace('{qos}', queue.qos[0]))}]"


def _places(choices: Choices) -> Iterator[str]:
    yield "head:"
    yield _line(f"  placement: {choices.placement.value}", choices.placement.reason)
    if choices.placement.value == "server":
        found = choices.interface
        if found.value:
            yield _line(f"  interface: {_text(found.value)}", f"{found.reason}; {CHECKED_LATER}")
        else:
            yield _line("  # interface:", f"Which one do nodes reach? {found.reason}")
    python = choices.python
    if python.value:
        yield "environment:"
        yield _line(f"  python: {_text(python.value)}", python.reason)
    else:
        yield "# environment:"  # a section without a value is refused
        yield _line("#   python:", f"Which Python has Dask on the nodes? {python.reason}")
    if python.prologue:
        yield f"  prologue: [{_text(python.prologue)}]"


def _options(site: Site, queues: Sequence[GpuQueue], choices: Choices) -> Iterator[str]:
    queue = queues[0]
    yield "options:"
    if len(queues) > 1:
        names = [each.name for each in queues]
        yield f"  queue: {{type: enum, choices: {_list(names)}, default: {_text(names[0])}}}"
    if choices.for_site and choices.accounts:
        yield "  account: {type: string, required: true, values: accounts}"
    elif len(choices.accounts) > 1:
        default = f", default: {_text(choices.account)}" if choices.account else ", required: true"
        yield f"  account: {{type: enum, choices: {_list(choices.accounts)}{default}}}"
    if _chooses_qos(queue, choices):
        needed = ", required: true" if queue.qos_needed else ""
        limits = "; ".join(f"{n}: {words}" for n in queue.qos if (words := site.qos.get(n)))
        yield _line(
            f"  qos: {{type: enum, title: QoS, choices: {_list(queue.qos)}{needed}}}", limits
        )
    if not queue.whole_nodes:
        most = min(queue.gpus, queue.most_gpus or queue.gpus)
        words = f"{queue.gpus} are a whole node" + (
            "" if most == queue.gpus else f"; your limit is {most}"
        )
        bounds = f"minimum: 1, maximum: {most}, default: 1"
        yield _line(f"  gpus: {{type: integer, title: GPUs, {bounds}}}", words)
    longest = queue.walltime
    bound = f", maximum: {_text(format_duration(longest))}" if longest > 0 else ""
    usual = min(HOUR, longest) if longest > 0 else HOUR
    unset = {0: "not reported", -1: "no limit"}
    default = unset.get(queue.default_walltime) or format_duration(queue.default_walltime)
    words = f"a job that requests none: {default}" + ("" if longest else "; what is the longest?")
    yield _line(
        f"  walltime: {{type: duration, default: {_text(format_duration(usual))}{bound}}}", words
    )


def _limits(queue: GpuQueue) -> list[str]:
    workers = queue.gpus * max(queue.nodes, 1)
    return [
        f"limits: {{workers: {workers}, clusters: 2}}",
        "locked: [limits, job.queue, policy.idle_timeout]",
    ]


def _chooses_qos(queue: GpuQueue, choices: Choices) -> bool:
    return len(queue.qos) > 1 and not choices.for_site


def _line(text: str, comment: str) -> str:
    """Return a line with its comment behind or above it; a comment cannot end its line."""
    plain = re.sub(r"[^ -~\u00a1-\ud7ff]+", " ", comment).strip()
    if not plain:
        return text
    indent = " " * (len(text) - len(text.lstrip()))
    beside = f"{text:<{COLUMN}} # {plain}"
    return beside if len(beside) <= WIDTH else f"{indent}# {plain}\n{text}"


def _text(text: str) -> str:
    """Return a text as YAML; JSON's strings are YAML's."""
    return json.dumps(text, ensure_ascii=False)


def _list(names: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, names))}]"
