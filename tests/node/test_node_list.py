"""Host lists in all the forms in which batch systems tell them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpucluster.batch.variables import node_lists
from jupyter_gpucluster.node.node_list import allocation_hosts, expand, reader


def hosts_of(environ: dict[str, str]) -> list[tuple[str, int]]:
    return allocation_hosts(environ, node_lists())


@pytest.mark.parametrize(
    "text, hosts",
    [
        ("", []),
        ("g1", ["g1"]),
        ("g[1-3,5],c1", ["g1", "g2", "g3", "g5", "c1"]),
        ("nid[008-010]", ["nid008", "nid009", "nid010"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("rack[1-2]n[01-02]-ib", ["rack1n01-ib", "rack1n02-ib", "rack2n01-ib", "rack2n02-ib"]),
        ("a.example.org b.example.org\n", ["a.example.org", "b.example.org"]),
        ("fe80::1", ["fe80::1"]),
    ],
)
def test_compressed_lists_become_hosts_in_order(text: str, hosts: list[str]) -> None:
    assert expand(text) == hosts


@pytest.mark.parametrize(
    "text",
    [
        "g[1-3",
        "g1-3]",
        "g[]",
        "g[3-1]",
        "g[a-b]",
        "g[1-99999999999]",
        "g[1-9999][1-9999]",
        "-oProxyCommand=x",
        "a;b",
        "$(id)",
        "g[1-2]\x00",
    ],
)
def test_what_is_no_list_of_hosts_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"host|range"):
        expand(text)


@given(st.text(max_size=40))
def test_whatever_is_accepted_is_made_of_host_names(text: str) -> None:
    try:
        hosts = expand(text)
    except ValueError:
        return
    assert all(host[0] != "-" and not set(host) & set(" \n;$`'\"&|<>()") for host in hosts)


def test_slurm_tells_hosts_and_cores() -> None:
    environ = {"SLURM_JOB_NODELIST": "g[1-3]", "SLURM_JOB_CPUS_PER_NODE": "72(x2),36"}
    assert hosts_of(environ) == [("g1", 72), ("g2", 72), ("g3", 36)]
    assert hosts_of({"SLURM_JOB_NODELIST": "g[1-2]"}) == [("g1", 1), ("g2", 1)]


@pytest.mark.parametrize(
    "name", ["PBS_NODEFILE", "COBALT_NODEFILE", "OAR_NODEFILE", "LSB_DJOB_HOSTFILE"]
)
def test_node_files_hold_a_line_for_each_slot(name: str, tmp_path: Path) -> None:
    path = tmp_path / "nodes"
    path.write_text("n1\nn1\n\nn2\nn1\n")
    assert hosts_of({name: str(path)}) == [("n1", 3), ("n2", 1)]


def test_lsf_and_grid_engine_tell_slots(tmp_path: Path) -> None:
    assert hosts_of({"LSB_MCPU_HOSTS": "n1 4 n2 8"}) == [("n1", 4), ("n2", 8)]
    assert hosts_of({"LSB_HOSTS": "n1 n1 n2"}) == [("n1", 2), ("n2", 1)]
    path = tmp_path / "pe"
    path.write_text("n1.example.org 4 all.q@n1.example.org UNDEFINED\nn2.example.org 2 all.q x\n")
    found = hosts_of({"PE_HOSTFILE": str(path)})
    assert found == [("n1.example.org", 4), ("n2.example.org", 2)]


def test_outside_a_job_there_are_no_hosts(tmp_path: Path) -> None:
    assert hosts_of({}) == []
    with pytest.raises(ValueError, match="PBS_NODEFILE"):
        hosts_of({"PBS_NODEFILE": str(tmp_path / "none")})


def test_a_node_file_cannot_slip_an_option_to_ssh(tmp_path: Path) -> None:
    path = tmp_path / "nodes"
    path.write_text("-oProxyCommand=touch\n")
    with pytest.raises(ValueError, match="not the name of a host"):
        hosts_of({"PBS_NODEFILE": str(path)})


def test_a_job_s_script_gets_its_hosts_in_the_form_that_it_asks_for(tmp_path: Path) -> None:
    copy = tmp_path / "hostlists.py"
    copy.write_text(reader(node_lists()))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, copy, *arguments],
            env={"LSB_MCPU_HOSTS": "batch5 1 a01 42 a02 42"},
            capture_output=True,
            text=True,
        )

    assert run("2", "{} slots=6").stdout == "a01 slots=6\na02 slots=6\n"
    assert run("4", "{}").returncode == 1
    assert "it requested 4" in run("4", "{}").stderr
