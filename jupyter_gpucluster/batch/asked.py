"""What a script's directives amount to, in a profile's keys: each system's lines are read here."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence

from ..core.errors import InvalidInput
from .directives import option_of, prefix_of
from .durations import parse_walltime
from .kubernetes.dialect import KUEUE
from .kubernetes.manifest import look, pod_of
from .kubernetes.pod_status import GPU, PRODUCT
from .lsf import limit_unit

Amount = int | str | frozenset[str] | None
"""A number, bytes or seconds, a name, or names; None for what cannot be compared."""
Amounts = dict[str, Amount]
Options = Sequence[tuple[str, str]]
SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmgtpe]?)(?:i?b|w)?", re.IGNORECASE | re.ASCII)
GRES = re.compile(r"(?:gres[:/])?gpus?(?:[:=](\d*[A-Za-z][\w.-]*))?(?:[:=](\d{1,9}))?", re.ASCII)
COUNT = re.compile(r"(?:(\d*[A-Za-z][\w.-]*)[:=])?(\d{1,9})", re.ASCII)
PART = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
GPU_NAMES = frozenset({"gpu", "gpus", "ngpus"})


def asked(lines: Sequence[str], gpu_name: str = "") -> Amounts:
    """Return what lines of one system ask for, by the key that says the same.

    Parameters
    ----------
    lines
        Directives with the system's prefix; where one stands twice the last one counts.
    gpu_name
        What the site calls GPUs, where it is a resource of its own.
    """
    options = [option_of(line) for line in lines]
    reader = READERS.get(prefix_of(lines))
    return reader(options, gpu_name) if reader else {}


def size_of(text: str, unit: int = 1) -> int | None:
    """Return an amount of memory in bytes; a bare number counts ``unit``, K is 1024."""
    match = SIZE.fullmatch(text.strip())
    if match is None:
        return None
    factor = 1024 ** " kmgtpe".index(match[2].lower()) if match[2] else unit
    return math.ceil(float(match[1]) * factor)


def _slurm(options: Options, gpu_name: str) -> Amounts:
    last = {name: _bare(value) for name, value in options}
    found: Amounts = _texts(last, {"--partition": "job.queue", "--account": "job.account"})
    if "--time" in last:
        found["job.walltime"] = parse_walltime(last["--time"], "slurm")
    nodes = _whole(last.get("--nodes", "1"))
    if "--nodes" in last:
        found["job.nodes"] = nodes
    tasks = _whole(last.get("--ntasks", "1"))
    for name, value in last.items():
        times = {"--gres": nodes, "--tres-per-node": nodes, "--gpus-per-node": nodes}
        times |= {"--gpus": 1, "--tres-per-job": 1, "--gpus-per-task": tasks}
        times |= {"--tres-per-task": tasks, "--gpus-per-socket": None, "--tres-per-socket": None}
        if name in times:
            _add_gpus(found, value, times[name], listed="tres" in name or name == "--gres")
    gpus = found.get("job.gpus")
    cores = _product(tasks, _whole(last.get("--cpus-per-task", "1")))
    if "--cpus-per-gpu" in last:
        cores = _product(gpus, _whole(last["--cpus-per-gpu"]))
    if "--cpus-per-task" in last or "--cpus-per-gpu" in last:
        found["job.cpus"] = cores
    for name, count in (("--mem", nodes), ("--mem-per-cpu", cores), ("--mem-per-gpu", gpus)):
        if name in last:
            # 0 is all that the node has.
            found["job.memory"] = _product(size_of(last[name], 2**20) or None, count)
    return found


def _add_gpus(found: Amounts, value: str, times: Amount, *, listed: bool) -> None:
    """Add what ``gpu:a100:4,lscratch:10`` or ``a100:4`` says of GPUs."""
    pattern = GRES if listed else COUNT
    parts = [match for part in value.split(",") if (match := pattern.fullmatch(part))]
    if parts:
        found["job.gpus"] = _product(sum(int(part[2] or 1) for part in parts), times)
        if kinds := {part[1] for part in parts if part[1]}:
            found["job.gpu_type"] = _one(kinds)
    elif not listed or re.search(r"\bgpu\b", value):
        found["job.gpus"] = None


def _pbs(options: Options, gpu_name: str) -> Amounts:
    found: Amounts = _texts(dict(options), {"-q": "job.queue", "-A": "job.account"})
    for option, value in options:
        for part in value.split(",") if option == "-l" else ():
            name, _, amount = part.partition("=")
            if name in ("select", "nodes"):
                found |= _chunks(amount, gpu_name)
            elif name == "walltime":
                found["job.walltime"] = _clock(amount)
            elif name == "gpu_type":
                found["job.gpu_type"] = frozenset({amount})
            elif name == "ncpus":
                found["job.cpus"] = _whole(amount)
            elif name == "mem":
                found["job.memory"] = size_of(amount)
            elif name in GPU_NAMES | {gpu_name}:
                found["job.gpus"] = _whole(amount)
    return found


def _chunks(text: str, gpu_name: str) -> Amounts:
    """Read ``2:ncpus=8:mem=60gb:ngpus=4`` of PBS and ``2:ppn=8:gpus=4:v100`` of Torque."""
    found: dict[str, int] = {}
    words: set[str] = set()
    for chunk in text.split("+"):
        first, *rest = chunk.split(":")
        number = _whole(first)
        count = 1 if number is None else number
        found["job.nodes"] = found.get("job.nodes", 0) + count
        for part in rest if "=" not in first else [first, *rest]:
            name, _, amount = part.partition("=")
            key = {"ncpus": "job.cpus", "ppn": "job.cpus", "mem": "job.memory"}.get(name)
            key = "job.gpus" if name in GPU_NAMES | {gpu_name} else key
            each = size_of(amount) if key == "job.memory" else _whole(amount)
            if key and each is not None:
                found[key] = found.get(key, 0) + count * each
            elif not amount:
                words.add(name)
    return {**found, **({"job.gpu_type": frozenset(words)} if words else {})}


def _sge(options: Options, gpu_name: str) -> Amounts:
    found: Amounts = _texts(dict(options), {"-q": "job.queue", "-P": "job.account"})
    for option, value in options:
        if option == "-pe":
            found["job.cpus"] = _whole(value.split()[-1] if value.split() else "")
        for part in value.split(",") if option == "-l" else ():
            name, _, amount = part.partition("=")
            if name == "h_rt":
                found["job.walltime"] = _clock(amount)
            elif name == "gpu_type":
                found["job.gpu_type"] = frozenset({amount})
            elif name in GPU_NAMES | {gpu_name} and PART.fullmatch(amount):
                # A slot may be asked for a part of a GPU, so the text itself is compared.
                found[f"job.gpus -l {name}"] = f"{float(amount):g}"
            elif size_of(amount) is not None:
                found[f"job.memory -l {name}"] = size_of(amount)
    return found


def _lsf(options: Options, gpu_name: str) -> Amounts:
    last = {name: _bare(value) for name, value in options}
    found: Amounts = _texts(last, {"-q": "job.queue", "-P": "job.account"})
    sections = " ".join(value for name, value in options if name == "-R")
    if "-n" in last:
        found["job.cpus"] = _whole(last["-n"])
    if "-W" in last:
        found["job.walltime"] = parse_walltime(last["-W"].partition("/")[0], "lsf")
    nodes: Amount = _whole(last["-nnodes"]) if "-nnodes" in last else 1
    if "-nnodes" in last or "span[hosts=1]" in sections:
        found["job.nodes"] = nodes
    if each := re.search(r"span\[ptile=(\d{1,9})\]", sections):
        cores = found.get("job.cpus")
        nodes = -(-cores // int(each[1])) if isinstance(cores, int) and int(each[1]) else None
        found["job.nodes"] = nodes
    if "-M" in last:
        found["job.memory"] = _product(size_of(last["-M"], limit_unit(os.environ)), nodes)
    if "-gpu" in last:
        number = re.search(r"\bnum=(\d{1,9})\b(/task)?", last["-gpu"])
        each_node = None if number and number[2] else int(number[1]) if number else 1
        found["job.gpus"] = _product(each_node, nodes)
        if kind := re.search(r"\bgmodel=([^:]+)", last["-gpu"]):
            found["job.gpu_type"] = frozenset({kind[1]})
    elif number := re.search(r"\brusage\[[^]]*\bngpus\w*=(\d{1,9})\b", sections):
        found["job.gpus"] = _product(int(number[1]), nodes)
    return found


def _oar(options: Options, gpu_name: str) -> Amounts:
    found: Amounts = _texts(dict(options), {"-q": "job.queue", "--project": "job.account"})
    for option, value in options:
        if option == "-l":
            path, _, clock = _bare(value).partition(",walltime=")
            if clock:
                found["job.walltime"] = parse_walltime(clock, "oar")
            found |= _path(path, gpu_name)
        elif kinds := re.findall(r"\bgpu_?model\s*=\s*'([^']*)'", value if option == "-p" else ""):
            found["job.gpu_type"] = _one(set(kinds))
    return found


def _path(text: str, gpu_name: str) -> Amounts:
    """Read ``/nodes=2/gpu=1/core=4``, each step of which is within the one before."""
    found: Amounts = {"job.nodes": None}
    product: Amount = 1
    for name, count in re.findall(r"/?(\w+)=(\w+)", re.sub(r"\{.*?\}", "", text)):
        product = None if "+" in text else _product(product, _whole(count))
        key = {"nodes": "job.nodes", "host": "job.nodes", "network_address": "job.nodes"}.get(name)
        key = (
            "job.gpus" if name in GPU_NAMES | {gpu_name} else "job.cpus" if name == "core" else key
        )
        if key:
            found[key] = product
    return found


def _htcondor(options: Options, gpu_name: str) -> Amounts:
    last = dict(options)
    found: Amounts = _texts(last, {"accountinggroup": "job.account"})
    for name, key in (("requestcpus", "job.cpus"), ("requestgpus", "job.gpus")):
        if name in last:
            found[key] = _whole(last[name])
    if "requestmemory" in last:
        found["job.memory"] = size_of(last["requestmemory"], 2**20)
    return found


def _cobalt(options: Options, gpu_name: str) -> Amounts:
    last = dict(options)
    found: Amounts = _texts(last, {"-q": "job.queue", "-A": "job.account"})
    if "-t" in last:
        found["job.walltime"] = parse_walltime(last["-t"], "cobalt")
    if "-n" in last:
        # It counts nodes, and in some queues GPUs.
        found["job.gpus" if gpu_name == "gpus" else "job.nodes"] = _whole(last["-n"])
    return found


def _kubernetes(options: Options, gpu_name: str) -> Amounts:
    found: Amounts = {}
    try:
        pod = pod_of(options)
    except InvalidInput:
        return found  # a start says so
    container = look(pod, "spec", "containers", 0)
    limits = look(container, "resources", "limits")
    limits = limits if isinstance(limits, dict) else {}
    # Of amd.com/gpu or nvidia.com/mig-1g.5gb the name is what stands before the stroke.
    vendor = gpu_name or GPU.partition("/")[0]
    gpu = next((name for name in limits if name.startswith(f"{vendor}/")), "")
    texts = {
        "job.account": look(pod, "metadata", "namespace"),
        "job.queue": look(pod, "metadata", "labels", KUEUE),
        "job.gpu_type": look(pod, "spec", "nodeSelector", PRODUCT),
    }
    found |= {key: str(text) for key, text in texts.items() if text is not None}
    if (seconds := look(pod, "spec", "activeDeadlineSeconds")) is not None:
        found["job.walltime"] = _whole(str(seconds))
    for name, key in (("cpu", "job.cpus"), (gpu, "job.gpus")):
        if (amount := look(limits, name)) is not None:
            found[key] = _whole(str(amount))
    if (memory := look(limits, "memory")) is not None:
        found["job.memory"] = _bytes(str(memory))
    return found


def _bytes(quantity: str) -> int | None:
    """Read Kubernetes' amounts, where 1G is less than 1Gi."""
    match = re.fullmatch(r"(\d{1,15})(?:([kMGTPE])(i?))?", quantity, re.ASCII)
    if match is None:
        return None
    power = " kMGTPE".index(match[2]) if match[2] else 0
    size: int = (1024 if match[3] else 1000) ** power
    return int(match[1]) * size


