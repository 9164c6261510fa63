"""Send submissions whose tag is on record, keep the answers, and count requests to end jobs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..batch.queue import Queue, submit_line
from ..core.cluster import Record, spec_of_group
from ..core.errors import BackendUnavailable, GpuClusterError
from ..core.job import CommandResult, JobState, Submission
from ..core.summary import Event
from ..host.cluster_directory import ClusterDirectory
from ..host.private_files import write_private
from .memory import MemoryShares, ending_bytes
from .reconcile.model import Answer, Submit

logger = logging.getLogger("gpucluster.head")


@dataclass
class Submissions:
    """The submissions that are under way, and the answers that the loop has not taken yet.

    Parameters
    ----------
    record_of
        Returns the record as it is now.
    wake
        Set when there is an answer.
    """

    directory: ClusterDirectory
    queue: Queue
    memory: MemoryShares
    record_of: Callable[[], Record]
    wake: asyncio.Event
    answers: list[Answer] = field(default_factory=list)
    running: set[asyncio.Task[None]] = field(default_factory=set)

    def take_answers(self) -> tuple[Answer, ...]:
        """Return the answers since the last turn."""
        answers, self.answers = tuple(self.answers), []
        return answers

    def start(self, action: Submit) -> None:
        """Begin to send a submission."""
        task = asyncio.create_task(self.send(action))
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    async def send(self, action: Submit) -> None:
        """Send a submission; whatever becomes of it is an answer."""
        refusal = ""
        ids: tuple[str, ...] = ()
        try:
            ids = await self.queue.submit(await self.prepare(action))
        except BackendUnavailable:
            pass
        except GpuClusterError as error:
            # The system's message ends without a full stop, and more sentences follow.
            message = error.message if error.message.endswith(".") else f"{error.message}."
            refusal = " ".join(part for part in (message, error.hint, error.detail) if part)
        except OSError as error:
            refusal = f"Cannot make the job's script: {error.strerror}."
        except Exception as error:  # else the job would be waited for without an answer
            logger.exception("The submission failed")
            refusal = f"The submission failed: {error!r}."
        self.answers.append(Answer(action.mark, ids, refusal))
        self.wake.set()

    async def prepare(self, action: Submit) -> Submission:
        """Write a submission's files and wait for its memory."""
        spec = spec_of_group(self.record_of().spec, action.group)
        script = self.directory.script(action.mark)
        template = self.directory.template(action.group)
        text = (await asyncio.to_thread(template.read_text)).replace("@MARK@", action.mark)
        await asyncio.to_thread(write_private, script, text.encode())
        # Cobalt and OAR execute the file itself.
        script.chmod(0o700)
        await self.memory.make_room(action.mark)
        limit = self.memory.limit_of(spec)
        # A nanny ends a worker on a GPU; the job server ends the others.
        unwatched = spec.worker_argv and not spec.devices
        submission = Submission(
            mark=action.mark,
            script=str(script),
            text=text,
            count=action.count,
            worker_argv=self.worker_argv(spec.worker_argv, limit),
            workers=spec.worker.per_job,
            # Workers that a launcher spreads get their GPUs from it, not from the job server.
            gpus=0 if spec.spread else spec.job.gpus,
            memory=ending_bytes(limit) if unwatched else None,
            arguments=spec.job.submit_args,
        )
        line = submit_line(self.queue.backend, submission).encode()
        await asyncio.to_thread(write_private, self.directory.command(action.mark), line)
        return submission

    def worker_argv(self, argv: tuple[str, ...], limit: int | None) -> tuple[str, ...]:
        """Return the worker's command with the scheduler's address and the memory limit of now."""
        record = self.record_of()
        filled = [part.replace("{scheduler}", record.scheduler_address) for part in argv]
        if record.spec.memory_follows and filled:
            filled[filled.index("--memory-limit") + 1] = str(limit)
        return tuple(filled)


TRIES = 4
"""The last of these comes after 40 s: so long a job may take to end after the first request."""
MOST_WORDS = 200


class VainCancels:
    """Counts requests to end each job, and reports a job once when they have no effect."""

    def __init__(self) -> None:
        self.tries: dict[str, int] = {}

    def note(
        self, record: Record, ids: Sequence[str], result: CommandResult, system: str, now: float
    ) -> list[Event]:
        """Return what to report after a request.

        Parameters
        ----------
        ids
            The jobs that the request named.
        result
            What the command answered.
        system
            The batch system's name.
        """
        there = {job.id: job for job in record.jobs if job.id and not job.is_over}
        self.tries = {id: self.tries.get(id, 0) + (id in ids) for id in there}
        return [
            Event(now, "cancel", f"{system} was asked {TRIES} times to end job {id}, and still"
                  f" lists it. {outcome_of(result)}", there[id].key)
            for id in ids
            # Without a listing that has it, its existence is unknown.
            if self.tries.get(id) == TRIES
            and there[id].state is not JobState.ENDING
            and not there[id].missing
        ]  # fmt: skip


def outcome_of(result: CommandResult) -> str:
    """Return how a command ended, and its words, in a sentence."""
    if result.exit_code is None:
        return f"{result.argv[0]} did not answer."
    words = " ".join(f"{result.stderr} {result.stdout}".split())[:MOST_WORDS].rstrip(".")
    wrote = f"wrote: {words}" if words else "wrote nothing"
    return f"{result.argv[0]} exited with code {result.exit_code} and {wrote}."
