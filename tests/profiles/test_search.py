"""The search path, overriding, and bad files beside good ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_gpucluster.core.errors import ProfileError, ProfileNotFound
from jupyter_gpucluster.profiles import FieldSource, Shadowed, find_profile, load_profiles, search
from jupyter_gpucluster.profiles.search import check_file
from tests.profiles.conftest import PLACE, Places, Site, as_nobody


def test_the_built_in_profile_is_there_without_any_file(site: Site) -> None:
    found = load_profiles()
    assert list(found.profiles) == ["local"]
    assert found.problems == []
    local = found.profiles["local"]
    assert local.profile.backend == "local"
    assert local.profile.title == "This machine"
    assert local.shadowed == ()
    assert not local.profile.final


def test_a_user_file_overrides_field_by_field_and_lists_as_a_whole(site: Site) -> None:
    central = site.write("system", "place.yaml", PLACE)
    own = site.write(
        "user",
        "place.yaml",
        """
        title: My place
        job:
          gpus: 2
          directives: [-C a100, --exclusive]
        """,
    )
    place = find_profile("place")
    assert place.profile.title == "My place"
    assert place.profile.job.gpus == 2
    assert place.profile.job.queue == "normal"
    assert place.profile.job.directives == ("-C a100", "--exclusive")
    assert place.files == (central, own)
    assert place.sources == (
        FieldSource("backend", central),
        FieldSource("job.directives", own),
        FieldSource("job.gpus", own),
        FieldSource("job.queue", central),
        FieldSource("limits.clusters", central),
        FieldSource("limits.workers", central),
        FieldSource("title", own),
    )
    assert set(place.shadowed) == {
        Shadowed("title", central, own, "overridden"),
        Shadowed("job.gpus", central, own, "overridden"),
        Shadowed("job.directives", central, own, "overridden"),
    }


@pytest.mark.parametrize(
    "preferred,extra,title",
    [("0", False, "user"), ("1", False, "environment"), ("0", True, "extra")],
)
def test_the_order_of_directories_is_jupyters(
    site: Site, monkeypatch: pytest.MonkeyPatch, preferred: str, extra: bool, title: str
) -> None:
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", preferred)
    if extra:
        monkeypatch.setenv("JUPYTER_PATH", str(site.root / "extra"))
    for level in ("system", "environment", "user", "extra"):
        site.write(level, "place.yaml", f"title: {level}\nbackend: slurm\n")
    assert find_profile("place").profile.title == title


def test_one_bad_file_does_not_hide_the_other_profiles(site: Site, places: Places) -> None:
    site.write("system", "good.yaml", "title: Good\nbackend: local\n")
    site.write("system", "bad.yaml", "title: Bad\nbakend: local\n")
    site.write("system", "worse.yaml", b"title: \xff")
    found = load_profiles()
    assert sorted(found.profiles) == ["good", "local"]
    wrong = [problem for problem in found.problems if not problem.blocks]
    assert places(wrong) == [("bad.yaml", 1, 1), ("bad.yaml", 2, 1), ("worse.yaml", 1, 8)]
    assert {p.severity for p in found.problems} == {"error"}
    assert [*found.broken] == ["bad", "worse"]


def test_a_bad_override_leaves_the_central_profile_as_it_was(site: Site, places: Places) -> None:
    central = site.write("system", "place.yaml", PLACE)
    site.write("user", "place.yaml", "title: Mine\njob: {gpsu: 2}\n")
    found = load_profiles()
    assert found.profiles["place"].profile.title == "Place"
    assert found.profiles["place"].files == (central,)
    assert places(found.problems) == [("place.yaml", 2, 7)]


def test_an_override_that_breaks_a_central_value_is_the_one_left_out(site: Site) -> None:
    option = "options: {queue: {type: enum, choices: [a, b], default: a}}\n"
    central = site.write("system", "place.yaml", f"title: x\nbackend: slurm\n{option}")
    own = site.write("user", "place.yaml", "options: {queue: {choices: [b]}}\n")
    found = load_profiles()
    assert found.profiles["place"].profile.options["queue"].choices == ("a", "b")
    [problem] = found.problems
    assert (problem.file, problem.line, problem.column) == (own, 1, 1)
    assert problem.message == (
        f"conflicts with {central}:3:57: `options.queue`: `default`: 'a' is not a choice"
    )


@pytest.mark.parametrize("level", ["system", "environment", "extra"])
@pytest.mark.parametrize(
    "text", [b"title: Mine\nbackend: locl\nlimits: {workers: 2}\n", b"a: \xff"]
)
def test_a_broken_file_of_a_site_stops_its_profile_and_nothing_takes_its_place(
    site: Site, monkeypatch: pytest.MonkeyPatch, level: str, text: bytes
) -> None:
    if level == "extra":
        monkeypatch.setenv("JUPYTER_PATH", str(site.root / "extra"))
    file = site.write(level, "local.yaml", text)
    site.write("user", "local.yaml", "job: {cpus: 2}\n")
    found = load_profiles()
    assert found.profiles == {}
    assert found.broken == {"local": file}
    assert [p.message for p in found.problems][1:] == [
        "profile local cannot be started until this file is corrected"
    ]
    with pytest.raises(ProfileError, match="cannot be started until this file is corrected"):
        find_profile("local")


def test_a_file_is_checked_alone_or_if_it_is_a_part_with_the_installed_ones(site: Site) -> None:
    central = Path(site.write("system", "place.yaml", PLACE))
    whole, part, new, bad = (
        Path(site.write("elsewhere", name, text))
        for name, text in {
            "whole.yaml": "title: x\nbackend: slurm\njob: {walltime: 24}\n",
            "place.yaml": "limits: {workers: 2}\njob: {queu: a}\n",
            "alone.yaml": "limits: {workers: 2}\n",
            "two words.yaml": PLACE,
        }.items()
    )
    assert check_file(central) == []
    [later] = check_file(whole)
    assert later.severity == "warning"
    assert later.message.endswith("The next release refuses a walltime without a unit.")
    assert [(p.file, p.line, p.severity) for p in check_file(part)] == [(str(part), 2, "error")]
    assert [p.message.split(" is")[0] for p in check_file(new)] == ["`title`", "`backend`"]
    assert "cannot be the name of a profile" in check_file(bad)[0].message
    assert load_profiles().problems == []


def test_a_changed_file_is_read_again(site: Site) -> None:
    site.write("user", "place.yaml", "title: One\nbackend: slurm\n")
    assert find_profile("place").profile.title == "One"
    site.write("user", "place.yaml", "title: Two\nbackend: slurm\njob: {gpus: 1}\n")
    assert find_profile("place").profile.title == "Two"


def test_an_override_of_nothing_says_what_is_missing(site: Site) -> None:
    file = site.write("user", "palce.yaml", "limits: {workers: 3}\n")
    with pytest.raises(ProfileError) as caught:
        find_profile("palce")
    assert caught.value.message == (
        f"{file}:1:1: `title` is missing; add it\n{file}:1:1: `backend` is missing; add it"
    )
    assert "Correct the file" in caught.value.hint
    assert caught.value.exit_code == 2


def test_an_unknown_name_is_answered_with_a_close_one(site: Site) -> None:
    site.write("system", "perlmutter-gpu.yaml", PLACE)
    with pytest.raises(ProfileNotFound) as caught:
        find_profile("perlmuter-GPU")
    assert caught.value.message == ("no profile 'perlmuter-GPU'; did you mean `perlmutter-gpu`?")
    assert caught.value.hint == "Profiles: local, perlmutter-gpu; setup writes more."


@pytest.mark.parametrize("name", ["../local", "", "local\n", "a" * 10_000, "local.yaml", "/etc/x"])
def test_a_hostile_name_is_just_unknown(site: Site, name: str) -> None:
    with pytest.raises(ProfileNotFound) as caught:
        find_profile(name)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 200


def test_badly_named_hidden_and_doubled_files_are_told_or_left_alone(
    site: Site, places: Places
) -> None:
    site.write("user", "two words.yaml", PLACE)
    site.write("user", ".hidden.yaml", "bad: [")
    site.write("user", "notes.txt", "bad: [")
    site.write("user", "place.yaml", PLACE)
    site.write("user", "place.yml", PLACE)
    found = load_profiles()
    assert sorted(found.profiles) == ["local", "place"]
    assert places(found.problems) == [("place.yml", 1, 1), ("two words.yaml", 1, 1)]
    assert "place.yaml is beside it" in found.problems[0].message
    assert "cannot be the name of a profile" in found.problems[1].message


def test_a_directory_in_place_of_files_is_told(site: Site, places: Places) -> None:
    (site.directory("user") / "folder.yaml").mkdir(parents=True)
    (site.root / "system" / "gpucluster").mkdir(parents=True)
    (site.root / "system" / "gpucluster" / "profiles").write_text("no directory")
    found = load_profiles()
    assert list(found.profiles) == ["local"]
    assert places(found.problems) == [("folder.yaml", 1, 1)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to give up the right to list")
def test_a_directory_that_cannot_be_listed_is_told(home: Path, site: Site) -> None:
    site.write("user", "place.yaml", PLACE)
    site.directory("user").chmod(0)
    with as_nobody(home):
        found = load_profiles()
    assert list(found.profiles) == ["local"]
    assert [(p.file, p.message) for p in found.problems] == [
        (str(site.directory("user")), "cannot be listed: Permission denied")
    ]


@pytest.mark.parametrize(
    "text,places,words",
    [
        ("slurm\nnetwork:\n  fallback: tcp\n", [(4, 3)], "network.protocol: ucx"),
        ("slurm\nnetwork:\n  fallback: tcp\n  protocol: ucx\n", [], ""),
        ("local\njob:\n  queue: gpu\n", [(4, 3)],
         "`job.queue` has no meaning on backend local and is ignored"),
        # Only LSF has two ways to get a script.
        ("lsf\njob: {submit_by: file}\n", [], ""),
        ("slurm\njob: {submit_by: file}\n", [(3, 7)], ""),
        ("local\njob: {submit_by: file}\n", [(3, 7)], ""),
        ("slurm\njob: {walltime: 24 h}\n", [], ""),
        ('slurm\njob: {walltime: "24:00:00"}\n', [], ""),
        ("slurm\njob: {walltime: 24 s}\n", [], ""),
        ("slurm\njob: {walltime: 86400}\n", [], ""),
    ],
)  # fmt: skip
def test_keys_that_have_no_effect_are_warned_about(
    site: Site, text: str, places: list[tuple[int, int]], words: str
) -> None:
    site.write("user", "mine.yaml", f"title: Mine\nbackend: {text}")
    found = load_profiles()
    assert "mine" in found.profiles
    assert [(p.line, p.column) for p in found.problems] == places
    for problem in found.problems:
        assert (problem.profile, problem.severity) == ("mine", "warning")
        assert words in problem.message


def test_a_walltime_without_a_unit_is_warned_about(site: Site) -> None:
    text = """title: Mine
