"""Options of dask-jobqueue in the words of a profile."""

from __future__ import annotations

import math
import re
import shlex

from .dask_section import (
    ACCOUNT,
    NOTHING,
    Entry,
    Section,
    parse_size,
    parse_time,
    renamed,
    usual_processes,
    without_lifetime,
)
from .reader import Branch, Finding, Items, Leaf, Mark, Scalar, Tree
from .units import shown

TITLES = {
    "slurm": "Slurm",
    "pbs": "PBS",
    "torque": "Torque",
    "moab": "Moab",
    "lsf": "LSF",
    "sge": "Grid Engine",
    "oar": "OAR",
    "htcondor": "HTCondor",
}
BACKENDS = frozenset(TITLES) - {"torque"}
"""Those of which dask-jobqueue has a class, under the same name."""
WALLTIME = 1800
HANDLED_OTHERWISE = frozenset(
    # Names, logs, certificates and time-outs are ours to choose; a GPUCluster has its own keywords.
    "name log-directory shared-temp-directory shebang death-timeout nanny protocol security"
    " n-workers asynchronous silence-logs loop job-name scheduler-cls job-cls host"
    " dashboard-address".split()
)


def translate(section: Section, backend: str) -> tuple[Branch, list[Finding]]:
    """Return the tree of a profile and what could not be carried over."""
    return _Translation(section, backend).tree()


