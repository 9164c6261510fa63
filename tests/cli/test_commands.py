"""Requests and output of commands, on clusters in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_gpucluster.core.cluster import Phase, Target
from jupyter_gpucluster.core.errors import BackendUnavailable
from jupyter_gpucluster.core.summary import Event
from jupyter_gpucluster.launch.request import Request

from .doubles import Desk, InMemoryClusters, a_view

WAITED = "started cluster local-1\nlocal-1: starting\n"


def test_start_passes_on_what_was_asked_for(desk: Desk) -> None:
    words = "--name beta --adapt 0 4 --option account=x=y --kernel k --reuse --allocation 7"
    assert desk.types("start", "local", *words.split()) == 0
    assert desk.types("start", "local") == 0
    assert desk.clusters.started == [
        Request(
            "local",
            name="beta",
            target=Target(0, 4),
            options={"account": "x=y"},
            kernel="k",
            allocation="7",
            reuse=True,
        ),
        Request("local"),
    ]


@pytest.mark.parametrize(
    "words, code, out, err",
    [
        (
            "start local --name beta",
            0,
            "beta: starting\nconnect: jupyter gpucluster connect beta",
            "",
        ),
        ("start local --wait", 0, "local-1: running: 2 of 2 workers ready\nconnect: ", WAITED),
        ("start local --wait --json", 0, '"phase": "running"', ""),
        (
            "start local --reuse",
            0,
            "local-1: starting",
            "uses cluster local-1, which runs with the same profile",
        ),
        ("list --orphans", 0, "gpc-zzzzzz-1", ""),
        ("list --orphans --json", 0, '"job 99 (gpc-zzzzzz-1)"', ""),
        ("connect alpha", 0, "Python with this package:\n    a\n\n    b\n\nNotebook", ""),
        ("connect alpha --form connect", 0, "a\n\nb\n", ""),
        ("connect alpha --json", 0, '"magic": "c"', ""),
        ("scale alpha --workers 0", 0, "scaling to 0 workers", ""),
        ("logs alpha --job 4712 --lines 7", 0, "7 lines of gpc-alpha-1_1\n", ""),
        ("logs alpha", 0, "500 lines of all\n", ""),
        ("why alpha", 0, "alpha waits for a free GPU.\n", ""),
        ("script local", 0, "#!/bin/sh\n# local\n\n# submitted with: sbatch job.sh\n", ""),
        ("stop nobody alpha --wait", 1, "alpha: stopped\n", "There is no cluster named nobody."),
        ("stop alpha --force", 0, "alpha: stopped\n", ""),
        ("report", 0, "in 2 clusters", ""),
        ("report --json", 0, '"gpu_hours": 0', ""),
        ("forget --older-than 7", 0, "id-omega: forgotten\n", ""),
        ("forget omega alpha", 1, "omega: forgotten\n", "Cluster alpha has not ended."),
        (
            "forget omega alpha --force",
            1,
            "omega: forgotten. Nothing proves the end of job 7.\n",
            "Cluster alpha has not ended.",
        ),
    ],
)
def test_a_command_answers(desk: Desk, words: str, code: int, out: str, err: str) -> None:
    assert desk.types(*words.split()) == code
    for expected, shown in ((out, desk.out), (err, desk.err)):
        # A text with a line end, or an empty one, is all that is shown.
        assert shown == expected if expected[-1:] in ("", "\n") else expected in shown


def test_a_relative_python_becomes_absolute_and_a_bare_one_is_looked_up(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    desk.types("start", "local", "--python", "venv/bin/python")
    desk.types("start", "local", "--python", "sh")
    pythons = [request.python for request in desk.clusters.started]
    assert pythons[0] == str(tmp_path / "venv/bin/python")
    assert Path(pythons[1]).is_absolute()
    assert Path(pythons[1]).name == "sh"


def test_a_start_says_what_must_be_seen(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = a_view("toy", Phase.STARTING, words="starting", simulated=True, encrypted=False)
    monkeypatch.setattr(desk.clusters, "start", lambda profile, **request: simulated)
    remark = Event(0.0, "start", "4 x 2 = 8 threads of workers share the 2 cores of this machine.")
    monkeypatch.setattr(desk.clusters, "events", lambda name: [remark])
    assert desk.types("start", "demo-quick") == 0
    assert desk.err == f"{remark.message}\n"
    assert desk.out.splitlines()[0] == "toy: starting; simulated; NOT ENCRYPTED"


def test_a_start_that_takes_too_long_exits_with_3_and_names_the_cluster(desk: Desk) -> None:
    assert desk.types("start", "local", "--wait", "0", "--json") == 3
    document = json.loads(desk.out)
    assert "not ready after 0 s" in document["message"]
    assert document["cluster"]["name"] == "local-1"


@pytest.mark.parametrize(
    "words, message",
    [
        ("start local --wait", "error: No longer waiting; cluster local-1 continues."),
        ("stop alpha --wait", "No longer waiting; cluster alpha stops by itself."),
    ],
)
def test_ctrl_c_ends_the_wait_only(desk: Desk, words: str, message: str) -> None:
    def press() -> None:
        raise KeyboardInterrupt

    desk.clusters.on_wait = press
    assert desk.types(*words.split()) == 130
    assert message in desk.err
    assert all(view.phase is not Phase.STOPPED for view in desk.clusters.live())


def test_list_shows_the_living_and_with_all_the_dead(desk: Desk) -> None:
    assert desk.types("list") == 0
    assert [line.split()[0] for line in desk.out.splitlines()] == ["NAME", "alpha"]
    assert desk.types("list", "--all") == 0
    assert [line.split()[0] for line in desk.out.splitlines()[:3]] == ["NAME", "alpha", "omega"]
    assert desk.out.endswith("cannot be read\nThe record of zzzzzz is damaged. Delete it.\n")
    assert desk.types("list", "--json") == 0
    assert [view["name"] for view in json.loads(desk.out)["clusters"]] == ["alpha"]
    desk.clusters.damage = True
    assert desk.types("list") == 0
    assert "The record of zzzzzz is damaged. Delete it." in desk.out
    desk.clusters = InMemoryClusters()
    assert desk.types("list") == 0
    assert desk.out == "no clusters; list --all shows those that ended\n"


def test_show_tells_jobs_and_timeline(desk: Desk) -> None:
    assert desk.types("show", "alpha") == 0
    assert "gpc-alpha-1_1  4712  pending" in desk.out
    assert "Waits for a free GPU." in desk.out
    assert "Timeline" in desk.out
    assert desk.types("show", "alpha", "--json") == 0
    document = json.loads(desk.out)
    assert document["name"] == "alpha"
    assert len(document["jobs"]) == 2
    assert document["events"][0]["kind"] == "phase"


def test_scale_to_gpus_on_a_cluster_that_has_them() -> None:
    desk = Desk(InMemoryClusters(a_view("alpha", unit="GPUs")))
    assert desk.types("scale", "alpha", "--gpus", "3") == 0
    assert "scaling to 3 GPUs" in desk.out


def test_a_wait_for_a_target_that_is_changed_meanwhile_is_in_vain(desk: Desk) -> None:
    def scale_again() -> None:
        desk.clusters.update("alpha", target=Target(1, 1))

    desk.clusters.on_wait = scale_again
    assert desk.types("scale", "alpha", "--workers", "3", "--wait") == 1
    assert "error: Cluster alpha has another target now: 1 worker, at most 8 allowed." in desk.err


def test_a_stop_waits_in_vain_for_jobs_whose_end_is_not_proved(desk: Desk) -> None:
    desk.clusters.left = (
        "job 7 of gpc-alpha-1 (not listed, end not confirmed); to end it: scancel 7",
    )
    assert desk.types("stop", "alpha", "--wait") == 1
    assert desk.out == "alpha: stopped\n"
    assert "error: Cluster alpha has ended, but the end of its jobs is not proved." in desk.err
    assert "scancel 7" in desk.err


def test_stop_all(desk: Desk) -> None:
    assert desk.types("stop", "--all", "--wait") == 0
    assert desk.types("stop", "--all") == 0
    assert desk.out == "no clusters to stop\n"


def test_stop_in_json_tells_clusters_and_errors(desk: Desk) -> None:
    assert desk.types("stop", "nobody", "alpha", "--json") == 1
    document = json.loads(desk.out)
    assert [view["phase"] for view in document["clusters"]] == ["stopping"]
    assert document["message"] == document["errors"][0]["message"]


def test_profiles_tell_place_limits_and_source(desk: Desk) -> None:
    assert desk.types("profiles", "--json") == 0
    [profile] = json.loads(desk.out)["profiles"]
    assert profile["name"] == "local"
    assert profile["source"].endswith("local.yaml")
    assert profile["default_workers"] >= 1
    assert profile["options"]["properties"]["threads"]["type"] == "integer"
    assert desk.types("profiles") == 0
    assert "local  This machine" in desk.out


def test_profiles_of_sites_that_we_are_not_at_are_listed_where_asked_for(desk: Desk) -> None:
    assert desk.types("profiles", "--everywhere", "--json") == 0
    names = [profile["name"] for profile in json.loads(desk.out)["profiles"]]
    assert names[0] == "local"  # what matches this host is offered first
    assert len(names) > 15
    assert "olcf-andes" in names


def test_profiles_tell_what_is_free_where_that_is_asked_for(desk: Desk) -> None:
    assert desk.types("profiles", "--capacity") == 0
    assert "gpu: 3 of 8 GPUs free." in desk.out
    assert desk.types("profiles", "--capacity", "--json") == 0
    [profile] = json.loads(desk.out)["profiles"]
    assert profile["capacity"]["partitions"][0]["free"] == 3


def test_a_place_that_does_not_tell_what_is_free_is_listed_all_the_same(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_name: str) -> None:
        raise BackendUnavailable("Slurm did not answer sinfo within 10 s.")

    monkeypatch.setattr(desk.clusters, "capacity", fail)
    assert desk.types("profiles", "--capacity") == 0
    assert "Slurm did not answer sinfo within 10 s." in desk.out


def test_profiles_show_what_is_wrong_with_a_file(desk: Desk, home: Path) -> None:
    folder = home / "data" / "gpucluster" / "profiles"
    folder.mkdir(parents=True)
    bad = folder / "bad.yaml"
    bad.write_text("title: Bad\nbackend: local\njob: {gpu: 1, cores: 2}\n")
    assert desk.types("profiles") == 0
    assert "bad.yaml:3:7:" in desk.out
    assert desk.types("start", "bad", "--gpus", "1") == 2
    errors = [line for line in desk.err.splitlines() if line.startswith("error: ")]
    assert [line.rpartition("unknown key ")[2] for line in errors] == [
        "`gpu` in `job`. Use `job.gpus`.",
        "`cores` in `job`. Use `job.cpus`.",
    ]
    good = home / "good.yaml"
    good.write_text("title: Good\nbackend: slurm\njob: {walltime: 24}\n")
    assert desk.types("profiles", "--check", str(good)) == 0
    assert desk.out.startswith(f"{good}: ok\nwarning: {good}:3:17: ")
    assert desk.types("profiles", "--json", "--check", str(good), str(bad)) == 1
    assert [each["ok"] for each in json.loads(desk.out)["files"]] == [True, False]


def test_a_profile_that_a_site_broke_is_listed_as_such(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "site" / "gpucluster" / "profiles"
    folder.mkdir(parents=True)
    (folder / "local.yaml").write_text("title: Ours\nbackend: locl\n")
    monkeypatch.setenv("JUPYTER_PATH", str(home / "site"))
    assert desk.types("profiles") == 0
    assert "local  cannot be started: see problems  -" in desk.out
    assert desk.types("profiles", "--json") == 0
    assert json.loads(desk.out)["broken"] == [{"name": "local", "file": str(folder / "local.yaml")}]


@pytest.mark.parametrize("verb", ["start", "script"])
def test_what_uses_a_profile_shows_what_is_wrong_with_its_files(
    desk: Desk, home: Path, verb: str
) -> None:
    folder = home / "data" / "gpucluster" / "profiles"
    folder.mkdir(parents=True)
    (folder / "bad.yaml").write_text("title: Bad\nbackend: local\njob: {gpu: 1}\n")
    path = folder / "short.yaml"
    path.write_text("title: Short\nbackend: slurm\njob:\n  walltime: 24\n")
    assert desk.types(verb, "short") == 0
    assert f"warning: {path}:4:13: `job.walltime`: 24 has no unit" in desk.err
    assert "bad.yaml" not in desk.err
    assert "walltime" not in desk.out


def test_an_error_of_ours_is_no_traceback(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_name: str) -> str:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(desk.clusters, "why", fail)
    assert desk.types("why", "alpha") == 1
    assert desk.err.splitlines() == [
        "error: Unexpected ZeroDivisionError: by zero",
        "hint: With JUPYTER_GPUCLUSTER_DEBUG=1 in the environment the same command shows where.",
    ]
