"""The parallel sum on GPUs: the documents' program, plain CuPy and ours, with their ratios."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from measuring import MOCKED, cli, own_place, verdict

SIZES = {"deepops": (500_000, 10_000), "thetagpu": (100_000, 5_000)}
"""Edges of array and chunk of the two published runs."""
PLAIN_CHUNK = 25_000
LOCAL_CUDA_CLUSTER = """
import sys
from dask_cuda import LocalCUDACluster
from distributed import Client

MOCKED = {}
if sys.argv[2:] == ["--mock"]:
    from dask_cuda.utils_test import MockWorker

    MOCKED = {"worker_class": MockWorker, "device_memory_limit": None}

if __name__ == "__main__":
    count = int(sys.argv[1])
    with LocalCUDACluster(n_workers=count, **MOCKED) as cluster, Client(cluster) as client:
        client.wait_for_workers(int(sys.argv[1]))
        print("ready", flush=True)
        input()
"""
UNFORKED = 'title: With a prologue\nbackend: local\nenvironment: {prologue: ["true"]}\n'


def documents_program(client: Any, edge: int, chunk: int) -> float:
    """Do what the documents' program does, and return its wall time."""
    import cupy
    import dask.array as da

    began = time.perf_counter()
    state = da.random.RandomState(RandomState=cupy.random.RandomState)
    x = state.normal(10, 1, size=(edge, edge), chunks=(chunk, chunk))
    total = float(client.compute((x + 1)[::2, ::2].sum()).result())
    seconds = time.perf_counter() - began
    expected = 11 * (edge // 2) ** 2
    assert abs(total - expected) < 5 * (edge // 2), total
    return seconds


def plain_cupy(edge: int, *, mean: bool) -> float:
    """Do the whole formula in a loop of CuPy calls on one GPU, without Dask.

    Without the mean the numbers in memory are normal(0, 1), which saves a pass over them.
    """
    import cupy

    generator = cupy.random.Generator(cupy.random.XORWOW(1))
    chunk = min(PLAIN_CHUNK, edge)
    x = cupy.empty((chunk, chunk))
    cupy.cuda.Device().synchronize()
    began = time.perf_counter()
    total = cupy.zeros(())
    for _ in range((edge // chunk) ** 2):
        generator.standard_normal(out=x)
        if mean:
            x += 10
        total += (x[::2, ::2] + 1).sum()
    value = float(total) + (0 if mean else 10 * (edge // 2) ** 2)
    seconds = time.perf_counter() - began
    assert abs(value - 11 * (edge // 2) ** 2) < 5 * (edge // 2), value
    return seconds


def copy_rate() -> float:
    """Return the rate of device memory in GB/s, bytes read and bytes written."""
    import cupy

    source = cupy.random.random(10**9 // 2)
    target = cupy.empty_like(source)
    rates = []
    for _ in range(5):
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        for _ in range(20):
            cupy.copyto(target, source)
        cupy.cuda.Device().synchronize()
        rates.append(20 * 2 * source.nbytes / 1e9 / (time.perf_counter() - began))
    return float(max(rates))


def ours(client: Any, preset: str, mode: str) -> float:
    """Run our benchmark once and return its wall time."""
    from jupyter_gpucluster.benchmark import Options, run_benchmark

    report = run_benchmark(client, Options(preset=preset, mode=mode))
    return report.results[0].wall_seconds


def in_turn(rounds: int, **ways: Callable[[], float]) -> dict[str, list[float]]:
    """Time each way once in every round, after one round that does not count."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            seconds = way()
            if number:
                found[name].append(seconds)
    for name, samples in found.items():
        print(f"  {name:<34} {' '.join(f'{sample:.3f}' for sample in samples)} s", flush=True)
    return found


def starts(
    gpus: int, rounds: int, place: Path, *, profile: str = "local"
) -> dict[str, list[float]]:
    """Time from the shell's prompt to connected workers, in turn with LocalCUDACluster.

    A profile with a prologue needs a shell, so its workers are not forked by the job server.
    """
    mocked = ["--mock"] if profile == MOCKED else []
    script = place / "local_cuda_cluster.py"
    script.write_text(LOCAL_CUDA_CLUSTER)
    profiles = place / "gpucluster" / "profiles"
    profiles.mkdir(parents=True, exist_ok=True)
    (profiles / "unforked.yaml").write_text(UNFORKED)

    def local_cuda_cluster() -> float:
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, script, str(gpus), *mocked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            seconds = time.perf_counter() - began
            process.communicate("\n")
        return seconds

    def own(profile: str) -> float:
        seconds, view = cli("start", profile, "--gpus", str(gpus), "--wait", "--json")
        cli("stop", view["name"], "--wait")
        return seconds

    ways: dict[str, Callable[[], float]] = {
        "start_local_cuda_cluster": local_cuda_cluster,
        "start_ours": partial(own, profile),
    }
    if not mocked:
        ways["start_unforked"] = partial(own, "unforked")
    return in_turn(rounds, **ways)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=["start", "sums"], help="one half of it")
    chosen = parser.parse_args()
    path = os.environ.get("PYTHONPATH", "")
    found: dict[str, Any] = {"gpus": chosen.gpus, "versions": versions(), "seconds": {}}
    with own_place() as place:
        os.environ["PYTHONPATH"] += os.pathsep + path
        if chosen.only != "sums":
            found["seconds"]["start"] = starts(chosen.gpus, chosen.rounds, place)
        if chosen.only != "start":
            found["copy"] = copy_rate()
            print(f"  device memory copies {found['copy']:.0f} GB/s")
            sums(chosen.gpus, chosen.rounds, found["seconds"])
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")
    sys.exit(not judge(found))


def sums(gpus: int, rounds: int, seconds: dict[str, Any]) -> None:
    """Time all ways of the sum, on LocalCUDACluster and on a cluster of ours."""
    from dask_cuda import LocalCUDACluster
    from distributed import Client

    from jupyter_gpucluster import connect

    _, view = cli("start", "local", "--gpus", str(gpus), "--wait", "--json")
    with (
        LocalCUDACluster(n_workers=gpus) as cluster,
        Client(cluster, set_as_default=False) as theirs,
        connect(view["name"], set_as_default=False) as client,
    ):
        theirs.wait_for_workers(gpus)
        for preset, (edge, chunk) in SIZES.items():
            print(preset)
            seconds[preset] = in_turn(
                rounds if preset == "thetagpu" else max(1, rounds - 1),
                documents_program=partial(documents_program, theirs, edge, chunk),
                ours_documents=partial(ours, client, preset, "documents"),
            )
            seconds[preset] |= in_turn(
                2 * rounds,
                plain_cupy_mean_0=partial(plain_cupy, edge, mean=False),
                plain_cupy_mean_10=partial(plain_cupy, edge, mean=True),
                ours_peak=partial(ours, client, preset, "peak"),
            )


def judge(found: dict[str, Any]) -> bool:
    """Print the figures beside their targets."""
    seconds = found["seconds"]

    def middle(where: str, what: str) -> float:
        return float(statistics.median(seconds[where][what]))

    results = []
    if "deepops" in seconds:
        deep = middle("deepops", "ours_peak")
        best = middle("deepops", "plain_cupy_mean_0") / found["gpus"]
        theirs = middle("deepops", "documents_program")
        results += [
            verdict("2 TB, peak", deep, 2.0 / found["gpus"], "s"),
            verdict("peak over plain CuPy", deep / best, 1.1, "times"),
            verdict("peak over documents", deep / theirs, 1 / 15, ""),
            verdict("80 GB, peak", middle("thetagpu", "ours_peak"), 0.15, "s"),
        ]
        for preset in SIZES:
            ratio = middle(preset, "ours_documents") / middle(preset, "documents_program")
            results.append(verdict(f"documents mode over theirs, {preset}", ratio, 1.05, "times"))
    if "start" in seconds:
        ratio = middle("start", "start_ours") / middle("start", "start_local_cuda_cluster")
        results.append(verdict("start over LocalCUDACluster", ratio, 1.3, "times"))
    return all(results)


def versions() -> dict[str, str]:
    """Return what the figures depend on."""
    names = ("dask", "distributed", "dask-cuda", "numpy")
    found = {name: version(name) for name in names}
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    told = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    import cupy

    return {
        **found,
        "python": platform.python_version(),
        "cupy": cupy.__version__,
        "gpu": told.splitlines()[0],
    }


if __name__ == "__main__":
    main()
