"""Python environments a cluster may run in, what is installed there, and what each lacks."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

from ..core.errors import InvalidInput, UnsuitableEnvironment

SUPPORTED_PYTHON = (3, 11)
"""Oldest Python that the head runs on."""

OLDEST_DASK = "2026.1.1"
"""Oldest version of Dask and distributed that is supported."""
NEWEST = {"distributed": "2026.8", "bokeh": "3.9"}
"""Newest releases that the tests run on; a newer one is a warning."""

ASKED_AT_A_TIME = 8
"""Interpreters mostly wait for a file system."""

OWN_KERNEL_COMMANDS = ("python", "python3", f"python3.{sys.version_info.minor}")
"""Commands that jupyter_client replaces by the interpreter it runs on itself."""

NAME_IT = "name its Python with --python PATH, or register a kernel of it: kernel PATH"

WRAPPED = (
    "Its kernel starts through {}: what that sets (modules, activation) is not set for clusters;"
    " environment.prologue of a profile can set it."
)

PYTHON_NAME = re.compile(r"python|pypy")

CONDA = ("conda", "mamba", "micromamba")

SCRIPT_BYTES = 1 << 16
"""More than any launcher script of a kernel has."""

PYTHON_OF_KERNEL = re.compile(
    r"""(/[^\s"';&|()$`]*/(?:python|pypy)[\d.]*)["']?(?:\s+-(?!m\b)\S+)*\s+-m\s+ipykernel"""
)
"""An absolute Python that a wrapper runs a kernel with."""

OTHER_ROOTS = re.compile(
    r"\b(apptainer|singularity|docker|podman|podman-hpc|shifter|sarus|charliecloud|ch-run|enroot"
    r"|ssh|srun|kubectl|chroot|bwrap)\b"
)
"""Programs by which a wrapper runs a kernel in another file system or on another host."""

KERNEL_METADATA = "gpucluster"
"""Under which a kernel that `kernels` registered says which Python it runs."""

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
    "PATH HOME USER LANG LC_ALL TMPDIR LD_LIBRARY_PATH PYTHONPATH PYTHONUSERBASE PYTHONNOUSERSITE"
).split()

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


@dataclass(frozen=True)
class Environment:
    """One Python that a cluster may run in.

    ``versions`` maps "python", "dask", "distributed", "dask_cuda", "distributed_ucxx", "bokeh",
    "ipykernel", "cryptography" and "jupyter_gpucluster" to what is installed; a package that is
    missing has no key.  ``problems`` each name their fix; with ``suitable`` they are no obstacle.
    ``gpu_problems`` matter on a GPU profile only.
    """

    name: str
    title: str
    python: str
    suitable: bool
    problems: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    gpu_problems: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables from the kernel's own file, for head and workers, too."""


def list_environments() -> list[Environment]:
    """Return this interpreter and those of the Python kernels, each asked what it has."""
    candidates = _candidates()
    # Several kernels often share an interpreter, which is then asked once.
    asked = {_question(c.python, c.variables): c for c in candidates if c.python}
    with ThreadPoolExecutor(max_workers=ASKED_AT_A_TIME) as pool:
        answers = pool.map(lambda c: ask_python(c.python, c.variables), asked.values())
        known = dict(zip(asked, answers, strict=True))
    return [
        _judge(c, known[_question(c.python, c.variables)]) if c.python else c for c in candidates
    ]


def check_python(path: str | Path) -> Environment:
    """Return what a Python, given by its path, has and lacks; ``~`` is the home directory."""
    expanded = Path(path)
    with contextlib.suppress(RuntimeError):  # ~ of a user who does not exist
        expanded = expanded.expanduser()
    python = str(expanded.absolute())
    return _check(Environment("", shown(python), python, suitable=False))


def find_kernel(name: str) -> Environment:
    """Return the environment of a Python kernel by its name.

    Raises
    ------
    InvalidInput
        There is no Python kernel of that name.
    """
    by_name = {c.name: c for c in _candidates()}
    if name not in by_name:
        close = difflib.get_close_matches(name, by_name, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(by_name)}."
        raise InvalidInput(f"No Python kernel is called {name[:80]!a}.", hint=hint, detail="kernel")
    return _check(by_name[name])


def require_suitable(environment: Environment) -> Environment:
    """Return the environment, or raise `UnsuitableEnvironment` with its problems."""
    if environment.suitable:
        return environment
    raise UnsuitableEnvironment(
        f"{environment.title} cannot run a cluster: {environment.problems[0]}",
        hint="Choose another environment, repair this one, or make one (command environment).",
        detail="\n".join(environment.problems),
    )


def require_new_enough(python: str, hint: str = "Choose another Python.") -> None:
    """Raise `UnsuitableEnvironment` where an environment of this Python would not do."""
    interpreter = ask_python(python)
    trouble = interpreter.trouble or _too_old(interpreter.versions["python"])
    if trouble:
        raise UnsuitableEnvironment(trouble, hint=hint, detail="python")


def has_ucx(environment: Environment) -> bool:
    """Return whether a cluster there could use UCX."""
    return "distributed_ucxx" in environment.versions


