"""The life of a head after its starter, by batch job, process 1 and control group."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_gpucluster.host.detach import find_survival
from tests.commands import put_command

SESSION = "0::/user.slice/user-1000.slice/session-4.scope"
SERVICE = "0::/system.slice/jupyterhub-alice.service"
TERMINAL = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope"


def test_inside_a_batch_job_it_ends_with_the_job() -> None:
    found = find_survival(
        {}, job="Slurm job 4711", cgroup=SESSION, init="systemd", scope_works=True
    )
    assert not found.survives
    assert found.words == "No: it ends with Slurm job 4711 that Jupyter is in."
    assert found.prefix == ()


def test_without_systemd_only_the_machine_s_end_ends_it() -> None:
    found = find_survival({}, cgroup="0::/", init="sshd")
    assert found.survives
    assert "container" in found.words
    assert found.prefix == ()


@pytest.mark.parametrize("cgroup", [SESSION, SERVICE, TERMINAL])
def test_a_scope_of_its_own_is_used_wherever_systemd_gives_one(cgroup: str) -> None:
    found = find_survival({}, cgroup=cgroup, init="systemd", scope_works=True)
    assert found.survives
    assert found.prefix[:3] == ("systemd-run", "--user", "--scope")
    assert found.prefix[-1] == "--"


def test_in_a_service_it_ends_with_the_service() -> None:
    found = find_survival({}, cgroup=SERVICE, init="systemd", scope_works=False)
    assert not found.survives
    assert "jupyterhub-alice.service" in found.words


def test_in_a_login_session_it_depends_on_the_machine() -> None:
    found = find_survival({}, cgroup=SESSION, init="systemd", scope_works=False)
    assert found.survives
    assert "logout" in found.words


def test_the_last_line_of_a_hybrid_hierarchy_counts() -> None:
    text = f"12:memory:/user.slice\n1:name=systemd:/user.slice\n{SERVICE}\n"
    assert not find_survival({}, cgroup=text, init="systemd", scope_works=False).survives


def test_this_machine_gives_an_answer_of_its_own() -> None:
    assert find_survival().words


@pytest.mark.parametrize("code, works", [(0, True), (1, False)])
def test_systemd_is_asked_before_it_is_relied_upon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, works: bool
) -> None:
    calls = put_command(tmp_path, monkeypatch, "systemd-run", f"exit {code}")
    variables = {"XDG_RUNTIME_DIR": "/run/user/1000"}
    found = find_survival(variables, cgroup=SESSION, init="systemd")
    assert bool(found.prefix) == works
    assert calls.read_text().startswith("--user --scope")


def test_without_a_runtime_directory_systemd_is_not_even_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = put_command(tmp_path, monkeypatch, "systemd-run", "exit 0")
    assert find_survival({}, cgroup=SESSION, init="systemd").prefix == ()
    assert not calls.exists()


@pytest.mark.parametrize("main", ["tini", "jupyter-lab", "docker-init"])
def test_in_jupyters_own_container_it_ends_with_jupyter(main: str) -> None:
    found = find_survival({}, init=main)
    assert not found.survives
    assert "container" in found.words
