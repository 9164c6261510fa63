"""Every REST route: allowed, not logged in, not authorized, bad input, unknown, wrong phase."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp

from jupyter_gpucluster.batch.status_cache import CALLS_PER_MINUTE
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Target
from jupyter_gpucluster.core.errors import StateError
from jupyter_gpucluster.launch.request import Request
from jupyter_gpucluster.server import notebooks
from jupyter_gpucluster.server.api import ApiHandler
from jupyter_gpucluster.server.async_clusters import AsyncClusters
from jupyter_gpucluster.server.bodies import MAXIMUM_BODY
from jupyter_gpucluster.server.routes import ROUTES
from jupyter_gpucluster.state.control_client import Endpoint
from tests.server.conftest import Allowing, Ask
from tests.server.doubles import LOST, RUNNING, STARTING, STOPPED, InMemoryClusters

API = "gpucluster/api/"

# Each verb of each route with a request that works; the tests below run over all of them.
REQUESTS: list[tuple[str, str, Any, int]] = [
    ("GET", "profiles", None, 200),
    ("GET", "profiles/local", None, 200),
    ("GET", "profiles/local/capacity", None, 200),
    ("GET", "profiles/local/values", None, 200),
    ("POST", "profiles/local/script", {"workers": 2}, 200),
    ("POST", "profiles/local/check", {"minimum": 1, "maximum": 2}, 200),
    ("GET", "environments", None, 200),
    ("GET", "clusters", None, 200),
    ("POST", "clusters", {"profile": "local"}, 201),
    ("GET", f"clusters/{RUNNING}", None, 200),
    ("PATCH", f"clusters/{RUNNING}", {"target": {"workers": 3}}, 200),
    ("DELETE", f"clusters/{RUNNING}", None, 202),
    ("GET", f"clusters/{RUNNING}/jobs", None, 200),
    ("GET", f"clusters/{RUNNING}/workers", None, 200),
    ("GET", f"clusters/{RUNNING}/logs", None, 200),
    ("GET", f"clusters/{RUNNING}/events", None, 200),
    ("GET", f"clusters/{RUNNING}/scripts", None, 200),
    ("GET", f"clusters/{RUNNING}/why", None, 200),
    ("GET", f"clusters/{RUNNING}/client-code", None, 200),
    ("GET", "setup", None, 200),
    ("POST", "setup", {"profile": "slurm-gpu"}, 200),
    ("GET", "notebooks", None, 200),
    ("POST", "notebooks/parallel_sum", {"directory": ""}, 201),
    ("GET", "health", None, 200),
]
ACTIONS = {"GET": "read", "POST": "write", "PATCH": "write", "DELETE": "write"}
VERBS = ("get", "head", "post", "put", "patch", "delete")


def api_routes() -> list[tuple[str, type[ApiHandler]]]:
    return [(p, h) for p, h, _ in ROUTES if issubclass(h, ApiHandler)]


def verbs(handler: type[ApiHandler]) -> list[str]:
    """Return the verbs that a handler has of its own, not from tornado, which answers 405."""
    return [v.upper() for v in VERBS if getattr(handler, v).__module__.startswith("jupyter_gpu")]


def route_of(path: str) -> str:
    [found] = [p for p, _ in api_routes() if re.fullmatch(p, API + path)]
    return found


def test_the_table_of_requests_has_every_verb_of_every_route() -> None:
    tried = {(route_of(path), method) for method, path, *_ in REQUESTS}
    assert tried == {(p, verb) for p, handler in api_routes() for verb in verbs(handler)}


def test_the_double_has_the_calls_of_the_real_clusters() -> None:
    for name, call in inspect.getmembers(InMemoryClusters, inspect.iscoroutinefunction):
        if not name.startswith("_"):
            real = inspect.signature(getattr(Clusters, name))
            assert str(inspect.signature(call)) == str(real), name
            assert inspect.iscoroutinefunction(getattr(AsyncClusters, name))


async def test_nobody_is_answered_without_logging_in(ask: Ask, authorizer: type[Allowing]) -> None:
    for method, path, body, _ in REQUESTS:
        answer = await ask(API + path, method, body, token=False)
        assert answer.status == 403, (method, path)
        assert set(answer.json) == {"message", "hint", "detail"}
    assert not authorizer.asked


async def test_an_authorizer_is_asked_by_action_and_may_refuse(
    ask: Ask, authorizer: type[Allowing]
) -> None:
    authorizer.allowed = frozenset()
    for method, path, body, _ in REQUESTS:
        authorizer.asked.clear()
        answer = await ask(API + path, method, body)
        assert answer.status == 403, (method, path)
        assert authorizer.asked == [(ACTIONS[method], "gpucluster")], (method, path)


@pytest.mark.parametrize("action", ["read", "write"])
async def test_who_may_do_one_thing_may_not_do_another(
    ask: Ask, authorizer: type[Allowing], action: str
) -> None:
    authorizer.allowed = frozenset({(action, "gpucluster"), ("write", "contents")})
    for method, path, body, status in REQUESTS:
        expected = status if ACTIONS[method] == action else 403
        assert (await ask(API + path, method, body)).status == expected, (method, path)


async def test_copying_a_notebook_needs_the_right_to_write_files(
    ask: Ask, authorizer: type[Allowing]
) -> None:
    authorizer.allowed = frozenset({("write", "gpucluster")})
    answer = await ask(API + "notebooks/parallel_sum", "POST", {})
    assert answer.status == 403
    assert authorizer.asked[-1] == ("write", "contents")


async def test_a_browser_needs_the_xsrf_token_to_change_anything(
    ask: Ask, jp_serverapp: ServerApp
) -> None:
    token = jp_serverapp.identity_provider.token
    page = await ask(f"tree?token={token}", token=False)
    cookies = [c.split(";")[0] for c in page.headers.get_list("Set-Cookie")]
    browser = {"Cookie": "; ".join(cookies)}
    [xsrf] = [c.partition("=")[2] for c in cookies if c.startswith("_xsrf=")]
    for method, path, body, status in REQUESTS:
        if method == "GET":
            continue
        bare = await ask(API + path, method, body, token=False, headers=browser)
        assert bare.status == 403, (method, path)
        assert "_xsrf" in bare.json["message"]
        full = {**browser, "X-XSRFToken": xsrf}
        answer = await ask(API + path, method, body, token=False, headers=full)
        assert answer.status == status, (method, path)


async def test_another_site_is_not_answered(ask: Ask, jp_serverapp: ServerApp) -> None:
    token = jp_serverapp.identity_provider.token
    page = await ask(f"tree?token={token}", token=False)
    cookies = "; ".join(c.split(";")[0] for c in page.headers.get_list("Set-Cookie"))
    elsewhere = {"Cookie": cookies, "Origin": "https://elsewhere.example"}
    for method, path, body, _ in REQUESTS:
        answer = await ask(API + path, method, body, token=False, headers=elsewhere)
        assert answer.status in (403, 404), (method, path)
        assert "Access-Control-Allow-Origin" not in answer.headers


async def test_only_what_changes_something_counts_as_activity(
    ask: Ask, jp_serverapp: ServerApp
) -> None:
    settings = jp_serverapp.web_app.settings
    for method, path, body, _ in REQUESTS:
        before = settings.get("api_last_activity")
        await ask(API + path, method, body)
        counted = settings.get("api_last_activity") != before
        assert counted is (method != "GET"), (method, path)
    assert not settings.get("last_activity_times")


async def test_other_verbs_are_refused_in_json(ask: Ask) -> None:
    for path in {request[1] for request in REQUESTS}:
        answer = await ask(API + path, "PUT", {})
        assert answer.status == 405, path
        told = set(answer.headers["Allow"].split(", "))
        assert told == {m for m, p, *_ in REQUESTS if p == path} | {"OPTIONS"}, path
        assert answer.json["message"]


@pytest.mark.parametrize(
    "unknown", ["c-nobody", "..%2F..%2Fetc", "%00", "a%0Ab", "x" * 300, "%F0%9F%92%A5", "..", "%ff"]
)
async def test_an_unknown_cluster_is_not_found(ask: Ask, unknown: str) -> None:
    for method, path, body, _ in REQUESTS:
        if RUNNING in path:
            answer = await ask(API + path.replace(RUNNING, unknown), method, body)
            assert answer.status == (400 if unknown == "%ff" else 404), (method, path)
            assert answer.json["message"]


BAD_BODIES = [
    ("", 422, "profile"),
    ("{", 400, ""),
    ("[]", 400, ""),
    ("null", 400, ""),
    ('{"profile": NaN}', 400, ""),
    ("[" * 50_000, 400, ""),
    (b"\xff", 400, ""),
    ({}, 422, "profile"),
    ({"profile": 1}, 422, "profile"),
    ({"profile": None}, 422, "profile"),
    ({"profile": "local", "worker": 2}, 422, "worker"),
    ({"profile": "local", "target": {"workers": "2"}}, 422, "target.workers"),
    ({"profile": "local", "target": {"workers": 1.5}}, 422, "target.workers"),
    ({"profile": "local", "target": {"workers": True}}, 422, "target.workers"),
    ({"profile": "local", "target": {"workers": 2, "minimum": 1}}, 422, "target.workers"),
    ({"profile": "local", "target": {"minimum": 1}}, 422, "target.workers"),
    ({"profile": "local", "target": {}}, 422, "target"),
    ({"profile": "local", "target": 2}, 422, "target"),
    ({"profile": "local", "target": {"workers": 9}}, 422, "target"),
    ({"profile": "local", "options": []}, 422, "options"),
    ({"profile": "elsewhere"}, 404, ""),
    ({"profile": "x" * MAXIMUM_BODY}, 413, ""),
]


async def test_a_bad_start_is_refused_with_the_field(ask: Ask, clusters: InMemoryClusters) -> None:
    for body, status, field in BAD_BODIES:
        answer = await ask(API + "clusters", "POST", body)
        assert (answer.status, answer.json["detail"]) == (status, field), str(body)[:80]
        assert answer.json["message"]
    assert not clusters.started


async def test_a_start_answers_where_the_cluster_is(
    ask: Ask, clusters: InMemoryClusters, jp_base_url: str
) -> None:
    body: dict[str, Any] = {
        "profile": "local",
        "name": "mine",
        "target": {"minimum": 1, "maximum": 4},
        "options": {"account": "m1"},
        "kernel": "python3",
        "allocation": "7",
        "request_id": "r1",
    }
    answer = await ask(API + "clusters", "POST", body)
    assert answer.headers["Location"] == f"{jp_base_url}{API}clusters/c%20new%2F1"
    assert answer.json["id"] == "c new/1"
    assert answer.json["phase"] == "starting"
    assert clusters.started == [Request(**{**body, "target": Target(1, 4)})]
    again = await ask(answer.headers["Location"].removeprefix(jp_base_url))
    assert again.json == answer.json


async def test_a_list_has_the_ended_ones_only_when_asked(ask: Ask, jp_base_url: str) -> None:
    alive = (await ask(API + "clusters")).json["clusters"]
    everything = (await ask(API + "clusters?ended=1")).json["clusters"]
    assert [c["id"] for c in alive] == [RUNNING, STARTING, LOST]
    assert [c["id"] for c in everything] == [RUNNING, STARTING, STOPPED, LOST]
    dashboards = {c["id"]: c["dashboard"] for c in everything}
    assert dashboards == {
        RUNNING: f"{jp_base_url}gpucluster/dashboard/{RUNNING}/",
        STARTING: None,
        STOPPED: None,
        LOST: None,
    }


async def test_a_flag_is_one_or_nought(ask: Ask) -> None:
    for value in ("yes", "2", ""):
        answer = await ask(API + f"clusters?ended={value}")
        assert (answer.status, answer.json["detail"]) == (422, "ended"), value


async def test_a_wrong_flag_forgets_nothing(ask: Ask, clusters: InMemoryClusters) -> None:
    answer = await ask(API + f"clusters/{STOPPED}?force=maybe", "DELETE")
    assert (answer.status, answer.json["detail"]) == (422, "force")
    assert STOPPED in clusters.views


async def test_a_number_of_lines_is_a_number(ask: Ask) -> None:
    for value in ("0", "-1", "1.5", "a", "", "999999", "9" * 400, "%EF%BC%91"):
        answer = await ask(API + f"clusters/{RUNNING}/logs?lines={value}")
        assert (answer.status, answer.json["detail"]) == (422, "lines"), value


async def test_logs_are_of_the_job_asked_for(ask: Ask) -> None:
    answer = await ask(API + f"clusters/{RUNNING}/logs?job=17&lines=20")
    assert answer.json == {"text": "==> head.log <==\n17 20\n"}


BAD_CHANGES = [
    ({}, 422, ""),
    ({"name": None}, 422, ""),
    ({"name": 1}, 422, "name"),
    ({"target": {"workers": 0}}, 422, "target"),
    ({"target": {"minimum": 3, "maximum": 1}}, 422, "target"),
    ({"phase": "running"}, 422, "phase"),
]


async def test_a_bad_change_is_refused(ask: Ask) -> None:
    for body, status, field in BAD_CHANGES:
        answer = await ask(API + f"clusters/{RUNNING}", "PATCH", body)
        assert (answer.status, answer.json["detail"]) == (status, field), body


async def test_a_change_is_answered_with_the_cluster(ask: Ask) -> None:
    body = {"name": "other", "target": {"minimum": 1, "maximum": 5}}
    answer = await ask(API + f"clusters/{RUNNING}", "PATCH", body)
    assert answer.json["name"] == "other"
    assert answer.json["target"] == {"minimum": 1, "maximum": 5}


async def test_a_worker_is_given_back_or_restarted_and_a_cluster_kept(
    ask: Ask, clusters: InMemoryClusters
) -> None:
    for change in ({"drop": "one"}, {"restart": "another"}, {"keep": True}):
        assert (await ask(API + f"clusters/{RUNNING}", "PATCH", change)).status == 200
    assert clusters.changed == ["one", "another", "kept"]


async def test_an_ended_cluster_is_not_changed_connected_to_or_measured(ask: Ask) -> None:
    for method, path, body in (
        ("PATCH", f"clusters/{STOPPED}", {"name": "other"}),
        ("GET", f"clusters/{STOPPED}/client-code", None),
        ("POST", "notebooks/parallel_sum", {"cluster": STOPPED}),
    ):
        answer = await ask(API + path, method, body)
        assert answer.status == 409, path
        assert answer.json["message"]
        assert answer.json["hint"]


async def test_a_head_that_hangs_is_ended_by_force(ask: Ask) -> None:
    ended = await ask(API + f"clusters/{RUNNING}?force=1", "DELETE")
    assert (ended.status, ended.json["phase"]) == (202, "stopped")


async def test_deleting_stops_first_and_forgets_once_ended(
    ask: Ask, clusters: InMemoryClusters
) -> None:
    stopping = await ask(API + f"clusters/{RUNNING}", "DELETE")
    assert (stopping.status, stopping.json["phase"]) == (202, "stopping")
    forgotten = await ask(API + f"clusters/{STOPPED}", "DELETE")
    assert (forgotten.status, forgotten.body) == (204, b"")
    assert STOPPED not in clusters.views
    assert (await ask(API + f"clusters/{STOPPED}", "DELETE")).status == 404


async def test_a_check_names_the_field_and_starts_nothing(
    ask: Ask, clusters: InMemoryClusters
) -> None:
    good = await ask(API + "profiles/local/check", "POST", {"workers": 2})
    bad = await ask(API + "profiles/local/check", "POST", {"workers": 2, "options": {"x": 1}})
    assert good.json == {"ok": True, "problems": []}
    assert bad.json["ok"] is False
    assert bad.json["problems"][0]["field"] == "options.x"
    assert not clusters.started


NOWHERE: list[tuple[str, str, Any]] = [
    ("GET", "profiles/nowhere", None),
    ("POST", "profiles/nowhere/check", {}),
    ("GET", "profiles/..%2F..%2Fetc%2Fpasswd", None),
    ("POST", "notebooks/nothing", {}),
    ("POST", "notebooks/..%2F..%2Fsecret", {}),
]


async def test_what_does_not_exist_is_not_found(ask: Ask) -> None:
    for method, path, body in NOWHERE:
        answer = await ask(API + path, method, body)
        assert answer.status == 404, path
        assert answer.json["message"]


async def test_our_errors_own_their_status(ask: Ask, clusters: InMemoryClusters) -> None:
    clusters.broken = StateError("The disk is full.", hint="Make room.", detail="/home")
    answer = await ask(API + "clusters")
    assert answer.status == 507
    assert answer.json == {"message": "The disk is full.", "hint": "Make room.", "detail": "/home"}


async def test_an_unexpected_error_stays_in_the_log(
    ask: Ask, clusters: InMemoryClusters, caplog: pytest.LogCaptureFixture
) -> None:
    clusters.broken = RuntimeError("a secret")
    answer = await ask(API + "clusters")
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert answer.json["hint"]
    assert "a secret" in caplog.text


async def health(ask: Ask) -> tuple[bool, list[str]]:
    told = (await ask(API + "health")).json
    return told["ok"], [p["message"] for p in told["problems"]]


async def test_health_says_what_is_wrong(ask: Ask, clusters: InMemoryClusters, head: int) -> None:
    del clusters.views[LOST]
    assert await health(ask) == (True, [])
    well = (await ask(API + "health")).json
    assert well["version"]
    assert well["calls_per_minute"] == CALLS_PER_MINUTE
    clusters.damage = True
    assert await health(ask) == (False, ["A record is damaged."])
    clusters.damage = False
    clusters.unwritable = StateError("The disk is full.", hint="Make room.")
    assert await health(ask) == (False, ["The disk is full."])
    clusters.unwritable = None
    clusters.broken = StateError("The disk is gone.", hint="Find it.")
    assert await health(ask) == (False, ["The disk is gone."])


async def test_health_names_clusters_that_nobody_can_tell_of(
    ask: Ask, clusters: InMemoryClusters, head: int
) -> None:
    ok, messages = await health(ask)
    assert (ok, messages) == (False, [f"Cluster name of {LOST} is unreachable."])
    del clusters.views[LOST]
    since = time.time() - 600
    clusters.views[RUNNING] = dataclasses.replace(clusters.views[RUNNING], stale_since=since)
    ok, [message] = await health(ask)
    assert not ok
    assert message.startswith(f"The batch system of cluster name of {RUNNING}")
    assert "10 min" in message


async def test_health_names_a_head_that_does_not_answer(
    ask: Ask, clusters: InMemoryClusters
) -> None:
    del clusters.views[LOST]
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        clusters.endpoints[RUNNING] = Endpoint("127.0.0.1", silent.getsockname()[1], "t")
        assert await health(ask) == (
            False,
            [f"The scheduler process of cluster name of {RUNNING} does not answer."],
        )


async def test_a_notebook_is_copied_beside_others_and_never_over_them(
    ask: Ask, jp_root_dir: Path
) -> None:
    (jp_root_dir / "my work").mkdir()
    listed = {n["name"]: n["title"] for n in (await ask(API + "notebooks")).json["notebooks"]}
    assert listed["parallel_sum"] not in ("", "parallel_sum")
    paths = [
        (await ask(API + "notebooks/parallel_sum", "POST", {"directory": "my work"})).json["path"]
        for _ in range(2)
    ]
    assert paths == ["my work/parallel_sum.ipynb", "my work/parallel_sum1.ipynb"]
    shipped = json.loads((notebooks.FOLDER / "parallel_sum.ipynb").read_text())
    for path in paths:
        copied = json.loads((jp_root_dir / path).read_text())
        assert [c["source"] for c in copied["cells"]] == [c["source"] for c in shipped["cells"]]


async def test_every_notebook_is_copied_to_measure_a_cluster(
    ask: Ask, jp_root_dir: Path, clusters: InMemoryClusters
) -> None:
    counts = dataclasses.replace(clusters.views[RUNNING].workers, ready=7)
    clusters.views[RUNNING] = dataclasses.replace(clusters.views[RUNNING], workers=counts)
    for name in notebooks.bundled():
        answer = await ask(API + f"notebooks/{name}", "POST", {"cluster": RUNNING})
        copied = json.loads((jp_root_dir / answer.json["path"]).read_text())
        [code] = [
            "".join(cell["source"])
            for cell in copied["cells"]
            if "parameters" in cell["metadata"].get("tags", ())
        ]
        values: dict[str, Any] = {}
        exec(code, values)  # noqa: S102  # the package's own notebook
        assert (values["cluster_name"], values["workers"]) == (f"name of {RUNNING}", 7)
        assert "  # number of workers" in code


async def test_no_notebook_is_copied_to_measure_what_is_not_there(
    ask: Ask, jp_root_dir: Path
) -> None:
    for cluster, status in ((STOPPED, 409), ("nobody", 404)):
        answer = await ask(API + "notebooks/parallel_sum", "POST", {"cluster": cluster})
        assert answer.status == status
    assert not notebooks_in(jp_root_dir)


@pytest.mark.parametrize("directory", ["nowhere", "../..", "a/../../..", "\x00"])
async def test_a_notebook_goes_only_into_folders_that_jupyter_shows(
    ask: Ask, jp_root_dir: Path, directory: str
) -> None:
    answer = await ask(API + "notebooks/parallel_sum", "POST", {"directory": directory})
    assert answer.status in (404, 422)
    assert not notebooks_in(jp_root_dir)


def notebooks_in(folder: Path) -> list[Path]:
    return list(folder.rglob("*.ipynb"))
