"""Checks of the nodes of a job, from the answers of its ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from .findings import Finding, failed, ok, warning
from .here import GIB, IN_MEMORY, LEAST_FILES, differences, is_shared, judge_imports, listed
from .reach import Answer, Expected, hosts, nodes_to_here

CLOCKS_SECONDS = 60.0
SHARED_DIRECTORY = (
    "Keep clusters on a file system that the nodes share: point JUPYTER_DATA_DIR at one."
)


def judge(expected: Expected, answers: Mapping[str, Answer]) -> list[Finding]:
    """Return what the answers of the ranks amount to, each kind of finding once for all nodes."""
    ranks = list(answers.values())
    if not ranks:
        return []
    kinds = ", ".join(dict.fromkeys(answer["file_system"] or "?" for answer in ranks))
    seen = ok(f"{hosts(ranks)}: seen, and written to ({kinds}).")
    return [
        seen.named("shared directory"),
        nodes_to_here(expected, ranks).named("nodes to here"),
        *(
            finding.named(name)
            for name, check in CHECKS.items()
            for finding in _merged(ranks, (check(expected, answer) for answer in ranks))
        ),
    ]


def _merged(answers: Sequence[Answer], findings: Iterable[Finding | None]) -> list[Finding]:
    """Write findings that say the same of several nodes as one, with their names before it."""
    groups: dict[Finding, list[Answer]] = {}
    for answer, finding in zip(answers, findings, strict=True):
        if finding is not None:
            groups.setdefault(finding, []).append(answer)
    return [
        replace(finding, found=f"{hosts(where)}: {finding.found}")
        for finding, where in groups.items()
    ]


def _imports(expected: Expected, answer: Answer) -> Finding:
    # Rounded, so that several nodes say the same.
    seconds = round(answer["imports"]["seconds"]) or 1
    return judge_imports({**answer["imports"], "seconds": seconds}, expected.python)


def _versions(expected: Expected, answer: Answer) -> Finding | None:
    there = answer["imports"]["versions"]
    names = {"python", "distributed"} & there.keys() & expected.versions.keys()
    parties = (("jobs", there), ("the scheduler", expected.versions))
    if not (differing := differences(parties, sorted(names))):
        return None
    fix = "Scheduler and workers must agree: install the same Dask and Python in both."
    return failed(f"{'; '.join(differing.values())}.", fix)


def _gpus(expected: Expected, answer: Answer) -> Finding | None:
    if not expected.gpus:
        return None
    facts = answer["gpus"]
    visible = facts["visible"]
    listed = facts["listed"]
    count = len(listed) if visible is None else len(_named(visible))
    shown = "no CUDA_VISIBLE_DEVICES" if visible is None else f"CUDA_VISIBLE_DEVICES={visible}"
    asked = f"{expected.gpus} requested"
    if count >= expected.gpus and not facts["driver"] and not listed:
        return failed(
            f"There is no NVIDIA driver ({facts['trouble'] or 'no GPU listed'}; {asked}).",
            "See that the job is sent to nodes with GPUs (job.queue, job.gpu_request,"
            " job.directives), and that a container is started with them.",
        )
    if count < expected.gpus:
        fix = "Ask for GPUs in the way that the site wants: see job.gpu_request and job.directives."
        return failed(f"{count} of {asked} can be used ({facts['trouble'] or shown}).", fix)
    if count > expected.gpus:
        return warning(
            f"{count} can be used, {asked} ({shown}): workers would start on all of them.",
            "Request whole nodes, or request GPUs in a way that shows the job only its own.",
        )
    kinds = sorted({line.split(": ", 1)[-1].split(" (UUID")[0] for line in listed})
    return ok(f"{asked}, and there ({'; '.join(kinds) or shown}).")


def _named(visible: str) -> list[str]:
    return [each for each in visible.split(",") if each.strip() not in ("", "-1", "NoDevFiles")]


def _interface(expected: Expected, answer: Answer) -> Finding:
    there = listed(answer["interfaces"])
    if expected.interface and expected.interface not in answer["interfaces"]:
        words = f"No interface {expected.interface!r} has an IPv4 address; there is {there}."
        fix = "Set network.interface to one of these; head.interface is for the scheduler only."
        return failed(words, fix)
    return ok(f"{there}.")


def _neighbour(expected: Expected, answer: Answer) -> Finding | None:
    call = answer["neighbour"]
    if not call:
        return None
    if call["trouble"]:
        return failed(
            f"{call['host']} cannot be reached at {call['address']}: {call['trouble']}.",
            "Set network.interface to a network that connects the nodes. If ports are closed, ask"
            " the site which ones are open between nodes.",
        )
    return ok("the next node can be reached, on any port.")


def _local_directory(expected: Expected, answer: Answer) -> Finding:
    facts = answer["local_directory"]
    place, kind = facts["path"], facts["file_system"]
    if facts["trouble"]:
        return failed(
            f"Workers cannot put data into {place} ({facts['trouble']}).",
            "Correct workers.local_directory.",
        )
    where = f"{place}, on {kind or 'an unknown file system'}"
    free = f"{facts['free'] // GIB} GiB free"
    doubts = (
        (is_shared(kind), ": workers that run out of memory would write over the network."),
        (kind in IN_MEMORY, ": data written there use the memory that they should free."),
        (facts["free"] < GIB, f", {free}."),
    )
    for doubtful, words in doubts:
        if doubtful:
            fix = "Set workers.local_directory to a disk of the node with free space."
            return warning(f"{where}{words}", fix)
    return ok(f"{where}, {free}.")


def _open_files(expected: Expected, answer: Answer) -> Finding | None:
    soft, hard = answer["open_files"]
    if soft < 0 or soft >= LEAST_FILES:
        return None
    return warning(
        f"{soft} (ulimit -n); workers of many nodes hold more connections than that.",
        f"Put `ulimit -n {LEAST_FILES if hard < 0 else min(hard, LEAST_FILES)}` into"
        " environment.prologue.",
    )


def _commands(expected: Expected, answer: Answer) -> Finding | None:
    if not answer["missing"]:
        return None
    return failed(
        f"{', '.join(answer['missing'])} cannot be found; a scheduler in a job needs them.",
        "Set head.submit: relay, or load their module in environment.prologue.",
    ).fixed_by("head.submit", "relay")


def _clock(expected: Expected, answer: Answer) -> Finding | None:
    ahead = next((call["ahead"] for call in answer["home"].values() if "ahead" in call), None)
    if ahead is None or abs(ahead) < CLOCKS_SECONDS:
        return None
    words = "behind" if ahead > 0 else "ahead of"
    return warning(
        f"The clock is {abs(ahead):.0f} s {words} this host; a difference of a day makes the"
        " cluster's certificates invalid.",
        "Report it to the site.",
    )


CHECKS: Mapping[str, Callable[[Expected, Answer], Finding | None]] = {
    "imports there": _imports,
    "versions there": _versions,
    "GPUs there": _gpus,
    "network there": _interface,
    "node to node": _neighbour,
    "local directory": _local_directory,
    "open files there": _open_files,
    "commands there": _commands,
    "clocks": _clock,
}
"""Checks of one node's answer, by name."""
