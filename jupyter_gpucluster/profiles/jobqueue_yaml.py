"""Dask's own YAML as a source of profiles: its `jobqueue` sections and `labextension.factory`.

The files are read as Dask reads them, without importing Dask.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .jobqueue_options import Entry, Section, tells_something, translate
from .merge import SourceFile
from .reader import EMPTY, Branch, Finding, Leaf, Mark, Unreadable, plain, read_file
from .values import shown

CLUSTERS = {
    "HTCondorCluster": "htcondor",
    "LSFCluster": "lsf",
    "MoabCluster": "moab",
    "OARCluster": "oar",
    "PBSCluster": "pbs",
    "SGECluster": "sge",
    "SLURMCluster": "slurm",
}
"""Classes of dask-jobqueue, and the section that each reads, which is also our backend's name."""
RANK = (0, 1)
"""Rank of Dask's own files: all profile files but the built-in ones override them."""
OURS = "labextension"
"""Name of the profile for a factory of workers on this machine."""


@dataclass(frozen=True)
class DaskConfig:
    """Content of Dask's files; ``offered`` are the profiles that they make, with their backends."""

    sections: Mapping[str, Section] = field(default_factory=dict)
    offered: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()

    def source(
        self, name: str, files: Sequence[SourceFile]
    ) -> tuple[SourceFile | None, list[Finding]]:
        """Return the section that belongs to a profile of these files, and warnings."""
        asked, backend = _last(files, "dask_config"), _last(files, "backend")
        # A file that names its backend stands alone, unless it names a section too.
        if asked is None and (backend is not None or name not in self.offered):
            return None, []
        key = str(asked.value) if asked is not None else name
        section = self.sections.get(key)
        if section is None:
            words = f"`dask_config`: Dask's configuration has no section jobqueue.{key[:80]}"
            return None, [Finding(asked.mark, words)] if asked is not None else []
        system = str(backend.value) if backend is not None else self.offered.get(key, key)
        tree, findings = translate(section, system)
        return SourceFile(section.mark.file, RANK, tree), findings


def _last(files: Sequence[SourceFile], key: str) -> Leaf | None:
    """Return the value of a key in the last file that has it, without regard to locks."""
    values = [file.tree.entries[key] for file in files if key in file.tree.entries]
    return values[-1] if values and isinstance(values[-1], Leaf) else None


def dask_directories() -> list[Path]:
    """Return the directories of Dask's files; later ones override."""
    paths = [os.environ.get("DASK_ROOT_CONFIG", "/etc/dask")]
    paths += [str(Path(prefix, "etc", "dask")) for prefix in (sys.prefix, *site.PREFIXES)]
    paths.append(str(Path.home() / ".config" / "dask"))
    if own := os.environ.get("DASK_CONFIG"):
        paths.append(own)
    return [Path(path) for path in reversed(dict.fromkeys(reversed(paths)))]


def read_dask_config() -> DaskConfig:
    """Read all files; one that cannot be read is a problem, never an exception."""
    sections: dict[str, Section] = {}
    factory: Section | None = None
    problems: list[Finding] = []
    for path in _files():
        try:
            tree = read_file(path)
        except Unreadable as error:
            # Dask's packages leave files of comments only.
            if error.message != EMPTY:
                problems.append(Finding(error.mark, error.message))
            continue
        for name, part, mark in _parts(tree, "jobqueue"):
            sections[name] = _merged(sections.get(name), name, part, mark)
        for name, part, mark in _parts(tree, "labextension"):
            if name == "factory":
                factory = _merged(factory, name, part, mark)
    offered = {name: name for name in sections if name in CLUSTERS.values()}
    if factory is not None:
        problems += _apply_factory(factory, sections, offered)
    offered = {name: offered[name] for name in offered if tells_something(sections[name])}
    return DaskConfig(sections, offered, tuple(problems))


def _files() -> Iterator[Path]:
    for place in dask_directories():
        try:
            inside = sorted(place.iterdir()) if place.is_dir() else [place]
        except OSError:
            continue
        for path in inside:
            if path.suffix in (".yaml", ".yml") and path.is_file():
                yield path


def _parts(tree: Branch, key: str) -> Iterator[tuple[str, Branch, Mark]]:
    """Yield the mappings below a key of a file."""
    above = tree.entries.get(key)
    if isinstance(above, Branch):
        for name, part in above.entries.items():
            if isinstance(part, Branch):
                yield name, part, above.keys[name]


def _merged(known: Section | None, name: str, part: Branch, mark: Mark) -> Section:
    entries = dict(known.entries) if known is not None else {}
    for key, value in part.entries.items():
        # Dask takes `job_extra` for `job-extra`.
        entries[key.replace("_", "-")] = Entry(plain(value), part.keys[key])
    return Section(name, mark, entries)


def _apply_factory(
    factory: Section, sections: dict[str, Section], offered: dict[str, str]
) -> list[Finding]:
    """Lay the arguments of the factory over the section that its class reads."""
    kind = factory.text("class")
    given = factory.entries.get("kwargs", Entry({}, factory.mark))
    arguments = given.value if isinstance(given.value, dict) else {}
    entries = {str(k).replace("_", "-"): Entry(v, given.mark) for k, v in arguments.items()}
    if kind in ("LocalCluster", "LocalCUDACluster"):
        if entries or kind == "LocalCUDACluster":
            sections[OURS] = Section(OURS, factory.mark, entries)
            offered[OURS] = "local"
        return []
    if factory.text("module").startswith("jupyter_gpucluster"):
        return []
    if kind not in CLUSTERS:
        words = f"`labextension.factory` names {shown(kind)}, for which there is no backend"
        return [Finding(factory.mark, words)]
    name = str(entries.pop("config-name", Entry(CLUSTERS[kind], given.mark)).value)
    below = sections[name].entries if name in sections else {}
    sections[name] = Section(name, factory.mark, {**below, **entries}, chosen=True)
    offered[name] = CLUSTERS[kind]
    return []
