"""The dialog that sets up a batch system, on what the real Slurm printed."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp

from jupyter_gpucluster.profiles import read_profile
from jupyter_gpucluster.setup import Desk, desk, proposals
from jupyter_gpucluster.setup.decisions import Decision
from jupyter_gpucluster.setup.profile_text import Choices
from jupyter_gpucluster.state.paths import data_directory
from tests.server.conftest import Ask
from tests.server.test_openapi import check, schema_of, spec
from tests.setup.recorded_slurm import OTHER_USERS, accept_only, put_slurm

SETUP = "gpucluster/api/setup"
__all__ = ["spec"]


@pytest.fixture
def slurm(home: Path, monkeypatch: pytest.MonkeyPatch, jp_serverapp: ServerApp) -> Path:
    """Put Slurm on PATH; the Python of a server that tests is no matter here."""
    put_slurm(home, monkeypatch)
    quick = Choices(Decision("", "not checked"), Decision("server", ""), Decision("", ""))
    monkeypatch.setattr(desk, "_decided", lambda python, period: quick)
    jp_serverapp.web_app.settings["gpucluster"].desk = Desk()
    return home


def calls(home: Path, program: str) -> list[str]:
    file = home / f"{program}.calls"
    return file.read_text().splitlines() if file.exists() else []


def folder() -> Path:
    return Path(data_directory(), "gpucluster")


async def queues(ask: Ask) -> dict[str, Any]:
    [system] = (await ask(SETUP)).json["systems"]
    return {queue["profile"]: queue for queue in system["queues"]}


async def test_a_page_hears_of_a_system_without_profile_and_no_command_runs(
    ask: Ask, slurm: Path
) -> None:
    told = await ask("gpucluster/api/profiles")
    assert told.json["without_profile"] == ["Slurm"]
    assert calls(slurm, "scontrol") == calls(slurm, "sinfo") == []


async def test_queues_have_type_gpus_accounts_and_what_is_free(
    ask: Ask, slurm: Path, spec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SBATCH_ACCOUNT", "lab1")
    answer = await ask(SETUP)
    check(spec, answer.json, schema_of(spec, "GET", "setup", 200))
    [system] = answer.json["systems"]
    assert (system["title"], system["offered"], system["error"]) == ("Slurm", "lab1", "")
    assert abs(system["asked"] - time.time()) < 60
    found = await queues(ask)
    gpu = found["slurm-gpu"]
    assert (gpu["gpus"], gpu["gpu_type"], gpu["nodes"], gpu["free"]) == (4, "h100", 2, 3)
    assert gpu["accounts"] == ["chem", "lab1"]
    assert found["slurm-closed"]["closed"] == "its state is DOWN"
    mixed = [found[f"slurm-mixed-{kind}"]["free"] for kind in ("a100", "h100")]
    assert mixed == [None, None]  # Slurm reports their sum
    # Two looks within a minute are one question.
    assert " ".join(calls(slurm, "scontrol")).count("show partition") == 1


async def test_a_profile_is_shown_checked_and_saved_and_an_account_is_never_chosen(
    ask: Ask, slurm: Path, spec: Any
) -> None:
    async def post(**wanted: Any) -> Any:
        return await ask(SETUP, "POST", {"profile": "slurm-gpu", **wanted})

    shown = await post()
    assert (shown.json["check"], shown.json["saved"]) == (None, "")
    assert "account: {type: enum" in shown.json["text"]
    assert calls(slurm, "sbatch") == []
    refused = await post(save=True)
    assert (refused.status, refused.json["detail"]) == (422, "account")
    assert refused.json["hint"] == "chem, lab1"
    assert (await post(account="phys")).json["detail"] == "account"
    tried = await post(account="lab1", check=True)
    check(spec, tried.json, schema_of(spec, "POST", "setup", 200))
    assert tried.json["check"]["result"] == "ok", tried.json
    assert "would accept the job" in tried.json["check"]["found"]
    saved = await post(account="lab1", save=True)
    file = folder() / "profiles/slurm-gpu.yaml"
    assert saved.json["saved"] == str(file)
    assert read_profile(file).profile.options["account"].default == "lab1"
    before = file.read_bytes()
    again = await post(account="chem", save=True)
    assert (again.status, "stays as it is" in again.json["message"]) == (422, True)
    assert file.read_bytes() == before
    assert (await queues(ask))["slurm-gpu"]["exists"]
    assert (await ask("gpucluster/api/profiles")).json["without_profile"] == []


async def test_a_refusal_is_shown_and_nothing_is_saved(ask: Ask, slurm: Path) -> None:
    wanted = {"profile": "slurm-parent", "account": "lab1"}
    tried = await ask(SETUP, "POST", {**wanted, "check": True})
    assert tried.json["check"]["result"] == "failed"
    assert OTHER_USERS in tried.json["check"]["found"]
    saved = await ask(SETUP, "POST", {**wanted, "save": True})
    assert (saved.status, OTHER_USERS in saved.json["message"]) == (422, True)
    for profile in ("slurm-closed", "nosuch"):
        unknown = await ask(SETUP, "POST", {"profile": profile})
        assert (unknown.status, unknown.json["detail"]) == (422, "profile")
    assert not (folder() / "profiles").exists()


async def test_an_account_without_the_right_is_refused_and_no_other_takes_its_place(
    ask: Ask, slurm: Path
) -> None:
    accept_only(slurm, "chem")
    tried = await ask(SETUP, "POST", {"profile": "slurm-gpu", "account": "lab1", "check": True})
    assert OTHER_USERS in tried.json["check"]["found"]
    assert 'default: "lab1"' in tried.json["text"]
    missing = await ask(SETUP, "POST", {"profile": "slurm-gpu", "save": True})
    assert (missing.status, missing.json["hint"]) == (422, "chem, lab1")
    assert not (folder() / "profiles").exists()


async def test_a_typed_account_is_in_the_script_that_the_batch_system_checks(
    ask: Ask, slurm: Path
) -> None:
    (slurm / "bin/sacctmgr").unlink()
    accept_only(slurm, "abc")
    wanted = {"profile": "slurm-gpu", "account": "abc", "save": True}
    assert (await ask(SETUP, "POST", wanted)).json["saved"]
    assert 'account: "abc"' in (folder() / "profiles/slurm-gpu.yaml").read_text()


async def test_a_name_is_taken_by_a_profile_that_cannot_be_read_or_is_hidden(
    ask: Ask, slurm: Path
) -> None:
    (folder() / "profiles").mkdir(parents=True)
    (folder() / "profiles/slurm-gpu.yaml").write_text("title: [")
    (folder() / "profiles/slurm-one.yaml").write_text("title: x\nbackend: slurm\n")
    (folder() / "site.yaml").write_text("visible: {slurm-one: [nosuchgroup]}\n")
    found = await queues(ask)
    names = [name for name, queue in found.items() if queue["exists"]]
    assert names == ["slurm-gpu", "slurm-one"]


async def test_a_system_without_answer_is_asked_once_a_minute_and_only_for_its_own_profiles(
    ask: Ask, slurm: Path
) -> None:
    put = "#!/bin/sh\necho $* >> $0.asked\nexit 1\n"
    (slurm / "bin/scontrol").write_text(put)
    assert (await ask(SETUP, "POST", {"profile": "pbs-gpu"})).status == 422
    asked = slurm / "bin/scontrol.asked"
    assert not asked.exists()
    for _ in range(2):
        await ask(SETUP)
    assert asked.read_text().count("partition") == 1


async def test_a_silent_system_leaves_the_last_answer_with_its_time(
    ask: Ask, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [first] = (await ask(SETUP)).json["systems"]
    monkeypatch.setattr(desk, "REUSED_SECONDS", -1.0)
    (slurm / "bin/scontrol").write_text("#!/bin/sh\nexit 1\n")
    [second] = (await ask(SETUP)).json["systems"]
    assert "did not answer scontrol" in second["error"]
    assert (second["asked"], second["queues"]) == (
        first["asked"],
        [{**queue, "free": None} for queue in first["queues"]],
    )


async def test_a_batch_system_that_hangs_holds_up_no_other_request(
    ask: Ask, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def slow(backend: Any) -> Any:
        go_on.wait(30)
        return proposals.survey(backend)

    monkeypatch.setattr(desk, "survey", slow)
    looking = asyncio.ensure_future(ask(SETUP))
    for _ in range(3):
        assert (await ask("gpucluster/api/clusters")).status == 200
    assert not looking.done()
    go_on.set()
    assert (await looking).status == 200


async def test_a_site_that_turned_it_off_gets_no_profile(ask: Ask, slurm: Path) -> None:
    folder().mkdir(parents=True, exist_ok=True)
    (folder() / "site.yaml").write_text("setup: off\ncontact: help@example.org\n")
    assert (await ask("gpucluster/api/profiles")).json["without_profile"] == []
    for answer in (
        await ask(SETUP, "POST", {"profile": "slurm-gpu", "save": True}),
        await ask(SETUP),
    ):
        assert (answer.status, "help@example.org" in answer.json["hint"]) == (422, True)
    assert calls(slurm, "scontrol") == []


async def test_options_have_values_that_the_batch_system_reports_and_the_profile_allows(
    ask: Ask, slurm: Path, spec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder() / "profiles").mkdir(parents=True)
    options = {
        "account": "{type: string, values: accounts}",
        "lab": "{type: string, values: accounts, pattern: 'lab.*', field: job.account}",
        "queue": "{type: enum, choices: [gpu, other], values: queues}",
        "qos": "{type: string, values: qos, field: environment.variables.QOS}",
        "other": "{type: string, field: environment.variables.OTHER}",
    }
    text = "".join(f"  {name}: {rest}\n" for name, rest in options.items())
    for name, backend in (("mine", "slurm"), ("elsewhere", "pbs")):
        (folder() / f"profiles/{name}.yaml").write_text(
            f"title: x\nbackend: {backend}\noptions:\n{text}"
        )
    answer = await ask("gpucluster/api/profiles/mine/values")
    check(spec, answer.json, schema_of(spec, "GET", "profiles/mine/values", 200))
    assert answer.json["title"] == "Slurm"
    assert answer.json["values"] == {
        "account": ["chem", "lab1"],
        "lab": ["lab1"],
        "queue": ["gpu"],
        "qos": ["long", "normal"],
    }
    shown = await ask("gpucluster/api/profiles/mine")
    assert shown.json["options"]["properties"]["account"]["values"] == "accounts"
    await ask(SETUP)
    # Commands run at the same time, so their lines may mix.
    assert " ".join(calls(slurm, "sacctmgr")).count("show assoc") == 1
    nothing = {"title": "", "asked": 0.0, "values": {}}
    assert (await ask("gpucluster/api/profiles/elsewhere/values")).json == nothing
    # A silent system leaves the last answer with its time.
    monkeypatch.setattr(desk, "REUSED_SECONDS", -1.0)
    (slurm / "bin/scontrol").write_text("#!/bin/sh\nexit 1\n")
    assert (await ask("gpucluster/api/profiles/mine/values")).json == answer.json
