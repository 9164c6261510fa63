"""A section of Dask's `jobqueue` configuration, translated into the keys of a profile."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ..batch import BACKENDS
from .reader import Branch, Finding, Items, Leaf, Mark, Scalar, Tree
from .values import shown

ACCOUNT = ("slurm", "pbs", "torque", "moab")
"""Systems whose option `project` is now `account`."""
OLD = {
    "extra": "worker-extra-args",
    "job-extra": "job-extra-directives",
    "env-extra": "job-script-prologue",
    "header-skip": "job-directives-skip",
}
WALLTIME = 1800
"""Seconds that dask-jobqueue requests where its section sets no walltime."""
NOTHING: tuple[object, ...] = (None, "", [], {})
USUAL: dict[str, tuple[object, ...]] = {
    "name": ("dask-worker",),
    "death-timeout": (60,),
    "worker-command": ("distributed.cli.dask_worker",),
    "shebang": ("#!/usr/bin/env bash", "#!/usr/bin/env condor_submit"),
    "walltime": ("00:30:00", "00:30"),
    "use-stdin": (True,),
}
"""Values in dask-jobqueue's own file, which say nothing of a site."""
USUAL_SHELLS = ("bash", "sh", "condor_submit")
LOGIN = "shopt -q login_shell || . /etc/profile || true"
HANDLED_OTHERWISE = frozenset(
    # Names, logs, certificates and time-outs are ours to choose; a GPUCluster has its own keywords.
    "name log-directory shared-temp-directory death-timeout nanny protocol security"
    " n-workers asynchronous silence-logs loop job-name scheduler-cls job-cls host"
    " dashboard-address".split()
)
TIME = re.compile(
    r"(\d+\.?\d*|\.\d+)\s*(d|days?|h|hrs?|hours?|m|min|mins|minutes?|s|sec|secs|seconds?)?",
    re.IGNORECASE | re.ASCII,
)
SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
BYTES = re.compile(r"(\d+\.?\d*|\.\d+)\s*([kmgtp]?)(i?)b?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Entry:
    """A value and the place of its key."""

    value: object
    mark: Mark


@dataclass(frozen=True)
class Section:
    """A section of `jobqueue`, keys with dashes; ``chosen``: Dask's sidebar starts it."""

    name: str
    mark: Mark
    entries: Mapping[str, Entry]
    chosen: bool = False

    used: set[str] = field(default_factory=set)
    """Keys that were asked for."""

    def value(self, key: str) -> object:
        """Return a value, None where there is none."""
        self.used.add(key)
        return self.entries[key].value if key in self.entries else None

    def text(self, key: str) -> str:
        """Return a value as text, empty where there is none."""
        value = self.value(key)
        return "" if value is None else str(value)

    def texts(self, key: str) -> list[str]:
        """Return a list of text; one text counts as a list, a mapping as ``key = value`` lines."""
        value = self.value(key)
        if isinstance(value, dict):
            return [f"{name} = {item}" for name, item in value.items()]
        items = value if isinstance(value, list) else [value]
        return [str(item) for item in items if item not in (None, "")]


def tells_something(section: Section) -> bool:
    """Return whether a section sets anything beyond what dask-jobqueue's own file sets."""
    return section.chosen or any(
        entry.value not in NOTHING and entry.value not in USUAL.get(key, ())
        for key, entry in section.entries.items()
    )


def translate(section: Section, backend: str) -> tuple[Branch, list[Finding]]:
    """Return the tree of a profile, and warnings about what could not be carried over."""
    return _Translation(section, backend).tree()


class _Translation:
    def __init__(self, section: Section, backend: str) -> None:
        self.backend = backend
        self.section = replace(section, used=set())
        self.findings: list[Finding] = []
        self.keys: dict[str, Any] = {}
        self.directives: list[str] = []
        self.skips: list[str] = []
        self.with_walltime = True
        """True if the job's walltime is a directive of its own, which the user may set."""

    def tree(self) -> tuple[Branch, list[Finding]]:
        self.rename()
        system = BACKENDS.get(self.backend)
        title = "This machine" if system is None or system.on_this_machine else system.title
        self.put("title", f"{title} as in Dask's configuration ({self.section.name})")
        self.put("backend", self.backend)
        self.put("dask_config", self.section.name)
        if self.section.chosen:
            self.put("default", True)
        if self.backend == "local":
            self.local()
        else:
            self.batch()
        for key, entry in self.section.entries.items():
            if key not in self.section.used | HANDLED_OTHERWISE and entry.value not in NOTHING:
                self.warn(key, "is not carried over")
        return cast("Branch", _grown(self.keys, self.section.mark)), self.findings

    def rename(self) -> None:
        """Give old options their present names."""
        old = OLD | ({"project": "account"} if self.backend in ACCOUNT else {})
        entries = dict(self.section.entries)
        for name, today in old.items():
            entry = entries.pop(name, None)
            if entry and (today not in entries or entries[today].value in NOTHING):
                entries[today] = entry
        self.section = replace(self.section, entries=entries)

    def local(self) -> None:
        """Translate the keywords of Dask's LocalCluster and LocalCUDACluster."""
        self.put("workers.threads", self.number("threads-per-worker") or None)
        self.put("workers.memory_limit", self.size("memory-limit"))
        self.put("workers.local_directory", self.section.text("local-directory"))

    def batch(self) -> None:
        cores, memory = self.number("cores"), self.size("memory")
        gpus = "cuda" in self.section.text("worker-command")
        processes = self.number("processes") or (1 if gpus else usual_processes(cores or 1))
        if gpus:
            self.put("job.gpus", processes)
            self.put("job.gpu_request", "none")  # the section's own directives request them
        self.put("workers.per_job", processes)
        if cores:
            self.put("workers.threads", max(1, cores // processes))
        if memory:
            self.put("workers.memory_limit", memory // processes)
        self.put("workers.local_directory", self.section.text("local-directory"))
        words = [word for text in self.section.texts("worker-extra-args") for word in _split(text)]
        self.put("workers.extra_args", self.drained(words, gpus=gpus))
        self.resources(cores, memory)
        skips = self.section.texts("job-directives-skip")
        # Dask requests these itself, so they are skipped like the rest of its header.
        texts = [re.sub(r"^#\S+ ", "", text) for text in skips]
        own = [line for line in self.directives if not any(text in line for text in texts)]
        self.put("job.directives", [*own, *self.extra()])
        self.put("job.skip_directives", [*self.skips, *skips])
        self.environment()

    def drained(self, words: list[str], *, gpus: bool) -> list[str]:
        """Turn the lifetime of the workers into the time at which a job is drained.

        A lifetime ends a worker even if no other worker has its results, which draining awaits.
        The workers of dask-cuda have no such option.
        """
        left, lifetime = without_lifetime(words)
        if not lifetime or ("--lifetime-restart" in lifetime and not gpus):
            return words
        seconds, walltime = parse_time(lifetime.get("--lifetime", "")), self.walltime()
        if seconds and walltime and seconds < walltime:
            self.put("policy.drain_before", math.ceil(walltime - seconds))
        else:
            self.warn("worker-extra-args", "has a lifetime, which is not carried over")
        return left

    def extra(self) -> list[str]:
        """Return the section's own directives, without comments and the job's name."""
        from ..batch.contradictions import names_the_job

        key = "job-extra-directives"
        given = self.section.texts(key)
        comments = [text for text in given if text.lstrip().startswith("#")]
        named = [text for text in given if names_the_job(self.backend, text)]
        for text in comments:
            self.warn(key, f"has {shown(text)}, which is a comment")
        for text in named:
            self.warn(key, f"names the job by {shown(text)}, which is ours")
        return [text for text in given if text not in (*named, *comments)]

    def environment(self) -> None:
        """Translate what the batch system does not read."""
        self.put(
            "environment.prologue", [*self.login(), *self.section.texts("job-script-prologue")]
        )
        python = self.section.text("python")
        if python.startswith("/"):
            self.put("environment.python", python)
        elif python:
            self.warn("python", "is not the path of a Python; the user's own is taken")
        self.put("network.interface", self.section.text("interface"))
        options = self.section.value("scheduler-options")
        if isinstance(options, dict) and options.get("interface"):
            self.put("head.interface", str(options["interface"]))

    def login(self) -> list[str]:
        """Return the line that makes the script's shell read what the shell of `shebang` reads."""
        words = self.section.text("shebang").removeprefix("#!").split()
        names = [name for word in words if not (name := word.rpartition("/")[2]).startswith("-")]
        shell = next((name for name in names if name != "env"), "sh")
        if shell not in USUAL_SHELLS:
            self.warn("shebang", f"names {shown(shell)}; the job script is run by bash")
        return [LOGIN] if {"-l", "--login", "-il"} & {*words} else []

    def resources(self, cores: int | None, memory: int | None) -> None:
        """Translate what the batch system reads, system by system."""
        self.option("account", "account" if self.backend in ACCOUNT else "project", "Account")
        if self.backend != "htcondor":
            self.option("queue", "queue", "Queue")
        seconds = self.walltime()
        family = "pbs" if self.backend in ("moab", "torque") else self.backend
        if own := getattr(self, f"for_{family}", None):
            own(cores, memory)
        if self.with_walltime:
            self.put("options.walltime", {"type": "duration", "title": "Walltime"})
        self.put("job.walltime", seconds)

    def for_slurm(self, cores: int | None, memory: int | None) -> None:
        self.put("job.cpus", self.number("job-cpu") or cores)
        if raw := self.section.text("job-mem"):
            self.directives.append(f"--mem={raw}")  # its units are Slurm's own
        else:
            self.put("job.memory", memory)

    def for_pbs(self, cores: int | None, memory: int | None) -> None:
        if resources := self.section.text("resource-spec"):
            self.skips += ["-l select="] if self.backend == "pbs" else ["-l nodes=", "-l mem="]
            self.directives.append(f"-l {resources}")
        else:
            self.put("job.cpus", cores)
            self.put("job.memory", memory)

    def for_sge(self, cores: int | None, memory: int | None) -> None:
        # dask-jobqueue requests neither cores nor memory of Grid Engine.
        if resources := self.section.text("resource-spec"):
            self.directives.append(f"-l {resources}")

    def for_lsf(self, cores: int | None, memory: int | None) -> None:
        self.put("job.cpus", self.number("ncpus") or cores)
        amount, unit = self.size("mem") or memory, self.section.text("lsf-units").lower()[:1]
        if amount and unit and unit in "kmgtpe":
            self.skips.append("-M ")
            self.directives.append(f"-M {-(-amount // 1000 ** ('kmgtpe'.index(unit) + 1))}")
        self.put("job.memory", amount)
        if self.section.text("use-stdin").lower() == "false":
            self.put("job.submit_by", "file")

    def for_oar(self, cores: int | None, memory: int | None) -> None:
        name = self.section.text("memory-per-core-property-name")
        if memory and name and name != "not_applicable":
            extra = self.section.texts("job-extra-directives")
            conditions = [text for text in extra if text.startswith("-p")]
            # OAR heeds the last one only.
            kept = [*(text for text in extra if text not in conditions), *conditions[-1:]]
            # Two conditions become one line where the script is made.
            least = f"-p {name}>={math.ceil(memory / ((cores or 1) * 2**20))}"
            changed = {"job-extra-directives": Entry([*kept, least], self.section.mark)}
            self.section = replace(self.section, entries={**self.section.entries, **changed})
        resources, seconds = self.section.text("resource-spec"), self.walltime() or 0
        if not resources:
            self.put("job.cpus", cores)
            return
        self.with_walltime = False
        self.skips.append("-l /nodes=")
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        self.directives.append(f"-l {resources}" + (f",walltime={clock}" if seconds else ""))

    def for_htcondor(self, cores: int | None, memory: int | None) -> None:
        self.put("job.cpus", cores)
        self.put("job.memory", memory)
        if disk := self.size("disk"):
            self.directives.append(f"RequestDisk = {disk // 1024}")
        self.put("job.submit_args", self.section.texts("submit-command-extra"))
        self.put("job.cancel_args", self.section.texts("cancel-command-extra"))

    def walltime(self) -> int | None:
        """Return the walltime in seconds, None where the job has none."""
        if self.backend == "htcondor":
            return None
        if "walltime" not in self.section.entries:
            return WALLTIME
        # The package of all dialects is not loaded where Dask's YAML has no section.
        from ..batch import BACKENDS

        text = self.section.text("walltime")
        seconds = BACKENDS[self.backend].syntax.seconds(text) if text else None
        if text and seconds is None:
            self.warn("walltime", f"{shown(text)} is not a length of time")
        return seconds or None

    def option(self, name: str, key: str, title: str) -> None:
        """Copy a text of the job, and let the user set it at start."""
        self.put(f"job.{name}", self.section.text(key))
        self.put(f"options.{name}", {"type": "string", "title": title})

    def number(self, key: str) -> int | None:
        text = self.section.text(key)
        if text and not re.fullmatch(r"\d{1,9}(\.0*)?", text, re.ASCII):
            self.warn(key, f"{shown(text)} is not a whole number")
            return None
        return int(float(text)) if text else None

    def size(self, key: str) -> int | None:
        """Return an amount of memory in bytes, None where it is not set."""
        text = self.section.text(key)
        amount = parse_size(text) if text else None
        if text and amount is None:
            self.warn(key, f"{shown(text)} is not an amount of memory")
        return amount or None

    def warn(self, key: str, words: str) -> None:
        entry = self.section.entries.get(key)
        mark = entry.mark if entry is not None else self.section.mark
        finding = Finding(mark, f"`{key}` of jobqueue.{self.section.name} {words}")
        if finding not in self.findings:
            self.findings.append(finding)

    def put(self, dotted: str, value: object) -> None:
        """Set a key of the profile; an empty value is left out."""
        if value in NOTHING:
            return
        keys = self.keys
        *above, last = dotted.split(".")
        for part in above:
            keys = keys.setdefault(part, {})
        keys[last] = value


def _grown(value: object, mark: Mark) -> Tree:
    if isinstance(value, dict):
        entries = {str(key): _grown(item, mark) for key, item in value.items()}
        return Branch(entries, dict.fromkeys(entries, mark), mark)
    if isinstance(value, list):
        return Items([_grown(item, mark) for item in value], mark)
    if isinstance(value, str):
        # Braces name options in a profile; here they mean themselves.
        return Leaf(re.sub(r"(?<!\$)\{([a-z][a-z0-9_]*)\}", r"{{\1}}", value), mark)
    scalar: Scalar = value if isinstance(value, (int, float, bool)) else None
    return Leaf(scalar, mark)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def parse_size(text: str) -> int | None:
    """Return an amount of memory in bytes as Dask reads it (G is 10**9), None for what is none."""
    match = BYTES.fullmatch(text.strip())
    if match is None or len(match[1]) > 20:
        return None
    power = " kmgtp".index(match[2].lower() or " ")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


def parse_time(text: str) -> float | None:
    """Return a length of time in seconds as Dask reads it (a number counts seconds)."""
    match = TIME.fullmatch(text.strip())
    if match is None or len(match[1]) > 20:
        return None
    return float(match[1]) * SECONDS[(match[2] or "s")[0].lower()]


def without_lifetime(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return a worker's arguments without those on its lifetime, and these by their names."""
    left: list[str] = []
    found: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in ("--lifetime", "--lifetime-stagger"):
            found[name] = value if equals else next(rest, "")
        elif name in ("--lifetime-restart", "--no-lifetime-restart"):
            found[name] = ""
        else:
            left.append(word)
    return left, found


def usual_processes(cores: int) -> int:
    """Return the number of processes that dask-jobqueue starts on so many cores by default."""
    if cores <= 4:
        return cores
    lower = max(n for n in range(1, math.isqrt(cores) + 1) if cores % n == 0)
    return cores // lower
