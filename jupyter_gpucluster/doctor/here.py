"""What is found on this machine, out of the facts about it: no question is asked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..host.detach import Survival
from .findings import Finding, failed, ok, warning

SHARED = frozenset(
    {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb3", "afs", "panfs", "pvfs2",
     "orangefs", "9p", "virtiofs", "wekafs", "glusterfs", "quobyte", "daos", "vastnfs", "dvs"}
)  # fmt: skip
"""Types of file systems that many machines may see at once; others lie in one machine."""
IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})
GIB = 2**30
LEAST_FREE = GIB
LEAST_FREE_FILES = 1000
FILES_OF_A_WORKER = 10
"""Open files that a scheduler needs for each worker: connections both ways, and room."""
LEAST_FILES = 1024


def is_shared(kind: str) -> bool:
    """Tell whether other machines may see a file system of this type."""
    return kind.removeprefix("fuse.") in SHARED | {"sshfs", "mfs", "juicefs", "s3fs"}


def look_at_network(
    interfaces: Mapping[str, str], usual: str, named: str, key: str, *, batch: bool
) -> Finding:
    """Say where a scheduler of this machine would listen.

    Parameters
    ----------
    interfaces
        Addresses by interface.
    usual
        The address that is taken where no interface is named.
    named, key
        The interface that the profile names, and the key that does.
    batch
        Whether workers run on other machines.
    """
    check = "network here"
    there = ", ".join(f"{name} ({address})" for name, address in interfaces.items()) or "none"
    if named and named not in interfaces:
        return failed(
            check,
            f"{key} is {named!r}, which this host does not have or has no IPv4 address; there"
            f" is {there}.",
            f"Name one of these in {key}; where nodes have others, workers take that of"
            " network.interface and the scheduler that of head.interface.",
        )
    address = interfaces[named] if named else usual
    if batch and address.startswith("127."):
        where = f"{named} ({address})" if named else address
        return warning(
            check,
            f"A scheduler would listen on {where}, which only this machine reaches; there is"
            f" {there}.",
            "Name a network that the nodes reach in head.interface, or set head.placement: job;"
            " --job tries which they reach.",
        )
    chosen = f"{named} ({address})" if named else f"{address}, as no interface is named"
    return ok(check, f"A scheduler listens on {chosen}; there is {there}.")


def look_at_directory(
    facts: Mapping[str, Any], private: str, *, batch: bool, variable: str = "JUPYTER_DATA_DIR"
) -> Finding:
    """Say whether cluster directories can be made, and whether nodes may see them.

    Parameters
    ----------
    facts
        What `probe.directory` tells of it.
    private
        Why it is not safe to use; empty where it is.
    """
    check = "cluster directory"
    place, kind = facts["path"], facts["file_system"] or "an unknown file system"
    trouble = private or facts["trouble"]
    if trouble:
        return failed(
            check,
            f"Clusters cannot be kept in {place}: {trouble.rstrip('.')}.",
            f"Correct its mode or owner, or point {variable} at a directory of your own.",
        )
    room = f"{facts['free'] / GIB:.1f} GiB free"
    files = facts["free_files"]
    if facts["free"] < LEAST_FREE or (files is not None and files < LEAST_FREE_FILES):
        inodes = "" if files is None else f", {files} files"
        return warning(
            check,
            f"{place} is nearly full: {room}{inodes}.",
            f"Free some space, or point {variable} at a file system that has some.",
        )
    if batch and not is_shared(facts["file_system"]):
        return warning(
            check,
            f"{place} is on {kind}, which is usually a disk of this machine alone: nodes may not"
            " see it.",
            f"Point {variable} at a file system that the nodes share; --job tries whether they"
            " see it.",
        )
    return ok(check, f"{place} is private and writable, on {kind}, {room}.")


def look_at_open_files(limits: Sequence[int], workers: int) -> Finding:
    """Say whether a scheduler may hold the connections of so many workers."""
    _, hard = limits  # a scheduler raises its own limit to the hard one
    needed = max(LEAST_FILES, FILES_OF_A_WORKER * workers)
    told = "any number of files" if hard < 0 else f"{hard} files"
    if 0 <= hard < needed:
        cure = "Ask the site for a higher hard limit of open files, or for fewer workers."
        return warning("open files", f"{told}; {workers} workers want {needed} (ulimit -Hn).", cure)
    return ok("open files", f"A scheduler may open {told} (ulimit -Hn).")


def look_at_survival(survival: Survival) -> Finding:
    """Say whether clusters outlive Jupyter or the shell."""
    if survival.survives:
        return ok("outlives Jupyter", survival.words)
    return warning(
        "outlives Jupyter",
        survival.words,
        "Where clusters are to live on, start them from a login host, or set head.placement: job.",
    )


def look_at_commands(title: str, missing: Sequence[str]) -> Finding | None:
    """Say which commands of the queueing system are not here; None where all are."""
    if not missing:
        return None
    return failed(
        "commands",
        f"{title}'s {', '.join(missing)} cannot be found on this host.",
        "Log in to a host that has them, load the module that brings them before Jupyter starts,"
        " or add their directory to PATH; a container may hide them.",
    )


def look_at_ssh(
    present: bool, agent: bool, keys: Sequence[str], *, launcher: bool = True
) -> Finding:
    """Say whether ssh may log in to nodes without a password."""
    check = "ssh"
    if not present:
        return failed(
            check, "The launcher is ssh, and there is no ssh here.", "Install an ssh client."
        )
    if not agent and not keys:
        return warning(
            check,
            "There is neither a key of yours in ~/.ssh nor an agent, so ssh to the nodes may ask"
            " for a password, which nobody types in a job.",
            "Make one (ssh-keygen) and add its public half to ~/.ssh/authorized_keys of the shared"
            " home; an agent on your own computer is handed on by `ssh -A`, but not into jobs.",
        )
    if not keys:
        return warning(
            check,
            "Keys are in an agent only, which a job's first node does not have.",
            "Make a key (ssh-keygen) that nodes of the shared home accept from one another.",
        )
    return ok(check, f"Keys: {', '.join(keys)}{'; an agent, too' if agent else ''}.")


def look_at_versions(
    python: str, versions: Mapping[str, str], own: Mapping[str, str], own_python: str
) -> Finding:
    """Compare the cluster's Python with the one that a client of this process would have."""
    check = "versions"
    names = ("python", "dask", "distributed")
    told = ", ".join(f"{name} {versions.get(name, 'missing')}" for name in names)
    differing = [
        f"{name} {own.get(name, 'missing')}"
        for name in names
        if release(name, versions.get(name)) != release(name, own.get(name))
    ]
    if not differing:
        return ok(check, f"{told} in {python}.")
    return warning(
        check,
        f"{told} in {python}; this process has {', '.join(differing)} ({own_python}).",
        "Connect from a kernel of the cluster's environment, or name the Python of yours (--python,"
        " --kernel): client, scheduler and workers must agree.",
    )


