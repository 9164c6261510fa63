"""Register and remove Jupyter kernels, with the settings of a profile applied."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.errors import GpuClusterError, InvalidInput, StateError, UnsuitableEnvironment
from ..launch.python_environments import (
    KERNEL_METADATA,
    ask_python,
    expanded,
    install_words,
    python_at,
    shown,
)
from ..launch.script.job import export_lines
from ..profiles import LoadedProfile, Profile, apply_options
from ..profiles.options import placeholders, targets

LAUNCHER = "kernel.sh"
CONNECTION = "{connection_file}"
KERNEL_NAME = re.compile(r"[a-z0-9_][a-z0-9._-]{0,99}")
"""Names that Jupyter takes, in lower case since it ignores case; ``..`` would be a folder."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that this package registered.

    ``listed``: the Jupyter of this environment finds it.
    """

    name: str
    title: str
    python: str
    profile: str
    directory: str
    listed: bool


@dataclass(frozen=True)
class Registration:
    """A kernel that can be registered, the shell lines that it runs first, and who may read it."""

    kernel: Kernel
    activation: tuple[str, ...]
    public: bool


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
    """Check a kernel's name, folder and options, before anything is written.

    Parameters
    ----------
    name
        The kernel's id; empty: made from the title, or from the environment's name.
    profile, options
        The profile whose prologue and variables the kernel applies, and values of its options.
    prefix
        A site's folder for the kernels of all users; empty: the user's own kernels.
    replace
        Replace a kernel of this name in the same folder.
    again
        Replace it if this package registered it for the same Python.

    Raises
    ------
    InvalidInput
        The name is invalid or used, or an option cannot be set.
    """
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
    directory = _folder(prefix) / name
    used = Path(_registered().get(name, directory))
    if os.path.lexists(used):
        old = _read(name, used)
        replaceable = used == directory and used.is_dir() and not used.is_symlink()
        ours = again and old is not None and old.python == python
        if not (replaceable and (replace or ours)):
            hint = "Choose another title." if again else "Choose another name with --name"
            raise InvalidInput(
                f"{name!r} exists already: {used}.",
                hint=hint + (" or replace it with --replace." if replaceable else "."),
                detail="name",
            )
    if options and profile is None:
        raise InvalidInput("--option sets options of a --profile.", detail="options")
    lines = activation(profile.profile, options or {}) if profile else []
    kernel = Kernel(name, title, python, profile.name if profile else "", str(directory), False)
    return Registration(kernel, tuple(lines), public=bool(prefix))


def activation(profile: Profile, options: Mapping[str, Any]) -> list[str]:
    """Return the lines by which job scripts set up a profile's environment.

    Parameters
    ----------
    options
        Values of options; only options that set part of the environment are used.
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


def register(plan: Registration) -> Kernel:
    """Register a kernel as planned; the ipykernel of its Python writes the spec.

    Raises
    ------
    UnsuitableEnvironment
        The Python does not start, or has no ipykernel.
    StateError
        The kernel's folder cannot be written.
    """
    kernel, directory = plan.kernel, Path(plan.kernel.directory)
    with tempfile.TemporaryDirectory() as scratch:
        folder = _written_by_ipykernel(kernel, scratch)
        file = folder / "kernel.json"
        spec = json.loads(file.read_text("utf-8"))
        argv: list[str] = spec["argv"]
        # Jupyter replaces names in braces, also those in the path of a Python.
        if plan.activation or any("{" in word for word in argv if word != CONNECTION):
            words = ['"$1"' if word == CONNECTION else shlex.quote(word) for word in argv]
            script = "\n".join(["#!/bin/bash", *plan.activation, f"exec {' '.join(words)}", ""])
            (folder / LAUNCHER).write_text(script, "utf-8", "surrogateescape")
            spec["argv"] = ["/bin/bash", f"{{resource_dir}}/{LAUNCHER}", CONNECTION]
        ours = {"python": kernel.python, "profile": kernel.profile}
        spec["metadata"] = {**spec.get("metadata", {}), KERNEL_METADATA: ours}
        file.write_text(json.dumps(spec, indent=1) + "\n", "utf-8")
        # A user's own kernel may contain secrets from the variables of a profile.
        folder.chmod(0o755 if plan.public else 0o700)
        for entry in folder.iterdir():
            entry.chmod(0o644 if plan.public else 0o600)
        try:
            if directory.exists():
                shutil.rmtree(directory)
            shutil.copytree(folder, directory)
        except OSError as error:
            shutil.rmtree(directory, ignore_errors=True)
            raise StateError(
                f"Cannot write the kernel to {directory}: {error.strerror or error}.",
                hint="Choose another folder with --prefix, or omit --prefix for your own kernels.",
            ) from error
    return replace(kernel, listed=kernel.name in _registered())


