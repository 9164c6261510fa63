"""The site's settings: which file counts, who sees a profile, and what a start keeps to."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_gpucluster.core.cluster import Phase, SiteRules, Target
from jupyter_gpucluster.core.errors import LimitReached, ProfileError, ProfileNotFound
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.launch.naming import check_gpus
from jupyter_gpucluster.launch.plan import Plan, make_plan
from jupyter_gpucluster.launch.request import Request
from jupyter_gpucluster.launch.site_limits import forget_old, rules, within_site
from jupyter_gpucluster.launch.spec import make_spec
from jupyter_gpucluster.profiles import Profile, find_profile, load_profiles, site_settings
from jupyter_gpucluster.profiles.search import check_file, load_site
from tests.cli.doubles import a_view
from tests.profiles.conftest import PLACE, Site

NOW = time.time()
GPU_PROFILE = "title: GPU\nbackend: slurm\njob: {gpus: 1, walltime: 1 h}\n"


def write(site: Site, level: str, text: str) -> str:
    file = site.root / level / "gpucluster" / "site.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return str(file)


def seen(*views: Any) -> Any:
    """Return views as a start gets them, each with a directory that only counts its removal."""
    removed: list[str] = []
    pairs = []
    for view in views:
        directory = SimpleNamespace(
            remove=lambda name=view.name: removed.append(name),
            read_phase=lambda view=view: (view.phase, 0.0, view.name == "unproved"),
        )
        pairs.append((SimpleNamespace(directory=directory), view))
    return pairs, removed


@pytest.fixture
def plan(site: Site, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that plans three GPUs under these settings of a site."""
    site.write("user", "gpu.yaml", GPU_PROFILE)
    monkeypatch.setattr("jupyter_gpucluster.batch.job_classes.begin", lambda: None)

    def made(text: str) -> Plan:
        write(site, "system", text)
        return make_plan(Request("gpu", target=Target(3, 3)), here=False)

    return made


def test_of_two_values_the_more_central_file_s_counts(site: Site) -> None:
    central = write(site, "system", "contact: us\nlimits: {gpus: 4}\n")
    own = write(site, "user", "contact: me\nlimits: {gpus: 400, clusters: 3}\nretention: 1 d\n")
    found = load_site()
    assert found.settings.contact == "us"
    assert (found.settings.limits.gpus, found.settings.limits.clusters) == (4, 3)
    assert found.settings.retention == 86400
    files = {source.path: source.file for source in found.sources}
    assert (files["limits.gpus"], files["limits.clusters"]) == (central, own)


@pytest.mark.parametrize(
    "text, words",
    [
        ("limts: {}\n", "unknown key `limts`. Did you mean `limits`?"),
        ("limits: {gpu: 2}\nlocal: 'no'\n", "unknown key `gpu` in `limits`. Did you mean `gpus`?"),
        ("qos: gpu\n", "unknown key `qos`. Known keys are contact,"),
        ("a: b: c\n", "a `:` where no key can stand"),
    ],
)
def test_a_file_with_an_error_stops_every_start(site: Site, text: str, words: str) -> None:
    file = write(site, "system", text)
    found = load_profiles()
    assert found.profiles == {}
    assert found.problems[0].file == file
    assert words in found.problems[0].message
    assert found.problems[0].message.endswith("no cluster can be started until this is corrected)")
    with pytest.raises(ProfileError, match="no cluster can be started"):
        find_profile("local")
    assert words in check_file(Path(file))[0].message


