"""``environment PATH`` and ``kernel PATH``: Python environments for clusters, their kernels."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING

from ...core.errors import InvalidInput, UnsuitableEnvironment
from ...core.serialize import to_json
from ..arguments import Parser, absolute_python, add_options, options_from
from ..output import Outcome, Session, Text, facts
from ..waiting import Signals

if TYPE_CHECKING:
    from pathlib import Path

    from ...profiles import LoadedProfile


def add_environment(parser: Parser) -> None:
    """Add the arguments of ``environment``."""
    parser.intermixed = True  # packages may follow options
    parser.usage = f"{parser.prog} PATH [PACKAGE ...] [OPTIONS]"
    add = parser.add_argument
    package = "also install this: a name, 'name==version', a path or git+https://ADDRESS"
    add("path", metavar="PATH", help="its folder, which all nodes should see")
    add("packages", metavar="PACKAGE", nargs="*", default=[], help=package)
    requirements = "also install the packages listed in FILE; may be given several times"
    add("--requirements", metavar="FILE", action="append", default=[], help=requirements)
    cuda = "with dask-cuda and CuPy for GPU workers; they decide the version of Dask"
    add("--cuda", choices=("12", "13"), default="", help=cuda)
    add("--python", metavar="PYTHON", default="", help="create it from this Python, not Jupyter's")
    installer = "default: uv if it is on PATH, else pip"
    add("--installer", choices=("uv", "pip"), default="", help=installer)
    add("--kernel", metavar="TITLE", help="also register a kernel with this title")
    add("--profile", help="profile that will use it; see the command profiles")
    add_options(parser)


def run_environment(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Create or update it, check it and show how to use it."""
    from ...environments.kernels import plan_registration, register
    from ...environments.virtualenvs import Wanted, environment_place, make_environment
    from ...launch.python_environments import expanded
    from ...profiles import find_profile

    place = environment_place(arguments.path)
    profile = find_profile(arguments.profile) if arguments.profile else None
    python, options, plan = str(place / "bin" / "python"), options_from(arguments), None
    if arguments.kernel is not None:  # its errors are better known before minutes of downloads
        title = arguments.kernel
        plan = plan_registration(title, python, profile=profile, options=options, again=True)
    elif options:
        raise InvalidInput("--option sets options of a --profile for --kernel TITLE.")
    warnings = _warnings(place, profile, arguments.cuda)
    for warning in warnings:
        session.note(f"warning: {warning}")
    wanted = Wanted(
        place,
        packages=tuple(arguments.packages),
        requirements=tuple(expanded(file, "requirements") for file in arguments.requirements),
        cuda=arguments.cuda,
        python=absolute_python(arguments.python) if arguments.python else "",
        installer=arguments.installer,
    )
    with Signals():
        made = make_environment(wanted, session.note)
    kernel = register(plan) if plan else None
    found, lock, program = made.environment, str(made.lock), session.program
    start = f"{program} start {profile.name if profile else 'PROFILE'}"
    use = {
        "start": f"{start} --python {shlex.quote(python)}",
        # JSON's strings are YAML's.
        "in_a_profile": f"environment: {{python: {json.dumps(python, ensure_ascii=False)}}}",
        "again_elsewhere": f"{program} environment OTHER --requirements {shlex.quote(lock)}",
    }
    known = {
        "environment": f"{place} ({'created' if made.new else 'updated'})",
        **{name.replace("_", "-"): version for name, version in found.versions.items()},
        "pinned list": lock,
        "kernel": f"{kernel.name} ({kernel.title})" if kernel else "",
    }
    document = {
        "path": str(place),
        "new": made.new,
        "environment": to_json(found),
        "lock": lock,
        "kernel": to_json(kernel),
        "warnings": warnings,
        **use,
    }
    lines = "\n".join(f"{what.replace('_', ' ')}:\n    {line}" for what, line in use.items())
    blocks = (facts(known.items()), Text("\n".join(found.problems)), Text(lines, code=True))
    errors = () if found.suitable else (UnsuitableEnvironment(found.problems[0]),)
    return Outcome(document, blocks, errors)


def _warnings(place: Path, profile: LoadedProfile | None, cuda: str) -> list[str]:
    from ...batch import on_this_machine
    from ...doctor.here import is_shared
    from ...host.hardware import look_around
    from ...launch.sizes import sizes_of
    from ...node.probe import file_system

    if profile is None:
        return []
    name, warnings = profile.name, []
    if not on_this_machine(profile.profile.backend):
        if not is_shared(kind := file_system(str(place))):
            where = f"{place} is on {kind or 'an unknown file system'}"
            warnings.append(
                f"the nodes of {name} may not see it: {where}, which does not look shared."
            )
        if profile.profile.environment.container:
            warnings.append(f"the workers of {name} run in a container, not in this Python.")
    if not cuda and sizes_of(profile.profile, look_around()).gpus:
        warnings.append(f"{name} has GPUs: --cuda 12 or 13 installs what GPU workers need.")
    return warnings


def add_kernel(parser: Parser) -> None:
    """Add the arguments of ``kernel``."""
    add = parser.add_argument
    add("path", metavar="PATH", help="a Python, or the folder of its environment")
    add("--title", default="", help="the kernel's name in Jupyter's menus")
    add("--name", default="", help="kernel id (default: made from the title)")
    add("--profile", help="apply the prologue and variables of this profile")
    add_options(parser)
    add("--prefix", default="", help="a site's folder, such as /usr/local; default: for you only")
    parser.flag("--replace", "replace the kernel of this name")
    parser.flag("--remove", "remove the kernels that were registered for PATH")


def run_kernel(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Register a kernel of an environment, or remove it."""
    from ...environments.kernels import plan_registration, register, remove_kernels
    from ...launch.python_environments import python_at
    from ...profiles import find_profile

    name, prefix = arguments.name, arguments.prefix
    if arguments.remove:
        if arguments.title or arguments.profile or arguments.replace:
            raise InvalidInput("--remove takes --name and --prefix only.")
        gone = remove_kernels(arguments.path, name=name, prefix=prefix)
        lines = [f"{kernel.name} ({kernel.title}): removed" for kernel in gone]
        return Outcome({"removed": to_json(gone)}, (Text("\n".join(lines)),))
    profile = find_profile(arguments.profile) if arguments.profile else None
    plan = plan_registration(
        arguments.title,
        python_at(arguments.path),
        name=name,
        profile=profile,
        options=options_from(arguments),
        prefix=prefix,
        replace=arguments.replace,
    )
    kernel = register(plan)
    if not kernel.listed:
        session.note("warning: this Jupyter does not search that folder; see: jupyter --paths")
    known = {
        "kernel": f"{kernel.name} ({kernel.title})",
        "python": kernel.python,
        "profile": kernel.profile,
        "in": kernel.directory,
        "start": f"{session.program} start PROFILE --kernel {kernel.name}",
    }
    return Outcome(to_json(kernel), (facts(known.items()),))