def require_ucx(environment: Environment, what: str = "network.protocol: ucx") -> None:
    """Raise `UnsuitableEnvironment` where nothing could speak UCX, which something needs."""
    if not has_ucx(environment):
        fix = install_words(environment.python, "distributed-ucxx-cu12")
        raise UnsuitableEnvironment(
            f"{environment.title} lacks distributed-ucxx, which {what} needs.",
            hint=f"{fix[0].upper()}{fix[1:]} (or cu13), or take another Python or protocol.",
            detail="python",
        )


# Which there are.


def _candidates() -> list[Environment]:
    """Return what there is to ask; one that cannot be asked has a problem already."""
    # Importing jupyter_client takes 0.15 s, which checking one Python by its path does not need.
    from jupyter_client.kernelspec import KernelSpecManager

    specs: dict[str, dict[str, Any]] = KernelSpecManager().get_all_specs()
    kernels = [
        _kernel(name, entry["spec"], entry.get("resource_dir", ""))
        for name, entry in sorted(specs.items())
        if entry["spec"].get("language", "").lower() == "python"
    ]
    own = [k for k in kernels if k.python == sys.executable and not k.variables]
    if not own:
        title = f"Python {platform.python_version()} (Jupyter's own)"
        own = [Environment("jupyter", title, sys.executable, suitable=False)]
    return own + [k for k in kernels if k not in own]


def _kernel(name: str, spec: Mapping[str, Any], folder: str) -> Environment:
    """Return a kernel with its Python and variables, found as jupyter_client finds them.

    ``python`` is empty if nothing tells it; ``problems`` then has the reason.
    """
    variables = {
        key: Template(value).safe_substitute(os.environ)
        for key, value in (spec.get("env") or {}).items()
    }
    places = {"{prefix}": sys.prefix, "{resource_dir}": folder}
    argv = [
        re.sub(r"\{\w+\}", lambda match: places.get(match[0], match[0]), word)
        for word in spec.get("argv") or [""]
    ]
    if argv[0] in OWN_KERNEL_COMMANDS:
        argv[0] = sys.executable
    if registered := _registered_python(spec):
        argv = [registered]
    while Path(argv[0]).name == "env" and len(argv) > 1:
        argv = argv[1:]
        while "=" in argv[0] and len(argv) > 1:
            key, _, variables[key] = argv.pop(0).partition("=")
    title = spec.get("display_name") or name
    kernel = Environment(name, title, "", suitable=False, variables=variables)
    found = shutil.which(argv[0], path=variables.get("PATH"))
    if found is None:
        fix = "install the kernel again, or remove it with `jupyter kernelspec remove`"
        return replace(kernel, problems=(f"Its program {argv[0]!r} does not exist; {fix}.",))
    program = str(Path(found).absolute())
    if python := _wrapped_python(program, argv[1:]):
        return replace(kernel, python=python, problems=(WRAPPED.format(Path(program).name),))
    if PYTHON_NAME.search(Path(program).name):
        return replace(kernel, python=program)
    words = f"Its program {shown(program)} is not a Python and names none; {NAME_IT}."
    return replace(kernel, problems=(words,))


def _wrapped_python(program: str, arguments: list[str]) -> str:
    """Return the Python that a program runs the kernel with; empty if nothing safe tells it."""
    if Path(program).name in CONDA and arguments[:1] == ["run"]:
        options = dict(itertools.pairwise(arguments))
        place = options.get("-p") or options.get("--prefix")
        name = options.get("-n") or options.get("--name") or ""
        folders = (Path(program).resolve().parents[1], Path.home() / ".conda")
        places = [Path(place)] if place else [folder / "envs" / name for folder in folders]
        return next((str(p / "bin/python") for p in places if (p / "bin/python").exists()), "")
    text = " ".join([program, *arguments])
    for file in (program, *arguments):
        with contextlib.suppress(OSError, ValueError), open(file, "rb") as stream:  # noqa: PTH123
            start = stream.read(SCRIPT_BYTES)
            text += "\n" + start.decode(errors="replace") if start.startswith(b"#!") else ""
    found = set(PYTHON_OF_KERNEL.findall(text))
    if len(found) != 1 or OTHER_ROOTS.search(text):
        return ""
    [python] = found
    return python if os.access(python, os.X_OK) and python != program else ""


def _registered_python(spec: Mapping[str, Any]) -> str:
    """Return the Python of a kernel that this package registered, maybe by a launcher script."""
    metadata = spec.get("metadata")
    ours = metadata.get(KERNEL_METADATA) if isinstance(metadata, dict) else None
    return str(ours.get("python", "")) if isinstance(ours, dict) else ""


# What each of them lacks.


def _check(candidate: Environment) -> Environment:
    """Return a candidate with what its Python has and lacks, if it has a Python."""
    if not candidate.python:
        return candidate
    return _judge(candidate, ask_python(candidate.python, candidate.variables))


