"""Create and update virtual environments that clusters can run in."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from ..core.errors import InvalidInput, StateError
from ..launch.python_environments import (
    NEWEST,
    Environment,
    ask_python,
    check_python,
    expanded,
    require_new_enough,
    shown,
)
from .installers import Say, find_installer, install, installed_packages, run_installer

LOCK = "requirements.lock.txt"
UNFINISHED = ".gpucluster-unfinished"
"""A file in an environment that is not finished; its creator holds a lock on it."""
OURS = ("dask", "distributed", "bokeh")
"""Packages that an environment shares with this package, in the range of our requirements."""
FAMILY = frozenset({"dask", "distributed", "dask-cuda", "rapids-dask-dependency"})
"""Packages that decide the version of Dask, if users name one or it is installed."""
SECRETS = re.compile(r"(?<=[ps]:)//[^/@\s]+@")


@dataclass(frozen=True)
class Wanted:
    """The environment to create.

    ``python`` is the Python to create it from (empty = this process's own), ``cuda`` a major
    version or empty, ``installer`` ``uv``, ``pip`` or empty.
    """

    place: Path
    packages: tuple[str, ...] = ()
    requirements: tuple[Path, ...] = ()
    cuda: str = ""
    python: str = ""
    installer: str = ""


@dataclass(frozen=True)
class Made:
    """An environment after it was created or updated."""

    environment: Environment
    lock: Path
    new: bool


def environment_place(text: str) -> Path:
    """Return the absolute path of an environment, with its links: nodes may see other targets."""
    if not text.strip() or not text.isprintable() or os.pathsep in text:
        raise InvalidInput(
            f"{shown(text)!r} cannot be the folder of an environment.",
            hint=f"Give a path on one line without {os.pathsep!r}, which separates paths.",
            detail="path",
        )
    place = expanded(text, "path").absolute()
    return place.resolve() if ".." in place.parts else place


def make_environment(wanted: Wanted, say: Say) -> Made:
    """Create an environment, or install into an existing one.

    Parameters
    ----------
    say
        Receives each line of progress.

    Raises
    ------
    InvalidInput
        The folder holds something else, or a file or program is missing.
    UnsuitableEnvironment
        The Python is too old, or does not start.
    InstallationFailed
        An installer failed.  Everything that this call created is deleted.
    """
    installer = find_installer(wanted.installer)
    _check_sources(wanted)
    place = wanted.place
    python = str(place / "bin" / "python")
    new = not _is_environment(place)
    if new:
        base = wanted.python or sys.executable
        require_new_enough(base)
        with _creating(place, say) as claim:
            say(f"creating {place} with {base}")
            run_installer([base, "-I", "-m", "venv", str(place)], say, claim)
            _fill(wanted, installer, say, claim, has_cuda=False)
    else:
        if wanted.python:
            say(f"{place} exists already and keeps its Python")
        require_new_enough(python, hint=f"Delete {place} to have it created again.")
        has_cuda = "dask_cuda" in ask_python(python).versions
        _fill(wanted, installer, say, has_cuda=has_cuda)
    return Made(check_python(python), place / LOCK, new)


def _fill(wanted: Wanted, installer: str, say: Say, *claim: int, has_cuda: bool) -> None:
    """Install the packages, and write the list of what is installed."""
    python = str(wanted.place / "bin" / "python")
    files = [word for file in wanted.requirements for word in ("-r", str(file))]
    packages = [*requirements_for(wanted, has_cuda=has_cuda), *wanted.packages]
    say(f"installing with {installer}: {SECRETS.sub('//***@', ' '.join(packages))}")
    install(installer, python, [*files, *packages], say, *claim)
    version = ask_python(python).versions["python"]
    heading = f"# What is installed in {wanted.place}, with Python {version}."
    lines = [heading, *installed_packages(installer, python), ""]
    new = (wanted.place / LOCK).with_suffix(".new")
    new.write_text("\n".join(lines), "utf-8", "surrogateescape")
    new.replace(wanted.place / LOCK)


def requirements_for(wanted: Wanted, *, has_cuda: bool) -> list[str]:
    """Return the packages that clusters need, as requirements.

    Client, scheduler and workers must have the same Dask: that of this process, unless dask-cuda,
    which pins its own, or the user decides.
    """
    decided = bool(wanted.cuda or has_cuda or _named(wanted) & FAMILY)
    lines = ["ipykernel"]
    for requirement in map(Requirement, metadata.requires("jupyter-gpucluster") or ()):
        name, marker = requirement.name, requirement.marker
        if name in OURS and marker is None:
            # No index has local versions (the part after a plus).
            own = f"{name}=={metadata.version(name).partition('+')[0]}"
            if name == "bokeh":  # a new environment gets no newer one than was tested
                tested = Version(NEWEST[name])
                requirement.specifier &= f"<{tested.major}.{tested.minor + 1}"
                own = str(requirement)
            lines.append(str(requirement) if decided else own)
        elif wanted.cuda and marker and marker.evaluate({"extra": f"cuda{wanted.cuda}"}):
            requirement.marker = None
            lines.append(str(requirement))
    if has_cuda and not wanted.cuda:
        lines.append("dask-cuda")  # installers respect the pins of packages that are named
    return lines


def _named(wanted: Wanted) -> set[str]:
    """Return the normalized names of the packages that the user requests."""
    lines = list(wanted.packages)
    for file in wanted.requirements:
        lines += file.read_text("utf-8", "replace").splitlines()
    names = set()
    for line in lines:
        with contextlib.suppress(InvalidRequirement):  # an option, an address, a comment
            names.add(Requirement(line.partition(" #")[0].strip(" \\")).name)
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


def _check_sources(wanted: Wanted) -> None:
    """Refuse at once what would fail only after minutes."""
    for file in wanted.requirements:
        # It is read twice, which a pipe cannot be.
        if not os.access(file, os.R_OK) or not file.is_file():
            raise InvalidInput(
                f"There is no readable file {shown(str(file))}.",
                hint="Give a list of requirements, as `pip freeze` prints it.",
                detail="requirements",
            )


# Folders.


def _is_environment(place: Path) -> bool:
    """Return whether an environment exists; False where one may be created.

    Raises
    ------
    InvalidInput
        The folder holds something else, or is no folder.
    """
    try:
        found = {entry.name for entry in place.iterdir()}
    except FileNotFoundError:
        if not place.is_symlink():
            return False
        raise InvalidInput(f"{place} is a broken link.", detail="path") from None
    except OSError as error:
        raise InvalidInput(
            f"{place} cannot be the folder of an environment: {error.strerror}.", detail="path"
        ) from error
    if not found or UNFINISHED in found or "pyvenv.cfg" in found:
        return bool(found) and UNFINISHED not in found
    hint = "Choose a folder that is empty or does not exist."
    if "conda-meta" in found:
        hint = f"Install into conda's environments with conda, and register it: kernel {place}"
    raise InvalidInput(f"{place} is not a virtual environment.", hint=hint, detail="path")


@contextlib.contextmanager
def _creating(place: Path, say: Say) -> Iterator[int]:
    """Create a folder for an environment; on any failure, delete everything that was created.

    Yields the descriptor that holds the lock; installers inherit it, since they may outlive us.
    """
    folders = [folder for folder in (place, *place.parents) if not folder.exists()]
    mark = place / UNFINISHED
    try:
        place.mkdir(parents=True, exist_ok=True)
        left = mark in place.iterdir()
        flags = os.O_RDWR | os.O_NOFOLLOW | (0 if left else os.O_CREAT | os.O_EXCL)
        with os.fdopen(os.open(mark, flags, 0o644), "wb") as file:
            _lock(file.fileno(), mark, left)
            if left:
                say(f"deleting the unfinished environment in {place}")
                _clear(place)
            try:
                yield file.fileno()
            except BaseException:
                with contextlib.suppress(OSError):  # what cannot be deleted keeps its mark
                    _clear(place)
                    mark.unlink()
                    say(f"deleted what was created in {place}")
                raise
            mark.unlink()  # while it is locked: whoever locks it next clears the folder
    except OSError as error:
        raise StateError(
            f"Cannot create {place}: {error.strerror}.",
            hint="Choose a folder that you can write to, or delete it.",
        ) from error
    finally:
        with contextlib.suppress(OSError):  # the first that is not empty
            for folder in folders:
                folder.rmdir()


def _lock(descriptor: int, mark: Path, left: bool) -> None:
    """Lock the mark; refuse a folder that another process uses."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        busy = not mark.exists()  # its creator finished while we opened it
    except OSError as error:
        # Without locks (some network file systems) only a mark that we created is safe.
        busy = left or isinstance(error, BlockingIOError)
    if not (busy or left) and len([*mark.parent.iterdir()]) > 1:  # since `_is_environment`
        mark.unlink()
        busy = True
    if busy:
        raise StateError(
            f"Another process seems to be using {mark.parent}.",
            hint="Wait for it; delete the folder if there is no such process; or choose another.",
        )


def _clear(place: Path) -> None:
    """Delete all but the mark, which alone shows that the rest is unfinished."""
    for entry in place.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != UNFINISHED:
            entry.unlink()
