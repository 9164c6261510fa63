"""``profiles``: the profiles, and the problems of their files."""

from __future__ import annotations

import argparse
from typing import Any

from ...core.errors import BackendError
from ...launch.profile_catalog import places
from ..arguments import Parser, add_json
from ..output import Block, Outcome, Session, Table, Text, counted


def add_profiles(parser: Parser) -> None:
    """Add the arguments of ``profiles``."""
    parser.add_argument(
        "--capacity", action="store_true", help="also show the number of free GPUs of each"
    )
    parser.add_argument(
        "--everywhere",
        action="store_true",
        help="also list those of public sites that this machine is not at",
    )
    add_json(parser)


def run_profiles(arguments: argparse.Namespace, session: Session) -> Outcome:
    """List profiles."""
    found = places(elsewhere=arguments.everywhere)
    if arguments.capacity:
        for profile in found["profiles"]:
            profile["capacity"] = _capacity(profile["name"], session)
    rows = tuple(
        (
            profile["name"],
            profile["title"],
            profile["backend"],
            str(profile["gpus_per_job"]),
            _limits(profile),
            *([profile["capacity"]["words"]] if arguments.capacity else []),
            profile["words"],
            profile["source"],
        )
        for profile in found["profiles"]
    )
    free = ("FREE",) if arguments.capacity else ()
    headings = ("NAME", "TITLE", "BACKEND", "GPUS/JOB", "LIMITS", *free, "WORKERS", "SOURCE")
    blocks: list[Block] = [Table(headings, rows, empty="no profiles")]
    if found["problems"]:
        lines = "\n".join(
            f"{p['severity']}: {p['file']}:{p['line']}:{p['column']}: {p['message']}"
            for p in found["problems"]
        )
        blocks.append(Text(lines, title="Problems"))
    return Outcome(found, tuple(blocks))


def _capacity(name: str, session: Session) -> dict[str, Any]:
    """Return the free GPUs of a profile; an error must not hide the other profiles."""
    try:
        return session.clusters.capacity(name)
    except BackendError as error:
        return {"partitions": [], "words": error.message}


def _limits(profile: dict[str, Any]) -> str:
    limits = profile["limits"]
    parts = []
    if limits["workers"] is not None:
        parts.append(counted(limits["workers"], profile["unit"]))
    if limits["clusters"] is not None:
        parts.append(counted(limits["clusters"], "clusters"))
    return ", ".join(parts) or "-"
