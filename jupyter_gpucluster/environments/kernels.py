"""Register kernels of an environment, with what a profile sets up in force, and remove them."""

from __future__ import annotations

import json
import logging
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import GpuClusterError, InvalidInput, StateError, UnsuitableEnvironment
from ..launch.interpreters import ask_python, expanded, python_at, shown
from ..launch.python_environments import KERNEL_METADATA, install_words
from ..launch.script.job import export_lines
from ..profiles import LoadedProfile, Profile, apply_options
from ..profiles.options import targets
from ..profiles.placeholders import placeholders

LAUNCHER = "kernel.sh"
CONNECTION = "{connection_file}"
KERNEL_NAME = re.compile(r"[a-z0-9_][a-z0-9._-]{0,99}")
"""What Jupyter takes; it does not tell small letters from capitals.  But ``..`` is a folder's."""
INSTALL_SECONDS = 60.0
UNHEARD = logging.Logger("kernelspecs", logging.CRITICAL)
"""jupyter_client warns of folders where it will not look; `register` tells that itself."""


@dataclass(frozen=True)
class Registration:
    """A kernel that may be registered: nothing is made yet."""

    name: str
    title: str
    directory: Path
    prefix: str
    """Where the site's kernels lie; empty = the user's own."""
    profile: str
    activation: tuple[str, ...]


@dataclass(frozen=True)
class Kernel:
    """A kernel that was registered here."""

    name: str
    title: str
    python: str
    profile: str
    directory: str
    listed: bool
    """Whether the Jupyter of this environment looks there."""


def plan_registration(
    title: str,
    python: str,
    *,
    name: str = "",
    profile: LoadedProfile | None = None,
    options: Mapping[str, Any] | None = None,
    prefix: str = "",
    replace: bool = False,
    again: bool = False,
) -> Registration:
    """Settle a kernel's name and place, before anything is made.

    Parameters
    ----------
    name
        Its name among kernels; empty: made of the title, or of the environment's name.
    profile, options
        Whose prologue and variables are in force in the kernel, and the values of its options.
    replace
        Take the place of the kernel that has this name there.
    again
        Take it where that one is of the same Python and was registered here.

    Raises
    ------
    InvalidInput
        A name that cannot be used, or is taken.
    """
    # Importing it takes 0.15 s.
    from jupyter_client.kernelspec import KernelSpecManager

    if not title.strip() or not title.isprintable():
        raise InvalidInput(
            "A kernel needs a title of one line.",
            hint='For example: --title "GPU (CUDA 12)"',
            detail="title",
        )
    name = (name or _slug(title) or _slug(Path(python).parent.parent.name)).lower()
    if not KERNEL_NAME.fullmatch(name):
        raise InvalidInput(
            f"{shown(name)!r} cannot be the name of a kernel.",
            hint="Give one of letters, digits, '-', '_' and '.' with --name.",
            detail="name",
        )
    manager = KernelSpecManager()
    at = expanded(prefix, "prefix").absolute() if prefix else None
    folder = at / "share" / "jupyter" / "kernels" if at else Path(manager.user_kernel_dir)
    directory = folder / name
    if directory.is_symlink() or directory.is_file():
        raise InvalidInput(
            f"{shown(str(directory))} is there already and is no folder of a kernel's own.",
            hint="Delete it, or choose another name with --name.",
            detail="name",
        )
    taken = manager.find_kernel_specs().get(name, str(directory) if directory.exists() else "")
    if taken:
        old = _read(name, Path(taken))
        ours = again and old is not None and old.python == python
        if Path(taken) != directory or not (replace or ours):
            raise _is_taken(name, taken, again=again, may_replace=Path(taken) == directory)
    if options and profile is None:
        raise InvalidInput("--option sets options of a --profile.", detail="options")
    lines = activation(profile.profile, options or {}) if profile else []
    of = profile.name if profile else ""
    return Registration(name, title, directory, str(at or ""), of, tuple(lines))


def activation(profile: Profile, options: Mapping[str, Any]) -> list[str]:
    """Return the lines by which job scripts make a profile's environment.

    Parameters
    ----------
    options
        Values of options; only those that go into the environment count.
    """
    places = placeholders(profile)
    meant = {
        name: option
        for name, option in profile.options.items()
        if any(
            path[0] == "environment"
            for path in [*places.get(name, []), *targets(profile, name, option)]
        )
    }
    alone = Profile(
        title=profile.title, backend="local", environment=profile.environment, options=meant
    )
    environment = apply_options(alone, options).environment
    return [*export_lines(environment.variables), *environment.prologue]


