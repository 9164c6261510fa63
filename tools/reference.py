"""A hook of mkdocs: pages on the terminal, REST and Python, made of the code."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from ruamel.yaml import YAML

from jupyter_gpucluster import GPUCluster, connect
from jupyter_gpucluster.cli import main
from jupyter_gpucluster.cli.commands import COMMANDS
from tools.shell import CHECKOUT

COLUMNS = "96"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages to those of the folder."""
    pages = {"terminal": terminal_page(), "rest": rest_page(), "python": python_page()}
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files


def terminal_page() -> str:
    """Return each command's help."""
    helps = [f"## {name}\n\n```text\n{_help(name)}```\n" for name in COMMANDS]
    return "\n".join(["# Terminal", f"```text\n{_help()}```\n", *helps])


def _help(*command: str) -> str:
    shown = io.StringIO()
    os.environ["COLUMNS"] = COLUMNS
    with contextlib.redirect_stdout(shown):
        main([*command, "--help"])
    return shown.getvalue()


def python_page() -> str:
    """Return the signatures and docstrings of what the package offers."""
    methods = [
        (f"GPUCluster.{name}", member)
        for name, member in vars(GPUCluster).items()
        if not name.startswith("_") and inspect.getdoc(member)
    ]
    return "\n".join(
        [
            "# Python",
            *(_described(*row) for row in [("GPUCluster", GPUCluster), *methods]),
            _described("connect", connect),
        ]
    )


def _described(name: str, member: Any) -> str:
    called = getattr(member, "__func__", member)  # of a class method
    signature = str(inspect.signature(called)) if callable(called) else ""
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", signature)
    return f"## {name}\n\n```text\n{name}{signature}\n\n{inspect.getdoc(member)}\n```\n"


def rest_page() -> str:
    """Return the routes, and the fields of what they take and answer."""
    source = CHECKOUT / "jupyter_gpucluster" / "server" / "openapi.yaml"
    api = YAML(typ="safe").load(source.read_text())
    routes = [
        f"| `{method.upper()} {path}` | {operation['summary']} |"
        for path, entry in api["paths"].items()
        for method, operation in entry.items()
        if isinstance(operation, dict) and "summary" in operation
    ]
    schemas = api["components"]["schemas"]
    return "\n".join(
        [
            "# REST",
            api["info"]["description"],
            "| route | meaning |",
            "| --- | --- |",
            *routes,
            "",
            *(line for name in schemas for line in _schema(name, schemas)),
        ]
    )


def _schema(name: str, schemas: Mapping[str, Any]) -> Iterator[str]:
    schema = schemas[name]
    if "properties" not in schema:
        return
    yield f"## {name}\n\n{schema.get('description', '')}\n"
    yield "| field | kind | meaning |\n| --- | --- | --- |"
    for field, entry in schema["properties"].items():
        meaning = " ".join(str(entry.get("description", "")).split())
        yield f"| `{field}` | {_kind(entry, schemas)} | {meaning} |"
    yield ""


def _kind(entry: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    if "$ref" in entry:
        name = entry["$ref"].rpartition("/")[2]
        if "properties" in schemas[name]:
            return f"[{name}](#{name.lower()})"
        return _kind(schemas[name], schemas)
    if "items" in entry:
        return f"list of {_kind(entry['items'], schemas)}"
    if "enum" in entry:
        return ", ".join(f"`{value}`" for value in entry["enum"])
    found = entry.get("type", "")
    return " or ".join(found) if isinstance(found, list) else str(found)
