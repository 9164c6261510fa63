"""``profiles``, ``script PROFILE``, ``start PROFILE`` and ``run SCRIPT``."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BackendError, GpuClusterError, InvalidInput
from ...core.serialize import to_json
from ...node import run_script as runner
from ...state.control_client import ask
from ..arguments import Parser, add_request, default_profile, request_from
from ..describe import named, remarks, state
from ..output import Block, Outcome, Session, Table, Text, counted, gpu_hours
from ..waiting import Signals, add_wait, own_cluster, wait_ready

if TYPE_CHECKING:
    from ...state.view import ClusterView


def add_profiles(parser: Parser) -> None:
    """Add the arguments of ``profiles``."""
    parser.flag("--capacity", "also show the number of free GPUs of each")
    everywhere = "also list the profiles of public sites that this machine is not at"
    parser.flag("--everywhere", everywhere)
    check = "check these files, also before they are installed; exit code 1 if one has an error"
    parser.add_argument("--check", nargs="+", metavar="FILE", help=check)
    parser.flag("--effective", "show each value of site settings and profiles, and its file")


def run_profiles(arguments: argparse.Namespace, session: Session) -> Outcome:
    """List profiles, or check files."""
    if arguments.check:
        return _check(arguments.check)
    from ...doctor.batch_system import without_profile
    from ...launch.profile_catalog import effective_values, places  # with pydantic and YAML

    if arguments.effective:
        rows = tuple((name or "(site)", *rest) for name, *rest in effective_values())
        keys = ("profile", "key", "value", "file")
        table = Table(("PROFILE", "KEY", "VALUE", "FILE"), rows, empty="no values")
        return Outcome({"values": [dict(zip(keys, row, strict=True)) for row in rows]}, (table,))
    found = places(elsewhere=arguments.everywhere)
    if arguments.capacity:
        for profile in found["profiles"]:
            profile["capacity"] = _capacity(profile["name"], session)
    rows = tuple(
        (
            profile["name"],
            profile["title"],
            profile["backend"],
            str(profile["gpus_per_job"]),
            _limits(profile),
            *([profile["capacity"]["words"]] if arguments.capacity else []),
            profile["words"],
            profile["source"],
        )
        for profile in found["profiles"]
    )
    free = ("FREE",) if arguments.capacity else ()
    headings = ("NAME", "TITLE", "BACKEND", "GPUS/JOB", "LIMITS", *free, "WORKERS", "SOURCE")
    blank = ["-"] * (len(headings) - 3)
    rows += tuple(
        (broken["name"], "cannot be started: see problems", *blank, broken["file"])
        for broken in found["broken"]
    )
    blocks: list[Block] = [Table(headings, rows, empty="no profiles")]
    if found["announcement"]:
        blocks.insert(0, Text(found["announcement"]))
    if found["problems"]:
        blocks.append(Text(_lines(found["problems"]), title="Problems"))
    if unused := without_profile():
        words = f"No profile uses {' or '.join(unused)}. To write some: {session.program} setup"
        blocks.append(Text(words))
    return Outcome(found, tuple(blocks))


def _check(files: Sequence[str]) -> Outcome:
    """Check profile files; what the next release refuses is among the warnings."""
    from ...profiles.search import check_file

    blocks: list[Block] = []
    checked: list[dict[str, Any]] = []
    for file in files:
        problems = to_json(check_file(Path(file)))
        ok = all(problem["severity"] != "error" for problem in problems)
        checked.append({"file": file, "ok": ok, "problems": problems})
        blocks.append(Text(f"{file}: {'ok' if ok else 'error'}\n{_lines(problems)}"))
    code = 0 if all(each["ok"] for each in checked) else 1
    return Outcome({"files": checked}, tuple(blocks), exit_code=code)


def _lines(problems: Sequence[dict[str, Any]]) -> str:
    return "\n".join(
        f"{p['severity']}: {p['file']}:{p['line']}:{p['column']}: {p['message']}" for p in problems
    )


def _capacity(name: str, session: Session) -> dict[str, Any]:
    """Return the free GPUs of a profile; an error must not hide the other profiles."""
    try:
        return session.clusters.capacity(name)
    except BackendError as error:
        return {"partitions": [], "words": error.message}


def _limits(profile: dict[str, Any]) -> str:
    limits, nouns = profile["limits"], {"workers": profile["unit"], "clusters": "clusters"}
    parts = [counted(limits[key], noun) for key, noun in nouns.items() if limits[key] is not None]
    return ", ".join(parts) or "-"


def add_start(parser: Parser) -> None:
    """Add the arguments of ``start``."""
    parser.add_argument("profile", metavar="PROFILE", help="a profile; see the command profiles")
    parser.add_argument("--name", help="name of the cluster (default: the profile's and a number)")
    reuse = "use the cluster of this name if it has the same profile and options, else start it"
    parser.flag("--reuse", reuse)
    add_request(parser)
    add_wait(parser, "all workers are ready")


def run_start(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Start the cluster, and wait for its workers with ``--wait``."""
    request = request_from(
        arguments, arguments.profile, session, name=arguments.name, reuse=arguments.reuse
    )
    began = time.time()
    view = session.clusters.start(request)
    if arguments.reuse and view.created < began:
        session.note(f"uses cluster {view.name}, which runs with the same profile and options")
    for event in session.clusters.events(view.id):
        if event.kind == "start":
            session.note(event.message)
    if arguments.wait is not None:
        session.note(f"started cluster {view.name}")
    view, failed = wait_ready(view, arguments.wait, session, "continues", view.target)
    if failed is not None:
        return failed
    hours = view.gpu_hours_estimate
    most = "" if hours is None else f"uses:    at most {gpu_hours(hours)}\n"
    where = f"inside:  {view.allocation}\n" if view.allocation else ""
    text = (
        f"{view.name}: {'; '.join((state(view), *remarks(view)))}\n{most}{where}"
        f"connect: {session.program} connect {view.name}\n"
        f"stop:    {session.program} stop {view.name}"
    )
    return Outcome(to_json(view), (Text(text, code=True),), clusters=named(view))


