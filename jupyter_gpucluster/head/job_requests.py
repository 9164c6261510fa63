"""Requests to the local scheduler, which the dialects `local` and `demo` write."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


class UsageError(Exception):
    """A request that makes no sense; the text goes back to the head."""


class Parser(argparse.ArgumentParser):
    """Raises where argparse would end the process."""

    def error(self, message: str) -> Any:
        raise UsageError(message)


def request_parser() -> argparse.ArgumentParser:
    """Return the parser of requests, which `batch.local` and `batch.demo` write."""
    parser = Parser(prog="gpucluster-jobs", add_help=False)
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=Parser)
    submit = verbs.add_parser("submit", add_help=False)
    submit.add_argument("--mark", required=True)
    submit.add_argument("--count", type=int, default=1)
    submit.add_argument("--gpus", type=int, default=0)
    submit.add_argument("--memory", type=int)
    submit.add_argument("--workers", type=int, default=1)
    submit.add_argument("script", type=Path)
    submit.add_argument("worker_argv", nargs="*")
    verbs.add_parser("status", add_help=False)
    cancel = verbs.add_parser("cancel", add_help=False)
    cancel.add_argument("ids", nargs="+")
    limit = verbs.add_parser("limit", add_help=False)
    limit.add_argument("--memory", type=int, required=True)
    limit.add_argument("ids", nargs="+")
    verbs.add_parser("capacity", add_help=False)
    return parser
