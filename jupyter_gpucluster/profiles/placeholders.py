"""Names in braces within a profile's text: found, and filled with the values of options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from ..core.errors import InvalidInput
from .keys import SETTABLE, Path
from .model import Profile
from .units import shown

PLACEHOLDER = re.compile(r"\{(\{[a-z][a-z0-9_]*\})\}|(?<!\$)\{([a-z][a-z0-9_]*)\}")
"""``{name}``, not ``${name}``, which shells know; ``{{name}}`` stands for ``{name}`` itself."""


def placeholders(profile: Profile) -> dict[str, list[Path]]:
    """Return the names in braces and where each stands."""
    found: dict[str, list[Path]] = {}
    for section in SETTABLE:
        _collect(getattr(profile, section).model_dump(), (section,), found)
    return found


def _collect(value: object, path: Path, found: dict[str, list[Path]]) -> None:
    if isinstance(value, dict):
        for key, below in value.items():
            _collect(below, (*path, key), found)
    elif isinstance(value, (list, tuple)):
        for index, below in enumerate(value):
            _collect(below, (*path, str(index)), found)
    elif isinstance(value, str):
        for match in PLACEHOLDER.finditer(value):
            if match[2]:
                found.setdefault(match[2], []).append(path)


def filled(value: Any, path: Path, texts: Mapping[str, str]) -> Any:
    """Return a section's values with these texts in place of names in braces.

    A list item or variable whose option has no value is left out; other text becomes empty.
    """
    if isinstance(value, dict):
        if path == ("environment", "variables"):
            value = {key: text for key, text in value.items() if not _lacking(text, texts)}
        return {key: filled(below, (*path, key), texts) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_fill(item, path, texts) for item in value if not _lacking(item, texts)]
    if isinstance(value, str):
        return "" if _lacking(value, texts) else _fill(value, path, texts)
    return value


def _lacking(text: str, texts: Mapping[str, str]) -> bool:
    return any(match[2] and match[2] not in texts for match in PLACEHOLDER.finditer(text))


def _fill(text: str, path: Path, texts: Mapping[str, str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        value, name = texts[match[2]], match[2]
        if path == ("environment", "prologue"):
            return shlex.quote(value)
        if path == ("job", "directives") and re.search(r"[\s'\"\\;#]", value):
            raise InvalidInput(
                f"option `{name}`: {shown(value)} holds a blank, quote or other sign"
                " that would start another directive",
                hint="Leave these signs out.",
                detail=f"options.{name}",
            )
        return value

    return PLACEHOLDER.sub(replacement, text)