def add_script(parser: Parser) -> None:
    """Add the arguments of ``script``."""
    parser.add_argument("profile", metavar="PROFILE", help="a profile; see the command profiles")
    add_request(parser)


def run_script(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Print script and submit command."""
    script = session.clusters.script(request_from(arguments, arguments.profile, session))
    remarks = [f"# submitted with: {script.command}"]
    if script.gpu_hours_estimate is not None:
        remarks.append(f"# uses at most {gpu_hours(script.gpu_hours_estimate)}")
    if script.survival:
        remarks.append(f"# without Jupyter: {script.survival}")
    if script.interactive:
        remarks.append(f"# interactive equivalent: {script.interactive}")
    blocks = (Text(script.text, code=True), Text("\n".join(remarks), code=True))
    return Outcome(to_json(script), blocks)


RUNNER = str(runner.__file__)
"""A file, since the cluster's Python may lack this package."""


def add_run(parser: Parser) -> None:
    """Add the arguments of ``run``."""
    parser.usage = f"{parser.prog} SCRIPT [OPTIONS] [-- ARGS]"
    parser.passes_on = True
    script = "a Python file, run with a Dask client ready"
    parser.add_argument("script", metavar="SCRIPT", help=script)
    parser.add_argument("--profile", help="a profile; see the command profiles")
    parser.add_argument("--name", help="name of the cluster (default: the profile's and a number)")
    add_request(parser)


def run_run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Start a cluster, run the script with a client ready, stop the cluster; return its code."""
    script = Path(arguments.script)
    if not script.is_file():
        hint = "Give the path of a Python file."
        raise InvalidInput(f"There is no file {arguments.script}.", hint=hint)
    profile = arguments.profile or default_profile()
    request = request_from(arguments, profile, session, name=arguments.name, owned=True)
    with Signals() as signals:
        try:
            with own_cluster(request, session) as view:
                session.note(
                    f"{script} runs on this host ({socket.gethostname()}); "
                    f"its Dask work goes to cluster {view.name} "
                    f"({counted(view.workers.ready, view.unit)})"
                )
                command = [str(script), *arguments.passed_on]
                code = _run_script(view, command, request.kernel, signals)
                _note_tasks(view, session)
        except KeyboardInterrupt:
            code = 128 + signals.last
    return Outcome(exit_code=code)


def _note_tasks(view: ClusterView, session: Session) -> None:
    """Note the number of tasks that the cluster ran, and warn about 0."""
    try:
        answer = ask(session.clusters.endpoint(view.id), "GET", "/gpucluster/summary")
    except GpuClusterError:
        return  # a cluster that has ended by itself has its own reason
    tasks = answer.get("tasks")  # a head of an older version does not count them
    if tasks:
        session.note(f"cluster {view.name} ran {counted(tasks, 'tasks')}")
    elif tasks == 0:
        session.note(
            f"warning: cluster {view.name} ran no task; the script did its work on this host. "
            "Dask collections run on the cluster when you call compute(), functions with "
            "dask.delayed or client.submit."
        )


def _run_script(view: ClusterView, command: Sequence[str], kernel: str, signals: Signals) -> int:
    from ...client.connect import client_environment
    from ...launch.python_environments import find_kernel

    variables = find_kernel(kernel).variables if kernel else {}
    environment = {**os.environ, **variables, **client_environment(view)}
    with subprocess.Popen([view.python, RUNNER, *command], env=environment) as script:
        interrupts = 0
        while script.poll() is None:
            try:
                script.wait()
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts > 1:  # it ignored the first one
                    script.kill()
                elif not signals.reached_children():
                    script.send_signal(signals.last)
        code = script.returncode
    return code if code >= 0 else 128 - code
