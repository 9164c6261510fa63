"""Ask a Python interpreter what is installed beside it, without importing any of it."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from ..core.errors import InvalidInput

PROBE_SECONDS = 15.0

PACKAGES = {
    "dask": "dask",
    "distributed": "distributed",
    "dask-cuda": "dask_cuda",
    "bokeh": "bokeh",
    "cryptography": "cryptography",
    "ipykernel": "ipykernel",
    "jupyter-gpucluster": "jupyter_gpucluster",
    # Wheels name the CUDA version, conda's package does not.
    "distributed-ucxx": "distributed_ucxx",
    "distributed-ucxx-cu12": "distributed_ucxx",
    "distributed-ucxx-cu13": "distributed_ucxx",
}
"""Name of the distribution -> key in ``versions``."""

# No secrets: of the variables only those that decide what a Python finds.  A Python out of a
# module system does not even start without LD_LIBRARY_PATH.
PASSED_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "PYTHONNOUSERSITE",
)

PROBE_MARK = "gpucluster-probe:"
# Runs on any Python 3, so that an old one can say that it is old; hence no `-P`, which is 3.11's.
PROBE = f"""
import sys
sys.path = [p for p in sys.path if p]
import json, platform, sysconfig
versions = {{}}
try:
    from importlib import metadata
except ImportError:
    metadata = None
for name, key in {PACKAGES!r}.items() if metadata else ():
    try:
        versions[key] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
paths = sorted({{sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}})
print({PROBE_MARK!r} + json.dumps(
    {{"python": platform.python_version(), "versions": versions, "paths": paths}}))
"""

Stamp = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Interpreter:
    """What an interpreter said of itself; ``trouble`` is why it said nothing.

    ``versions`` has "python" and those keys of `PACKAGES` that are installed; ``paths`` are the
    directories where that would change.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    trouble: str = ""


_known: dict[str, tuple[Stamp, Interpreter]] = {}
_known_lock = threading.Lock()


def ask_python(python: str) -> Interpreter:
    """Return what a Python says; it is asked again only after something was installed there."""
    if python == sys.executable:
        return _ask_ourselves()
    with _known_lock:
        known = _known.get(python)
    if known and known[0] == _stamp(python, known[1].paths):
        return known[1]
    answer = _ask(python)
    if not answer.trouble:
        with _known_lock:
            _known[python] = (_stamp(python, answer.paths), answer)
    return answer


def python_at(path: str) -> str:
    """Return the absolute path of a Python, given itself, its name or its environment's folder."""
    if not path.strip() or not path.isprintable():
        raise InvalidInput(f"{shown(path)!r} is no path of a Python.", detail="python")
    place = expanded(path, "python").absolute()
    if "/" not in path and not place.exists():
        place = Path(shutil.which(path) or place)
    inside = place / "bin" / "python"
    return str(inside if inside.exists() else place)


def expanded(path: str, field: str) -> Path:
    """Return a path with the home that ``~`` stands for."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # of a user who does not exist
        raise InvalidInput(f"There is no home of {shown(path)}.", detail=field) from None


def shown(python: str) -> str:
    """Return a path for a message: on one line, and not endless."""
    return python if python.isprintable() and len(python) <= 300 else ascii(python[:80])


def _stamp(python: str, paths: tuple[str, ...]) -> Stamp:
    """Return the times of all that an installation changes."""
    stamp = []
    for path in (python, str(Path(python).parent.parent / "pyvenv.cfg"), *paths):
        with contextlib.suppress(OSError):
            stamp.append((path, Path(path).stat().st_mtime_ns))
    return tuple(stamp)


def _ask_ourselves() -> Interpreter:
    versions = {"python": platform.python_version()}
    for name, key in PACKAGES.items():
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[key] = metadata.version(name)
    return Interpreter(versions)


def _ask(python: str) -> Interpreter:
    path = Path(python)
    name = shown(python)
    if not _exists(path):
        return Interpreter(trouble=f"{name} does not exist; check the path.")
    if path.is_dir() and (path / "bin" / "python").exists():
        return Interpreter(trouble=f"{name} is a folder; give {path / 'bin' / 'python'}.")
    # A kernel may start through a script that would take our arguments for something else.
    if not re.search(r"python|pypy", path.name):
        return Interpreter(trouble=f"{name} is not a Python; choose an environment by its Python.")
    try:
        answer = subprocess.run(
            [python, "-c", PROBE],
            cwd="/",
            env={n: os.environ[n] for n in PASSED_VARIABLES if n in os.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Interpreter(trouble=f"{name} did not answer in {PROBE_SECONDS:.0f} s; try again.")
    except OSError as error:
        return Interpreter(trouble=f"{name} does not start ({error.strerror}); check the path.")
    return _parse(name, answer)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name longer than any file's
        return False


def _parse(name: str, answer: subprocess.CompletedProcess[str]) -> Interpreter:
    for line in answer.stdout.splitlines():
        if line.startswith(PROBE_MARK):
            with contextlib.suppress(ValueError, LookupError, TypeError):  # no Python, then
                told = json.loads(line.removeprefix(PROBE_MARK))
                versions = {"python": told["python"], **told["versions"]}
                return Interpreter(versions, tuple(told["paths"]))
    last = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
    return Interpreter(trouble=f"{name} fails: {last}")
