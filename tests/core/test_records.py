"""Records survive JSON, whatever is in them, and refuse what does not fit."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpucluster.core import cluster, job, serialize, summary
from jupyter_gpucluster.core.cluster import Policy, Record, Spec, Target
from jupyter_gpucluster.core.job import Job, JobState, JobStatus
from jupyter_gpucluster.core.serialize import from_json, to_json

KINDS = sorted(
    (
        value
        for module in (cluster, job, summary)
        for value in vars(module).values()
        if isinstance(value, type)
        and dataclasses.is_dataclass(value)
        and value.__module__ == module.__name__
    ),
    key=lambda kind: kind.__name__,
)
JSON_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


def values_of(kind: type) -> st.SearchStrategy[Any]:
    """Return instances of a dataclass; options hold what JSON can hold."""
    hints = {**serialize._hints(kind)}
    fixed = {
        name: st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3)
        for name in ("options",)
        if name in hints
    }
    return st.builds(kind, **{**{name: value(hint) for name, hint in hints.items()}, **fixed})


def value(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of a field; numbers are finite, as JSON's are."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return values_of(hint)
    if hint is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    arguments = [value(a) for a in getattr(hint, "__args__", ()) if a not in (..., type(None))]
    if arguments and type(None) in hint.__args__:
        return st.none() | arguments[0]
    if getattr(hint, "__origin__", None) is tuple:
        return st.lists(arguments[0], max_size=3).map(tuple)
    if arguments:
        return st.dictionaries(st.text(max_size=5), arguments[1], max_size=3)
    return st.from_type(hint)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_comes_back_from_json_as_it_went(kind: type) -> None:
    @settings(max_examples=20, deadline=None, derandomize=True)
    @given(values_of(kind))
    def comes_back(instance: Any) -> None:
        assert from_json(kind, json.loads(json.dumps(to_json(instance)))) == instance

    comes_back()


def a_spec() -> Spec:
    return Spec(profile="local", title="", backend="local", python="/usr/bin/python3")


def test_keys_that_a_kind_lacks_are_dropped_and_those_that_are_missing_get_defaults() -> None:
    data = to_json(Record("abc123", "x", a_spec(), Target(1, 1), created=1.0))
    del data["jobs"], data["spec"]["policy"]
    data["invented_later"] = data["spec"]["invented_later"] = {"deep": [1]}
    record = from_json(Record, data)
    assert record.jobs == ()
    assert record.spec.policy == Policy()


def test_whole_numbers_are_taken_for_times() -> None:
    assert from_json(Job, {"mark": "m", "task": 0, "submitted": 5}).submitted == 5.0


@pytest.mark.parametrize(
    "changes",
    [
        {"name": 5},
        {"jobs": {}},
        {"jobs": "abc"},
        {"jobs": [1]},
        {"target": None},
        {"target": []},
        {"phase": "dancing"},
        {"created": "yesterday"},
        {"spec": {"profile": "local"}},
        {"revision": 1.5},
    ],
    ids=str,
)
def test_data_that_does_not_fit_is_an_error_that_readers_expect(changes: dict[str, Any]) -> None:
    data = to_json(Record("abc123", "x", a_spec(), Target(1, 1), created=1.0))
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        from_json(Record, {**data, **changes})


def test_states_and_phases_travel_as_their_words() -> None:
    assert to_json(JobStatus("7", JobState.OUT_OF_MEMORY))["state"] == "out_of_memory"


def test_a_target_tells_itself_as_a_number_or_a_range() -> None:
    assert Target(2, 2).as_json() == {"workers": 2}
    assert Target(0, 4).as_json() == {"minimum": 0, "maximum": 4}


def test_the_shared_answer_has_the_names_that_other_versions_read() -> None:
    status = JobStatus("7", JobState.PENDING, unsatisfiable=True)
    assert to_json(status)["hopeless"] is True
    assert from_json(JobStatus, to_json(status)) == status
