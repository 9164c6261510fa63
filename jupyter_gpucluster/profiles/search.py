"""The search path of profile files, and the profiles that they make."""

from __future__ import annotations

import fnmatch
import os
import re
import socket
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from ..core.errors import ProfileError, ProfileNotFound
from .jobqueue_yaml import CLUSTERS, DaskConfig, read_dask_config
from .merge import FieldSource, Merged, Shadowed, SourceFile, merge
from .model import Profile, join, suggestion
from .reader import Finding, Mark, Unreadable, read_file
from .site_settings import NO_SITE, LoadedSite, read_site
from .validation import validate, warnings

BUILT_IN = Path(__file__).parent / "sites"
DEMO = Path(__file__).parent / "demo"
DEMO_SWITCH = "JUPYTER_GPUCLUSTER_DEMO"
"""Environment variable that offers the profiles of the simulated site; empty: they are hidden."""

SITE_FILE = "site.yaml"
SITES = (1, 2, 3)
"""Levels of directories that sites write to: the system's, the environment's, `JUPYTER_PATH`."""
_HOSTS = re.compile(r"^hosts: \[(.+)\]$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)


@dataclass(frozen=True)
class ProfileProblem:
    """A mistake in a profile file; line and column count from 1.

    Parameters
    ----------
    profile
        Name that the file stands for; empty for a directory or a badly named file.
    severity
        ``error``: the file is ignored; ``warning``: only this value is.
    blocks
        Whether the profile cannot be started because of it: a site's file may have limits.
    """

    file: str
    line: int
    column: int
    message: str
    profile: str = ""
    severity: Literal["error", "warning"] = "error"
    blocks: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


@dataclass(frozen=True)
class LoadedProfile:
    """A profile and the files it was made of, each overriding those before it."""

    name: str
    profile: Profile
    sources: tuple[FieldSource, ...]
    files: tuple[str, ...]
    shadowed: tuple[Shadowed, ...]
    problems: tuple[ProfileProblem, ...] = ()
    """Mistakes in its files, if only this profile was read (`find_profile`)."""
    site: LoadedSite = NO_SITE
    """The site's settings, if only this profile was read."""

    def matches_host(self) -> bool:
        """Return whether the profile is meant for this host."""
        return matches(self.profile.hosts, socket.gethostname())


@dataclass(frozen=True)
class ProfileSet:
    """All profiles, best first for this host, and the mistakes in files."""

    profiles: dict[str, LoadedProfile] = field(default_factory=dict)
    problems: list[ProfileProblem] = field(default_factory=list)
    site: LoadedSite = NO_SITE

    @property
    def broken(self) -> dict[str, str]:
        """The profiles that cannot be started because of a site's file, each with the file."""
        return {p.profile: p.file for p in self.problems if p.blocks and p.profile}


Ranked = tuple[Path, tuple[int, int]]
"""A file or directory of the search path; the smaller the rank, the more central."""


def load_profiles(*, all_sites: bool = False) -> ProfileSet:
    """Read all profiles of the search path; bad files become problems, never exceptions.

    Parameters
    ----------
    all_sites
        Also return the built-in profiles of sites that we are not at.
    """
    found, problems = _candidates()
    dask, site = read_dask_config(), load_site()
    problems += _site_problems(site)
    problems += [_problem("", finding, "warning") for finding in dask.problems]
    profiles: list[LoadedProfile] = []
    for name in {**found, **dask.offered}:
        paths = found.get(name, [])
        shipped = len(paths) == 1 and paths[0][0].parent == BUILT_IN
        if shipped and not all_sites and _is_of_another_site(paths[0][0]):
            continue
        loaded = _load(name, paths, problems, dask)
        usable = loaded is not None and not site.problems
        if loaded is not None and usable and not site.refusal(name, loaded.profile):
            profiles.append(loaded)
    profiles.sort(key=_order)
    return ProfileSet({loaded.name: loaded for loaded in profiles}, problems, site)


def profile_names() -> Collection[str]:
    """Return the names of all profiles, also of those that this user cannot start."""
    found, _ = _candidates()
    return {*found, *read_dask_config().offered}


def load_site() -> LoadedSite:
    """Read the site's settings."""
    files = [(Path(base, "gpucluster", SITE_FILE), rank) for base, rank in _data_directories()]
    return read_site(files)


def _site_problems(site: LoadedSite) -> list[ProfileProblem]:
    words = " (no cluster can be started until this is corrected)"
    found = [replace(each, message=each.message + words) for each in site.problems]
    return [replace(_problem("", each), blocks=True) for each in found]


def _order(loaded: LoadedProfile) -> tuple[bool, bool, bool, str]:
    """Put profiles of this host first, then defaults, then those that name no other hosts."""
    profile = loaded.profile
    return not loaded.matches_host(), not profile.default, bool(profile.hosts), loaded.name


def find_profile(name: str) -> LoadedProfile:
    """Return one profile; only the files of this name are read.

    Raises
    ------
    ProfileNotFound
        No file of this name.
    ProfileError
        Its files cannot be used; the message names file, line and column.
    """
    found, _ = _candidates()
    dask = read_dask_config()
    if name not in found and name in dask.sections.keys() - CLUSTERS.values() - dask.offered.keys():
        raise ProfileNotFound(
            f"no profile {name[:80]!r}; Dask's configuration has a section of this name, which does"
            " not name a batch system",
            hint="Write a profile of two lines: `backend: slurm` (or pbs, lsf, sge...) and"
            f" `dask_config: {name[:80]}`.",
            detail="profile",
        )
    if name not in found and name not in dask.offered:
        raise ProfileNotFound(
            f"no profile {name[:80]!r}{suggestion(name[:80], {**found, **dask.offered})}",
            hint=f"Profiles: {', '.join(sorted(load_profiles().profiles))}; setup writes more.",
            detail="profile",
        )
    problems: list[ProfileProblem] = []
    loaded = _load(name, found.get(name, []), problems, dask)
    if loaded is None:
        errors = [problem for problem in problems if problem.severity == "error"]
        whose = "the site's file" if any(error.blocks for error in errors) else "the file"
        raise ProfileError(
            "\n".join(map(str, errors)),
            hint=f"Correct {whose}; profile {name!r} cannot be used until then.",
            detail="profile",
        )
    site = load_site()
    if site.problems:
        raise ProfileError(
            "\n".join(map(str, _site_problems(site))),
            hint="Correct this file, or ask the site's staff to do so.",
            detail="profile",
        )
    if refusal := site.refusal(name, loaded.profile):
        raise ProfileNotFound(
            refusal, hint=site.hint("The command profiles lists the others."), detail="profile"
        )
    return replace(loaded, problems=tuple(problems), site=site)


def check_file(path: Path) -> list[ProfileProblem]:
    """Return what is wrong with a file of a profile or a site's settings, in use or not.

    A file that lacks `title` or `backend` is checked together with the installed files of its name.
    """
    name, real = path.stem, path.resolve()
    if path.name == SITE_FILE and real.parent.name != "profiles":
        return [_problem("", each) for each in read_site([(path, (1, 0))]).problems]
    if not _NAME.fullmatch(name):
        return [_badly_named(path)]
    installed = _candidates()[0].get(name, [])
    used = any(other.resolve() == real for other, _ in installed)
    problems: list[ProfileProblem] = []
    dask = read_dask_config()
    if not used:
        try:
            complete = {"title", "backend"} <= read_file(path).entries.keys()
        except Unreadable:
            complete = True
        installed = [*([] if complete else installed), (path, (4, 0))]
    _load(name, installed, problems, dask)
    return problems


def read_profile(path: Path) -> LoadedProfile:
    """Return the profile of one file, which may lie anywhere; raises `ProfileError`."""
    problems: list[ProfileProblem] = []
    loaded = _load(path.stem, [(path, (4, 0))], problems, DaskConfig())
    if loaded is None or problems:
        raise ProfileError(str(problems[0]), hint="Correct the file.", detail="profile")
    return loaded


def search_path() -> list[Ranked]:
    """Return the directories of profiles; each overrides those before it."""
    listed = [(BUILT_IN, (0, 0))]
    if os.environ.get(DEMO_SWITCH):
        listed.append((DEMO, (0, 1)))
    listed += [(Path(base, "gpucluster", "profiles"), rank) for base, rank in _data_directories()]
    # A directory listed twice keeps its most central rank: naming the system's directory in
    # JUPYTER_PATH must not turn its locks into weaker ones.
    unique: dict[str, Ranked] = {}
    for path, rank in listed:
        real = os.path.realpath(path)
        known = unique.pop(real, None)
        unique[real] = (path, rank if known is None else min(rank, known[1]))
    return list(unique.values())


def _data_directories() -> list[tuple[str, tuple[int, int]]]:
    """Return Jupyter's data directories with their ranks, the last to override first."""
    # Imported late: it costs 30 ms, and what only needs the model need not pay them.
    from jupyter_core import paths

    extra = (os.environ.get("JUPYTER_PATH") or "").split(os.pathsep)
    levels = [
        (1, set(paths.SYSTEM_JUPYTER_PATH)),
        (2, set(paths.ENV_JUPYTER_PATH)),
        (3, {path.rstrip(os.sep) for path in extra}),
    ]
    found = []
    for position, base in enumerate(reversed(paths.jupyter_path()), 2):
        level = next((level for level, known in levels if base in known), 4)
        found.append((base, (level, position)))
    return found


def _candidates() -> tuple[dict[str, list[Ranked]], list[ProfileProblem]]:
    """Return the files of the search path by the names of their profiles."""
    found: dict[str, list[Ranked]] = {}
    problems: list[ProfileProblem] = []
    for directory, rank in search_path():
        seen: dict[str, Path] = {}
        for path in _listed(directory, problems):
            name = path.stem
            if not _NAME.fullmatch(name):
                problems.append(_badly_named(path))
            elif name in seen:
                words = f"is ignored, since {seen[name].name} is beside it; remove one"
                problems.append(ProfileProblem(str(path), 1, 1, words, name))
            else:
                seen[name] = path
                found.setdefault(name, []).append((path, rank))
    return found, problems


def _badly_named(path: Path) -> ProfileProblem:
    words = "cannot be the name of a profile; use letters, digits, `-`, `_` and `.`"
    return ProfileProblem(str(path), 1, 1, f"{path.stem[:80]!r} {words}")


def _listed(directory: Path, problems: list[ProfileProblem]) -> list[Path]:
    try:
        return sorted(
            path
            for path in directory.iterdir()
            if path.suffix in (".yaml", ".yml") and not path.name.startswith(".")
        )
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        words = f"cannot be listed: {error.strerror}"
        problems.append(ProfileProblem(str(directory), 1, 1, words))
        return []


def _load(
    name: str, paths: Sequence[Ranked], problems: list[ProfileProblem], dask: DaskConfig
) -> LoadedProfile | None:
    files: list[SourceFile] = []
    for path, rank in paths:
        try:
            files.append(SourceFile(str(path), rank, read_file(path)))
        except Unreadable as error:
            problems.append(_problem(name, Finding(error.mark, error.message)))
    unread = {str(path) for path, _ in paths} - {source.file for source in files}
    if _blocked(name, paths, unread, problems):
        return None
    section, doubts = dask.source(name, files)
    problems += [_problem(name, finding, "warning") for finding in doubts]
    if section is not None:
        files.insert(sum(source.rank[0] == 0 for source in files), section)
    while files:
        merged = merge(files)
        profile, findings = validate(merged.tree)
        if profile is not None:
            doubts = [*_refusals(merged), *warnings(profile, merged.tree)]
            problems += [_problem(name, finding, "warning") for finding in doubts]
            sources = (FieldSource(join(key), file) for key, file in sorted(merged.sources.items()))
            return LoadedProfile(
                name, profile, tuple(sources), tuple(merged.files), tuple(merged.shadowed)
            )
        bad = _culprits(files, findings)
        files = [source for source in files if source.file not in bad]
        problems += [_problem(name, finding) for finding in _at_culprits(findings, bad)]
        if _blocked(name, paths, bad, problems):
            return None
    return None


def _blocked(
    name: str, paths: Sequence[Ranked], bad: Iterable[str], problems: list[ProfileProblem]
) -> bool:
    """Return whether a site's file is among bad ones: its limits and locks are not known."""
    words = f"profile {name} cannot be started until this file is corrected"
    sites = [str(path) for path, (level, _) in paths if level in SITES and str(path) in {*bad}]
    problems += [ProfileProblem(file, 1, 1, words, name, blocks=True) for file in sites]
    return bool(sites)


def _culprits(files: Sequence[SourceFile], findings: Sequence[Finding]) -> list[str]:
    """Return the files to leave out: the one without which all is well, or all with findings.

    What is wrong may stand in a good file: a user's `choices` that lack the site's `default`.
    """
    for source in sorted(files, key=lambda source: source.rank, reverse=True):
        others = [other for other in files if other is not source]
        if others and validate(merge(others).tree)[0] is not None:
            return [source.file]
    return list({finding.mark.file for finding in findings})


def _at_culprits(findings: Sequence[Finding], bad: Sequence[str]) -> list[Finding]:
    return [
        finding
        if finding.mark.file in bad
        else Finding(Mark(bad[0], 1, 1), f"conflicts with {finding.mark}: {finding.message}")
        for finding in findings
    ]


def _refusals(merged: Merged) -> list[Finding]:
    words = {
        "locked": "`{path}` is locked by {by}; the value here is ignored",
        "final": "{by} is marked final; this file is ignored",
    }
    return [
        Finding(mark, words[item.reason].format(path=item.path, by=item.by))
        for mark, item in merged.refused
    ]


def _problem(
    name: str, finding: Finding, severity: Literal["error", "warning"] = "error"
) -> ProfileProblem:
    mark = finding.mark
    return ProfileProblem(mark.file, mark.line, mark.column, finding.message, name, severity)


def matches(patterns: Iterable[str], hostname: str) -> bool:
    """Return whether a host name fits one of the patterns.

    A short host name is compared with the first part of each pattern.
    """
    host = hostname.lower()
    known = [pattern.lower() for pattern in patterns]
    if "." not in host:
        firsts = [pattern.split(".")[0] for pattern in known]
        # The "*" of "*.example.org" would match every short name.
        known += [first for first in firsts if first.strip("*")]
    return any(fnmatch.fnmatchcase(host, pattern) for pattern in known)


def _is_of_another_site(shipped: Path) -> bool:
    """Return whether the line of hosts of a shipped profile names another site than ours.

    Many sites have a host `login1`, so here a short name has to be confirmed by the full one.
    The line is all that is read: the profiles of the whole world must not cost every user.
    """
    line = _HOSTS.search(shipped.read_text("utf-8"))
    if line is None:
        return False
    patterns = re.findall(r'"([^"]+)"', line[1])
    host = socket.gethostname()
    if not matches(patterns, host):
        return True
    full = host if "." in host else socket.getfqdn(host)
    return "." not in full or not matches(patterns, full)
