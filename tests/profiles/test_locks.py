"""Locks and final profiles: central files bind the others, whatever the order."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpucluster.profiles import Shadowed, find_profile, load_profiles
from jupyter_gpucluster.profiles.merge import SourceFile, merge
from jupyter_gpucluster.profiles.reader import plain, read_text
from jupyter_gpucluster.profiles.validation import validate
from tests.profiles.conftest import PLACE, Places, Site


@pytest.mark.parametrize("preferred", ["0", "1"])
def test_a_locked_field_keeps_the_central_value_and_the_override_is_reported(
    site: Site, monkeypatch: pytest.MonkeyPatch, places: Places, preferred: str
) -> None:
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", preferred)
    central = site.write("environment", "place.yaml", PLACE + "    locked: [limits, job.queue]\n")
    own = site.write(
        "user",
        "place.yaml",
        """
        job:
          queue: express
          gpus: 1
        limits:
          workers: 1000
        """,
    )
    found = load_profiles()
    place = found.profiles["place"]
    assert place.profile.job.queue == "normal"
    assert place.profile.limits.workers == 64
    assert place.profile.locked == ("limits", "job.queue")
    assert Shadowed("job.queue", own, central, "locked") in place.shadowed
    assert Shadowed("limits", own, central, "locked") in place.shadowed
    assert places(found.problems) == [("place.yaml", 3, 3), ("place.yaml", 5, 1)]
    assert {p.severity for p in found.problems} == {"warning"}
    assert found.problems[0].message == (
        f"`job.queue` is locked by {central}; the value here is ignored"
    )


ENVIRONMENT_FIRST = {"JUPYTER_PREFER_ENV_PATH": "1"}


@pytest.mark.parametrize(
    "variables,files,workers",
    [
        # An empty value takes a limit away where no lock binds it.
        ({}, {"system": PLACE, "user": "limits: {workers: null}\n"}, None),
        # A lock of the user does not bind more central files, and a final profile neither.
        (ENVIRONMENT_FIRST, {"user": "limits: {workers: 1000}\nlocked: [limits]\n",
         "environment": PLACE}, 64),
        (ENVIRONMENT_FIRST, {"user": "title: Mine\nfinal: true\n", "environment": PLACE}, 64),
        # A lock binds a file that comes earlier in the order.
        (ENVIRONMENT_FIRST, {"user": "job: {account: mine}\n",
         "environment": f"{PLACE}    locked: [job.account]\n"}, 64),
        # The system's directory in JUPYTER_PATH keeps its locks.
        ({"JUPYTER_PATH": "system"}, {"system": f"{PLACE}    locked: [limits]\n",
         "environment": "limits: {workers: 1000}\n"}, 64),
        # A lock in JUPYTER_PATH binds the user and not the environment.
        ({"JUPYTER_PATH": "extra"}, {"environment": PLACE, "extra": "locked: [limits, job]\n",
         "user": "limits: {workers: 1000}\n"}, 64),
    ],
)  # fmt: skip
def test_the_more_central_file_decides_whatever_the_order_of_the_files(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    files: dict[str, str],
    workers: int | None,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value if value == "1" else str(site.root / value))
    for level, text in files.items():
        site.write(level, "place.yaml", text)
    profile = find_profile("place").profile
    assert (profile.limits.workers, profile.limits.clusters) == (workers, 2)
    assert (profile.title, profile.job.queue, profile.job.account) == ("Place", "normal", "")


@pytest.mark.parametrize(
    "text,path",
    [
        ("job: null\n", "job"),
        ("job: {queue: x}\n", "job.queue"),
        ("launcher: mpirun\n", "launcher"),
        ("launcher: {name: mpirun}\n", "launcher.name"),
        ("environment: {variables: {LICENSE: none}}\n", "environment.variables.LICENSE"),
    ],
)
def test_no_way_of_writing_takes_a_locked_value_away(site: Site, text: str, path: str) -> None:
    site.write(
        "system",
        "place.yaml",
        PLACE
        + """
    launcher: {name: srun, args: [--mpi=none]}
    environment: {variables: {LICENSE: server}}
    locked: [job.queue, launcher.name, environment.variables.LICENSE]
    """,
    )
    own = site.write("user", "place.yaml", text)
    place = find_profile("place")
    assert place.profile.job.queue == "normal"
    assert place.profile.launcher.name == "srun"
    assert place.profile.environment.variables == {"LICENSE": "server"}
    assert [(s.path, s.file) for s in place.shadowed if s.reason == "locked"] == [(path, own)]


@pytest.mark.parametrize(
    "option",
    [
        "options: {queue: {type: string}}\n",
        "options: {other: {type: string, field: job.queue}}\n",
        "options: {line: {choices: [normal, urgent]}}\n",
        "options: {place: {choices: [normal, urgent]}}\n",
    ],
)
def test_an_option_of_the_user_cannot_write_to_a_locked_field(site: Site, option: str) -> None:
    site.write(
        "system",
        "place.yaml",
        """
        title: Place
        backend: slurm
        job: {queue: "{place}", account: a}
        options:
          line: {type: enum, choices: [a, b], field: job.account, default: a}
          place: {type: enum, choices: [normal], default: normal}
        locked: [job.queue, job.account]
        """,
    )
    own = site.write("user", "place.yaml", option)
    place = find_profile("place")
    assert list(place.profile.options) == ["line", "place"]
    assert place.profile.options["line"].choices == ("a", "b")
    assert place.profile.options["place"].choices == ("normal",)
    assert {s.file for s in place.shadowed} == {own}
    assert {s.reason for s in place.shadowed} == {"locked"}


def test_a_final_profile_ignores_less_central_files(site: Site, places: Places) -> None:
    central = site.write("system", "place.yaml", PLACE + "    final: true\n")
    own = site.write("user", "place.yaml", "title: Mine\nfinal: false\n")
    found = load_profiles()
    place = found.profiles["place"]
    assert place.profile.final
    assert place.files == (central,)
    assert place.profile.title == "Place"
    assert place.shadowed == (Shadowed("", own, central, "final"),)
    assert places(found.problems) == [("place.yaml", 1, 1)]
    assert found.problems[0].message == f"{central} is marked final; this file is ignored"


def test_locks_of_several_files_add_up(site: Site) -> None:
    site.write("system", "place.yaml", PLACE + "    locked: [limits]\n")
    site.write("environment", "place.yaml", "locked: [job.queue]\n")
    site.write("user", "place.yaml", "limits: {workers: 9}\njob: {queue: x, gpus: 1}\n")
    place = find_profile("place")
    assert place.profile.locked == ("limits", "job.queue")
    assert place.profile.limits.workers == 64
    assert place.profile.job.queue == "normal"
    assert place.profile.job.gpus == 1


def test_the_built_in_profile_can_be_overridden_and_locked_by_a_site(site: Site) -> None:
    site.write("system", "local.yaml", "limits: {workers: 2}\nlocked: [limits]\n")
    site.write("user", "local.yaml", "limits: {workers: 8}\npolicy: {idle_timeout: 30 min}\n")
    local = find_profile("local").profile
    assert local.limits.workers == 2
    assert local.policy.idle_timeout == 1800
    assert "threads" in local.options


CENTRAL = """
title: Place
backend: slurm
job: {queue: normal, account: "{account}"}
launcher: {name: srun}
limits: {workers: 64}
options: {account: {type: string, pattern: "[a-z]+"}}
locked: [job.queue, job.account, limits, launcher.name]
"""
SECTIONS = ["job", "launcher", "limits", "options", "locked", "final", "title"]
KEYS = st.sampled_from([*SECTIONS, "queue", "account", "name", "workers", "field", "type"])
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 7, "x", "job.queue", "{account}", "local", "string"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_whatever_a_user_writes_locked_values_stay(value: dict[str, object]) -> None:
    central = SourceFile("central", (1, 0), read_text(CENTRAL, "central"))
    own = SourceFile("own", (4, 0), read_text(json.dumps(value), "own"))
    alone, merged = plain(merge([central]).tree), plain(merge([central, own]).tree)
    assert isinstance(alone, dict)
    assert isinstance(merged, dict)
    assert merged["job"]["queue"] == "normal"
    assert merged["job"]["account"] == "{account}"
    assert merged["launcher"]["name"] == "srun"
    assert merged["limits"] == alone["limits"]
    options = merged["options"] if isinstance(merged["options"], dict) else {}
    assert options.get("account", alone["options"]["account"]) == alone["options"]["account"]
    for option in options.values():
        assert not isinstance(option, dict) or option.get("field") != "job.queue"
    validate(merge([central, own]).tree)
