"""Make virtual environments that clusters fit in, and complete those that are there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO

from packaging.requirements import InvalidRequirement, Requirement

from ..core.errors import GpuClusterError, InvalidInput, StateError, UnsuitableEnvironment
from ..launch.interpreters import ask_python, expanded, shown
from ..launch.python_environments import Environment, check_python, require_new_enough
from .installers import Say, find_installer, install_command, installed_packages, run_installer

LOCK = "requirements.lock.txt"
UNFINISHED = ".gpucluster-unfinished"
"""Lies in an environment while it is made, and is locked by who makes it."""
OURS = ("dask", "distributed", "bokeh")
"""What an environment shares with this package, within the bounds of its own requirements."""
FAMILY = frozenset({"dask", "distributed", "dask-cuda", "rapids-dask-dependency"})
"""Where users name one of these, or it is there, it decides which Dask it is."""
SECRETS = re.compile(r"(?<=[ps]:)//[^/@\s]+@")


@dataclass(frozen=True)
class Wanted:
    """What an environment is to be.

    ``python`` is the one that it is made of; empty = this process's own, for a new one.  ``cuda``
    is a major version or empty; ``installer`` is ``uv``, ``pip`` or empty.
    """

    place: Path
    packages: tuple[str, ...] = ()
    requirements: tuple[Path, ...] = ()
    cuda: str = ""
    python: str = ""
    installer: str = ""


@dataclass(frozen=True)
class Made:
    """An environment as it was found after it was made or completed."""

    environment: Environment
    lock: Path
    new: bool


def environment_place(text: str) -> Path:
    """Return the absolute path of an environment; links stay, since nodes may see others."""
    if not text.strip() or not text.isprintable() or os.pathsep in text:
        raise InvalidInput(
            f"{shown(text)!r} cannot be the folder of an environment.",
            hint=f"Give a path on one line without {os.pathsep!r}, which separates paths.",
            detail="path",
        )
    place = expanded(text, "path").absolute()
    return place.resolve() if ".." in place.parts else place


def make_environment(wanted: Wanted, say: Say) -> Made:
    """Make an environment, or complete the one that is there.

    Parameters
    ----------
    say
        Takes each line about what goes on.

    Raises
    ------
    InvalidInput
        Something else lies there, or a file or program is missing.
    UnsuitableEnvironment
        The Python is too old, or does not start.
    InstallationFailed
        An installer failed.  Nothing that this call made is left.
    """
    installer = find_installer(wanted.installer)
    _check_sources(wanted)
    place = wanted.place
    python = str(place / "bin" / "python")
    there = _is_environment(place)
    if there:
        if wanted.python:
            say(f"{place} is there already and keeps its Python")
        try:
            require_new_enough(python)
        except UnsuitableEnvironment as error:
            error.hint = f"Delete {place} to have it made anew."
            raise
        has_cuda = "dask_cuda" in ask_python(python).versions
        _fill(wanted, installer, say, has_cuda=has_cuda)
    else:
        base = wanted.python or sys.executable
        require_new_enough(base)
        with _making(place, say) as claim:
            say(f"making {place} with {base}")
            run_installer([base, "-I", "-m", "venv", str(place)], say, claim)
            _fill(wanted, installer, say, claim, has_cuda=False)
    return Made(check_python(python), place / LOCK, not there)


def _fill(wanted: Wanted, installer: str, say: Say, *claim: int, has_cuda: bool) -> None:
    """Install what is wanted, and write down what is there afterwards."""
    python = str(wanted.place / "bin" / "python")
    files = [word for file in wanted.requirements for word in ("-r", str(file))]
    packages = [*requirements_for(wanted, has_cuda=has_cuda), *wanted.packages]
    say(f"installing with {installer}: {SECRETS.sub('//***@', ' '.join(packages))}")
    run_installer([*install_command(installer, python), *files, *packages], say, *claim)
    _write_lock(wanted.place, installed_packages(installer, python))


def requirements_for(wanted: Wanted, *, has_cuda: bool) -> list[str]:
    """Return what an environment needs for clusters, in an installer's words.

    Client, scheduler and workers must have one Dask: that of this process, unless dask-cuda, which
    pins its own, or the user decides.
    """
    own = ask_python(sys.executable).versions
    decided = bool(wanted.cuda or has_cuda or _named(wanted) & FAMILY)
    lines = ["ipykernel"]
    for requirement in _own_requirements():
        name, marker = requirement.name, requirement.marker
        if name in OURS and marker is None:
            # No index has what stands behind a plus.
            exact = "" if decided or name == "bokeh" else own.get(name, "").partition("+")[0]
            lines.append(f"{name}=={exact}" if exact else str(requirement))
        elif wanted.cuda and marker and marker.evaluate({"extra": f"cuda{wanted.cuda}"}):
            requirement.marker = None
            lines.append(str(requirement))
    if has_cuda and not wanted.cuda:
        lines.append("dask-cuda")  # installers heed what binds packages that they are told of
    return lines


def _own_requirements() -> list[Requirement]:
    try:
        return [Requirement(line) for line in metadata.requires("jupyter-gpucluster") or ()]
    except metadata.PackageNotFoundError:
        raise GpuClusterError(
            "This package is not installed, so its own requirements are not known.",
            hint="Install it instead of putting its folder on PYTHONPATH.",
        ) from None


def _named(wanted: Wanted) -> set[str]:
    """Return the names of packages that the user asks for, as indexes compare them."""
    lines = list(wanted.packages)
    for file in wanted.requirements:
        lines += file.read_text("utf-8", "replace").splitlines()
    names = set()
    for line in lines:
        with contextlib.suppress(InvalidRequirement):  # an option, an address, a comment
            names.add(Requirement(line.partition(" #")[0].strip(" \\")).name)
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


def _check_sources(wanted: Wanted) -> None:
    """Refuse what would fail only after minutes."""
    for file in wanted.requirements:
        # It is read twice, which a pipe cannot be.
        if not os.access(file, os.R_OK) or not file.is_file():
            raise InvalidInput(
                f"There is no file {shown(str(file))} that can be read.",
                hint="Give a list of requirements, as `pip freeze` prints it.",
                detail="requirements",
            )
    from_git = any("git+" in package for package in wanted.packages)
    if from_git and shutil.which("git") is None:
        raise InvalidInput(
            "There is no git on PATH, which packages from git need.",
            hint="Install it, or load its module.",
            detail="packages",
        )


# Places.


def _is_environment(place: Path) -> bool:
    """Tell whether an environment is there; False where one may be made.

    Raises
    ------
    InvalidInput
        Something else is there.
    """
    try:
        found = {entry.name for entry in place.iterdir()}
    except FileNotFoundError:
        if place.is_symlink():
            raise InvalidInput(f"{place} is a link to nothing.", detail="path") from None
        return False
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be the folder of an environment: {error.strerror}.", detail="path"
        ) from error
    if not found or UNFINISHED in found:
        return False
    if "pyvenv.cfg" in found:
        return True
    way = (
        f"Install into conda's environments with conda; kernel {place} registers it."
        if "conda-meta" in found
        else "Choose a folder that is empty, or not there yet."
    )
    raise InvalidInput(
        f"{place} is there already and is no virtual environment.", hint=way, detail="path"
    )


@contextlib.contextmanager
def _making(place: Path, say: Say) -> Iterator[int]:
    """Make a folder for an environment; take away all that was made unless all goes well.

    Yields the descriptor that holds the claim to the place: what works there shall hold it, too.
    """
    made = [folder for folder in (place, *place.parents) if not folder.exists()]
    mark = place / UNFINISHED
    try:
        place.mkdir(parents=True, exist_ok=True)
        file, new = _open_mark(mark)
    except OSError as error:
        _remove_empty(made)
        raise StateError(
            f"Cannot make {place}: {error.strerror}.", hint="Choose a place that you may write to."
        ) from error
    with file:
        _claim(file.fileno(), place)
        if len(list(place.iterdir())) > 1:
            if new:  # it came after we had looked, so nobody was killed at it
                mark.unlink()
                raise StateError(
                    f"Something was put into {place} just now.",
                    hint="Try again, or choose another place.",
                )
            say(f"removing what was left unfinished in {place}")
            _clear(place)
        try:
            yield file.fileno()
        except BaseException:
            say(f"removing what was made of {place}")
            with contextlib.suppress(StateError):  # what cannot be deleted keeps its mark
                _clear(place)
                mark.unlink()
                file.close()  # some network file systems keep a file that is open
                _remove_empty(made)
            raise
        mark.unlink()  # while it is locked: whoever claims the place next would clear it


def _open_mark(mark: Path) -> tuple[IO[bytes], bool]:
    """Open an environment's mark; tell whether it is new."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    try:
        return os.fdopen(os.open(mark, flags | os.O_EXCL, 0o644), "wb"), True
    except FileExistsError:
        return os.fdopen(os.open(mark, flags, 0o644), "wb"), False


