"""The rate of data between workers, as the workers themselves time it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .report import Link
from .sending import carried
from .workers import WorkerFacts

if TYPE_CHECKING:
    from distributed import Client

BYTES = {"gpu": 256 * 10**6, "cpu": 16 * 10**6}
"""Size of a block: some tenths of a second through host memory."""
ROUNDS = 3
"""The best of so many counts: on a shared machine single ones are half as fast."""
MOST_NEIGHBOURS = 7
"""Each worker takes from so many others at most: all of them on a node of eight GPUs."""


def measure_links(client: Client, workers: Sequence[WorkerFacts], device: str) -> tuple[Link, ...]:
    """Let all workers take a block of memory from their first neighbour, then from the next ...

    Returns
    -------
    tuple of Link
        Rates in GB/s, from the giver's device memory to the taker's.  Within a round all workers
        give and take at the same time; in one process there is no way between them, so no link.
    """
    makes, takes = carried(make_block), carried(take_block)
    best: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for shift in range(1, min(len(workers), MOST_NEIGHBOURS + 1)):
            pairs = [(w, workers[(n + shift) % len(workers)]) for n, w in enumerate(workers)]
            blocks = [
                client.submit(
                    makes, BYTES[device], device == "gpu", workers=[giver.address], pure=False
                )
                for giver, _ in pairs
            ]
            client.gather(
                [
                    client.submit(takes, block, workers=[taker.address], pure=False)
                    for block, (_, taker) in zip(blocks, pairs, strict=True)
                ]
            )
            answers = client.run(
                carried(transfers), [b.key for b in blocks], workers=[w.address for w in workers]
            )
            for giver, taker in pairs:
                for rate in answers[taker.address].get(giver.address, ()):
                    pair = (giver.address, taker.address)
                    best[pair] = max(rate, best.get(pair, 0.0))
    known = {worker.address: worker for worker in workers}
    return tuple(
        Link(
            giver=known[giver].name or giver,
            taker=known[taker].name or taker,
            giver_host=known[giver].host,
            taker_host=known[taker].host,
            rate=rate,
        )
        for (giver, taker), rate in sorted(best.items())
    )


def make_block(nbytes: int, gpu: bool) -> Any:
    """Return a block of the device's memory; of random bytes, since zeros could be compressed."""
    import importlib

    arrays = importlib.import_module("cupy" if gpu else "numpy")
    return arrays.random.randint(0, 2**31, nbytes // 8)


def take_block(block: Any) -> int:
    """Take a block, and return its size."""
    return int(block.nbytes)


def transfers(keys: Sequence[str], dask_worker: Any) -> Mapping[str, list[float]]:
    """Return the rates in GB/s at which this worker took these blocks, by their givers."""
    found: dict[str, list[float]] = {}
    for entry in dask_worker.transfer_incoming_log:
        if set(entry["keys"]) <= set(keys):
            found.setdefault(entry["who"], []).append(entry["bandwidth"] / 1e9)
    return found
