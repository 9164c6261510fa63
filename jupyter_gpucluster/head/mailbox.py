"""A head's commands as files, for nodes that lack the batch system's commands."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import Mapping, Sequence

from ..batch import find_backend
from ..batch.queue import COMMAND_SECONDS, ProcessRunner
from ..core.errors import StateError
from ..core.job import CommandResult
from ..core.serialize import from_json, to_json
from ..host.cluster_directory import ClusterDirectory
from ..host.private_files import DAMAGE, write_private
from ..host.processes import this_process

PATIENCE = COMMAND_SECONDS + 30.0
"""The command has its own time; the rest is for a file server that shows files late."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0
MISSING = 127


class MailboxRunner:
    """Puts commands into the cluster directory and waits for what the relay answers.

    The relay (`jupyter_gpucluster.state.relay`) runs on the Jupyter host.
    """

    def __init__(self, directory: ClusterDirectory) -> None:
        self.box = directory.relay
        self.me = this_process()

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Ask the relay to run a command; without an answer in time there is none."""
        name = uuid.uuid4().hex
        data = {"head": to_json(self.me), "argv": list(argv), "stdin": stdin}
        question, answer = self.box / f"{name}.ask", f"{name}.answer"
        try:
            await asyncio.to_thread(write_private, question, json.dumps(data).encode())
        except StateError as error:
            return CommandResult(tuple(argv), None, "", error.message)
        deadline, pause = time.monotonic() + PATIENCE, FIRST_PAUSE
        while time.monotonic() < deadline:
            await asyncio.sleep(pause)
            pause = min(pause * 1.3, LONGEST_PAUSE)
            result = await asyncio.to_thread(self.take, answer)
            if result is not None:
                return result
        with contextlib.suppress(OSError):
            question.unlink()
        return CommandResult(
            tuple(argv), None, "", "The relay on the Jupyter host does not answer."
        )

    def take(self, name: str) -> CommandResult | None:
        """Return an answer and remove it; the folder is listed, since NFS remembers absence."""
        with contextlib.suppress(OSError, *DAMAGE):
            for path in self.box.iterdir():
                if path.name == name:
                    result = from_json(CommandResult, json.loads(path.read_bytes()))
                    path.unlink()
                    return result
        return None


class NodeRunner(ProcessRunner):
    """Runs commands on the node of the head's job, and reports one that is not there.

    Parameters
    ----------
    backend
        The cluster's.
    environment
        Variables of the commands.
    """

    def __init__(self, backend: str, environment: Mapping[str, str]) -> None:
        variables, self.without = find_backend(backend).on_a_node(environment)
        super().__init__(variables)

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        """Run a command as `ProcessRunner` does."""
        result = await super().run([x for x in argv if not x.startswith(self.without)], stdin)
        if result.exit_code != MISSING:
            return result
        told = (
            f"{result.stderr}; the node of the head's job lacks this command, so that the cluster"
            " cannot grow. With head.submit: relay the Jupyter host runs it."
        )
        return CommandResult(result.argv, MISSING, result.stdout, told)