def _claim(descriptor: int, place: Path) -> None:
    """Refuse a place where another process is at work."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not (place / UNFINISHED).exists():  # who held it is done, and took it away
            raise BlockingIOError
    except OSError as error:
        # Without locks nobody knows whose it is, unless it is empty but for the mark.
        if isinstance(error, BlockingIOError) or len(list(place.iterdir())) > 1:
            raise StateError(
                f"Another process makes {place}, as it seems.",
                hint="Wait for it; delete the folder if there is none.",
            ) from None


def _clear(place: Path) -> None:
    """Delete all but the mark, without which nobody would know that the rest is unfinished."""
    try:
        for entry in place.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != UNFINISHED:
                entry.unlink()
    except OSError as error:
        raise StateError(
            f"What is unfinished in {place} cannot be deleted: {error.strerror}.",
            hint="Delete the folder, or choose another place.",
        ) from error


def _remove_empty(folders: Iterable[Path]) -> None:
    with contextlib.suppress(OSError):  # somebody uses it by now
        for folder in folders:
            folder.rmdir()


def _write_lock(place: Path, lines: Iterable[str]) -> None:
    version = ask_python(str(place / "bin" / "python")).versions["python"]
    text = "\n".join([f"# What is installed in {place}, with Python {version}.", *lines])
    file = place / LOCK
    new = file.with_suffix(".new")
    new.write_text(text + "\n", "utf-8", "surrogateescape")
    new.replace(file)
