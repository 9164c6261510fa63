"""Profiles as front ends show them: the places to run."""

from __future__ import annotations

import functools
import json
import shutil
import time
from typing import Any

from ..batch import (
    BACKENDS,
    WAYS_OUT,
    missing_programs,
    on_this_machine,
    routing_of,
    uses_this_machine,
)
from ..batch.variables import surrounding_job
from ..core.cluster import EXISTING
from ..core.errors import InvalidInput
from ..core.serialize import to_json
from ..host.hardware import Machine, gpu_model, look_around
from ..profiles import LoadedProfile, Profile, find_profile, load_profiles, options_schema
from .allocation import held_from_inside, in_allocation
from .sizes import LOGIN_WORDS, Sizes, is_login_node, sizes_of
from .spec import shown_title

REMEMBERED_SECONDS = 60.0
"""Servers ask for profiles again and again, and nvidia-smi takes a second and more on big nodes."""


def places(*, elsewhere: bool = False) -> dict[str, Any]:
    """Return all profiles, best first for this host, and what is wrong with profile files.

    Parameters
    ----------
    elsewhere
        Also return the built-in profiles of sites that we are not at.
    """
    found = load_profiles(all_sites=elsewhere)
    machine = _machine(int(time.monotonic() // REMEMBERED_SECONDS))
    return {
        "profiles": [place(loaded, machine) for loaded in found.profiles.values()],
        "problems": to_json(found.problems),
        "login_node": is_login_node(),
        "inside": inside(machine),
        "broken": [{"name": name, "file": file} for name, file in found.broken.items()],
        "announcement": found.site.settings.announcement,
        "contact": found.site.settings.contact,
    }


def inside(machine: Machine) -> dict[str, Any] | None:
    """Return the batch job that this process is in, and its GPUs on this node; None for none."""
    held = held_from_inside()
    if held is None:
        return None
    return {
        "name": held.name,
        "nodes": held.nodes,
        "ends": held.ends,
        "gpus": len(machine.gpus),
        "gpu_type": gpu_model() if machine.gpus else "",
    }


def effective_values() -> list[tuple[str, str, str, str]]:
    """Return profile, key, value and file of each value in force; the site has no profile's name.

    Values that no file gives are left out.
    """
    found = load_profiles()
    parts = [("", found.site.settings.model_dump(mode="json"), found.site.sources)]
    parts += [
        (loaded.name, loaded.profile.model_dump(mode="json"), loaded.sources)
        for loaded in found.profiles.values()
    ]
    rows = []
    for name, values, sources in parts:
        for source in sources:
            value: Any = values
            for part in source.path.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            rows.append((name, source.path, json.dumps(value, ensure_ascii=False), source.file))
    return rows


def systems() -> list[tuple[str, dict[str, str]]]:
    """Return the batch systems of the profiles, with the variables by which each is found."""
    profiles = [loaded.profile for loaded in load_profiles().profiles.values()]
    found = [
        (profile.backend, routing_of(profile.backend, profile.job, {}))
        for profile in profiles
        if profile.backend in BACKENDS and not on_this_machine(profile.backend)
    ]
    return [one for number, one in enumerate(found) if one not in found[:number]]


def one_place(name: str) -> dict[str, Any]:
    """Return one profile; raises `ProfileNotFound` or `ProfileError`."""
    return place(find_profile(name), _machine(int(time.monotonic() // REMEMBERED_SECONDS)))


def place(loaded: LoadedProfile, machine: Machine) -> dict[str, Any]:
    """Return one profile as front ends show it."""
    profile, unusable = _in_own_job(loaded.profile, machine)
    sizes = sizes_of(profile, machine)
    return {
        "name": loaded.name,
        "title": shown_title(profile, sizes),
        "backend": profile.backend,
        "summary": profile.summary,
        "gpus_per_job": int(sizes.gpus) if profile.job.gpus == "auto" else profile.job.gpus,
        "unit": "GPUs" if sizes.gpus else "workers",
        "simulated": sizes.simulated,
        "encrypted": _encrypted(profile),
        "default": profile.default,
        "hosts": list(profile.hosts),
        "matches_host": loaded.matches_host(),
        "source": loaded.files[-1],
        "sources": to_json(loaded.sources),
        "shadowed": to_json(loaded.shadowed),
        "final": loaded.profile.final,
        "locked": list(loaded.profile.locked),
        "options": options_schema(profile),
        "limits": {
            "workers": sizes.maximum,
            "clusters": profile.limits.clusters,
        },
        "default_workers": sizes.default,
        "words": _words(loaded, machine, sizes),
        "unusable": unusable,
    }


def _encrypted(profile: Profile) -> bool | None:
    """Return whether clusters of a profile are encrypted; None if an option or a file decides."""
    chosen = {option.field for option in profile.options.values()}
    if profile.backend == EXISTING:
        address = profile.existing.address
        known = address.startswith(("tls://", "tcp://")) and "existing.address" not in chosen
        return address.startswith("tls://") if known else None
    return None if "network.protocol" in chosen else profile.network.protocol == "tls"


def _in_own_job(profile: Profile, machine: Machine) -> tuple[Profile, str]:
    """Return the profile with the amounts of this process's batch job, and why it cannot start.

    Outside of a job it is unchanged, and the reason empty.
    """
    backend = BACKENDS.get(profile.backend)
    if backend is None or not surrounding_job():
        return profile, ""
    if not backend.on_this_machine:
        missing = missing_programs(backend)
    else:
        launcher = profile.launcher.command or profile.launcher.name
        missing = [launcher] if launcher != "none" and shutil.which(launcher) is None else []
    if missing:
        return profile, f"This node does not have the command {missing[0]}."
    try:
        return in_allocation(profile, machine), ""
    except InvalidInput as error:
        return profile, error.message


def _words(loaded: LoadedProfile, machine: Machine, sizes: Sizes) -> str:
    """Return a remark about the workers of a profile, if one is needed."""
    if sizes.simulated:
        return "Simulation: CPU workers of this machine stand for GPUs."
    if loaded.profile.backend in WAYS_OUT:
        return "This version cannot start it."
    if not uses_this_machine(loaded.profile.backend):
        return ""
    shared = LOGIN_WORDS if sizes.alone and is_login_node() else ""
    cpu = "" if sizes.gpus else "CPU workers: no GPU here."
    return " ".join(filter(None, (shared, cpu, "" if sizes.gpus else machine.gpu_trouble)))


@functools.lru_cache(maxsize=1)
def _machine(period: int) -> Machine:
    return look_around()
