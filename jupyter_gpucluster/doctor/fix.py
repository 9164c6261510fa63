"""Change single values of the user's own profile file, with its comments kept."""

from __future__ import annotations

import difflib
import io
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from ruamel.yaml import YAML

from ..core.errors import InvalidInput
from ..core.fast_dataclass import frozen
from ..profiles import find_profile
from ..profiles.model import covers, split
from ..state.paths import data_directory
from .findings import Finding

FIXABLE = ("head.interface", "head.placement", "head.submit")
"""Keys that a check can decide; encryption, trust, locks and directives are never changed."""


@frozen
class Fix:
    """A changed file, which has not been written yet."""

    file: Path
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The changed lines."""
        texts = (self.before.splitlines(), self.after.splitlines())
        return "\n".join(difflib.unified_diff(*texts, str(self.file), str(self.file), lineterm=""))

    def apply(self) -> Path:
        """Replace the file; return the path of the copy of the old one."""
        saved = self.file.with_name(f"{self.file.name}.bak")
        shutil.copy2(self.file, saved)
        changed = self.file.with_name(f".{self.file.name}.new")
        changed.write_text(self.after, encoding="utf-8")
        shutil.copymode(self.file, changed)
        os.replace(changed, self.file)  # noqa: PTH105
        return saved


def find_fix(profile: str, findings: Iterable[Finding]) -> Fix | None:
    """Return the change of the user's file that the findings suggest; None if there is none.

    Raises
    ------
    InvalidInput
        The values lie in a file that is not the user's own, or are locked.
    """
    values = {each.key: each.value for each in findings if each.key in FIXABLE}
    if not values:
        return None
    loaded = find_profile(profile)
    own = Path(data_directory(), "gpucluster", "profiles")
    file = next((Path(each) for each in loaded.files if Path(each).parent == own), None)
    locks = [split(key) for key in loaded.profile.locked]
    locked = [key for key in values if any(covers(lock, split(key)) for lock in locks)]
    if file is None or locked:
        why = f"{locked[0]} is locked" if locked else f"no file of yours makes {profile}"
        wanted = ", ".join(f"{key}: {value}" for key, value in values.items())
        raise InvalidInput(f"Nothing was changed: {why}.", hint=f"Ask the site to set {wanted}.")
    yaml = YAML()
    yaml.preserve_quotes, yaml.width = True, 4096
    before = file.read_text(encoding="utf-8")
    tree = yaml.load(before)
    for key, value in values.items():
        section, name = split(key)
        tree.setdefault(section, {})[name] = value
    changed = io.StringIO()
    yaml.dump(tree, changed)
    return Fix(file, before, changed.getvalue())
