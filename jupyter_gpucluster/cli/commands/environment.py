"""``environment PATH``: make a Python environment that clusters fit in, or complete one."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING

from ...core.errors import InvalidInput, UnsuitableEnvironment
from ...core.serialize import to_json
from ..arguments import absolute_python, add_json, add_options, options_from
from ..output import Facts, Outcome, Text
from ..parsing import Parser
from ..session import Session
from ..signals import Signals

if TYPE_CHECKING:
    from pathlib import Path

    from ...environments.kernels import Kernel, Registration
    from ...environments.virtualenvs import Made
    from ...profiles import LoadedProfile


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.intermixed = True  # packages may follow options
    parser.usage = f"{parser.prog} PATH [PACKAGE ...] [OPTIONS]"
    parser.add_argument("path", metavar="PATH", help="its folder, which all nodes should see")
    parser.add_argument(
        "packages",
        metavar="PACKAGE",
        nargs="*",
        default=[],
        help="also install this: a name, 'name==version', a path or git+https://ADDRESS",
    )
    parser.add_argument(
        "--requirements",
        metavar="FILE",
        action="append",
        default=[],
        help="also install what a pinned list names; may be given several times",
    )
    parser.add_argument(
        "--cuda",
        choices=("12", "13"),
        default="",
        help="with dask-cuda and CuPy for GPU workers; Dask is the one that they are made for",
    )
    parser.add_argument(
        "--python", metavar="PYTHON", default="", help="make it of this Python, not of Jupyter's"
    )
    parser.add_argument(
        "--installer", choices=("uv", "pip"), default="", help="uv where it is on PATH, else pip"
    )
    parser.add_argument("--kernel", metavar="TITLE", help="also register a kernel of this title")
    parser.add_argument("--profile", help="the place that it is meant for; see the verb profiles")
    add_options(parser)
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Make it, check it and say how it is used."""
    from ...environments.kernels import register
    from ...environments.virtualenvs import Wanted, environment_place, make_environment
    from ...launch.interpreters import expanded
    from ...profiles import find_profile

    place = environment_place(arguments.path)
    profile = find_profile(arguments.profile) if arguments.profile else None
    python = str(place / "bin" / "python")
    # What is wrong with the kernel is better known before minutes of downloads.
    plan = _planned_kernel(arguments, python, profile)
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
    kernel = register(plan, python) if plan else None
    use = _use(made, profile, session.program)
    document = {
        "path": str(place),
        "new": made.new,
        "environment": to_json(made.environment),
        "lock": str(made.lock),
        "kernel": to_json(kernel),
        "warnings": warnings,
        **use,
    }
    lines = [f"{what.replace('_', ' ')}:\n    {line}" for what, line in use.items()]
    problems = made.environment.problems
    blocks = (
        _facts(made, kernel),
        Text("\n".join(problems)),
        Text("\n".join(lines), code=True),
    )
    errors = () if made.environment.suitable else (UnsuitableEnvironment(problems[0]),)
    return Outcome(document, blocks, errors)


def _planned_kernel(
    arguments: argparse.Namespace, python: str, profile: LoadedProfile | None
) -> Registration | None:
    from ...environments.kernels import plan_registration

    options = options_from(arguments)
    if arguments.kernel is not None:
        return plan_registration(
            arguments.kernel, python, profile=profile, options=options, again=True
        )
    if options:
        raise InvalidInput("--option sets options of a --profile for --kernel TITLE.")
    return None


def _facts(made: Made, kernel: Kernel | None) -> Facts:
    found = made.environment
    place = made.lock.parent
    return Facts(
        (
            ("environment", f"{place} ({'made' if made.new else 'completed'})"),
            *((name.replace("_", "-"), version) for name, version in found.versions.items()),
            ("pinned list", str(made.lock)),
            ("kernel", f"{kernel.name} ({kernel.title})" if kernel else ""),
        )
    )


def _warnings(place: Path, profile: LoadedProfile | None, cuda: str) -> list[str]:
    from ...core.job import ON_THIS_MACHINE
    from ...doctor.here import is_shared
    from ...host.hardware import look_around
    from ...launch.spec import uses_gpus
    from ...node.probe import file_system

    if profile is None:
        return []
    warnings = []
    batch = profile.profile.backend not in ON_THIS_MACHINE
    if batch and not is_shared(kind := file_system(str(place))):
        warnings.append(
            f"the nodes of {profile.name} may not see {place}: it lies on"
            f" {kind or 'an unknown file system'}, of this machine alone unless it exports it."
        )
    if batch and profile.profile.environment.container:
        warnings.append(f"the workers of {profile.name} run in a container, not in this Python.")
    if not cuda and uses_gpus(profile.profile, look_around()):
        warnings.append(f"{profile.name} has GPUs: --cuda 12 or 13 brings what GPU workers need.")
    return warnings


def _use(made: Made, profile: LoadedProfile | None, program: str) -> dict[str, str]:
    """Return the lines by which an environment is used."""
    python = made.environment.python
    name = profile.name if profile else "PROFILE"
    lock = shlex.quote(str(made.lock))
    return {
        "start": f"{program} start {name} --python {shlex.quote(python)}",
        # JSON's strings are YAML's.
        "in_a_profile": f"environment: {{python: {json.dumps(python, ensure_ascii=False)}}}",
        "again_elsewhere": f"{program} environment OTHER --requirements {lock}",
    }
