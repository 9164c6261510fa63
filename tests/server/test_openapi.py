"""The OpenAPI description against the route table, the request models and real answers."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from jupyter_gpucluster import server
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.job import JobState
from jupyter_gpucluster.server.api import ApiHandler
from jupyter_gpucluster.server.bodies import (
    Body,
    CopyBody,
    SetupBody,
    StartBody,
    TrialBody,
    UpdateBody,
)
from jupyter_gpucluster.server.routes import MAXIMUM_LINES, ROUTES
from jupyter_gpucluster.state.view import ClusterView
from tests.server.conftest import Ask
from tests.server.doubles import RUNNING
from tests.server.test_routes import API, REQUESTS, verbs

TEXT = (Path(server.__file__).parent / "openapi.yaml").read_text()


@pytest.fixture
def spec() -> Any:
    """Return the description, in which an object has no more than the properties listed."""
    described = yaml.safe_load(TEXT)
    strict(described["components"]["schemas"])
    return described


def strict(node: Any) -> None:
    if isinstance(node, dict):
        if node.get("type") == "object" and "properties" in node:
            node.setdefault("additionalProperties", False)
        for child in node.values():
            strict(child)
    elif isinstance(node, list):
        for child in node:
            strict(child)


def template(pattern: str) -> str:
    """Return a route's pattern as OpenAPI writes it."""
    return "/" + re.sub(r"\(\?P<(\w+)>.*?\)(?=/|\(|$)", r"{\1}", pattern)


def schema_of(spec: Any, method: str, path: str, status: int) -> Any:
    """Return the schema of an answer, None where it has no body."""
    [(_, operations)] = [
        (p, o)
        for p, o in spec["paths"].items()
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", p), f"/{API}{path}")
    ]
    responses = operations[method.lower()]["responses"]
    response = resolved(spec, responses.get(str(status), responses["default"]))
    content = response.get("content")
    return content["application/json"]["schema"] if content else None


def resolved(spec: Any, node: Any) -> Any:
    while "$ref" in node:
        target = spec
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def check(spec: Any, value: Any, schema: Any) -> None:
    whole = {**schema, "components": spec["components"]}
    jsonschema.Draft202012Validator(whole).validate(value)


def test_every_route_and_verb_is_described_and_no_other(spec: Any) -> None:
    described = {
        (path, verb.upper())
        for path, operations in spec["paths"].items()
        for verb in operations
        if verb != "parameters"
    }
    routes = {
        (template(p), verb)
        for p, handler, _ in ROUTES
        for verb in (verbs(handler) if issubclass(handler, ApiHandler) else ["GET"])
    }
    assert described == routes


def test_each_operation_has_a_name_of_its_own() -> None:
    names = re.findall(r"operationId: (\w+)", TEXT)
    assert len(names) == len(set(names)) == len(REQUESTS) + 1


def test_request_bodies_have_the_fields_that_the_server_reads(spec: Any) -> None:
    bodies: dict[tuple[str, str], type[Body]] = {
        ("post", "/gpucluster/api/clusters"): StartBody,
        ("patch", "/gpucluster/api/clusters/{cluster_id}"): UpdateBody,
        ("post", "/gpucluster/api/profiles/{name}/script"): TrialBody,
        ("post", "/gpucluster/api/profiles/{name}/check"): TrialBody,
        ("post", "/gpucluster/api/setup"): SetupBody,
        ("post", "/gpucluster/api/notebooks/{name}"): CopyBody,
    }
    for path, operations in spec["paths"].items():
        for verb, operation in operations.items():
            if verb == "parameters" or "requestBody" not in operation:
                assert (verb, path) not in bodies
                continue
            body = resolved(spec, operation["requestBody"])
            schema = resolved(spec, body["content"]["application/json"]["schema"])
            fields = bodies[verb, path].model_fields
            assert set(schema["properties"]) == set(fields), path
            required = {name for name, field in fields.items() if field.is_required()}
            assert set(schema.get("required", ())) == required, path
            assert schema["additionalProperties"] is False


def test_a_cluster_is_described_with_all_its_fields(spec: Any) -> None:
    described = spec["components"]["schemas"]["Cluster"]
    fields = {f.name for f in dataclasses.fields(ClusterView)} | {"dashboard"}
    assert set(described["properties"]) == set(described["required"]) == fields


def test_words_and_limits_are_those_of_the_code(spec: Any) -> None:
    schemas = spec["components"]["schemas"]
    assert set(schemas["Phase"]["enum"]) == {p.value for p in Phase}
    assert set(schemas["Job"]["properties"]["state"]["enum"]) == {s.value for s in JobState}
    logs = spec["paths"]["/gpucluster/api/clusters/{cluster_id}/logs"]["get"]
    assert logs["parameters"][1]["schema"]["maximum"] == MAXIMUM_LINES


async def test_answers_are_json_as_described(ask: Ask, spec: Any) -> None:
    for method, path, body, status in REQUESTS:
        answer = await ask(API + path, method, body)
        assert answer.status == status, (method, path, answer.body)
        assert answer.headers["Content-Type"] == "application/json", (method, path)
        assert isinstance(answer.json, dict), (method, path)
        check(spec, answer.json, schema_of(spec, method, path, status))
    everything = await ask(API + "clusters?ended=1")
    assert len(everything.json["clusters"]) >= 4
    check(spec, everything.json, schema_of(spec, "GET", "clusters", 200))


def test_the_check_of_answers_can_fail(spec: Any) -> None:
    schema = schema_of(spec, "GET", f"clusters/{RUNNING}/why", 200)
    for wrong in ({}, {"text": 1}):
        with pytest.raises(jsonschema.ValidationError):
            check(spec, wrong, schema)
