"""What is found on the nodes of a job, out of what each of its ranks answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from .findings import Finding, failed, ok, warning
from .here import GIB, IN_MEMORY, LEAST_FILES, is_shared, look_at_imports
from .reach import Answer, Expected, hosts, look_at_reach

CLOCKS_SECONDS = 60.0
SHARED_DIRECTORY = (
    "Keep clusters on a file system that the nodes share: point JUPYTER_DATA_DIR at one."
)


def judge(expected: Expected, answers: Mapping[str, Answer]) -> list[Finding]:
    """Return what the answers of the ranks amount to, each kind of finding once for all nodes."""
    told = list(answers.values())
    if not told:
        return []
    network = look_at_reach(expected, told)
    each: list[Callable[[Expected, Answer], Finding | None]] = [
        _imports,
        _versions,
        _gpus,
        _interface,
        _neighbour,
        _local_directory,
        _open_files,
        _commands,
        _clock,
    ]
    seen = [ok("shared directory", f"{hosts(told)}: seen, and written to ({_kinds(told)}).")]
    found = [
        finding
        for check in each
        for finding in merged(told, (check(expected, answer) for answer in told))
    ]
    return [*seen, *network, *found]


def merged(answers: Sequence[Answer], findings: Iterable[Finding | None]) -> list[Finding]:
    """Write findings that say the same of several nodes as one, with their names before it."""
    groups: dict[Finding, list[Answer]] = {}
    for answer, finding in zip(answers, findings, strict=True):
        if finding is not None:
            groups.setdefault(finding, []).append(answer)
    return [
        Finding(
            finding.check,
            finding.result,
            f"{hosts(where)}: {finding.found}",
            finding.way_out,
            finding.evidence,
        )
        for finding, where in groups.items()
    ]


def _kinds(answers: Sequence[Answer]) -> str:
    kinds = dict.fromkeys(answer["file_system"] or "?" for answer in answers)
    return ", ".join(kinds)


def _imports(expected: Expected, answer: Answer) -> Finding:
    facts = dict(answer["imports"])
    # Otherwise no two nodes would say the same.
    facts["seconds"] = round(facts["seconds"]) or 1
    finding = look_at_imports(facts, expected.python, where="there")
    return Finding(finding.check, finding.result, finding.found, finding.way_out)


def _versions(expected: Expected, answer: Answer) -> Finding | None:
    there = answer["imports"]["versions"]
    differing = [
        f"{name} {there[name]} instead of {expected.versions[name]}"
        for name in ("python", "distributed")
        if name in there and name in expected.versions
        if _minor(name, there[name]) != _minor(name, expected.versions[name])
    ]
    if not differing:
        return None
    return failed(
        "versions there",
        f"{' and '.join(differing)}, which the head has.",
        "Head and workers must agree: install the same Dask and Python in both.",
    )


def _minor(name: str, version: str) -> str:
    return ".".join(version.split(".")[:2]) if name == "python" else version


def _gpus(expected: Expected, answer: Answer) -> Finding | None:
    if not expected.gpus:
        return None
    check, facts = "GPUs there", answer["gpus"]
    visible = facts["visible"]
    listed = facts["listed"]
    count = len(listed) if visible is None else len(_named(visible))
    shown = "no CUDA_VISIBLE_DEVICES" if visible is None else f"CUDA_VISIBLE_DEVICES={visible}"
    asked = f"{expected.gpus} asked for"
    if count >= expected.gpus and not facts["driver"] and not listed:
        return failed(
            check,
            f"There is no NVIDIA driver ({facts['trouble'] or 'no GPU listed'}; {asked}).",
            "See that the job is sent to nodes with GPUs (job.queue, job.gpu_request,"
            " job.directives), and that a container is started with them.",
        )
    if count < expected.gpus:
        return failed(
            check,
            f"{count} of {asked} can be used ({facts['trouble'] or shown}).",
            "Ask for GPUs in the way that the site wants: see job.gpu_request and job.directives.",
        )
    if count > expected.gpus:
        return warning(
            check,
            f"{count} can be used, {asked} ({shown}): workers would start on all of them.",
            "Ask for whole nodes, or for GPUs in a way by which the job sees its own alone.",
        )
    kinds = sorted({line.split(": ", 1)[-1].split(" (UUID")[0] for line in listed})
    return ok(check, f"{asked}, and there ({'; '.join(kinds) or shown}).")


def _named(visible: str) -> list[str]:
    return [each for each in visible.split(",") if each.strip() not in ("", "-1", "NoDevFiles")]


def _interface(expected: Expected, answer: Answer) -> Finding:
    there = ", ".join(f"{name} ({address})" for name, address in answer["interfaces"].items())
    if expected.interface and expected.interface not in answer["interfaces"]:
        return failed(
            "network there",
            f"There is no {expected.interface!r} with an IPv4 address; there is {there}.",
            "Name one of these in network.interface; the scheduler's own is head.interface.",
        )
    return ok("network there", f"{there}.")


def _neighbour(expected: Expected, answer: Answer) -> Finding | None:
    told = answer["neighbour"]
    if not told:
        return None
    if told["trouble"]:
        return failed(
            "node to node",
            f"{told['host']} is not reached at {told['address']}: {told['trouble']}.",
            "Name a network that joins the nodes in network.interface; where ports are closed, ask"
            " the site which are open between nodes.",
        )
    return ok("node to node", "the next node is reached, on any port.")


def _local_directory(expected: Expected, answer: Answer) -> Finding:
    check, facts = "local directory", answer["local_directory"]
    place, kind = facts["path"], facts["file_system"]
    if facts["trouble"]:
        return failed(
            check,
            f"Workers cannot put data into {place} ({facts['trouble']}).",
            "Correct workers.local_directory.",
        )
    told = f"{place}, on {kind or 'an unknown file system'}"
    free = f"{facts['free'] // GIB} GiB free"
    if is_shared(kind):
        return warning(
            check,
            f"{told}: workers that run out of memory would write over the network.",
            "Name a disk of the node in workers.local_directory.",
        )
    if kind in IN_MEMORY:
        return warning(
            check,
            f"{told}: what is written there takes the memory that it is to save.",
            "Name a disk of the node in workers.local_directory.",
        )
    if facts["free"] < GIB:
        return warning(check, f"{told}, {free}.", "Name a disk with room in it.")
    return ok(check, f"{told}, {free}.")


def _open_files(expected: Expected, answer: Answer) -> Finding | None:
    soft, hard = answer["open_files"]
    if soft < 0 or soft >= LEAST_FILES:
        return None
    return warning(
        "open files there",
        f"{soft} (ulimit -n); workers of many nodes hold more connections than that.",
        f"Put `ulimit -n {LEAST_FILES if hard < 0 else min(hard, LEAST_FILES)}` into"
        " environment.prologue.",
    )


def _commands(expected: Expected, answer: Answer) -> Finding | None:
    if not answer["missing"]:
        return None
    return failed(
        "commands there",
        f"{', '.join(answer['missing'])} cannot be found, and the head in a job needs them.",
        "Set head.submit: relay, or load in environment.prologue what brings them.",
    )


def _clock(expected: Expected, answer: Answer) -> Finding | None:
    ahead = next((told["ahead"] for told in answer["home"].values() if "ahead" in told), None)
    if ahead is None or abs(ahead) < CLOCKS_SECONDS:
        return None
    words = "behind" if ahead > 0 else "ahead of"
    return warning(
        "clocks",
        f"{abs(ahead):.0f} s {words} this host; certificates of a day's difference are refused.",
        "Tell the site.",
    )