def register(plan: Registration, python: str) -> Kernel:
    """Register a kernel as planned; its spec is written by that Python's own ipykernel.

    Raises
    ------
    UnsuitableEnvironment
        The Python does not answer, or has no ipykernel.
    StateError
        The kernel's folder cannot be written.
    """
    _require_ipykernel(python)
    from jupyter_client.kernelspec import KernelSpecManager

    with tempfile.TemporaryDirectory() as scratch:
        folder = _written_by_ipykernel(plan, python, Path(scratch))
        file = folder / "kernel.json"
        spec = json.loads(file.read_text("utf-8"))
        argv = list(map(str, spec["argv"]))
        # Jupyter fills in names in braces, also those of a folder that is called so.
        if plan.activation or any("{" in word for word in argv if word != CONNECTION):
            script = _launcher(plan, argv)
            (folder / LAUNCHER).write_text(script, "utf-8", "surrogateescape")
            spec["argv"] = ["/bin/bash", f"{{resource_dir}}/{LAUNCHER}", CONNECTION]
        told = {"python": python, "profile": plan.profile}
        spec["metadata"] = {**spec.get("metadata", {}), KERNEL_METADATA: told}
        file.write_text(json.dumps(spec, indent=1) + "\n", "utf-8")
        # A site's kernels are for others; one's own may hold what a profile's variables say.
        folder.chmod(0o755 if plan.prefix else 0o700)
        for made in folder.iterdir():
            made.chmod(0o644 if plan.prefix else 0o600)
        there = plan.directory.exists()
        try:
            KernelSpecManager(log=UNHEARD).install_kernel_spec(
                str(folder), plan.name, user=not plan.prefix, prefix=plan.prefix or None
            )
        except OSError as error:
            if not there:
                shutil.rmtree(plan.directory, ignore_errors=True)
            raise StateError(
                f"The kernel cannot be written to {plan.directory}: {_words(error)}.",
                hint="Choose another place with --prefix, or none for your own kernels.",
            ) from error
    listed = plan.name in KernelSpecManager().find_kernel_specs()
    return Kernel(plan.name, plan.title, python, plan.profile, str(plan.directory), listed)


def remove_kernels(path: str, *, name: str = "", prefix: str = "") -> list[Kernel]:
    """Remove the kernels that were registered here for an environment, or only one of them.

    Raises
    ------
    InvalidInput
        There is none.
    StateError
        One cannot be deleted.
    """
    from jupyter_client.kernelspec import KernelSpecManager

    place = python_at(path)
    # The environment may be gone already.
    pythons = {place, str(Path(place) / "bin" / "python")}
    places: dict[str, str] = KernelSpecManager().find_kernel_specs()
    if prefix:
        folder = expanded(prefix, "prefix").absolute() / "share" / "jupyter" / "kernels"
        places = {found.name: str(found) for found in folder.glob("*")}
    kernels = [kernel for n, at in places.items() if (kernel := _read(n, Path(at)))]
    meant = [k for k in kernels if k.python in pythons and name.lower() in ("", k.name)]
    if not meant:
        called = f" called {shown(name)!r}" if name else ""
        raise InvalidInput(
            f"No kernel{called} of {shown(place)} was registered here.",
            hint="Others are removed with: jupyter kernelspec remove NAME",
            detail="name",
        )
    for kernel in meant:
        try:
            shutil.rmtree(kernel.directory)
        except OSError as error:
            raise StateError(
                f"Kernel {kernel.name} cannot be deleted: {_words(error)}.",
                hint=f"Whoever registered it may delete {kernel.directory}.",
            ) from error
    return meant


# Files.


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9._]+", "-", title.lower()).strip("-.")


def _is_taken(name: str, place: str, *, again: bool, may_replace: bool) -> InvalidInput:
    way = ", or take its place with --replace" if may_replace else "; one would hide the other"
    return InvalidInput(
        f"There is a kernel {name!r} already, in {place}.",
        hint="Choose another title." if again else f"Choose another name with --name{way}.",
        detail="name",
    )


def _read(name: str, directory: Path) -> Kernel | None:
    """Return a kernel that was registered here; None for any other."""
    try:
        spec = json.loads((directory / "kernel.json").read_text("utf-8"))
        told = spec["metadata"][KERNEL_METADATA]
        title, profile = str(spec["display_name"]), str(told.get("profile", ""))
        return Kernel(name, title, str(told["python"]), profile, str(directory), listed=True)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _words(error: OSError) -> str:
    # Of a whole tree it is a list: source, target and words for each file.
    listed = error.args[0] if isinstance(error, shutil.Error) else ()
    return str(listed[0][2] if listed else error.strerror or error)


def _require_ipykernel(python: str) -> None:
    asked = ask_python(python)
    if asked.trouble:
        raise UnsuitableEnvironment(asked.trouble, hint="Choose another Python.", detail="python")
    if "ipykernel" not in asked.versions:
        cure = install_words(python, "ipykernel")
        raise UnsuitableEnvironment(
            f"{shown(python)} has no ipykernel, which a kernel needs.",
            hint=f"{cure[0].upper()}{cure[1:]}.",
            detail="python",
        )


def _written_by_ipykernel(plan: Registration, python: str, scratch: Path) -> Path:
    """Let ipykernel write its spec, with its pictures; return the folder."""
    command = [python, "-m", "ipykernel", "install", f"--prefix={scratch}", f"--name={plan.name}"]
    try:
        # In a folder where nothing stands for a module.
        answer = subprocess.run(
            [*command, f"--display-name={plan.title}"],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GpuClusterError(f"{shown(python)} could not write a kernel: {error}.") from error
    folder = scratch / "share" / "jupyter" / "kernels" / plan.name
    if answer.returncode != 0 or not (folder / "kernel.json").exists():
        raise GpuClusterError(
            f"ipykernel of {shown(python)} could not write a kernel.",
            hint=f"Once more: {install_words(python, '--force-reinstall', 'ipykernel')}.",
            detail="".join(answer.stderr.strip().splitlines()[-1:]),
        )
    return folder


def _launcher(plan: Registration, argv: Sequence[str]) -> str:
    """Return the script that sets up the environment as jobs do, and becomes the kernel."""
    words = ['"$1"' if word == CONNECTION else shlex.quote(word) for word in argv]
    return "\n".join(["#!/bin/bash", *plan.activation, f"exec {' '.join(words)}"]) + "\n"
