"""Sizes, presets and the command line of the benchmark."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jupyter_gpucluster.benchmark.options import Options
from jupyter_gpucluster.benchmark.workloads import (
    CHUNKS_PER_THREAD,
    COPIES,
    Crew,
    Device,
    Size,
    Workload,
    chunk_bytes,
)
from jupyter_gpucluster.cli.arguments import Parser
from jupyter_gpucluster.cli.commands.bench import add_bench, array_size, options_of
from jupyter_gpucluster.core.errors import InvalidInput
from tests.benchmark.reports import LAPTOP

GB = 10**9


def parser() -> Parser:
    found = Parser("bench", "")
    add_bench(found)
    return found


def sizes(work: Workload) -> tuple[Size, Size]:
    shape, chunks = (tuple(work.parameters[name]) for name in ("shape", "chunks"))
    return shape, chunks


def test_presets_have_the_published_sizes() -> None:
    deepops = Options(preset="deepops").workload_for(LAPTOP)
    assert sizes(deepops) == ((500_000, 500_000), (10_000, 10_000))
    assert (deepops.nbytes, deepops.pieces, deepops.expected) == (2 * 10**12, 2500, 6.875e11)
    assert deepops.sigma == 2.5e5

    thetagpu = Options(preset="thetagpu").workload_for(LAPTOP)
    assert sizes(thetagpu) == ((100_000, 100_000), (5_000, 5_000))
    assert (thetagpu.nbytes, thetagpu.pieces, thetagpu.expected) == (80 * GB, 400, 2.75e10)


def test_explicit_sizes_win_over_the_preset() -> None:
    options = Options(preset="thetagpu", shape=(8_000, 3_000))
    assert sizes(options.workload_for(LAPTOP)) == ((8_000, 3_000), (5_000, 3_000))
    options = Options(preset="thetagpu", chunks=(1_000, 2_000))
    assert sizes(options.workload_for(LAPTOP)) == ((100_000, 100_000), (1_000, 2_000))


@pytest.mark.parametrize("devices", [("cpu",), ("gpu",), ("gpu", "cpu")])
@pytest.mark.parametrize("threads", [1, 2, 7, 128])
@pytest.mark.parametrize("memory", [0, GB // 10, GB, 16 * GB, 80 * GB])
def test_the_small_default_fits_memory_and_feeds_every_thread(
    devices: tuple[Device, ...], threads: int, memory: int
) -> None:
    crew = Crew(devices, workers=threads, threads=threads, memory_per_thread=memory)
    work = Options(mode="documents").workload_for(crew)
    if memory:
        assert COPIES * chunk_bytes(*sizes(work)) <= memory / 4
    assert work.pieces >= threads * max(CHUNKS_PER_THREAD[device] for device in devices)
    assert work.warnings == ()


def test_the_small_default_takes_the_largest_chunks_that_fit() -> None:
    assert sizes(Options().workload_for(LAPTOP)) == ((8_000, 8_000), (2_000, 2_000))
    tight = Crew(("cpu",), workers=2, threads=2, memory_per_thread=GB // 10)
    assert sizes(Options().workload_for(tight))[1] == (1_000, 1_000)
    card = Crew(("gpu",), workers=1, threads=1, memory_per_thread=80 * GB)
    assert sizes(Options(mode="documents").workload_for(card)) == (
        (80_000, 80_000),
        (10_000, 10_000),
    )


def test_the_small_default_follows_given_chunks_and_a_given_shape() -> None:
    assert sizes(Options(chunks=(300, 100)).workload_for(LAPTOP)) == ((1_200, 400), (300, 100))
    assert sizes(Options(shape=(700, 9_000)).workload_for(LAPTOP)) == ((700, 9_000), (700, 2_000))


@pytest.mark.parametrize(
    "text, size",
    [
        ("20000", (20_000, 20_000)),
        ("20_000x10", (20_000, 10)),
        ("3X4", (3, 4)),
        (" 500 000 x 10 ", (500_000, 10)),
    ],
)
def test_a_size_is_one_number_or_two(text: str, size: tuple[int, int]) -> None:
    assert array_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "5x0", "-3", "1x-1", "1.5", "3x4x5", "x4", "1e4", "٣"])
def test_a_size_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="A size is N or NxM") as caught:
        array_size(text)
    assert "20000x10000" in caught.value.hint


@pytest.mark.parametrize(
    "wrong, message, hint",
    [
        ({"preset": "deepop"}, "Unknown preset: deepop", "deepops, thetagpu"),
        ({"device": "tpu"}, "Unknown device: tpu", "gpu, cpu, both"),
        (
            {"shape": (10, 10), "chunks": (10, 11)},
            "Chunks 10x11 do not fit into shape 10x10",
            "smaller --chunks",
        ),
    ],
)
def test_bad_options_are_refused_with_the_fix(
    wrong: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        Options(**wrong)  # type: ignore[arg-type]
    assert hint in caught.value.hint


def test_chunks_larger_than_the_presets_shape_are_refused() -> None:
    with pytest.raises(InvalidInput, match="do not fit into shape 100000x100000"):
        Options(preset="thetagpu", chunks=(200_000, 10)).workload_for(LAPTOP)


def test_more_chunks_than_dask_can_handle_are_refused() -> None:
    with pytest.raises(InvalidInput, match="250000000000 chunks are more than") as caught:
        Options(preset="deepops", chunks=(1, 1)).workload_for(LAPTOP)
    assert "larger --chunks" in caught.value.hint


@pytest.mark.parametrize(
    "words, options",
    [
        ("sum", Options()),
        (
            "sum --shape 600x500 --chunks 100 --device both --repeats 3 --preset deepops",
            Options((600, 500), (100, 100), "deepops", device="both", repeats=3),
        ),
        ("sum --mode peak --json report.json", Options(mode="peak")),
        ("sum --workers 3", Options(workers=3)),
        ("check-up --gpus 3", Options(workers=3)),
        ("copy --repeats 3", Options(workload="copy", repeats=3)),
    ],
)
def test_the_command_line_reads_into_options(words: str, options: Options) -> None:
    assert options_of(parser().parse_words(words.split())) == options


@pytest.mark.parametrize(
    "words, message",
    [
        ("sum --json missing/report.json", "cannot write"),
        ("sum --json .", "cannot write"),
        ("sum --compare a b c", "one or two files"),
        ("sum --repeats 0", "--repeats takes 1 or more"),
        ("sum --scaling wide", "--scaling: invalid choice: 'wide'"),
        ("matmul --shape 100", "--shape is for the sum"),
    ],
)
def test_bad_arguments_are_refused_before_a_run(words: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        options_of(parser().parse_words(words.split()))


def test_importing_the_benchmark_imports_nothing_heavy() -> None:
    heavy = "{'dask', 'distributed', 'numpy', 'matplotlib', 'pandas'}"
    code = f"import sys, jupyter_gpucluster.benchmark; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
