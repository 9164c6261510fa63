"""Write the JSON Schema of a profile and the reference of its keys from the model.

Run ``python -m tools.profile_reference docs/reference/profiles.md docs/site-settings.md`` after
changes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jupyter_gpucluster.profiles import Profile, search
from jupyter_gpucluster.profiles.options import JSON_SCHEMA
from jupyter_gpucluster.profiles.site_settings import SiteSettings

SITE = "<!-- keys of a site: made by tools.profile_reference -->"
SCHEMA_FILE = Path(search.__file__).parent / "schema.json"
BEGIN, END = "<!-- keys: made by tools.profile_reference -->", "<!-- end of keys -->"


def profile_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a whole profile."""
    schema = on_one_line(Profile.model_json_schema())
    models = [schema, *schema["$defs"].values()]
    for field in (field for model in models for field in model["properties"].values()):
        if "patternProperties" in field:
            field["additionalProperties"] = False
    return {"$schema": JSON_SCHEMA, **schema}


def on_one_line(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose descriptions, docstrings in the model, have no line ends."""
    return {
        key: on_one_line(value)
        if isinstance(value, dict)
        else " ".join(value.split())
        if key == "description"
        else value
        for key, value in schema.items()
    }


def reference(page: str) -> str:
    """Return a page of documentation with its tables of keys made anew."""
    for begin, schema in (
        (BEGIN, profile_schema()),
        (SITE, on_one_line(SiteSettings.model_json_schema())),
    ):
        if begin in page:
            before, rest = page.split(begin, 1)
            after = rest.split(END, 1)[1]
            page = f"{before}{begin}\n\n{_tables(schema)}\n{END}{after}"
    return page


def main(arguments: Sequence[str]) -> None:
    """Write ``schema.json``, and the tables of the pages named."""
    text = json.dumps(profile_schema(), indent=2, ensure_ascii=False)
    SCHEMA_FILE.write_text(text + "\n", encoding="utf-8")
    for page in map(Path, arguments):
        page.write_text(reference(page.read_text(encoding="utf-8")), encoding="utf-8")


def _tables(schema: dict[str, Any]) -> str:
    parts = [_table("", schema["properties"], schema.get("required", []), schema["$defs"])]
    for path, definition in _sections(schema):
        needed = definition.get("required", [])
        rows = _table(path, definition["properties"], needed, schema["$defs"])
        parts.append(f"### `{path}`\n\n{definition['description']}\n\n{rows}")
    return "\n".join(parts)


def _sections(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    shown = set()  # `groups` has the sections `job` and `workers` again
    for name, field in schema["properties"].items():
        for reference_, suffix in _references(field):
            shown.add(reference_)
            definition = schema["$defs"][reference_]
            yield name + suffix, definition
            for inner, inner_field in definition["properties"].items():
                for below, _ in _references(inner_field):
                    if below not in shown:
                        yield f"{name}.{inner}", schema["$defs"][below]


def _references(field: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for option in [field, *field.get("anyOf", [])]:
        if "$ref" in option:
            yield option["$ref"].rsplit("/", 1)[1], ""
    for inside in _values_of(field):
        for name, _ in _references(inside):
            yield name, ".<name>"


def _values_of(field: dict[str, Any]) -> list[dict[str, Any]]:
    inside = [field.get("additionalProperties"), *field.get("patternProperties", {}).values()]
    return [value for value in inside if isinstance(value, dict)]


def _table(
    path: str, fields: dict[str, Any], required: Sequence[str], definitions: dict[str, Any]
) -> str:
    rows = ["| key | kind | default | meaning |", "| --- | --- | --- | --- |"]
    for name, field in fields.items():
        key = f"`{path}.{name}`" if path else f"`{name}`"
        default = "**required**" if name in required else _default(field)
        meaning = field.get("description") or _meaning(field, definitions)
        rows.append(f"| {key} | {_kind(field)} | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def _meaning(field: dict[str, Any], definitions: dict[str, Any]) -> str:
    [(name, _)] = _references(field)
    return str(definitions[name]["description"])


def _default(field: dict[str, Any]) -> str:
    value = field.get("default")
    if value in (None, "", [], {}):
        return "empty"
    if isinstance(value, dict):
        return "by key"
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _kind(field: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(f"`{word}`" for word in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "$ref" in field:
        return "mapping"
    if "anyOf" in field:
        return " or ".join(_alternatives(field["anyOf"]))
    kinds = {
        "boolean": "true or false",
        "integer": "number",
        "null": "empty",
        "object": "mapping by name",
        "string": "text",
    }
    kind = field.get("type")
    if kind == "array":
        return "list of text"
    return kinds.get("string" if isinstance(kind, list) else str(kind), "one value")


def _alternatives(options: Sequence[dict[str, Any]]) -> list[str]:
    formats = {o["format"] for o in options if "format" in o}
    words = [f for f in ("memory", "duration") if f in formats]
    for option in options:
        if not formats or option.get("type") not in ("integer", "string"):
            words.append(_kind(option))
    return list(dict.fromkeys(words))


if __name__ == "__main__":
    main(sys.argv[1:])
