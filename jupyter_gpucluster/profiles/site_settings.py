"""Settings of a site for all profiles: `gpucluster/site.yaml` below Jupyter's data directories."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import grp
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from ..batch import uses_this_machine
from ..batch.variables import surrounding_job
from .merge import FieldSource, SourceFile, merge
from .model import Profile, join
from .reader import Branch, Finding, Unreadable, plain, read_file
from .sections import Section
from .validation import wrong_values
from .values import DurationOrNone, PositiveOrNone, Text

DAY = 86400


class SiteLimits(Section):
    """Limits of one user over all profiles; they prevent mistakes, not abuse."""

    clusters: PositiveOrNone = None
    """Most clusters of a user at one time; empty: no limit."""
    gpus: PositiveOrNone = None
    """Most GPUs of a user's clusters at one time; empty: no limit."""
    gpu_hours: PositiveOrNone = None
    """Most GPU-hours of a user's clusters in `window`; empty: no limit."""
    window: DurationOrNone = 30 * DAY
    """Time over which `gpu_hours` counts, up to now."""


class Times(Section):
    """Values for the keys of the same names in the `policy` of all profiles."""

    idle_timeout: DurationOrNone = None
    """For `policy.idle_timeout`."""
    no_client_timeout: DurationOrNone = None
    """For `policy.no_client_timeout`."""
    max_lifetime: DurationOrNone = None
    """For `policy.max_lifetime`."""


class SiteSettings(Section):
    """Settings of a site for all profiles."""

    contact: Text = ""
    """Whom users ask, shown with each refusal."""
    announcement: Text = ""
    """One line shown above the profiles."""
    local: Literal["on", "off"] = "on"
    """`off`: no clusters on the machine that Jupyter runs on, except inside a batch job."""
    setup: Literal["on", "off"] = "on"
    """`off`: the command `setup` and Lab save no profiles."""
    visible: dict[Text, tuple[Text, ...]] = Field({})
    """Groups whose members see a profile, by the profile's name or a pattern of it (`gpu-*`)."""
    poll_period: DurationOrNone = None
    """Time between two listings of a user's jobs while one waits or ends; empty: 30 s.  It is four
    times as long while all workers are connected."""
    limits: SiteLimits = SiteLimits.model_construct()
    """Limits of one user over all profiles; they prevent mistakes, not abuse."""
    defaults: Times = Times.model_construct()
    """Values where profile and user give none."""
    maxima: Times = Times.model_construct()
    """Largest values, whatever profile or user give."""
    retention: DurationOrNone = None
    """Ended clusters older than this are forgotten at the user's next start."""


@dataclass(frozen=True)
class LoadedSite:
    """The settings, the files that gave them, and mistakes in these files."""

    settings: SiteSettings
    sources: tuple[FieldSource, ...] = ()
    problems: tuple[Finding, ...] = ()

    def hint(self, text: str) -> str:
        """Return a hint with the contact behind it."""
        contact = self.settings.contact
        return f"{text} Contact: {contact}." if contact else text

    def refusal(self, name: str, profile: Profile) -> str:
        """Return why this user cannot start a profile here; empty if nothing forbids it."""
        here = uses_this_machine(profile.backend)
        if self.settings.local == "off" and here and not surrounding_job():
            return (
                f"This site allows no clusters on this machine, so profile {name} cannot be used."
            )
        for pattern, groups in self.settings.visible.items():
            if fnmatch.fnmatchcase(name, pattern) and not {*groups} & own_groups():
                return f"Profile {name} is for members of {' or '.join(groups)}."
        return ""

    def applied(self, profile: Profile) -> Profile:
        """Return a profile whose times keep to the site's defaults and maxima."""
        times = {}
        for key in Times.model_fields:
            wanted = getattr(profile.policy, key) or getattr(self.settings.defaults, key)
            given = (wanted, getattr(self.settings.maxima, key))
            times[key] = min((seconds for seconds in given if seconds), default=None)
        return profile.model_copy(update={"policy": profile.policy.model_copy(update=times)})


NO_SITE = LoadedSite(SiteSettings())


@functools.cache
def own_groups() -> set[str]:
    """Return the names of this user's groups."""
    names = set()
    for number in {os.getgid(), *os.getgroups()}:
        with contextlib.suppress(KeyError):
            names.add(grp.getgrgid(number).gr_name)
    return names


def read_site(files: Sequence[tuple[Path, tuple[int, int]]]) -> LoadedSite:
    """Read the files that exist; of two values for one key the more central file's counts.

    Parameters
    ----------
    files
        Paths with their ranks, as for profiles.
    """
    sources: list[SourceFile] = []
    problems: list[Finding] = []
    for path, rank in sorted(files, key=lambda file: file[1], reverse=True):
        try:
            sources += [SourceFile(str(path), rank, read_file(path))] if path.exists() else []
        except Unreadable as error:
            problems.append(Finding(error.mark, error.message))
    for source in sources:
        problems += _validated(source.tree)[1]
    if problems or not sources:
        return replace(NO_SITE, problems=tuple(problems))
    merged = merge(sources)
    settings, _ = _validated(merged.tree)
    given = (FieldSource(join(path), file) for path, file in sorted(merged.sources.items()))
    return LoadedSite(settings or NO_SITE.settings, tuple(given))


def _validated(tree: Branch) -> tuple[SiteSettings | None, list[Finding]]:
    try:
        return SiteSettings.model_validate(plain(tree)), []
    except ValidationError as error:
        return None, wrong_values(tree, error, SiteSettings)
