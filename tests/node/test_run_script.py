"""A script that does not begin is reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jupyter_gpucluster.node import run_script


def test_a_script_that_is_no_python_is_reported_as_python_reports_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('begun')\n%matplotlib inline\n")
    plain, here = (
        subprocess.run(
            [sys.executable, *program, "script.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        for program in ([], [run_script.__file__])
    )
    assert (here.returncode, here.stdout) == (1, "")
    # Python itself reports the whole path.
    assert here.stderr == plain.stderr.replace(f"{tmp_path}/", "")
