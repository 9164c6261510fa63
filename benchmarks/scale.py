"""200 sleeping jobs on a real Slurm: one array of ours against 200 submissions by dask-jobqueue.

Real workers of that number fit no small machine, so the job is a sleeper.  Ours goes through the
package's own queue and dialect; dask-jobqueue's cluster is its own, with a program that sleeps for
Python.  Needs root and Debian's Slurm, of which it starts one of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from measuring import CHECKOUT, verdict

sys.path.insert(0, str(CHECKOUT))

from jupyter_gpucluster.batch.queue import ProcessRunner, Queue
from jupyter_gpucluster.batch.slurm import Slurm  # found by the line above
from jupyter_gpucluster.core.job import CommandResult, JobState, Submission
from tests.integration.batch.slurm_site import SlurmSite

SLOWEST = 180.0
LOOK_EVERY = 0.2


class CountingRunner(ProcessRunner):
    """Counts the commands that were run, but for those that only measure."""

    calls = 0

    async def run(self, argv: Sequence[str], stdin: str = "") -> CommandResult:
        self.calls += argv[0] != "squeue"
        return await super().run(argv, stdin)


@dataclass
class Figures:
    """Cost of one way: commands, and seconds since the first of them."""

    submitted: float
    running: float
    cancelled: float
    calls: int


async def reached(queue: Queue, true: Callable[[list[JobState]], bool], began: float) -> float:
    """Return the seconds until the states of all jobs are as they should be."""
    while True:
        listed = await queue.poll(())
        if listed is not None and true([job.state for job in listed.values()]):
            return time.perf_counter() - began
        if time.perf_counter() - began > SLOWEST:
            sys.exit("Slurm has not got there; is the machine busy?")
        await asyncio.sleep(LOOK_EVERY)


async def measure(
    queue: Queue,
    runner: CountingRunner,
    count: int,
    submit: Callable[[], Awaitable[Sequence[str]]],
    cancel: Callable[[Sequence[str]], Awaitable[object]],
) -> Figures:
    """Submit, wait until all run, cancel, wait until none does."""
    live = (JobState.PENDING, JobState.RUNNING, JobState.ENDING)
    runner.calls = 0
    began = time.perf_counter()
    ids = await submit()
    submitted = time.perf_counter() - began
    running = await reached(queue, lambda states: states.count(JobState.RUNNING) == count, began)
    began = time.perf_counter()
    await cancel(ids)
    cancelled = await reached(queue, lambda states: not any(s in live for s in states), began)
    return Figures(submitted, running, cancelled, runner.calls)


async def compare(site: SlurmSite, count: int) -> tuple[Figures, Figures]:
    """Run both ways, one after the other, on one Slurm."""
    runner = CountingRunner({**os.environ, **site.environment})
    queue = Queue(Slurm(), runner)
    script = site.base / "sleeper.sh"
    head = "#!/bin/bash\n#SBATCH -J sleeper -o /dev/null -p cpu -n 1 --mem=10M -t 00:20:00\n"
    script.write_text(f"{head}exec sleep 900\n")

    async def as_array() -> Sequence[str]:
        return await queue.submit(Submission("sleeper", str(script), count))

    ours = await measure(queue, runner, count, as_array, queue.cancel)
    return ours, await by_dask_jobqueue(site, queue, count)


async def by_dask_jobqueue(site: SlurmSite, queue: Queue, count: int) -> Figures:
    """Let dask-jobqueue scale to as many jobs and back."""
    os.environ |= {**site.environment, "DASK_CONFIG": str(site.base / "dask")}
    # After the line above, since it writes its defaults into the user's configuration.
    from dask_jobqueue.slurm import SLURMCluster, SLURMJob

    counter = CountingRunner({})

    class CountedJob(SLURMJob):
        @staticmethod
        async def _call(cmd: Sequence[str], **kw: object) -> str:
            counter.calls += 1
            told: str = await SLURMJob._call(cmd, **kw)  # type: ignore[no-untyped-call]  # no stubs
            return told

    class Sleepers(SLURMCluster):
        job_cls = CountedJob

    async with Sleepers(
        asynchronous=True,
        queue="cpu",
        cores=1,
        memory="10 MB",
        walltime="00:20:00",
        python="exec sleep 900 #",
        job_extra_directives=["-o /dev/null"],
        scheduler_options={"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"},
    ) as cluster:

        async def submit() -> Sequence[str]:
            cluster.scale(count)
            await cluster
            return ()

        async def cancel(_: Sequence[str]) -> None:
            cluster.scale(0)
            await cluster

        return await measure(queue, counter, count, submit, cancel)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    count = parser.parse_args().jobs
    if os.geteuid() != 0:
        sys.exit("Slurm's daemons need root.")
    base = Path(tempfile.mkdtemp(prefix="slurm-"))
    base.chmod(0o755)
    # Four nodes that claim enough cores; nobody watches the memory of the sleepers.
    site = SlurmSite(base, gpu_nodes=1, cpu_nodes=4, cpus=-(-count // 4), gatherer=False)
    try:
        site.start()
        ours, theirs = asyncio.run(compare(site, count))
    finally:
        site.stop()
        shutil.rmtree(base, ignore_errors=True)
    print(f"{count} jobs{'':<21} one array   dask-jobqueue   ratio")
    rows = [
        ("commands", ours.calls, theirs.calls),
        ("seconds to submitted", ours.submitted, theirs.submitted),
        ("seconds to all running", ours.running, theirs.running),
        ("seconds to all cancelled", ours.cancelled, theirs.cancelled),
    ]
    for title, mine, other in rows:
        print(f"{title:<28} {mine:9.2f} {other:15.2f} {mine / other:7.3f}")
    met = [
        verdict("commands to submit and cancel, one array", ours.calls, 2, ""),
        verdict("to all running, of dask-jobqueue's time", ours.running / theirs.running, 0.5, "x"),
    ]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