class _Translation:
    def __init__(self, section: Section, backend: str) -> None:
        self.backend = backend
        self.findings: list[Finding] = []
        self.root = Branch({}, {}, section.mark)
        self.used: set[str] = set()
        self.section, old = renamed(section, backend)
        if old:
            words = f"old names of options in jobqueue.{section.name}: {', '.join(old)}"
            self.findings.append(Finding(section.mark, words))
        self.directives: list[str] = []
        self.skips: list[str] = []

    def tree(self) -> tuple[Branch, list[Finding]]:
        title = TITLES.get(self.backend, "This machine")
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
            if key not in self.used | HANDLED_OTHERWISE and entry.value not in NOTHING:
                self.warn(key, "is not carried over")
        return self.root, self.findings

    def local(self) -> None:
        """Translate the keywords of Dask's LocalCluster and LocalCUDACluster."""
        if threads := self.number("threads-per-worker"):
            self.put("workers.threads", threads)
        if memory := self.size("memory-limit"):
            self.put("workers.memory_limit", memory)
        self.copy("local-directory", "workers.local_directory")

    def batch(self) -> None:
        cores, memory = self.number("cores"), self.size("memory")
        gpus = "cuda" in self.take("worker-command")
        processes = self.number("processes") or (1 if gpus else usual_processes(cores or 1))
        if gpus:
            self.put("job.gpus", processes)
            self.put("job.gpu_request", "none")  # the section's own directives ask for them
        self.put("workers.per_job", processes)
        if cores:
            self.put("workers.threads", max(1, cores // processes))
        if memory:
            self.put("workers.memory_limit", memory // processes)
        self.copy("local-directory", "workers.local_directory")
        arguments = self.takes("worker-extra-args")
        words = [word for text in arguments for word in _split(text)]
        self.put("workers.extra_args", self.drained(words, gpus=gpus))
        self.resources(cores, memory)
        skips = self.takes("job-directives-skip")
        # Dask asks for these itself, so they are skipped like the rest of its header.
        texts = [re.sub(r"^#\S+ ", "", text) for text in skips]
        own = [line for line in self.directives if not any(text in line for text in texts)]
        self.skips += skips
        self.put("job.directives", [*own, *self.extra()])
        self.put("job.skip_directives", self.skips)
        self.environment()

    def drained(self, words: list[str], *, gpus: bool) -> list[str]:
        """Turn the time after which workers would end by themselves into that of their draining.

        Draining waits until somebody has the results; dask-cuda's workers have no such option.
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
        """Return the section's own directives but for a job's name, by which a cluster finds it."""
        from ..batch.contradictions import names_the_job

        given = self.takes("job-extra-directives")
        named = [text for text in given if names_the_job(self.backend, text)]
        comments = [text for text in given if text.lstrip().startswith("#")]
        for text in comments:
            self.warn("job-extra-directives", f"has {shown(text)}, which is a comment")
        for text in named:
            self.warn("job-extra-directives", f"names the job by {shown(text)}, which is ours")
        return [text for text in given if text not in (*named, *comments)]

    def environment(self) -> None:
        """Translate what is not asked of the queueing system."""
        self.put("environment.prologue", self.takes("job-script-prologue"))
        python = self.take("python")
        if python.startswith("/"):
            self.put("environment.python", python)
        elif python:
            self.warn("python", "is not the path of a Python; the user's own is taken")
        self.copy("interface", "network.interface")
        options = self.section.entries.get("scheduler-options")
        self.used.add("scheduler-options")
        if options is not None and isinstance(options.value, dict):
            if interface := options.value.get("interface"):
                self.put("head.interface", str(interface))

    def resources(self, cores: int | None, memory: int | None) -> None:
        """Translate what is asked of the queueing system, system by system."""
        asked = "account" if self.backend in ACCOUNT else "project"
        self.option("account", asked, "Account")
        if self.backend != "htcondor":
            self.option("queue", "queue", "Queue")
        seconds = self.walltime()
        own = {
            "slurm": self.slurm,
            "pbs": self.pbs,
            "moab": self.pbs,
            "torque": self.pbs,
            "sge": self.sge,
            "lsf": self.lsf,
            "oar": self.oar,
            "htcondor": self.htcondor,
        }.get(self.backend)
        if own is None or own(cores, memory, seconds):
            self.put("options.walltime", {"type": "duration", "title": "Walltime"})
        if seconds:
            self.put("job.walltime", seconds)

    def slurm(self, cores: int | None, memory: int | None, seconds: int | None) -> bool:
        self.put("job.cpus", self.number("job-cpu") or cores)
        if raw := self.take("job-mem"):
            self.directives.append(f"--mem={raw}")  # its units are Slurm's own
        else:
            self.put("job.memory", memory)
        return True

    def pbs(self, cores: int | None, memory: int | None, seconds: int | None) -> bool:
        if resources := self.take("resource-spec"):
            self.skips += ["-l select="] if self.backend == "pbs" else ["-l nodes=", "-l mem="]
            self.directives.append(f"-l {resources}")
        else:
            self.put("job.cpus", cores)
            self.put("job.memory", memory)
        return True

    def sge(self, cores: int | None, memory: int | None, seconds: int | None) -> bool:
        # dask-jobqueue asks Grid Engine for neither cores nor memory.
        if resources := self.take("resource-spec"):
            self.directives.append(f"-l {resources}")
        return True

    def lsf(self, cores: int | None, memory: int | None, seconds: int | None) -> bool:
        self.put("job.cpus", self.number("ncpus") or cores)
        amount, unit = self.size("mem") or memory, self.take("lsf-units").lower()[:1]
        if amount and unit and unit in "kmgtpe":
            self.skips.append("-M ")
            self.directives.append(f"-M {-(-amount // 1000 ** ('kmgtpe'.index(unit) + 1))}")
        self.put("job.memory", amount)
        if self.take("use-stdin").lower() == "false":
            self.put("job.submit_by", "file")
        return True

    def oar(self, cores: int | None, memory: int | None, seconds: int | None) -> bool:
        name = self.take("memory-per-core-property-name")
        if memory and name and name != "not_applicable":
            extra = self.section.texts("job-extra-directives")
            given = [d for d in extra if d.startswith("-p")]
            # OAR heeds the last one only.
            kept = [*(d for d in extra if not d.startswith("-p")), *given[-1:]]
            # Two conditions become one line where the script is made.
            least = f"-p {name}>={math.ceil(memory / ((cores or 1) * 2**20))}"
            entries = {**self.section.entries}
            entries["job-extra-directives"] = Entry([*kept, least], self.section.mark)
            self.section = Section(self.section.name, self.section.mark, entries)
        resources = self.take("resource-spec")
        if not resources:
            self.put("job.cpus", cores)
            return True
        self.skips.append("-l /nodes=")
        clock = (
            f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}" if seconds else ""
        )
        self.directives.append(f"-l {resources}" + (f",walltime={clock}" if clock else ""))
        return False

    def htcondor(self, cores: int | None, memory: int | None, seconds: int | None) -> bool:
        self.put("job.cpus", cores)
        self.put("job.memory", memory)
        if disk := self.size("disk"):
            self.directives.append(f"RequestDisk = {disk // 1024}")
        self.put("job.submit_args", self.takes("submit-command-extra"))
        self.put("job.cancel_args", self.takes("cancel-command-extra"))
        return True

    def walltime(self) -> int | None:
        """Return the walltime in seconds; without one dask-jobqueue asks for half an hour."""
        if self.backend == "htcondor":
            return None
        if "walltime" not in self.section.entries:
            return WALLTIME
        # The package of all dialects is not loaded where Dask's YAML has no section.
        from ..batch.durations import parse_walltime

        text = self.take("walltime")
        seconds = parse_walltime(text, self.backend) if text else None
        if text and seconds is None:
            self.warn("walltime", f"{shown(text)} is no length of time")
        return seconds or None

    def option(self, name: str, key: str, title: str) -> None:
        """Copy a text of the job, and let the user set it at start."""
        self.copy(key, f"job.{name}")
        self.put(f"options.{name}", {"type": "string", "title": title})

    def copy(self, key: str, dotted: str) -> None:
        if text := self.take(key):
            self.put(dotted, text)

    def take(self, key: str) -> str:
        self.used.add(key)
        return self.section.text(key)

    def takes(self, key: str) -> list[str]:
        self.used.add(key)
        return self.section.texts(key)

    def number(self, key: str) -> int | None:
        text = self.take(key)
        if text and not re.fullmatch(r"\d{1,9}(\.0*)?", text, re.ASCII):
            self.warn(key, f"{shown(text)} is no whole number")
            return None
        return int(float(text)) if text else None

    def size(self, key: str) -> int | None:
        """Return an amount of memory in bytes, None where it is not set."""
        text = self.take(key)
        amount = parse_size(text) if text else None
        if text and amount is None:
            self.warn(key, f"{shown(text)} is no amount of memory")
        return amount or None

    def warn(self, key: str, words: str) -> None:
        entry = self.section.entries.get(key)
        mark = entry.mark if entry is not None else self.section.mark
        words = f"`{key}` of jobqueue.{self.section.name} {words}"
        if (finding := Finding(mark, words)) not in self.findings:
            self.findings.append(finding)

    def put(self, dotted: str, value: object) -> None:
        """Set a key of the profile; what is nothing is left out."""
        if value in NOTHING:
            return
        branch, parts = self.root, dotted.split(".")
        for part in parts[:-1]:
            branch.keys[part] = self.section.mark
            below = branch.entries.setdefault(part, Branch({}, {}, self.section.mark))
            assert isinstance(below, Branch)  # noqa: S101  # no key is both a value and a mapping
            branch = below
        branch.keys[parts[-1]] = self.section.mark
        branch.entries[parts[-1]] = _grown(value, self.section.mark)


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
