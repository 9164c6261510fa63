"""Resources of this machine: cores, memory and usable GPUs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jupyter_gpucluster.core.errors import InvalidInput
from jupyter_gpucluster.host import hardware
from jupyter_gpucluster.launch.create import check_network
from jupyter_gpucluster.profiles import Profile
from tests.commands import put_command

ON_THIS_MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


HIDDEN = "hides all GPUs."


@pytest.mark.parametrize(
    "chosen, expected, trouble",
    [
        ("0,1", ("0", "1"), ""),
        (" 2 , 3 ", ("2", "3"), ""),
        ("GPU-8a56,MIG-1b2c", ("GPU-8a56", "MIG-1b2c"), ""),
        ("0,-1,1", ("0",), ""),
        ("0,,1", ("0",), ""),
        ("", (), f"CUDA_VISIBLE_DEVICES='' {HIDDEN}"),
        ("-1", (), f"CUDA_VISIBLE_DEVICES='-1' {HIDDEN}"),
        ("NoDevFiles", (), f"CUDA_VISIBLE_DEVICES='NoDevFiles' {HIDDEN}"),
        (" ", (), f"CUDA_VISIBLE_DEVICES=' ' {HIDDEN}"),
    ],
)
def test_the_variable_that_names_gpus_is_taken_as_cuda_takes_it(
    monkeypatch: pytest.MonkeyPatch, chosen: str, expected: tuple[str, ...], trouble: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert hardware.visible_gpus() == (expected, trouble)


@pytest.mark.parametrize(
    "script, expected, told",
    [
        ("printf '0\\n1\\n'", ("0", "1"), ""),
        ('echo "NVIDIA-SMI has failed: couldn\'t communicate"; exit 9', (), "couldn't communicate"),
        ("exec sleep 30", (), "does not answer"),
    ],
)
def test_the_driver_names_the_gpus_or_its_trouble(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    expected: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(hardware, "NVIDIA_SMI_SECONDS", 2.0 if expected else 0.5)
    put_command(tmp_path, monkeypatch, "nvidia-smi", script)
    gpus, trouble = hardware.visible_gpus()
    assert gpus == expected
    assert told in trouble
    assert bool(trouble) == bool(told)


def test_no_driver_is_no_gpu_and_no_trouble(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert hardware.visible_gpus() == ((), "")


@pytest.fixture
def control_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Put this process into a control group three levels deep."""
    monkeypatch.setattr(hardware, "CONTROL_GROUPS", tmp_path)
    chain = [tmp_path / "user.slice/user-1.slice/session-4.scope"]
    chain += [chain[0].parent, chain[0].parent.parent, tmp_path]
    chain[0].mkdir(parents=True)
    monkeypatch.setattr(hardware, "_control_groups", lambda: chain)
    return tmp_path


@pytest.mark.parametrize("level", [".", "user.slice", "user.slice/user-1.slice/session-4.scope"])
def test_a_memory_limit_at_any_level_counts(control_groups: Path, level: str) -> None:
    (control_groups / level / "memory.max").write_text(f"{1 << 29}\n")
    assert hardware.usable_memory() == 1 << 29


@pytest.mark.parametrize("text", ["max\n", f"{1 << 62}\n", "", "nonsense"])
def test_no_memory_limit_leaves_the_whole_machine(control_groups: Path, text: str) -> None:
    (control_groups / "memory.max").write_text(text)
    assert hardware.usable_memory() == ON_THIS_MACHINE


def test_a_memory_limit_of_the_older_hierarchy_counts(control_groups: Path) -> None:
    (control_groups / "memory").mkdir()
    (control_groups / "memory" / "memory.limit_in_bytes").write_text(f"{1 << 28}\n")
    assert hardware.usable_memory() == 1 << 28


@pytest.mark.parametrize(
    "text, most", [("100000 100000", 1), ("50000 100000", 1), ("max 100000", None)]
)
def test_a_quota_of_processor_time_counts(
    control_groups: Path, text: str, most: int | None
) -> None:
    (control_groups / "user.slice" / "cpu.max").write_text(text + "\n")
    assert hardware.usable_cpus() == (most or len(os.sched_getaffinity(0)))


def test_this_process_s_control_groups_go_up_to_the_root() -> None:
    groups = hardware._control_groups()
    assert groups[-1] == hardware.CONTROL_GROUPS
    assert groups == sorted(set(groups), key=lambda path: -len(path.parts))


def test_a_look_around_finds_something_to_work_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    found = hardware.look_around()
    assert found.cpus >= 1
    assert 0 < found.memory <= ON_THIS_MACHINE
    assert found.gpus == ()


def test_an_interface_that_is_not_there_is_refused_with_those_that_are() -> None:
    hardware.check_interface("lo", "head.interface")
    with pytest.raises(
        InvalidInput, match=r"This host has no interface 'ib9' \(it has: .*lo \(127\."
    ) as e:
        hardware.check_interface("ib9", "network.interface")
    assert e.value.detail == "network.interface"


@pytest.mark.parametrize(
    "keys, key",
    [
        ({"network": {"interface": "ib9"}}, "network.interface"),
        ({"network": {"interface": "lo"}, "head": {"interface": "ib9"}}, "head.interface"),
        ({"network": {"interface": "ib9"}, "head": {"interface": "lo"}}, ""),
        ({"network": {"interface": "ib9"}, "head": {"placement": "job"}}, ""),
        ({"network": {"interface": "ib9"}, "backend": "local"}, ""),
        ({"network": {"interface": "ib9"}, "backend": "local", "launcher": "ssh"},
         "network.interface"),
    ],
)  # fmt: skip
def test_only_the_interface_that_a_head_here_listens_on_must_be_here(
    keys: dict[str, object], key: str
) -> None:
    profile = Profile.model_validate({"title": "x", "backend": "slurm", **keys})
    try:
        check_network(profile)
        named = ""
    except InvalidInput as error:
        named = error.detail
    assert named == key
