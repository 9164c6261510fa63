"""``connect NAME``: the code that connects to a cluster, in three forms."""

from __future__ import annotations

import argparse

from ...core.errors import InvalidInput
from ..arguments import add_json
from ..output import Block, Outcome, Text
from ..parsing import Parser, suggestion
from ..session import Session

TITLES = {
    "connect": "Python with this package",
    "magic": "Notebook",
    "dask": "Python with Dask alone",
}


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("name", metavar="NAME", help="name or id of the cluster")
    parser.add_argument(
        "--form", metavar="FORM", help=f"print only one of {', '.join(TITLES)}, to be pasted"
    )
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """Show the code."""
    form = arguments.form
    if form is not None and form not in TITLES:
        raise InvalidInput(
            f"There is no form {form!r}.",
            hint=suggestion(form, TITLES) or f"The forms are: {', '.join(TITLES)}",
        )
    code = session.clusters.client_code(arguments.name)
    if form is not None:
        return Outcome({form: code[form]}, (Text(code[form], code=True),))
    blocks: tuple[Block, ...] = tuple(
        Text(_indented(code[form]), code=True, title=f"{title}:") for form, title in TITLES.items()
    )
    return Outcome(code, blocks)


def _indented(code: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in code.splitlines())
