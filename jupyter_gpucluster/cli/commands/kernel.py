"""``kernel PATH``: register a Jupyter kernel of an environment, or remove it."""

from __future__ import annotations

import argparse

from ...core.errors import InvalidInput
from ...core.serialize import to_json
from ..arguments import add_json, add_options, options_from
from ..output import Facts, Outcome, Text
from ..parsing import Parser
from ..session import Session


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    add = parser.add_argument
    add("path", metavar="PATH", help="a Python, or the folder of its environment")
    add("--title", default="", help="the kernel's name in Jupyter's menus")
    add("--name", default="", help="kernel id (default: made from the title)")
    add("--profile", help="apply the prologue and variables of this profile")
    add_options(parser)
    add("--prefix", default="", help="a site's folder, such as /usr/local; default: for you only")
    add("--replace", action="store_true", help="replace the kernel of this name")
    add("--remove", action="store_true", help="remove the kernels that were registered for PATH")
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Register or remove."""
    from ...environments.kernels import plan_registration, register, remove_kernels
    from ...launch.interpreters import python_at
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
    facts = {
        "kernel": f"{kernel.name} ({kernel.title})",
        "python": kernel.python,
        "profile": kernel.profile,
        "in": kernel.directory,
        "start": f"{session.program} start PROFILE --kernel {kernel.name}",
    }
    return Outcome(to_json(kernel), (Facts(tuple(facts.items())),))
