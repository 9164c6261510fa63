"""The relay: runs batch commands on the Jupyter host for a head in a job."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import re
import sys
import time
from pathlib import Path

from ..batch import cancel_command, find_backend, submit_command
from ..batch.base import Backend
from ..batch.cancel import heads_job_left, remove
from ..batch.queue import ProcessRunner, Queue
from ..core.cluster import ENDED, Process, Record, spec_of_group
from ..core.errors import GpuClusterError
from ..core.job import CommandResult, Submission
from ..core.serialize import from_json, to_json
from ..host.cluster_directory import ClusterDirectory
from ..host.private_files import DAMAGE, check_private, locked, write_private
from ..host.processes import this_process
from .head_job import variables_of
from .reader import look_at

logger = logging.getLogger("gpucluster.relay")

PAUSE = 0.3
LOOK_SECONDS = 10.0
"""Period of its looks at the cluster, with which it ends."""


def main(path: str) -> None:
    """Serve the head of one cluster until the cluster has ended."""
    directory = ClusterDirectory(Path(path))
    check_private(directory.path)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s - %(levelname)s - %(message)s")
    with locked(directory.path / ".relay.lock") as held:
        if held is not False:  # else another one is at work
            write_private(directory.relay_file, json.dumps(to_json(this_process())).encode())
            serve(directory)
            clean_up(directory)


def serve(directory: ClusterDirectory) -> None:
    """Answer questions until the cluster has ended."""
    looked = 0.0
    while directory.read_phase()[0] not in ENDED and directory.relay.is_dir():
        try:
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                if look_at(directory).record.phase in ENDED:
                    return
            for question in sorted(directory.relay.glob("*.ask")):
                answer(directory, question)
        except (GpuClusterError, OSError) as error:
            logger.warning("%s", error)
        time.sleep(PAUSE)


def clean_up(directory: ClusterDirectory) -> None:
    """Remove the head's job if no other process does: it would be listed for ever."""
    with contextlib.suppress(GpuClusterError, OSError):
        record = directory.read_record()
        if record.phase in ENDED and (ids := heads_job_left(record)):
            backend, arguments = find_backend(record.spec.backend), record.spec.job.cancel_args
            queue = Queue(backend, ProcessRunner(variables_of(record)), cancel_args=arguments)
            asyncio.run(remove(queue, ids))


def answer(directory: ClusterDirectory, question: Path) -> None:
    """Run the command of a question, if it is one of the cluster's dialect for its jobs."""
    try:
        data = json.loads(question.read_bytes())
        argv, stdin = [str(word) for word in data["argv"]], str(data["stdin"])
        asked_by = from_json(Process, data["head"])
    except DAMAGE:
        question.unlink(missing_ok=True)
        return
    question.unlink(missing_ok=True)
    record = directory.read_record()
    if asked_by == record.head and permitted(directory, record, argv, stdin):
        runner = ProcessRunner(variables_of(record))
        result = asyncio.run(runner.run(argv, stdin))
    else:
        logger.warning("Refused: %s", argv[:1])
        result = CommandResult(tuple(argv), 126, "", "The relay refused: not of this cluster.")
    reply = question.with_suffix(".answer")
    write_private(reply, json.dumps(to_json(result)).encode())


def permitted(directory: ClusterDirectory, record: Record, argv: list[str], stdin: str) -> bool:
    """Return whether a command is one that the dialect builds for this cluster's record."""
    backend = find_backend(record.spec.backend)
    if not stdin and any(argv[: len(begin)] == begin for begin in readers(backend)):
        return True
    # Of a submission that was refused in part the accepted jobs have marks only.
    known = {job.mark for job in record.jobs} | {stem(job.id) for job in record.jobs if job.id}
    cancel = cancel_command(backend, (), record.spec.job.cancel_args)
    ids = argv[len(cancel) :]
    cancels = bool(ids) and argv[: len(cancel)] == cancel
    if cancels and not stdin and all(stem(word) in known for word in ids):
        return True
    return any(
        argv == submit_command(backend, sent) and stdin == backend.stdin(sent)
        for sent in submissions(directory, record)
    )


def stem(id: str) -> str:
    """Return the number of a job, or of the array that it is a task of; all tasks are ours.

    A pod's name begins with its mark.
    """
    found = re.match(r"[A-Za-z]*\.?\d+|gpc-\w+-\d+(?=-\d+$)", id, re.ASCII)
    return found.group() if found else id


def readers(backend: Backend) -> list[list[str]]:
    """Return the beginnings of commands that only read: status, accounting and search.

    One program may read and change (``scontrol``, ``kubectl``), and a shell runs any other.  So a
    beginning has all words before the first one that depends on a user, a job or a tag.
    """
    pairs = (
        (backend.status("user", ["1"]), backend.status("other", ["2", "3"])),
        (backend.history(["1"]), backend.history(["2", "3"])),
        (backend.find(["gpc-a-1"]), backend.find(["gpc-b-2", "gpc-b-3"])),
        (backend.look_up("1"), backend.look_up("2")),
    )
    changing = {backend.cancel(["1"])[0], backend.submit(Submission("gpc-a-1", "/script"))[0]}
    found = []
    for one, other in pairs:
        words = zip(one or (), other or (), strict=False)
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], words)
        begin = [word for word, _ in same]
        if len(begin) > 1 or not {*begin} <= changing:
            found.append(begin)
    return found


def submissions(directory: ClusterDirectory, record: Record) -> list[Submission]:
    """Return the submissions that are on record and have not been answered yet."""
    found = []
    for mark in dict.fromkeys(job.mark for job in record.jobs if not job.id):
        jobs = [job for job in record.jobs if job.mark == mark]
        spec = spec_of_group(record.spec, jobs[0].group)
        script = directory.jobs / f"{mark}.sh"
        with contextlib.suppress(OSError):
            found.append(
                Submission(
                    mark=mark,
                    script=str(script),
                    text=script.read_text("utf-8"),
                    count=len(jobs),
                    workers=spec.worker.per_job,
                    gpus=spec.job.gpus,
                    arguments=spec.job.submit_args,
                )
            )
    return found


if __name__ == "__main__":
    main(sys.argv[1])