def release(name: str, version: object) -> str:
    """Return the part of a version that must agree: pickles of one Python's minor releases do."""
    text = "missing" if version is None else str(version)
    return ".".join(text.split(".")[:2]) if name == "python" else text


def look_at_imports(facts: Mapping[str, Any], python: str, *, where: str = "here") -> Finding:
    """Say whether what a worker needs can be imported, and how long the first time takes."""
    check = f"imports {where}"
    seconds = facts["seconds"]
    if not facts["troubles"]:
        names = [name for name in facts["versions"] if name != "python"]
        told = f"{' and '.join(names)} imported in {seconds:.1f} s by {python}."
        if seconds > SLOW_IMPORT:
            return warning(check, told, SLOW_CURE)
        return ok(check, told)
    name, trouble = next(iter(facts["troubles"].items()))
    cure = next((words for sign, words in IMPORT_CURES if sign in trouble), IMPORT_CURE)
    what = f"{python} cannot import {name}" if name else f"{python} does not run"
    return failed(check, f"{what}: {trouble}", cure)


SLOW_IMPORT = 30.0
SLOW_CURE = (
    "Workers give up on a scheduler after 60 s, and many at once are slower yet: keep the"
    " environment on a faster or node-local file system, or packed as one file or a container."
)
IMPORT_CURE = "Mend that environment, or choose another Python or kernel."
IMPORT_CURES = (
    (
        "'bindings' from 'cuda'",
        "dask-cuda came without CUDA's own packages: install dask-cuda[cu12] or dask-cuda[cu13].",
    ),
    ("No module named 'dask_cuda'", "Install dask-cuda[cu12] or dask-cuda[cu13] there."),
    ("No module named", "Install dask and distributed there, or choose another Python or kernel."),
    (
        "No such file",
        "Choose a Python on a file system that the nodes share (environment.python, --python).",
    ),
)