def remove_kernels(path: str, *, name: str = "", prefix: str = "") -> list[Kernel]:
    """Remove the kernels that this package registered for an environment, or one of them.

    Raises
    ------
    InvalidInput
        There is no such kernel.
    StateError
        A kernel cannot be deleted.
    """
    python = python_at(path)
    pythons = (python, str(Path(python) / "bin" / "python"))  # the environment may be deleted
    found = {at.name: str(at) for at in _folder(prefix).glob("*")} if prefix else _registered()
    kernels = [kernel for key, at in found.items() if (kernel := _read(key, Path(at)))]
    kernels = [k for k in kernels if k.python in pythons and name.lower() in ("", k.name)]
    if not kernels:
        called = f" called {shown(name)!r}" if name else ""
        raise InvalidInput(
            f"This package registered no kernel{called} for {shown(python)}.",
            hint="Remove others with: jupyter kernelspec remove NAME",
            detail="name",
        )
    for kernel in kernels:
        try:
            shutil.rmtree(kernel.directory)
        except OSError as error:
            raise StateError(
                f"Cannot delete kernel {kernel.name}: {error.strerror or error}.",
                hint=f"Ask the owner of {kernel.directory} to delete it.",
            ) from error
    return kernels


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9._]+", "-", title.lower()).strip("-.")


def _registered() -> dict[str, str]:
    """Return the folder of each kernel that Jupyter finds."""
    from jupyter_client.kernelspec import find_kernel_specs  # importing it takes 0.15 s

    return dict(find_kernel_specs())


def _folder(prefix: str) -> Path:
    """Return the folder of a site's kernels, or of the user's own."""
    from jupyter_core.paths import jupyter_data_dir

    at = expanded(prefix, "prefix").absolute() / "share" / "jupyter" if prefix else None
    return (at or Path(jupyter_data_dir())) / "kernels"


def _read(name: str, directory: Path) -> Kernel | None:
    """Return a kernel that this package registered, or None for any other."""
    try:
        spec = json.loads((directory / "kernel.json").read_text("utf-8"))
        ours = spec["metadata"][KERNEL_METADATA]
        title, profile = str(spec["display_name"]), str(ours.get("profile", ""))
        return Kernel(name, title, str(ours["python"]), profile, str(directory), listed=True)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _written_by_ipykernel(kernel: Kernel, scratch: str) -> Path:
    """Let ipykernel write its spec and icons; return their folder."""
    asked = ask_python(kernel.python)
    if asked.trouble or "ipykernel" not in asked.versions:
        fix = install_words(kernel.python, "ipykernel")
        raise UnsuitableEnvironment(
            asked.trouble or f"{shown(kernel.python)} has no ipykernel, which a kernel needs.",
            hint="Choose another Python." if asked.trouble else f"{fix[0].upper()}{fix[1:]}.",
            detail="python",
        )
    answer = subprocess.run(
        [kernel.python, "-m", "ipykernel", "install", f"--prefix={scratch}",
         f"--name={kernel.name}", f"--display-name={kernel.title}"],
        cwd=scratch,  # a folder without modules, which Python would import
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )  # fmt: skip
    if answer.returncode != 0:
        raise GpuClusterError(
            f"The ipykernel of {shown(kernel.python)} could not write a kernel.",
            hint=f"Try again: {install_words(kernel.python, '--force-reinstall', 'ipykernel')}.",
            detail="".join(answer.stderr.strip().splitlines()[-1:]),
        )
    return Path(scratch) / "share" / "jupyter" / "kernels" / kernel.name
