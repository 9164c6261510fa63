"""Free GPUs of a profile: queried now and then, shown as text, never an obstacle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyter_gpucluster.core.errors import BackendError, BackendUnavailable, ProfileNotFound
from jupyter_gpucluster.host.hardware import Machine
from jupyter_gpucluster.launch import capacity
from jupyter_gpucluster.launch.capacity import capacity_of
from tests.commands import put_command

NODES = """
gpu01|gpu*|mixed|gpu:h100:4(S:0-1)|gpu:h100:1(IDX:0)|
gpu02|gpu*|drained|gpu:h100:4(S:0-1)|gpu:h100:0(IDX:N/A)|
gpu01|short|mixed|gpu:h100:4(S:0-1)|gpu:h100:1(IDX:0)|
cpu01|cpu|idle|(null)|gpu:0|
"""


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what other tests have asked."""
    monkeypatch.setattr(capacity, "_answers", {})


def profile(home: Path, text: str) -> str:
    path = home / "data" / "gpucluster" / "profiles" / "site.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"title: A site\n{text}\n")
    return "site"


def look(home: Path, name: str, held: int = 0) -> dict[str, Any]:
    return capacity_of(name, home / "clusters", held)


def test_slurm_tells_of_each_partition_and_the_words_of_the_profiles_own(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = put_command(home, monkeypatch, "sinfo", f"cat <<'END'\n{NODES}END")
    name = profile(home, "backend: slurm\njob: {gpus: 1, queue: gpu}")
    for _ in range(3):
        assert look(home, name) == {
            "partitions": [
                {"name": "gpu", "free": 3, "total": 8, "unit": "GPUs"},
                {"name": "short", "free": 3, "total": 4, "unit": "GPUs"},
            ],
            "words": "gpu: 3 of 8 GPUs free.",
        }
    assert len(calls.read_text().splitlines()) == 1


def test_a_profile_that_sends_jobs_to_another_cluster_is_told_of_that_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "CLUSTER: cm2\\ngpu09|far|idle|gpu:h100:2(S:0)|gpu:h100:0(IDX:N/A)|\\n"
    put_command(
        home,
        monkeypatch,
        "sinfo",
        f"""case "$SLURM_CLUSTERS" in cm2) printf '{other}' ;; *) cat <<'END'\n{NODES}END\nesac""",
    )
    monkeypatch.delenv("SLURM_CLUSTERS", raising=False)
    name = profile(home, "backend: slurm\njob: {gpus: 1}")
    every_queue = "gpu: 3 of 8 GPUs free; short: 3 of 4 GPUs free."
    assert look(home, name)["words"] == every_queue
    (home / "data" / "gpucluster" / "profiles" / "far.yaml").write_text(
        "title: Far\nbackend: slurm\njob: {gpus: 1, directives: [-M cm2]}\n"
    )
    assert look(home, "far")["words"] == "far: 2 of 2 GPUs free."
    assert look(home, name)["words"] == every_queue


def test_a_system_that_cannot_tell_is_not_asked(home: Path) -> None:
    told = look(home, profile(home, "backend: cobalt\njob: {gpus: 1}"))
    assert told == {
        "partitions": [],
        "words": "Cobalt does not show the number of free GPUs.",
    }


def test_a_context_is_not_taken_for_the_namespace_of_that_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = put_command(home, monkeypatch, "kubectl", """echo '{"items": []}'""")
    for job in ("account: lab", "submit_args: [--context=lab]"):
        look(home, profile(home, f"backend: kubernetes\njob: {{{job}}}"))
    asked = "get nodes,pods --all-namespaces --output=json"
    assert calls.read_text().splitlines() == [asked, f"--context=lab {asked}"]


def test_a_command_that_is_not_here_says_where_to_ask(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BackendError, match="sinfo cannot be run here"):
        look(home, profile(home, "backend: slurm\njob: {gpus: 1}"))


def test_a_system_that_hangs_is_given_up_and_not_asked_again_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "SECONDS", 0.2)
    calls = put_command(home, monkeypatch, "sinfo", "exec sleep 60")
    name = profile(home, "backend: slurm\njob: {gpus: 1}")
    for _ in range(2):
        with pytest.raises(BackendUnavailable, match="did not answer sinfo"):
            look(home, name)
    assert len(calls.read_text().splitlines()) == 1


def test_gpus_of_this_machine_are_free_but_for_those_of_local_clusters(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "look_around", lambda: Machine(8, 2**34, ("0", "1", "2", "3")))
    told = look(home, "local", held=3)
    assert told["partitions"] == [{"name": "this machine", "free": 1, "total": 4, "unit": "GPUs"}]
    assert told["words"] == "1 of 4 GPUs of this machine are free."


def test_a_machine_without_gpus_says_what_it_has(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "look_around", lambda: Machine(8, 2**34))
    assert look(home, "local")["words"] == "CPU workers on 8 cores of this machine."


def test_a_profile_that_is_not_there_is_no_capacity(home: Path) -> None:
    with pytest.raises(ProfileNotFound):
        look(home, "nowhere")
