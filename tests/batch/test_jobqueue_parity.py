"""A section of Dask's configuration comes to what dask-jobqueue itself makes of it.

Its classes write our scripts, too, but are told what a profile says, not the section.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from dask.utils import format_bytes
from distributed.cli.dask_worker import main as dask_worker

from jupyter_gpucluster.batch import cancel_command, find_backend, submit_command
from jupyter_gpucluster.core.cluster import Spec
from jupyter_gpucluster.core.job import Submission
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.profiles import apply_options, find_profile
from tests.batch.golden import rendered

SITES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("jobqueue_sites.yaml").read_text("utf-8")
)
FACTS = Path(__file__).parents[3] / "shared" / "sites" / "public-sites.yaml"
WITHOUT_CLASS = {"alcf-cobalt-jobqueue-fork"}
"""dask-jobqueue has no class for Cobalt; the fork's directives are in Cobalt's own test."""
OURS_ONLY = {
    # Names and files of the output are ours, and dask-jobqueue's where it has a log directory.
    "slurm": [r"-J \S+", r"-o \S+", r"-N 1"],
    "pbs": [r"-N \S+", r"-j oe", r"-o /c/\S+"],
    "moab": [r"-N \S+", r"-j oe", r"-o /c/\S+"],
    "lsf": [r"-J \S+", r"-o \S+"],
    "sge": [r"-N \S+", r"-o \S+", r"-S /bin/bash"],
    "oar": [r"-n \S+", r"-O \S+", r"-E \S+"],
    # Jobs that HTCondor has ended leave its queue.
    "htcondor": [r"batch_name = .*", r"(output|error|stream_\w+) = .*", r"periodic_remove = .*"],
}
THEIRS_ONLY = {
    "slurm": [r"-J dask-worker"],
    "pbs": [r"-N dask-worker"],
    "moab": [r"-N dask-worker"],
    "lsf": [r"-J dask-worker"],
    "sge": [r"-N dask-worker"],
    "oar": [r"-n dask-worker"],
    # What its own bookkeeping needs, and how it starts the worker.
    "htcondor": [r"batch_name = .*", r"MY\.(Dask|JobId)\w* = .*", r"(Arguments|Executable) = .*"],
}
BETWEEN_US = {
    # How a worker finds its scheduler, is trusted by it and named, and when it gives up.
    "scheduler", "scheduler_file", "name", "protocol", "tls_ca_file", "tls_cert", "tls_key",
    "dashboard", "dashboard_address", "death_timeout",
}  # fmt: skip
"""Arguments of a worker that are this program's own."""
OTHER_WORKERS: dict[str, dict[str, str | None]] = {
    # One core for two workers: dask-jobqueue's division gives them no thread.
    "jsc-juwels-gpus": {"nthreads": "1"},
    # The head drains jobs as long before their walltime.
    "oar-inria-nef": {"lifetime": None},
}
"""Differences in the workers of a section, with reasons."""
CHILD = """
import json, sys, warnings
warnings.simplefilter("ignore")
import dask, dask_jobqueue.core
from dask_jobqueue import htcondor, lsf, moab, oar, pbs, sge, slurm
jobs = {"slurm": slurm.SLURMJob, "pbs": pbs.PBSJob, "moab": moab.MoabJob, "lsf": lsf.LSFJob,
        "sge": sge.SGEJob, "oar": oar.OARJob, "htcondor": htcondor.HTCondorJob}
told = {}
for id, site in json.load(sys.stdin).items():
    name = site["backend"]
    with dask.config.set({"jobqueue": {name: {**dask.config.get("jobqueue." + name),
                                               **site["section"]}}}):
        job = jobs[name](scheduler="tcp://10.0.0.1:8786", name="w")
        told[id] = {"script": job.job_script(), "submit": job.submit_command,
                    "cancel": job.cancel_command, "worker": job._command_template}
json.dump(told, sys.stdout)
"""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Render all sections in a process of its own, which has no configuration but these."""
    place = tmp_path_factory.mktemp("dask")
    (place / "lsf.conf").write_text("LSF_UNIT_FOR_LIMITS=MB\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "DASK_CONFIG": str(place / "none"),
        "DASK_ROOT_CONFIG": str(place / "none"),
        "LSF_ENVDIR": str(place),
    }
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps(SITES),
        env=environment,
        cwd=place,
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    told: dict[str, dict[str, str]] = json.loads(child.stdout)
    return told


def ours(id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Spec, str]:
    """Return what a section in Dask's configuration comes to here, and our script for it."""
    backend, section = SITES[id]["backend"], SITES[id]["section"]
    config = tmp_path / "jobqueue.yaml"
    config.write_text(yaml.safe_dump({"jobqueue": {backend: section}}))
    (tmp_path / "lsf.conf").write_text("LSF_UNIT_FOR_LIMITS=MB\n")
    monkeypatch.setenv("DASK_CONFIG", str(config))
    monkeypatch.setenv("DASK_ROOT_CONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("LSF_ENVDIR", str(tmp_path))
    profile = apply_options(find_profile(backend).profile, {})
    return rendered(profile, backend, ClusterDirectory(Path("/c")), scratch=tmp_path)


def directives(backend: str, script: str) -> list[str]:
    """Return the directives of a script, without what begins each of them."""
    prefix = f"{find_backend(backend).syntax.prefix} "
    lines = script.splitlines()
    return [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]


def asked(backend: str, lines: list[str], left_out: list[str]) -> list[str]:
    """Return what lines ask for: amounts in one unit, without what is left out by design."""
    meaning = (same_form(backend, line) for line in lines)
    return sorted(line for line in meaning if not any(re.fullmatch(p, line) for p in left_out))


def same_form(backend: str, line: str) -> str:
    """Write times in seconds, and Slurm's memory as it rounds it for dask-jobqueue."""
    times = {"slurm": "-t ", "lsf": "-W ", "oar": "walltime="}
    before, mark, text = line.partition(
        times.get(backend, "h_rt=" if backend == "sge" else "walltime=")
    )
    if mark and (seconds := find_backend(backend).syntax.seconds(text)) is not None:
        return f"{before}{mark}{seconds}"
    if backend == "slurm" and (match := re.fullmatch(r"--mem=(\d+)([MG])", line)):
        mebibytes = int(match[1]) * (1024 if match[2] == "G" else 1)
        return f"--mem={-(-mebibytes // 1024) * 1024 if mebibytes >= 1024 else mebibytes}M"
    return line


def attributes(script: str) -> list[str]:
    """Return the lines of HTCondor's description, with amounts for the attributes they name."""
    lines = [line for line in script.splitlines() if " = " in line]
    values = dict(line.split(" = ", 1) for line in lines)
    cores, memory, disk = (int(values[f"MY.DaskWorker{x}"]) for x in ("Cores", "Memory", "Disk"))
    amounts = {
        "RequestCpus": cores,
        "RequestMemory": memory // 2**20,
        "RequestDisk": disk // 1024,
    }
    return [f"{key} = {amounts.get(key, value)}" for key, value in values.items()]


def worker_of(line: str) -> dict[str, Any]:
    """Return what a command makes of its workers, as Dask's own command line reads it."""
    words = shlex.split(line.removesuffix("&"))
    at = next(n for n, word in enumerate(words) if word.endswith(("dask_worker", "dask_cuda.cli")))
    parser = dask_worker.make_parser(click.Context(dask_worker))
    told, _, _ = parser.parse_args(words[at + 1 :])
    told = {"n_workers": "1", "nanny": True, **told}
    if told.get("memory_limit", "").isdigit():
        told["memory_limit"] = format_bytes(int(told["memory_limit"])).replace(" ", "")
    return {key: value for key, value in told.items() if key not in BETWEEN_US}


@pytest.mark.parametrize("id", sorted(SITES))
def test_workers_are_those_of_dask_jobqueue(
    id: str, theirs: dict[str, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, script = ours(id, tmp_path, monkeypatch)
    [line] = [line for line in script.splitlines() if "workerstart.py" in line]
    expected = worker_of(theirs[id]["worker"]) | OTHER_WORKERS.get(id, {})
    assert worker_of(line) == {k: value for k, value in expected.items() if value is not None}


@pytest.mark.parametrize("id", sorted(SITES))
def test_directives_and_commands_are_those_of_dask_jobqueue(
    id: str, theirs: dict[str, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = SITES[id]["backend"]
    if backend == "htcondor":
        lines = attributes(theirs[id]["script"])
    else:
        lines = directives(backend, theirs[id]["script"])
    expected = asked(backend, lines, THEIRS_ONLY[backend])
    spec, script = ours(id, tmp_path, monkeypatch)
    own = directives(backend, script)
    assert asked(backend, own, OURS_ONLY[backend]) == expected
    assert expected
    dialect = find_backend(backend)
    sent = Submission("gpc-7f3a2b-1", "/s.sh", text=own[0], arguments=spec.job.submit_args)
    for command, words in (
        (submit_command(dialect, sent), shlex.split(theirs[id]["submit"])),
        (cancel_command(dialect, ["1"], spec.job.cancel_args), shlex.split(theirs[id]["cancel"])),
    ):
        # dask-jobqueue has bsub's input redirected by a shell.
        words = [word for word in words if word != "<"]
        assert command[: len(words)] == words


def test_every_public_site_of_this_kind_is_among_them() -> None:
    if FACTS.exists():
        entries = yaml.safe_load(FACTS.read_text("utf-8"))["entries"]
        known = {entry["id"] for entry in entries if entry["pattern"] == "jobqueue"}
        assert known - WITHOUT_CLASS <= set(SITES)
    assert len(SITES) >= 25
