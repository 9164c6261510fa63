"""Attach to a scheduler that somebody else started: its files, as links in a cluster directory."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from ..core.cluster import Phase, Record, Target
from ..core.errors import InvalidInput
from ..host.cluster_directory import ClusterDirectory
from ..host.private_files import trouble, write_private
from ..profiles import Profile
from ..state.external import read_address, read_scheduler_file
from .python_environments import check_python, require_ucx

SURVIVAL = "Yes: it was not started here, and nothing here ends it."


def attach(directory: ClusterDirectory, profile: Profile, record: Record) -> Record:
    """Return the record of a cluster of another user; nothing of that cluster is touched.

    Raises
    ------
    InvalidInput
        The profile names no scheduler, or files that cannot be used.
    UnsuitableEnvironment
        The scheduler speaks UCX, and the Python that was chosen does not.
    """
    spec, address = record.spec, link_scheduler(directory, profile)
    ucx, encrypted = address.startswith("ucx://"), address.startswith("tls://")
    if ucx:
        require_ucx(check_python(spec.python), f"a scheduler at {address}")
    link_certificates(directory, profile, encrypted=encrypted)
    spec = replace(
        spec,
        encrypted=encrypted,
        ucx=ucx,
        trusted=profile.existing.trust_dashboard,
        survives=True,
        survival=SURVIVAL,
        scratch="",
        maximum_workers=0,
    )
    return replace(
        record,
        spec=spec,
        target=Target(0, 0),
        phase=Phase.RUNNING,
        revision=1,
        scheduler_address=address,
        owner=None,
    )


def link_scheduler(directory: ClusterDirectory, profile: Profile) -> str:
    """Make the cluster's scheduler file, a link where the profile names one; return the address."""
    existing = profile.existing
    if existing.scheduler_file:
        path = usable(existing.scheduler_file, "existing.scheduler_file")
        protocol, host, port = read_address(str(read_scheduler_file(path)["address"]))
        link(directory.scheduler_file, path)
    elif existing.address:
        protocol, host, port = read_address(existing.address)
    else:
        raise InvalidInput(
            "The profile does not say which scheduler to attach to.",
            hint="Set existing.address or existing.scheduler_file.",
            detail="existing",
        )
    address = f"{protocol}://{f'[{host}]' if ':' in host else host}:{port}"
    if not existing.scheduler_file:
        write_private(directory.scheduler_file, json.dumps({"address": address}).encode())
    return address


def link_certificates(directory: ClusterDirectory, profile: Profile, *, encrypted: bool) -> None:
    """Link the files of an encrypted scheduler's client: a renewed one counts at once."""
    tls = profile.existing.tls
    if not encrypted:
        return
    if tls is None:
        raise InvalidInput(
            "That scheduler is encrypted, and the profile names no certificates.",
            hint="Set existing.tls: {ca: ..., cert: ..., key: ...}.",
            detail="existing.tls",
        )
    for part, name in (("ca", "ca"), ("cert", "client-cert"), ("key", "client-key")):
        path = usable(getattr(tls, part), f"existing.tls.{part}")
        link(directory.tls / f"{name}.pem", path)


def usable(text: str, field: str) -> Path:
    """Return the path of a file that can be read.

    Raises
    ------
    InvalidInput
        It cannot, or the path is not absolute.
    """
    path = Path(text).expanduser()
    if not path.is_absolute() or not path.is_file() or not os.access(path, os.R_OK):
        raise InvalidInput(
            f"{text} is not the absolute path of a file that you can read.", detail=field
        )
    return path


def link(place: Path, target: Path) -> None:
    """Make a link; raises `StateError` where that cannot be done."""
    try:
        place.symlink_to(target)
    except OSError as error:
        raise trouble(error, place) from error
