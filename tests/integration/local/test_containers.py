"""A real worker behind a stand-in for a container's runtime, which nobody can install here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from .conftest import Start, WriteProfile
from .driving import client_of

RUNTIME = """\
#!/bin/bash
# Looks at what it is told as Apptainer does, then runs the command where it is.
[ "$1" = exec ] || exit 64
shift
while [ "$1" = --bind ]; do
    [ -e "$2" ] || { echo "mount source $2 doesn't exist" >&2; exit 65; }
    echo "bound $2" >>"$SEEN"
    shift 2
done
[ "$1" = image.sif ] || exit 66
shift
export APPTAINER_NAME=image.sif
exec "$@"
"""


def test_a_worker_in_a_container_computes(
    home: Path, start: Start, write_profile: WriteProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = home / "bin" / "apptainer"
    runtime.parent.mkdir()
    runtime.write_text(RUNTIME)
    runtime.chmod(0o755)
    monkeypatch.setenv("PATH", f"{runtime.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SEEN", str(home / "seen"))
    container = f"{{runtime: apptainer, image: image.sif, python: {sys.executable}}}"
    view = start(write_profile("boxed", f"environment: {{container: {container}}}\n"))
    with client_of(view) as client:
        assert set(client.run(os.getenv, "APPTAINER_NAME").values()) == {"image.sif"}
        assert client.submit(sum, [1, 2]).result() == 3
    assert f"bound {view.directory}\n" in (home / "seen").read_text()
