"""Profiles: read, validate, merge and lock YAML, and apply the user's options.

Runs in the Python that has this package installed.
May import core and batch.
"""

from __future__ import annotations

from .merge import FieldSource, Shadowed
from .model import Profile
from .options import apply_options, options_schema, resolve_options
from .search import (
    LoadedProfile,
    ProfileProblem,
    ProfileSet,
    find_profile,
    load_profiles,
    load_site,
    read_profile,
)

__all__ = [
    "FieldSource",
    "LoadedProfile",
    "Profile",
    "ProfileProblem",
    "ProfileSet",
    "Shadowed",
    "apply_options",
    "find_profile",
    "load_profiles",
    "load_site",
    "options_schema",
    "read_profile",
    "resolve_options",
]
