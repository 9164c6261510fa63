"""The JSON Schema: up to date, valid, and of one mind with the reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from jupyter_gpucluster.profiles import Profile
from jupyter_gpucluster.profiles.reader import plain, read_file
from jupyter_gpucluster.profiles.search import BUILT_IN
from jupyter_gpucluster.profiles.values import parse_duration, parse_memory
from tools import profile_reference
from tools.profile_reference import SCHEMA_FILE, profile_schema

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reference" / "profiles.md"
SITE_PAGE = DOCS / "site-settings.md"
SHIPPED = sorted(BUILT_IN.glob("*.yaml"))

BASE: dict[str, Any] = {"title": "x", "backend": "slurm"}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    """Return a validator of the shipped schema."""
    return Draft202012Validator(json.loads(SCHEMA_FILE.read_text()))


def test_the_shipped_schema_and_the_reference_are_what_the_model_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "schema.json"
    monkeypatch.setattr(profile_reference, "SCHEMA_FILE", file)
    fix = "run: python -m tools.profile_reference docs/reference/profiles.md docs/site-settings.md"
    for page, mark in ((PAGE, profile_reference.BEGIN), (SITE_PAGE, profile_reference.SITE)):
        made = tmp_path / page.name
        made.write_text(page.read_text())
        profile_reference.main([str(made)])
        assert file.read_text() == SCHEMA_FILE.read_text(), fix
        assert made.read_text() == page.read_text(), fix
        assert made.read_text().count(mark) == 1


def test_the_schema_is_valid_and_names_its_dialect(validator: Draft202012Validator) -> None:
    assert validator.schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(validator.schema)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_the_schema_accepts_the_shipped_profiles(
    validator: Draft202012Validator, file: Path
) -> None:
    validator.validate(plain(read_file(file)))
    validator.validate(yaml.safe_load(file.read_text()))


def test_every_key_has_a_meaning() -> None:
    for model in profile_schema()["$defs"].values():
        assert model["description"]
        for name, field in model["properties"].items():
            assert field.get("description"), name


GOOD: list[dict[str, Any]] = [
    {"job": {"memory": "229 GiB", "walltime": "00:30:00", "gpus": "auto", "account": 123}},
    {"job": {"memory": 10**9, "walltime": 60, "gpus": 0, "cpus": None}},
    {"launcher": "srun"},
    {"launcher": {"name": "mpirun", "args": ["-np", 4]}},
    {"workers": {"memory_limit": None, "threads": "auto", "device_memory_limit": "10 GB"}},
    {"network": {"ports": "40000-40100", "protocol": "tcp", "interface": None}},
    {"network": {"ports": 40000}},
    {"environment": {"python": "/opt/python", "variables": {"A_1": "b", "N": 3}}},
    {"environment": {"container": {"runtime": "shifter", "image": "docker:x"}}},
    {"options": {"walltime": {"type": "duration", "maximum": "4 h", "default": 60}}},
    {"access": {"login_hops": ["user@login.example.org:8022", "${USER}@inner"]}},
]

WRONG: list[dict[str, Any]] = [
    {"jobs": {}},
    {"job": {"gpsu": 1}},
    {"job": None},
    {"job": {"memory": "4G"}},
    {"job": {"walltime": "1:00"}},
    {"job": {"nodes": 0}},
    {"job": {"nodes": "2"}},
    {"job": {"queue": 1.5}},
    {"title": ""},
    {"title": "x" * 121},
    {"backend": "Slurm 23"},
    {"hosts": "login1"},
    {"default": "yes"},
    {"launcher": "srunn"},
    {"launcher": {"nme": "srun"}},
    {"network": {"ports": "many"}},
    {"environment": {"python": "python3"}},
    {"environment": {"variables": {"2x": "a"}}},
    {"environment": {"variables": {"X": False}}},
    {"environment": {"container": {"runtime": "shifter"}}},
    {"options": {"q": {"title": "no type"}}},
    {"options": {"Bad-Name": {"type": "string"}}},
    {"options": {"q": {"type": "string", "default": ["a"]}}},
    {"access": {"login_hops": ["a b"]}},
    {"policy": {"replacements": -1}},
]


@pytest.mark.parametrize("more", GOOD, ids=repr)
def test_schema_and_model_accept_the_same(
    validator: Draft202012Validator, more: dict[str, Any]
) -> None:
    validator.validate({**BASE, **more})
    Profile.model_validate({**BASE, **more})


@pytest.mark.parametrize("more", WRONG, ids=repr)
def test_schema_and_model_refuse_the_same(
    validator: Draft202012Validator, more: dict[str, Any]
) -> None:
    assert not validator.is_valid({**BASE, **more})
    with pytest.raises(ValueError, match="validation error"):
        Profile.model_validate({**BASE, **more})


def test_the_schema_wants_title_and_backend(validator: Draft202012Validator) -> None:
    assert not validator.is_valid({"title": "x"})
    assert not validator.is_valid({"backend": "slurm"})


READ_ONCE = Draft202012Validator(profile_schema())


@given(st.from_regex(r"[0-9.:\-]{1,6} ?(GiB|mb|kB|B|min|h|days|s|G|)", fullmatch=True))
def test_the_schema_accepts_every_amount_that_the_reader_accepts(text: str) -> None:
    for key, parse in (("memory", parse_memory), ("walltime", parse_duration)):
        try:
            parse(text)
        except ValueError:
            continue
        assert READ_ONCE.is_valid({**BASE, "job": {key: text}}), (key, text)
