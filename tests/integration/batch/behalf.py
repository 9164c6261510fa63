"""A user's actions with clusters: in this process, or in one that runs as that user."""

from __future__ import annotations

import io
import os
import pickle
import sys

from distributed import Client

from jupyter_gpucluster.cli import perform
from jupyter_gpucluster.cli.terminal import Terminal
from jupyter_gpucluster.client.connect import connect
from jupyter_gpucluster.clusters import Clusters

# Functions inside of methods travel to workers as they are; those of a module only by its name,
# and workers do not see this one.


class Work:
    """Actions with one cluster at a time, through one client."""

    client: Client

    def begin(self, name: str) -> None:
        """Connect to a cluster."""
        self.client = connect(name)

    def computes(self) -> bool:
        """Tell whether tasks come to the right result."""
        futures = self.client.map(lambda number: number + 1, range(10), pure=False)
        return bool(sum(self.client.gather(futures)) == 55)

    def hold(self) -> None:
        """Keep something in the memory of workers."""
        self.held = self.client.scatter(list(range(30)))

    def still_holds(self) -> bool:
        """Tell whether all of it is still there."""
        return bool(self.client.gather(self.held) == list(range(30)))

    def kill(self, worker: str) -> None:
        """Kill a worker and its nanny, as the kernel does where memory runs out."""

        def kill() -> None:
            import os
            import signal

            for pid in (os.getppid(), os.getpid()):
                os.kill(pid, signal.SIGKILL)

        self.running = [self.client.submit(kill, workers=[worker], pure=False, retries=0)]

    def eat(self, worker: str, size: int) -> None:
        """Let processes of a worker's job take some memory each."""

        def eat() -> None:
            import subprocess
            import sys
            import time

            program = f"import time; held = b'x' * {size}; time.sleep(60)"
            for _ in range(3):
                subprocess.Popen([sys.executable, "-c", program])
            time.sleep(60)

        self.running = [self.client.submit(eat, workers=[worker], pure=False, retries=0)]

    def command(self, *words: str) -> tuple[int, str]:
        """Type a command; return its exit code and its result."""
        out = io.StringIO()
        code = perform(words, Terminal(out=out))
        return code, out.getvalue()

    def end(self) -> None:
        """Leave the cluster."""
        self.client.close()


def serve() -> None:
    """Do what is asked for on standard input, in turn, until that ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints is no answer
    served = {"clusters": Clusters(), "work": Work()}
    while True:
        try:
            name, method, values, named = pickle.load(sys.stdin.buffer)  # noqa: S301  # from the test
        except EOFError:
            return
        try:
            answer = (True, getattr(served[name], method)(*values, **named))
        except Exception as error:
            answer = (False, f"{type(error).__name__}: {error}")
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    serve()
