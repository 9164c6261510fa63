"""Profiles: read, validate, merge and lock YAML, and apply the user's options.

Runs in the Python that has this package installed.
May import core and batch.
"""

from __future__ import annotations

from .merge import FieldSource as FieldSource
from .merge import Shadowed as Shadowed
from .model import Profile as Profile
from .options import apply_options as apply_options
from .options import options_schema as options_schema
from .options import resolve_options as resolve_options
from .search import LoadedProfile as LoadedProfile
from .search import ProfileProblem as ProfileProblem
from .search import ProfileSet as ProfileSet
from .search import find_profile as find_profile
from .search import load_profiles as load_profiles
from .search import load_site as load_site
from .search import profile_names as profile_names
from .search import read_profile as read_profile