def test_a_profile_is_for_members_of_its_groups(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(site, "system", "contact: help@example.org\nvisible: {'big*': [wheelers, staff]}\n")
    site.write("system", "big-a.yaml", PLACE)
    monkeypatch.setattr(site_settings, "own_groups", lambda: {"users"})
    assert list(load_profiles().profiles) == ["local"]
    with pytest.raises(ProfileNotFound) as caught:
        find_profile("big-a")
    assert caught.value.message == "Profile big-a is for members of wheelers or staff."
    assert caught.value.hint.endswith("Contact: help@example.org.")
    monkeypatch.setattr(site_settings, "own_groups", lambda: {"users", "staff"})
    assert sorted(load_profiles().profiles) == ["big-a", "local"]


def test_local_clusters_can_be_turned_off_except_inside_a_job(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(site, "system", "local: off\n")
    site.write("user", "mine.yaml", "title: Mine\nbackend: local\n")
    site.write("user", "place.yaml", PLACE)
    assert list(load_profiles().profiles) == ["place"]
    with pytest.raises(ProfileNotFound, match="no clusters on this machine"):
        find_profile("mine")
    monkeypatch.setattr(site_settings, "surrounding_job", lambda: "Slurm job 12")
    assert sorted(load_profiles().profiles) == ["local", "mine", "place"]


@pytest.mark.parametrize(
    "policy, times",
    [
        ({}, (3600, 28800)),
        ({"idle_timeout": "10 min", "max_lifetime": "1 d"}, (600, 28800)),
        ({"idle_timeout": "1 d"}, (7200, 28800)),
    ],
)
def test_times_have_the_site_s_defaults_and_maxima(
    site: Site, policy: dict[str, str], times: tuple[int, int]
) -> None:
    write(site, "system", "defaults: {idle_timeout: 1 h}\nmaxima: {idle_timeout: 2 h,"
          " max_lifetime: 8 h}\n")  # fmt: skip
    profile = Profile.model_validate({"title": "x", "backend": "slurm", "policy": policy})
    kept = load_site().applied(profile).policy
    assert (kept.idle_timeout, kept.max_lifetime, kept.no_client_timeout) == (*times, None)


def test_a_start_keeps_to_the_site_s_times_and_its_record_has_the_site_s_rules(plan: Any) -> None:
    made = plan("defaults: {idle_timeout: 1 h}\npoll_period: 60 s\nlimits: {gpus: 9}\ncontact: a\n")
    assert made.profile.policy.idle_timeout == 3600
    assert rules(made) == SiteRules(60, 9, "a")


@pytest.mark.parametrize(
    "settings, views, words",
    [
        ("{clusters: 1}", [a_view()], "clusters at one time to 1; running: alpha."),
        ("{clusters: 1}", [a_view(phase=Phase.FAILED)], ""),
        ("{clusters: 1}", [a_view(backend="existing")], ""),
        ("{gpus: 4}", [a_view(unit="GPUs")], "3 GPUs requested."),
        ("{gpus: 5}", [a_view(unit="GPUs"), a_view("beta")], ""),
        ("{gpus: 4}", [a_view(unit="GPUs", phase=Phase.STOPPED)], ""),
        ("{gpu_hours: 9}", [a_view(gpu_hours=9.5)], "in 30 days to 9; 9.5 are used."),
        (
            "{gpu_hours: 9, window: 1 d}",
            [a_view(phase=Phase.STOPPED, ended=NOW - 90_000, gpu_hours=9.5)],
            "",
        ),
    ],
)
def test_limits_of_a_user_hold_over_all_profiles(
    plan: Any, settings: str, views: list[Any], words: str
) -> None:
    made = plan(f"contact: help@example.org\nlimits: {settings}\n")
    if not words:
        within_site(made, seen(*views)[0])
        return
    with pytest.raises(LimitReached) as caught:
        within_site(made, seen(*views)[0])
    assert words in caught.value.message
    assert caught.value.hint.endswith("Contact: help@example.org.")


@pytest.mark.parametrize("own, left", [(None, 3.5), (2, 2.0)])
def test_a_cluster_gets_the_gpu_hours_that_are_left(
    plan: Any, own: int | None, left: float
) -> None:
    made = plan("limits: {gpu_hours: 10}\n")
    policy = made.profile.policy.model_copy(update={"gpu_hours": own})
    made = replace(made, profile=made.profile.model_copy(update={"policy": policy}))
    kept = within_site(made, seen(a_view(gpu_hours=6.5))[0])
    assert kept.profile.policy.gpu_hours == left
    assert make_spec(kept, ClusterDirectory(Path("/x")), Path()).policy.gpu_hours == left


def test_more_gpus_by_scaling_are_refused(home: Path) -> None:
    check_gpus(SiteRules(gpus=4), 2, [a_view(unit="GPUs")])
    with pytest.raises(LimitReached, match="other clusters of yours have 2"):
        check_gpus(SiteRules(gpus=4), 3, [a_view(unit="GPUs")])
    check_gpus(SiteRules(), 300, [a_view(unit="GPUs")])


def test_ended_clusters_older_than_the_retention_are_forgotten(plan: Any) -> None:
    ended = {"phase": Phase.STOPPED}
    pairs, removed = seen(
        a_view("old", **ended, ended=NOW - 90_000),
        a_view("unproved", **ended, ended=NOW - 90_000),
        a_view("new", **ended, ended=NOW - 80_000),
        a_view("alive", created=NOW - 90_000),
    )
    forget_old(plan("contact: a\n"), pairs)
    assert removed == []
    forget_old(plan("retention: 1 d\n"), pairs)
    assert removed == ["old"]


def test_machines_without_settings_have_no_limits(site: Site) -> None:
    made = make_plan(Request("local", target=Target(2, 2)))
    assert rules(made) == SiteRules()
    assert within_site(made, seen(*[a_view(str(n)) for n in range(50)])[0]) is made
