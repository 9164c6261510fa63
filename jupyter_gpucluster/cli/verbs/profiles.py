"""``profiles``: the places to run, and what is wrong with profile files."""

from __future__ import annotations

import argparse
from typing import Any

from ...places import places
from ..arguments import add_json
from ..output import Block, Outcome, Table, Text
from ..parsing import Parser
from ..session import Session


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the verb."""
    add_json(parser)


def run(arguments: argparse.Namespace, session: Session) -> Outcome:
    """List profiles."""
    found = places()
    rows = tuple(
        (
            profile["name"],
            profile["title"],
            profile["backend"],
            str(profile["gpus_per_job"]),
            _limits(profile),
            profile["words"],
            profile["source"],
        )
        for profile in found["profiles"]
    )
    headings = ("NAME", "TITLE", "BACKEND", "GPUS/JOB", "LIMITS", "WORKERS", "SOURCE")
    blocks: list[Block] = [Table(headings, rows, empty="no profiles")]
    if found["problems"]:
        lines = "\n".join(
            f"{p['severity']}: {p['file']}:{p['line']}:{p['column']}: {p['message']}"
            for p in found["problems"]
        )
        blocks.append(Text(lines, title="Problems"))
    return Outcome(found, tuple(blocks))


def _limits(profile: dict[str, Any]) -> str:
    limits = profile["limits"]
    parts = []
    if limits["workers"] is not None:
        parts.append(f"{limits['workers']} {profile['unit']}")
    if limits["clusters"] is not None:
        parts.append(f"{limits['clusters']} clusters")
    return ", ".join(parts) or "-"