def _demo(options: Options, gpu_name: str) -> Amounts:
    last = dict(options)
    found: Amounts = _texts(last, {"--queue": "job.queue", "--account": "job.account"})
    for name in ("nodes", "gpus"):
        if f"--{name}" in last:
            found[f"job.{name}"] = _whole(last[f"--{name}"])
    if "--walltime" in last:
        found["job.walltime"] = _clock(last["--walltime"])
    return found


READERS: Mapping[str, Callable[[Options, str], Amounts]] = {
    "#SBATCH": _slurm,
    "#PBS": _pbs,
    "#$": _sge,
    "#BSUB": _lsf,
    "#OAR": _oar,
    "#CONDOR": _htcondor,
    "#COBALT": _cobalt,
    "#KUBERNETES": _kubernetes,
    "#DEMO": _demo,
}


def _texts(last: Mapping[str, str], keys: Mapping[str, str]) -> Amounts:
    return {key: _bare(last[name]) for name, key in keys.items() if name in last}


def _bare(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _one(names: set[str]) -> Amount:
    """Return a name such as Torque has among others; several at once are none of them."""
    return frozenset(names) if len(names) == 1 else " and ".join(sorted(names))


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _clock(text: str) -> int | None:
    days, colon, rest = text.partition(":")
    if text.count(":") == 3 and colon:
        return parse_walltime(f"{days}-{rest}", "pbs")
    return parse_walltime(text, "pbs")


def _product(*factors: Amount) -> int | None:
    numbers = [factor for factor in factors if isinstance(factor, int)]
    return math.prod(numbers) if len(numbers) == len(factors) else None
