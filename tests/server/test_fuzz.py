"""Requests made from the OpenAPI description, by us and by schemathesis: no answer is 500."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.server.conftest import Ask
from tests.server.doubles import LOST, RUNNING, STARTING, STOPPED, InMemoryClusters
from tests.server.test_openapi import check, resolved, spec, template

__all__ = ["spec"]

ROUNDS = 20
KNOWN = {
    "cluster_id": [RUNNING, STARTING, STOPPED, LOST],
    "name": ["local", "parallel_sum", "gpu_sum"],
}
TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def values(spec: Any, schema: Any) -> st.SearchStrategy[Any]:
    """Return values that fit a schema of the description, at times a few that do not."""
    schema = resolved(spec, schema)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type")
    fitting: dict[str, st.SearchStrategy[Any]] = {
        "string": TEXT | st.sampled_from(["local", "", RUNNING]),
        "integer": st.integers(-2, 10) | st.integers(),
        "boolean": st.booleans(),
    }
    if kind == "object" or "properties" in schema:
        required: dict[str, Any] = {}
        optional: dict[str, Any] = {}
        for name, inner in schema.get("properties", {}).items():
            where = required if name in schema.get("required", ()) else optional
            where[name] = values(spec, inner)
        if not (required or optional):
            return st.dictionaries(TEXT, JSON, max_size=2)
        return st.fixed_dictionaries(required, optional=optional)
    return fitting.get(str(kind), JSON)


def operations(spec: Any) -> Iterator[tuple[str, str, Any]]:
    for path, described in spec["paths"].items():
        for verb, operation in described.items():
            if verb != "parameters" and "/api/" in path:
                shared = described.get("parameters", [])
                parameters = [
                    resolved(spec, p) for p in [*shared, *operation.get("parameters", [])]
                ]
                yield path, verb, {**operation, "parameters": parameters}


def known(part: str) -> st.SearchStrategy[str]:
    return st.sampled_from(KNOWN[part])


def requests(spec: Any, path: str, operation: Any) -> st.SearchStrategy[tuple[str, str | None]]:
    """Return addresses and bodies for one operation."""
    parts = re.findall(r"\{(\w+)\}", path)
    names = st.fixed_dictionaries(
        {
            part: st.one_of(known(part), known(part), known(part), TEXT.filter(bool).map(encodable))
            for part in parts
        }
    )
    asked = [p for p in operation["parameters"] if p["in"] == "query"]
    query = st.fixed_dictionaries(
        {}, optional={p["name"]: values(spec, p["schema"]) | TEXT.map(encodable) for p in asked}
    )
    body: st.SearchStrategy[str | None] = st.none()
    if "requestBody" in operation:
        content = resolved(spec, operation["requestBody"])["content"]["application/json"]
        body = (values(spec, content["schema"]) | JSON).map(json.dumps)

    def join(drawn: tuple[dict[str, str], dict[str, Any], str | None]) -> tuple[str, str | None]:
        given_names, given_query, text = drawn
        where = path
        for part, value in given_names.items():
            where = where.replace("{" + part + "}", quote(value, safe=""))
        return where.removeprefix("/") + "?" + urlencode(given_query), text

    return st.tuples(names, query, body).map(join)


def encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def described(spec: Any, operation: Any, status: int) -> Any:
    """Return the schema of an answer; None where it has no body."""
    responses = operation["responses"]
    found = resolved(spec, responses.get(str(status), responses["default"]))
    content = found.get("content")
    return content["application/json"]["schema"] if content else None


def test_no_request_is_answered_500_or_otherwise_than_described(
    ask: Ask, clusters: InMemoryClusters, spec: Any, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> None:
    before = dict(clusters.views)
    met: set[int] = set()

    def try_out(path: str, verb: str, operation: Any) -> None:
        @seed(20_261_128)
        @settings(
            max_examples=ROUNDS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(requests(spec, path, operation))
        def one(request: tuple[str, str | None]) -> None:
            address, body = request
            clusters.views = dict(before)
            answer = jp_asyncio_loop.run_until_complete(ask(address, verb.upper(), body))
            met.add(answer.status)
            assert answer.status < 500 or answer.status == 503, (verb, address, body, answer.body)
            if answer.status == 404 and not answer.headers["Content-Type"].endswith("json"):
                return  # a name of dots alone is a path of Jupyter's, not ours
            schema = described(spec, operation, answer.status)
            if schema is None:
                assert not answer.body
            else:
                check(spec, answer.json, schema)

        one()

    for path, verb, operation in operations(spec):
        try_out(path, verb, operation)
    assert {200, 201, 202, 204, 404, 422} <= met


def test_every_route_is_tried(spec: Any) -> None:
    from jupyter_gpucluster.server.api import ApiHandler
    from jupyter_gpucluster.server.routes import ROUTES

    tried = {path for path, _, _ in operations(spec)}
    assert tried == {template(p) for p, handler, _ in ROUTES if issubclass(handler, ApiHandler)}


CHECKOUT = Path(__file__).parents[2]
SCHEMATHESIS = CHECKOUT / ".venv" / "schemathesis"
"""Apart from the environment, where its plugin for pytest would be loaded; `tools/setup.py`."""


@pytest.mark.slow
async def test_schemathesis_finds_nothing(
    clusters: InMemoryClusters,
    spec: Any,
    jp_http_port: int,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
    http_server_client: object,
    tmp_path: Path,
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "run"),
        str(CHECKOUT / "jupyter_gpucluster" / "server" / "openapi.yaml"),
        f"--url=http://127.0.0.1:{jp_http_port}{jp_base_url}",
        f"--header=Authorization: {jp_auth_header['Authorization']}",
        # A profile says no to much that the description allows, in the same words as `check`.
        "--exclude-checks=positive_data_acceptance",
        "--exclude-path-regex=/gpucluster/dashboard",
        *("--phases=coverage,fuzzing", "--max-examples=10", "--seed=20261128"),
        *("--generation-database=none", "--no-color"),
        env={**os.environ, "PYTHONPATH": str(SCHEMATHESIS)},
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told = (await process.communicate())[0].decode()
    assert process.returncode == 0, told
    assert f"Tested: {len(list(operations(spec)))}\n" in told, told
