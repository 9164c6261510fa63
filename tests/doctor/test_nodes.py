"""Findings about the nodes of a job, from the answers of its ranks."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_gpucluster.doctor.findings import Finding, Report, Result, failed
from jupyter_gpucluster.doctor.nodes import judge
from jupyter_gpucluster.doctor.reach import Expected, here_to_nodes, logins

GIB = 2**30
HOME = {"eth0": "10.0.0.7", "ib0": "10.9.0.7"}
REACHED = {"trouble": "", "ahead": 0.1}
CLOSED = {"trouble": "no answer within 5 s"}


def expected(**changes: Any) -> Expected:
    usual: dict[str, Any] = {
        "ranks": 2,
        "nodes": 2,
        "interfaces": HOME,
        "usual": "10.0.0.7",
        "versions": {"python": "3.11.7", "distributed": "2026.8.0"},
        "python": "/env/python",
    }
    return Expected(**{**usual, **changes})


def an_answer(host: str = "c1", **changes: Any) -> dict[str, Any]:
    answer = {
        "host": host,
        "interfaces": {"lo": "127.0.0.1", "ib0": f"10.9.1.{host[1:]}"},
        "usual": f"10.9.1.{host[1:]}",
        "file_system": "lustre",
        "home": {"10.0.0.7": REACHED, "10.9.0.7": REACHED},
        "local_directory": {
            "path": "/scratch",
            "trouble": "",
            "file_system": "xfs",
            "free": 900 * GIB,
        },
        "open_files": [51200, 51200],
        "gpus": {"visible": None, "driver": False, "listed": [], "trouble": "no nvidia-smi"},
        "missing": [],
        "imports": {
            "versions": {"python": "3.11.9", "distributed": "2026.8.0"},
            "troubles": {},
            "seconds": 2.2,
        },
        "neighbour": {"host": "c2", "address": "10.9.1.2", "trouble": ""},
    }
    return {**answer, **changes}


def findings(of: Expected, *answers: dict[str, Any]) -> dict[str, Finding]:
    told = judge(of, {str(number): answer for number, answer in enumerate(answers)})
    return {finding.check: finding for finding in told}


def test_a_healthy_job_has_one_finding_a_check_with_all_its_nodes() -> None:
    found = findings(expected(), an_answer("c1"), an_answer("c2"))
    assert {finding.result for finding in found.values()} == {Result.OK}
    assert found["shared directory"].found == "c1, c2: seen, and written to (lustre)."
    assert found["imports there"].found.startswith("c1, c2: distributed imported in 2.0 s")
    assert "clocks" not in found


def test_no_answer_has_no_findings() -> None:
    assert judge(expected(), {}) == []


def test_an_address_that_all_nodes_reach_is_what_to_name() -> None:
    halves = {"10.0.0.7": CLOSED, "10.9.0.7": REACHED}
    found = findings(expected(), an_answer("c1"), an_answer("c2", home=halves))["nodes to here"]
    assert found.result is Result.FAILED
    assert "eth0 (10.0.0.7): no answer within 5 s from c2, ib0 (10.9.0.7): reached" in found.found
    assert found.way_out == "Set head.interface: ib0 (10.9.0.7), which all of them reach."


def test_the_named_interface_is_the_one_that_counts() -> None:
    halves = {"10.0.0.7": CLOSED, "10.9.0.7": REACHED}
    named = expected(head_interface="ib0", interface="eth0")
    assert findings(named, an_answer(home=halves))["nodes to here"].result is Result.OK
    assert findings(expected(interface="eth0"), an_answer(home=halves))["nodes to here"].way_out


def test_where_no_address_is_reached_the_head_belongs_into_a_job() -> None:
    deaf = {"10.0.0.7": CLOSED, "10.9.0.7": {"trouble": "another server answers there"}}
    found = findings(expected(), an_answer(home=deaf))["nodes to here"]
    assert (found.result, "head.placement: job" in found.way_out) == (Result.FAILED, True)
    in_job = findings(expected(in_job=True), an_answer(home=deaf))["nodes to here"]
    assert in_job.result is Result.OK


@pytest.mark.parametrize(
    "gpus, result, words",
    [
        ({"visible": "0,1", "driver": True, "listed": []}, Result.OK, "2 requested, and there"),
        ({"visible": "", "driver": True, "listed": []}, Result.FAILED, "0 of 2 requested"),
        ({"visible": "NoDevFiles", "driver": True, "listed": []}, Result.FAILED, "0 of 2"),
        ({"visible": "0", "driver": True, "listed": []}, Result.FAILED, "1 of 2 requested"),
        ({"visible": "0,1,2", "driver": True, "listed": []}, Result.WARNING, "start on all"),
        ({"visible": "0,1", "driver": False, "listed": []}, Result.FAILED, "no NVIDIA driver"),
        (
            {
                "visible": None,
                "driver": True,
                "listed": [f"GPU {n}: NVIDIA H100 (UUID: GPU-{n}a)" for n in range(2)],
            },
            Result.OK,
            "(NVIDIA H100)",
        ),
    ],
)
def test_gpus_are_counted_against_what_a_rank_was_to_get(
    gpus: dict[str, Any], result: Result, words: str
) -> None:
    answer = an_answer(gpus={"trouble": "", **gpus})
    found = findings(expected(gpus=2), answer)["GPUs there"]
    assert (found.result, words in found.found) == (result, True)


@pytest.mark.parametrize(
    "changes, result, fix",
    [
        ({"trouble": "/x: Permission denied"}, Result.FAILED, "Correct workers.local_directory"),
        ({"file_system": "nfs4"}, Result.WARNING, "a disk of the node"),
        ({"file_system": "tmpfs"}, Result.WARNING, "a disk of the node"),
        ({"free": 1000}, Result.WARNING, "with free space"),
    ],
)
def test_data_that_does_not_fit_belongs_on_a_disk_of_the_node(
    changes: dict[str, Any], result: Result, fix: str
) -> None:
    answer = an_answer()
    answer["local_directory"] = {**answer["local_directory"], **changes}
    found = findings(expected(), answer)["local directory"]
    assert (found.result, fix in found.way_out) == (result, True)


def test_what_one_node_lacks_is_told_of_that_node() -> None:
    answers = (
        an_answer("c1", neighbour={"host": "c2", "address": "10.9.1.2", **CLOSED}),
        an_answer("c2", open_files=[256, 4096], missing=["sbatch"], interfaces={}),
    )
    told = judge(expected(interface="ib0"), dict(zip("ab", answers, strict=True)))
    bad = {finding.check: finding for finding in told if finding.result is not Result.OK}
    assert (
        bad["node to node"].found == "c1: c2 cannot be reached at 10.9.1.2: no answer within 5 s."
    )
    assert bad["network there"].found.startswith("c2: No interface 'ib0' has")
    assert "ulimit -n 1024" in bad["open files there"].way_out
    assert "head.submit: relay" in bad["commands there"].way_out


def test_another_dask_on_the_nodes_is_refused_and_a_wrong_clock_told() -> None:
    imports = {"versions": {"distributed": "2026.7.1"}, "troubles": {}, "seconds": 1.0}
    home = {"10.0.0.7": {"trouble": "", "ahead": 300.0}}
    found = findings(expected(), an_answer(imports=imports, home=home))
    assert found["versions there"].result is Result.FAILED
    words = "distributed 2026.7.1 in jobs; distributed 2026.8.0 in the scheduler"
    assert words in found["versions there"].found
    assert found["clocks"].found.startswith("c1: The clock is 300 s behind this host")


def test_a_client_must_reach_the_scheduler_of_a_job() -> None:
    assert here_to_nodes({}) is None
    reached = here_to_nodes({"c1": {"10.9.1.1": "", "192.168.0.1": "no route"}})
    closed = here_to_nodes({"c1": {"10.9.1.1": "Connection refused"}})
    assert reached is not None
    assert closed is not None
    assert (reached.result, closed.result) == (Result.OK, Result.FAILED)


@pytest.mark.parametrize(
    "troubles, result, fix",
    [
        ({"c2": "ada@c2: Permission denied (publickey)."}, Result.FAILED, "ssh -A"),
        ({"c1": "Host key verification failed."}, Result.FAILED, "accept-new"),
        ({}, Result.OK, ""),
    ],
)
def test_ssh_that_asks_for_a_password_is_a_failure_with_a_fix(
    troubles: dict[str, str], result: Result, fix: str
) -> None:
    finding = logins(["c1", "c2"], troubles, failed)
    assert finding is not None
    assert (finding.result, fix in finding.way_out) == (result, True)
    assert all(words in finding.found for words in troubles.values())


def test_logins_that_were_not_tried_have_no_finding() -> None:
    assert logins([], {}, failed) is None


def test_a_report_is_as_bad_as_its_worst_line_and_shows_each_fix() -> None:
    bad = Finding("GPUs", Result.FAILED, "None.", "Ask for some.", "$ sbatch\nno")
    report = Report("profile x", "login1", (Finding("profile", Result.OK, "Fine."), bad))
    assert report.result is Result.FAILED
    assert report.lines() == [
        "ok       profile  Fine.",
        "failed   GPUs     None.",
        "                  fix: Ask for some.",
        "                  | $ sbatch",
        "                  | no",
        "",
        "2 checks of profile x on login1, 1 failed.",
    ]
    assert report.as_json()["checks"][1]["way_out"] == "Ask for some."
