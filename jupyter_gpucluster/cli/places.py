"""What the command line settles about profiles; the only part of it that imports them."""

from __future__ import annotations

import argparse
import contextlib

from ..core.errors import GpuClusterError, InvalidInput
from ..host.hardware import look_around
from ..launch.allocation import is_spread
from ..launch.spec import uses_gpus
from ..profiles import find_profile, load_profiles
from .arguments import refuse_gpus_of
from .session import Session


def default_profile() -> str:
    """Return the profile that is chosen beforehand here."""
    found = load_profiles()
    if not found.profiles:
        raise InvalidInput(
            "There is no profile that can be used.",
            hint="Correct the files that the verb profiles complains of.",
        )
    chosen = next((name for name, loaded in found.profiles.items() if loaded.profile.default), None)
    return chosen or ("local" if "local" in found.profiles else next(iter(found.profiles)))


def refuse_gpus_on(profile: str, arguments: argparse.Namespace) -> None:
    """Refuse ``--gpus`` on a profile without GPUs."""
    if arguments.gpus is not None:
        found = find_profile(profile).profile
        if is_spread(found) and found.job.gpus == "auto":
            return  # they are the allocation's
        gpus = uses_gpus(found, look_around())
        refuse_gpus_of("GPUs" if gpus else "workers", arguments, f"Profile {profile}")


def note_problems(profile: str, session: Session) -> None:
    """Show what is wrong with a profile's files before they are used."""
    with contextlib.suppress(GpuClusterError):  # which whoever uses the profile raises
        for problem in find_profile(profile).problems:
            session.note(f"{problem.severity}: {problem}")
