"""The limits and the retention of a site's settings, at the start of a cluster."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from ..core.cluster import ENDED, EXISTING, SiteRules
from ..core.errors import LimitReached
from ..state.view import ClusterView, Look
from .naming import check_gpus
from .plan import Plan

Seen = Sequence[tuple[Look, ClusterView]]


def within_site(plan: Plan, seen: Seen) -> Plan:
    """Return a plan whose GPU-hours are those that the site still allows its user.

    Parameters
    ----------
    seen
        The user's clusters, also those that have ended.

    Raises
    ------
    LimitReached
        The site allows no such cluster beside the others.
    """
    if plan.profile.backend == EXISTING:
        return plan
    site, limits = plan.loaded.site, plan.loaded.site.settings.limits
    live = [view for _, view in seen if view.phase not in ENDED and view.backend != EXISTING]
    if limits.clusters is not None and len(live) >= limits.clusters:
        names = ", ".join(view.name for view in live)
        raise LimitReached(
            f"This site limits a user's clusters at one time to {limits.clusters};"
            f" running: {names}.",
            hint=site.hint("Stop one first."),
            detail="profile",
        )
    if not plan.sizes.gpus:
        return plan
    check_gpus(rules(plan), plan.target.maximum, live)
    if limits.gpu_hours is None:
        return plan
    since = time.time() - (limits.window or 0)
    used = sum(view.gpu_hours for _, view in seen if view.ended is None or view.ended > since)
    left = limits.gpu_hours - used
    if left <= 0:
        raise LimitReached(
            f"This site limits a user's GPU-hours in {(limits.window or 0) / 86400:g} days to"
            f" {limits.gpu_hours}; {used:.1f} are used.",
            hint=site.hint("Wait until earlier clusters are older than that."),
            detail="profile",
        )
    hours = min(left, plan.profile.policy.gpu_hours or left)
    policy = plan.profile.policy.model_copy(update={"gpu_hours": hours})
    return replace(plan, profile=plan.profile.model_copy(update={"policy": policy}))


def rules(plan: Plan) -> SiteRules:
    """Return the settings that hold while the cluster runs."""
    settings = plan.loaded.site.settings
    return SiteRules(settings.poll_period or 0.0, settings.limits.gpus, settings.contact)


def forget_old(plan: Plan, seen: Seen) -> None:
    """Delete clusters that ended longer ago than the site's retention, as `forget` does."""
    oldest = time.time() - (plan.loaded.site.settings.retention or math.inf)
    for look, view in seen:
        old = view.phase in ENDED and (view.ended or view.created) < oldest
        if old and not look.directory.read_phase()[2]:
            look.directory.remove()
