"""Clusters whose record cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_gpucluster.core.errors import HeadUnreachable
from jupyter_gpucluster.host.cluster_directory import ClusterDirectory
from jupyter_gpucluster.state.unread import ask_to_stop


def test_a_scheduler_without_a_known_address_is_named_with_the_way_to_kill_it(
    tmp_path: Path,
) -> None:
    directory = ClusterDirectory(tmp_path / "abc123")
    words = "Where the scheduler of cluster abc123 listens is not known."
    with pytest.raises(HeadUnreachable, match=words) as caught:
        ask_to_stop(directory, 1.0)
    assert "stop --force abc123" in caught.value.hint
