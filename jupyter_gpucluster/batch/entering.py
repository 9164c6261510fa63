"""The way into a running job of systems that have no way of their own."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def by_ssh(node: str, words: Sequence[str], *, terminal: bool) -> list[str]:
    """Return the command that runs other words on a node.

    Many sites allow ssh on the nodes of one's own jobs; it is outside of the job's limits there.
    """
    return ["ssh", *(["-t"] if terminal else []), node, shlex.join(words)]
