"""Where profiles are meant for: patterns of host names against the host we are on."""

from __future__ import annotations

import fnmatch
import re
import socket
from collections.abc import Iterable
from pathlib import Path

_HOSTS = re.compile(r"^hosts: \[(.+)\]$", re.MULTILINE)


def matches(patterns: Iterable[str], hostname: str = "") -> bool:
    """Tell whether a host name fits one of the patterns (empty: the host we are on).

    A short host name is compared with the first part of each pattern.
    """
    host = (hostname or socket.gethostname()).lower()
    known = [pattern.lower() for pattern in patterns]
    if "." not in host:
        firsts = [pattern.split(".")[0] for pattern in known]
        # The "*" of "*.example.org" would match every short name.
        known += [first for first in firsts if first.strip("*")]
    return any(fnmatch.fnmatchcase(host, pattern) for pattern in known)


def is_elsewhere(shipped: Path, hostname: str = "") -> bool:
    """Tell from its line of hosts whether a shipped profile describes a site that we are not at.

    Many sites have a host `login1`, so here a short name has to be confirmed by the full one.
    The line is all that is read: the profiles of the whole world must not cost every user.
    """
    line = _HOSTS.search(shipped.read_text("utf-8"))
    if line is None:
        return False
    patterns = re.findall(r'"([^"]+)"', line[1])
    host = hostname or socket.gethostname()
    if not matches(patterns, host):
        return True
    full = host if "." in host else socket.getfqdn(host)
    return "." not in full or not matches(patterns, full)
