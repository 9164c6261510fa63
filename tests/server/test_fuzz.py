"""Requests that schemathesis makes from the OpenAPI description: each answer is as described."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.server.doubles import InMemoryClusters
from tests.server.test_routes import REQUESTS

CHECKOUT = Path(__file__).parents[2]
SCHEMATHESIS = CHECKOUT / ".venv" / "schemathesis"
"""Apart from the environment, where its plugin for pytest would be loaded; `tools/setup.py`."""


@pytest.mark.slow
async def test_schemathesis_finds_nothing(
    clusters: InMemoryClusters,
    jp_http_port: int,
    jp_base_url: str,
    jp_auth_header: dict[str, str],
    http_server_client: object,
    tmp_path: Path,
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "run"),
        str(CHECKOUT / "jupyter_gpucluster" / "server" / "openapi.yaml"),
        f"--url=http://127.0.0.1:{jp_http_port}{jp_base_url}",
        f"--header=Authorization: {jp_auth_header['Authorization']}",
        # A profile says no to much that the description allows, in the same words as `check`.
        "--exclude-checks=positive_data_acceptance",
        "--exclude-path-regex=/gpucluster/dashboard",
        *("--phases=coverage,fuzzing", "--max-examples=10", "--seed=20261128"),
        *("--generation-database=none", "--no-color"),
        env={**os.environ, "PYTHONPATH": str(SCHEMATHESIS)},
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told = (await process.communicate())[0].decode()
    assert process.returncode == 0, told
    assert f"Tested: {len(REQUESTS)}\n" in told, told