backend: slurm
job:
  walltime: 24
groups:
  cpu:
    count: 1
    job: {walltime: "90"}
options:
  walltime: {type: duration, default: 12, maximum: 7200}
  far: {type: duration, field: job.walltime, default: 2 h}
"""
    site.write("user", "mine.yaml", text)
    found = load_profiles()
    assert found.profiles["mine"].profile.job.walltime == 24
    places = [(p.profile, p.line, p.severity) for p in found.problems]
    assert places == [("mine", line, "warning") for line in (4, 8, 10)]
    assert found.problems[0].file.endswith("mine.yaml")
    assert found.problems[0].message == (
        "`job.walltime`: 24 has no unit and is read as 24 seconds; for hours write 24 h or"
        ' "24:00:00", for minutes 24 min, for seconds 24 s.'
        " The next release refuses a walltime without a unit."
    )


def test_profiles_for_this_host_come_first_then_the_default_and_those_of_other_hosts_last(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, more in {
        "alpha": "",
        "beta": "default: true\n",
        "gamma": "hosts: ['casper*.example.org']\n",
        "delta": "hosts: ['derecho*.example.org']\ndefault: true\n",
    }.items():
        site.write("system", f"{name}.yaml", f"title: {name}\nbackend: slurm\n{more}")
    monkeypatch.setattr("socket.gethostname", lambda: "casper-login1.example.org")
    assert list(load_profiles().profiles) == ["gamma", "beta", "delta", "alpha", "local"]
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    assert list(load_profiles().profiles) == ["beta", "delta", "alpha", "local", "gamma"]


@pytest.mark.parametrize(
    "pattern,host,matches",
    [
        ("login*.example.org", "login3.example.org", True),
        ("login*.example.org", "LOGIN3.Example.org", True),
        ("login*.example.org", "login3", True),
        ("login*.example.org", "node3", False),
        ("login[12].example.org", "login3", False),
        ("*.example.org", "node3", False),
        ("*.example.org", "node3.example.org", True),
        ("*", "node3", True),
        ("node3", "node3.example.org", False),
    ],
)
def test_a_host_matches_by_its_full_or_short_name(pattern: str, host: str, matches: bool) -> None:
    assert search.matches([pattern], host) is matches
