"""The options of a profile as a JSON Schema, from which forms are drawn and values are checked."""

from __future__ import annotations

import re
from typing import Any

from .fields import DURATION_PATTERN, MAXIMUM_TEXT, MEMORY_PATTERN
from .model import Option, Profile
from .options import MAXIMUM_MATCHED, allowed, bounds, check_value, written

JSON_SCHEMA = "https://json-schema.org/draft/2020-12/schema"

_PRINTABLE = r"[^\u0000-\u001f\u007f-\u009f\u2028\u2029]"
_LINE = f"^{_PRINTABLE}*$"
_PATH = f"^[/~$]{_PRINTABLE}*$"

# Characters, sets of characters, how often, and "or": what all dialects of regular expressions read
# alike.  The server's own engine takes linear time; others get only few choices of how often.
_PLAIN = re.compile(
    r"(?: (?: [\w ,:;@%=/~\#!\"'<>&-] | \\[$^.*+?()\[\]{}|]"
    r"  | \[ (?: [\w .,:;@%=/]-? | \\[-.\[\]] )+ -? \] )"
    r"  (?: [*+?] | \{\d+(?:,\d*)?\} )? | \| )*",
    re.ASCII | re.VERBOSE,
)
_MANY = 4


def options_schema(profile: Profile) -> dict[str, Any]:
    """Return the JSON Schema of the options that a start of this profile takes.

    Of values of the types that it names, it refuses only what a start refuses, too.  The reverse is
    left to the start where JSON Schema has no words: for bounds of durations and memory, for
    patterns that other readers might take for something else, and for homes of other users.

    Besides the words of JSON Schema a property has ``kind``, the option's type, and ``allowed``,
    what may be given, in words.  Defaults are written as users write them.
    """
    return {
        "$schema": JSON_SCHEMA,
        "type": "object",
        "properties": {name: _property(name, option) for name, option in profile.options.items()},
        "required": [
            name
            for name, option in profile.options.items()
            if option.required and option.default is None
        ],
        "additionalProperties": False,
    }


def _property(name: str, option: Option) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "kind": option.type,
        "title": option.title or name.replace("_", " ").capitalize(),
        "description": option.help,
        "allowed": allowed(option),
        **_checks(option),
    }
    if option.default is not None:
        default = check_value(option, option.default)
        plain = option.type in ("integer", "boolean")
        schema["default"] = default if plain else written(option, default)
    return schema


def _checks(option: Option) -> dict[str, Any]:
    match option.type:
        case "boolean":
            return {"type": "boolean"}
        case "integer":
            named = zip(("minimum", "maximum"), bounds(option), strict=True)
            return {"type": "integer", **{key: value for key, value in named if value is not None}}
        case "enum":
            return {"type": "string", "enum": list(option.choices)}
        case "duration":
            return {"type": "string", "pattern": DURATION_PATTERN}
        case "memory":
            return {"type": "string", "pattern": MEMORY_PATTERN}
        case "path":
            return {"type": "string", "pattern": _PATH, "maxLength": MAXIMUM_TEXT}
        case _:
            return {"type": "string", **_text(option.pattern)}


def _text(pattern: str | None) -> dict[str, Any]:
    if pattern is None:
        return {"pattern": _LINE, "maxLength": MAXIMUM_TEXT}
    few = len(re.findall(r"[*+?{]", pattern)) < _MANY
    # Between the characters of a set "--" is a range to some, and a difference to others.
    plain = few and "--" not in pattern and _PLAIN.fullmatch(pattern)
    return {"pattern": f"^(?:{pattern})$" if plain else _LINE, "maxLength": MAXIMUM_MATCHED}
