"""The head opens as many files as its hard limit admits; what it starts does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_gpucluster.head import process

PROGRAM = Path(process.__file__).with_name("__main__.py")
LIMITS = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 1000))
from jupyter_gpucluster.host.processes import raise_open_files
from jupyter_gpucluster.batch.queue import JobServerRunner, ProcessRunner

def shown():
    return ["sh", "-c", "ulimit -Sn; ulimit -Hn"]

async def look():
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))
    print(*(await ProcessRunner().run(shown())).stdout.split(), flush=True)
    runner = JobServerRunner(lambda channel: shown(), {"PATH": "/usr/bin:/bin"})
    await runner.close()

if "raised" in sys.argv:
    raise_open_files()
    raise_open_files()
asyncio.run(look())
"""


def lines_of(*words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LIMITS, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")[:4]


def test_what_is_started_keeps_the_limit_that_the_head_came_with() -> None:
    assert lines_of("raised") == ["1000 1000", "200 1000", "200", "1000"]
    assert lines_of() == ["200 1000", "200 1000", "200", "1000"]


@pytest.mark.parametrize("job", [False, True])
def test_a_head_raises_its_limit_first_of_all(job: bool, tmp_path: Path) -> None:
    # Its main function, up to where it first looks at its directory.
    shim = tmp_path / "shim.py"
    shim.write_text(
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (200, 1000))\n"
        "from jupyter_gpucluster.head import process\n"
        "def look(path):\n"
        "    print(*resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)\n"
        "    raise SystemExit(3)\n"
        "process.check_private = look\n"
        "process.main(sys.argv[1:])\n"
    )
    words = ["--directory", str(tmp_path), "--scratch", str(tmp_path)]
    words += ["--workers", "1"] if job else []
    done = subprocess.run(
        [sys.executable, str(shim), *words], capture_output=True, text=True, check=False
    )
    assert done.stdout == "1000 1000\n"
