"""Output of a real kubectl (1.20, and 1.35 where named) with the tests' own API server."""

from __future__ import annotations

import pytest

from jupyter_gpucluster.batch import find_backend

from .recorded import Recording, meaning_of_listing, meaning_of_submission, recordings

KUBERNETES = find_backend("kubernetes")


def file_of(recording: Recording) -> str:
    return recording.file


@pytest.mark.parametrize("recording", recordings("kubernetes", "status"), ids=file_of)
def test_a_listing_means_what_the_table_says(recording: Recording) -> None:
    read, expected = meaning_of_listing(KUBERNETES, recording)
    assert read == expected


@pytest.mark.parametrize("recording", recordings("kubernetes", "submit"), ids=file_of)
def test_a_submission_s_answer_means_what_the_table_says(recording: Recording) -> None:
    read, expected = meaning_of_submission(KUBERNETES, recording, 2)
    assert read == expected


def test_gpus_are_counted_on_the_nodes_and_in_the_pods() -> None:
    [recording] = recordings("kubernetes", "capacity")
    [found] = KUBERNETES.parse_capacity(recording.result)
    assert (found.partition, found.free, found.total) == ("NVIDIA-A100-SXM4-40GB", 6, 8)
