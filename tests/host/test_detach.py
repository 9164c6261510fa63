"""The life of a head after its starter, by batch job, process 1 and control group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_gpucluster.host import detach
from jupyter_gpucluster.host.detach import find_survival
from tests.commands import put_command

SESSION = "0::/user.slice/user-1000.slice/session-4.scope"
SERVICE = "0::/system.slice/jupyterhub-alice.service"
TERMINAL = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope"


HYBRID = f"12:memory:/user.slice\n1:name=systemd:/user.slice\n{SERVICE}\n"
IN_JOB = "No: it ends with Jupyter, which runs in Slurm job 4711."


Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return a call that makes this machine another one."""

    def make(cgroup: str, init: str = "systemd", *, scope: bool | None = None) -> None:
        texts = {"/proc/1/comm": init, "/proc/self/cgroup": cgroup.strip()}
        monkeypatch.setattr(detach, "_read", texts.__getitem__)
        if scope is not None:
            monkeypatch.setattr(detach, "_works", lambda: scope)

    return make


@pytest.mark.parametrize(
    "cgroup, init, job, survives, words",
    [
        (SESSION, "systemd", "Slurm job 4711", False, IN_JOB),
        ("0::/", "sshd", "", True, "container"),
        (SERVICE, "systemd", "", False, "jupyterhub-alice.service"),
        (HYBRID, "systemd", "", False, "jupyterhub-alice.service"),  # its last line counts
        (SESSION, "systemd", "", True, "logout"),
        ("0::/", "tini", "", False, "container"),
        ("0::/", "jupyter-lab", "", False, "container"),
        ("0::/", "docker-init", "", False, "container"),
    ],
)
def test_without_a_scope_it_depends_on_what_jupyter_runs_in(
    machine: Machine, cgroup: str, init: str, job: str, survives: bool, words: str
) -> None:
    machine(cgroup, init, scope=bool(job))
    found = find_survival(job)
    assert (found.survives, found.prefix) == (survives, ())
    assert words in found.words


@pytest.mark.parametrize("cgroup", [SESSION, SERVICE, TERMINAL])
def test_a_scope_of_its_own_is_used_wherever_systemd_gives_one(
    machine: Machine, cgroup: str
) -> None:
    machine(cgroup, scope=True)
    found = find_survival()
    assert found.survives
    assert found.prefix[:3] == ("systemd-run", "--user", "--scope")
    assert found.prefix[-1] == "--"


def test_this_machine_gives_an_answer_of_its_own() -> None:
    assert find_survival().words


@pytest.mark.parametrize("code, works", [(0, True), (1, False)])
def test_systemd_is_asked_before_it_is_relied_upon(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, works: bool
) -> None:
    calls = put_command(tmp_path, monkeypatch, "systemd-run", f"exit {code}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    machine(SESSION)
    assert bool(find_survival().prefix) == works
    assert calls.read_text().startswith("--user --scope")


def test_without_a_runtime_directory_systemd_is_not_even_asked(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = put_command(tmp_path, monkeypatch, "systemd-run", "exit 0")
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    machine(SESSION)
    assert find_survival().prefix == ()
    assert not calls.exists()
