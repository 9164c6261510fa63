"""Names, ids and sizes that a new cluster may have."""

from __future__ import annotations

import secrets
import string
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..core.cluster import NAME, SiteRules, Target
from ..core.errors import ClusterConflict, InvalidInput, LimitReached
from ..state.view import ClusterView

ALPHABET = string.ascii_lowercase + string.digits
refused = partial(InvalidInput, detail="target")
MOST_WORKERS = 100_000
"""Profiles may have no limit; a slip of the keyboard must not fill a site's queue for ever."""


def new_id(root: Path) -> str:
    """Return six random characters that no cluster has; marks of 15 leave no room for more."""
    while True:
        id = "".join(secrets.choice(ALPHABET) for _ in range(6))
        if not (root / id).exists():
            return id


def choose_name(
    profile: str, name: str | None, live: Sequence[ClusterView], listed: Sequence[ClusterView]
) -> str:
    """Return the wanted name, or the first ``<profile>-<n>`` that no listed cluster has."""
    if name is not None:
        check_name(name, live)
        return name
    taken = {view.name for view in listed}
    number = 1
    while f"{profile}-{number}" in taken:
        number += 1
    return f"{profile}-{number}"


def check_name(name: str, live: Sequence[ClusterView]) -> None:
    """Raise where a cluster cannot have this name."""
    if not NAME.fullmatch(name):
        shown = ascii(name[:40]) + ("..." if len(name) > 40 else "")
        raise InvalidInput(
            f"{shown} cannot be a cluster's name.",
            hint="Use up to 63 letters, digits, dots, dashes and underscores, "
            "beginning with a letter or digit.",
            detail="name",
        )
    if any(view.name == name or view.id == name for view in live):
        raise ClusterConflict(
            f"A cluster named {name} exists already.",
            hint="Choose another name, or stop that one first.",
            detail="name",
        )


def check_target(target: Target, *, least: int) -> None:
    """Raise `InvalidInput` where a number of workers makes no sense."""
    for value in (target.minimum, target.maximum):
        if type(value) is not int or value < 0:
            raise refused(f"{value!r} is not a number of workers.", hint="Use a whole number.")
    if target.maximum > MOST_WORKERS:
        raise refused(
            f"{target.maximum} workers are more than one scheduler can handle.",
            hint=f"Ask for {MOST_WORKERS} or fewer.",
        )
    if target.maximum < least:
        raise refused(
            "A cluster starts with at least one worker.",
            hint="Ask for 1 or more; scale to 0 later.",
        )
    if target.minimum > target.maximum:
        raise refused(
            f"The minimum {target.minimum} is above the maximum {target.maximum}.",
            hint="Give the smaller number first.",
        )


def check_gpus(site: SiteRules, wanted: int, others: Sequence[ClusterView]) -> None:
    """Refuse more GPUs than the site allows a user at one time."""
    held = sum(view.target.maximum for view in others if view.unit == "GPUs")
    if site.gpus is not None and wanted + held > site.gpus:
        contact = f" Contact: {site.contact}." if site.contact else ""
        raise LimitReached(
            f"{wanted} GPUs requested. This site limits a user's GPUs at one time to {site.gpus};"
            f" other clusters of yours have {held}.",
            hint=f"Ask for {max(0, site.gpus - held)} or fewer, or stop another cluster.{contact}",
            detail="target",
        )
