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
    """Add the arguments of the verb."""
    parser.add_argument("path", metavar="PATH", help="a Python, or the folder of its environment")
    parser.add_argument("--title", help="how Jupyter calls the kernel")
    parser.add_argument("--name", default="", help="its name for programs; made of the title")
    parser.add_argument(
        "--profile", help="set up what this profile's jobs set up (prologue and variables)"
    )
    add_options(parser)
    parser.add_argument(
        "--prefix", default="", help="a site's folder, such as /usr/local; else it is yours alone"
    )
    parser.add_argument(
        "--replace", action="store_true", help="take the place of the kernel of this name"
    )
    parser.add_argument(
        "--remove", action="store_true", help="remove the kernels that were registered for PATH"
    )
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Register or remove."""
    from ...environments.kernels import plan_registration, register, remove_kernels
    from ...launch.interpreters import python_at
    from ...profiles import find_profile

    if arguments.remove:
        if arguments.title or arguments.profile or arguments.replace:
            raise InvalidInput("--remove takes --name and --prefix only.")
        gone = remove_kernels(arguments.path, name=arguments.name, prefix=arguments.prefix)
        lines = [f"{kernel.name} ({kernel.title}): removed" for kernel in gone]
        return Outcome({"removed": to_json(gone)}, (Text("\n".join(lines)),))
    python = python_at(arguments.path)
    plan = plan_registration(
        arguments.title or "",
        python,
        name=arguments.name,
        profile=find_profile(arguments.profile) if arguments.profile else None,
        options=options_from(arguments),
        prefix=arguments.prefix,
        replace=arguments.replace,
    )
    kernel = register(plan, python)
    if not kernel.listed:
        session.note("warning: this Jupyter does not look there; see: jupyter --paths")
    facts = Facts(
        (
            ("kernel", f"{kernel.name} ({kernel.title})"),
            ("python", kernel.python),
            ("as jobs of", kernel.profile),
            ("in", kernel.directory),
            ("start", f"{session.program} start PROFILE --kernel {kernel.name}"),
        )
    )
    return Outcome(to_json(kernel), (facts,))