def _judge(candidate: Environment, interpreter: Interpreter) -> Environment:
    if interpreter.trouble:
        return replace(candidate, problems=(interpreter.trouble,))
    versions = interpreter.versions
    obstacles = _obstacles(candidate.python, versions)
    problems = obstacles or _warnings(candidate.python, versions)
    gpu_problems = []
    if "dask_cuda" not in versions:
        fix = install_words(candidate.python, "dask-cuda[cu12]")
        gpu_problems = [f"dask-cuda is missing, which GPU workers need; {fix} (or cu13)."]
    return replace(
        candidate,
        suitable=not obstacles,
        problems=(*problems, *candidate.problems),
        versions=dict(versions),
        gpu_problems=tuple(gpu_problems),
    )


def _obstacles(python: str, versions: Mapping[str, str]) -> list[str]:
    if too_old := _too_old(versions["python"]):
        return [too_old]
    fix = install_words(python, f"dask>={OLDEST_DASK}", f"distributed>={OLDEST_DASK}")
    found = {name: versions.get(name) for name in ("dask", "distributed")}
    if missing := [name for name, version in found.items() if version is None]:
        return [f"{' and '.join(missing)} not installed; {fix}."]
    old = [
        f"{name} {version}"
        for name, version in found.items()
        if version and _numbers(version) < _numbers(OLDEST_DASK)
    ]
    if old:
        return [f"{' and '.join(old)} not supported ({OLDEST_DASK} or newer); {fix}."]
    if found["dask"] != found["distributed"]:
        return [f"dask {found['dask']} and distributed {found['distributed']} differ; {fix}."]
    return []


def _warnings(python: str, versions: Mapping[str, str]) -> list[str]:
    """Return what is no obstacle to a cluster."""
    found = [
        f"{name} {versions[name]} is newer than the last tested ({newest})."
        for name, newest in NEWEST.items()
        if _numbers(versions.get(name, ""))[:2] > _numbers(newest)
    ]
    if "bokeh" not in versions:
        fix = install_words(python, "bokeh")
        found.append(f"bokeh is missing, so there is no dashboard; {fix}.")
    return found


def _too_old(version: str) -> str:
    if _numbers(version) >= SUPPORTED_PYTHON:
        return ""
    oldest = ".".join(map(str, SUPPORTED_PYTHON))
    return f"Python {version} is too old; make an environment with Python {oldest} or newer."


def install_words(python: str, *requirements: str) -> str:
    """Return how packages are installed into a Python's environment."""
    return f"install with `{shlex.join([python, '-m', 'pip', 'install', *requirements])}`"


def _numbers(version: str) -> tuple[int, ...]:
    """Return the release numbers of a version; what follows them (rc1, +local) is left out."""
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, release.group().split("."))) if release else ()


# What is installed beside an interpreter, asked without importing any of it.

Stamp = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Interpreter:
    """An interpreter's report of itself; ``trouble`` is the reason if it has none.

    ``versions`` has "python" and those keys of `PACKAGES` that are installed; ``paths`` are the
    directories where that would change.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    trouble: str = ""


Question = tuple[str, frozenset[tuple[str, str]]]
_known: dict[Question, tuple[Stamp, Interpreter]] = {}


def _question(python: str, variables: Mapping[str, str]) -> Question:
    return python, frozenset(variables.items())


def ask_python(python: str, variables: Mapping[str, str] = MappingProxyType({})) -> Interpreter:
    """Return what a Python says; it is asked again only after something was installed there.

    Parameters
    ----------
    variables
        What is set for it beside the variables of this process.
    """
    if python == sys.executable and not variables:
        return _ask_ourselves()
    question = _question(python, variables)
    known = _known.get(question)
    if known and known[0] == _stamp(python, known[1].paths):
        return known[1]
    answer = _ask(python, variables)
    if not answer.trouble:
        _known[question] = (_stamp(python, answer.paths), answer)
    return answer


def python_at(path: str) -> str:
    """Return the absolute path of a Python, given itself, its name or its environment's folder."""
    if not path.strip() or not path.isprintable():
        raise InvalidInput(f"{shown(path)!r} is not the path of a Python.", detail="python")
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
        raise InvalidInput(
            f"{shown(path)} names a home directory that does not exist.", detail=field
        ) from None


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


def _ask(python: str, variables: Mapping[str, str]) -> Interpreter:
    path = Path(python)
    name = shown(python)
    if not _exists(path):
        return Interpreter(trouble=f"{name} does not exist; check the path.")
    if path.is_dir() and (path / "bin" / "python").exists():
        return Interpreter(trouble=f"{name} is a folder; give {path / 'bin' / 'python'}.")
    # A kernel may start through a script that would take our arguments for something else.
    if not PYTHON_NAME.search(path.name):
        return Interpreter(trouble=f"{name} is not a Python; choose an environment by its Python.")
    try:
        answer = subprocess.run(
            [python, "-c", PROBE],
            cwd="/",
            env={n: os.environ[n] for n in PASSED_VARIABLES if n in os.environ} | {**variables},
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
                answered = json.loads(line.removeprefix(PROBE_MARK))
                versions = {"python": answered["python"], **answered["versions"]}
                return Interpreter(versions, tuple(answered["paths"]))
    last = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
    return Interpreter(trouble=f"{name} fails: {last}")
