"""The tool that lets something happen on the simulated site."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jupyter_gpucluster.head.simulator import site as site_rules

CHECKOUT = Path(__file__).parent.parent


def tool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.demo_site", *words],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_says_when_there_is_no_site_yet(home: Path) -> None:
    found = tool("show")
    assert found.returncode == 1
    assert "no demo cluster was started yet" in found.stderr


def test_it_pushes_the_clock_and_lets_nodes_fail(root: Path) -> None:
    root.mkdir(parents=True)
    assert tool("push", "120").returncode == 0
    assert tool("fail", "demo01", "60").returncode == 0
    with site_rules.opened(site_rules.site_file(root)) as site:
        assert site[0].pushed == 120
        assert list(site[0].down) == ["demo01"]
    shown = tool("show").stdout.splitlines()
    assert shown[:2] == ["demo01  down", "demo02  4 GPUs free"]


def test_what_it_cannot_read_is_one_line(root: Path) -> None:
    root.mkdir(parents=True)
    assert "there is no node moon" in tool("fail", "moon").stderr
    assert "cannot read 'push soon'" in tool("push", "soon").stderr
