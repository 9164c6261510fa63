"""Checks of this machine for the clusters of a profile: each looks, and returns its finding."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..batch import is_simulated, on_this_machine
from ..batch.variables import surrounding_job
from ..core.cluster import EXISTING
from ..core.errors import GpuClusterError
from ..host.dask_settings import own_settings
from ..host.detach import find_survival
from ..host.hardware import look_around
from ..host.private_files import check_private
from ..launch.allocation import is_spread
from ..launch.python_environments import ask_python, shown
from ..launch.sizes import sizes_of
from ..node import probe
from ..state.external import read_address, read_scheduler_file
from ..state.paths import check_place
from .findings import Finding, failed, ok, refused, warning

if TYPE_CHECKING:
    from ..launch.plan import Plan
    from ..profiles import Profile, ProfileProblem

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
KEYS = ("id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk")
PLACE = "JUPYTER_DATA_DIR"
SLOW_IMPORT = 30.0
DECISIVE = ("python", "dask", "distributed")
"""Packages that must agree; the others only if tasks use them."""
SAME_VERSIONS = (
    "Connect from a kernel of the cluster's own environment (the command show names its"
    " Python), or start the cluster in yours (--python, --kernel)."
)
IMPORT_FIXES = (
    (
        "'bindings' from 'cuda'",
        "CUDA's own packages are missing: install dask-cuda[cu12] or [cu13].",
    ),
    ("No module named 'dask_cuda'", "Install dask-cuda[cu12] or dask-cuda[cu13] there."),
    ("No module named", "Install dask and distributed there, or choose another Python or kernel."),
    ("No such file", "Choose a Python on a file system that the nodes share, with --python."),
    ("", "Repair that environment, or choose another Python or kernel."),
)
"""Parts of an import's error, and the fix; the first that fits counts."""


class Kind(Enum):
    """Kind of a subject."""

    MACHINE = "machine"
    EXISTING = "existing"
    """A profile that attaches to a scheduler of another program."""
    LOCAL = "local"
    BATCH = "batch"
    """A profile whose workers run in jobs of a batch system."""


@dataclass(frozen=True)
class Subject:
    """A profile whose clusters this machine is to run; for the machine alone a plain one."""

    root: Path
    """The directory of cluster directories."""
    kind: Kind
    profile: Profile
    plan: Plan | None = None
    tried: bool = False
    """True if a job tries afterwards what a check here can only guess."""

    @property
    def guessed(self) -> bool:
        """True if the workers run on other machines, and no job looks around there."""
        return self.kind is Kind.BATCH and not self.tried

    @property
    def head_here(self) -> bool:
        """True if the scheduler runs on this machine."""
        return self.kind is not Kind.BATCH or self.profile.head.placement == "server"


def kind_of(profile: Profile) -> Kind:
    """Return the kind of a profile."""
    if profile.backend == EXISTING:
        return Kind.EXISTING
    return Kind.LOCAL if on_this_machine(profile.backend) else Kind.BATCH


def is_shared(kind: str) -> bool:
    """Return whether other machines may see a file system of this type."""
    return kind.removeprefix("fuse.") in SHARED | {"sshfs", "mfs", "juicefs", "s3fs"}


def profile_files(problems: Iterable[ProfileProblem]) -> list[Finding]:
    """Return a finding for each mistake in profile files."""
    return [
        (failed if problem.severity == "error" else warning)(str(problem), "Correct the file.")
        for problem in problems
    ]


def versions(subject: Subject) -> Finding | None:
    """Compare the cluster's Python with the one that a client of this process would have."""
    if subject.plan is None:
        return None
    there, own = subject.plan.environment, ask_python(sys.executable).versions
    python = shown(there.python)
    parties = ((python, there.versions), (f"this process ({shown(sys.executable)})", own))
    if found := differences(parties, DECISIVE):
        return warning(f"{'; '.join(found.values())}.", SAME_VERSIONS)
    words = ", ".join(f"{name} {there.versions.get(name)}" for name in DECISIVE)
    return ok(f"{words} in {python}.")


def differences(
    parties: Sequence[tuple[str, Mapping[str, Any]]], names: Iterable[str]
) -> dict[str, str]:
    """Return the packages whose versions differ, each with its versions and where they are."""
    found = {}
    for name in names:
        places: dict[str, dict[str, None]] = {}
        for place, versions in parties:
            places.setdefault(_release(name, versions.get(name)), {})[place] = None
        if len(places) > 1:
            each = (f"{name} {v} in {' and '.join(where)}" for v, where in places.items())
            found[name] = "; ".join(each)
    return found


def _release(name: str, version: object) -> str:
    """Return the part of a version that must agree: pickles of one Python's minor releases do."""
    text = "missing" if version is None else str(version)
    return ".".join(text.split(".")[:2]) if name == "python" else text


def imports(subject: Subject) -> Finding | None:
    """Import in the cluster's Python what a worker needs."""
    if subject.plan is None:
        return None
    environment = subject.plan.environment
    python = environment.python
    modules = ["distributed"]
    profile = subject.profile
    if (
        profile.environment.container is None
        and not is_simulated(profile.backend)
        and sizes_of(profile, look_around()).gpus
    ):
        modules.append("dask_cuda")
    return judge_imports(probe.first_import(python, modules, environment.variables), shown(python))


def judge_imports(facts: Mapping[str, Any], python: str) -> Finding:
    """Return whether modules could be imported, and how long the first time took."""
    seconds = facts["seconds"]
    if facts["troubles"]:
        name, trouble = next(iter(facts["troubles"].items()))
        fix = next(words for sign, words in IMPORT_FIXES if sign in trouble)
        what = f"{python} cannot import {name}" if name else f"{python} does not run"
        return failed(f"{what}: {trouble}", fix)
    names = [name for name in facts["versions"] if name != "python"]
    words = f"{' and '.join(names)} imported in {seconds:.1f} s by {python}."
    if seconds <= SLOW_IMPORT:
        return ok(words)
    return warning(
        words,
        "Workers give up on a scheduler after 60 s, and many at once are even slower. Keep the"
        " environment on a faster or node-local file system, or in one file or a container.",
    )


def scheduler(subject: Subject) -> Finding:
    """Call the scheduler that another program started."""
    existing = subject.profile.existing
    try:
        file = Path(existing.scheduler_file).expanduser()
        address = existing.address or str(read_scheduler_file(file)["address"])
        _, host, port = read_address(address)
    except GpuClusterError as error:
        return refused(error)
    try:
        with socket.create_connection((host, port), probe.CALL_SECONDS):
            return ok(f"A process listens at {address}.")
    except OSError as error:
        fix = "Check that the scheduler runs, and that this host can reach its network."
        return failed(f"{address} cannot be reached: {error.strerror or error}.", fix)


def network(subject: Subject) -> Finding | None:
    """Find the address at which a scheduler of this machine would listen."""
    profile = subject.profile
    reached = subject.kind is Kind.BATCH and subject.head_here
    if not (reached or subject.kind is Kind.MACHINE or is_spread(profile)):
        return None  # it listens elsewhere, or on loopback
    named = profile.head.interface or profile.network.interface or ""
    key = "head.interface" if profile.head.interface else "network.interface"
    interfaces = probe.interfaces()
    there = listed(interfaces)
    if named and named not in interfaces:
        found = failed(
            f"{key} is {named!r}, but this host has no such interface with an IPv4 address"
            f" (it has: {there}).",
            f"Set {key} to one of these. If nodes have others: network.interface is for the"
            " workers, head.interface for the scheduler.",
        )
        others = [name for name, own in interfaces.items() if not own.startswith("127.")]
        return found.fixed_by("head.interface", others[0]) if len(others) == 1 else found
    address = interfaces[named] if named else probe.usual_address()
    if subject.guessed and address.startswith("127."):
        where = f"{named} ({address})" if named else address
        return warning(
            f"A scheduler would listen on {where}, which only this machine can reach (it has:"
            f" {there}).",
            "Set head.interface to a network that the nodes reach (--job tries them), or set"
            " head.placement: job.",
        )
    chosen = f"{named} ({address})" if named else f"{address} (no interface is set)"
    return ok(f"A scheduler would listen on {chosen}; this host has: {there}.")


def listed(interfaces: Mapping[str, str]) -> str:
    """Return interfaces with their addresses."""
    return ", ".join(f"{name} ({address})" for name, address in interfaces.items()) or "none"


def cluster_directory(subject: Subject) -> Finding:
    """Find out whether cluster directories can be made, and whether nodes may see them."""
    facts = probe.directory(str(subject.root))
    place, kind = facts["path"], facts["file_system"] or "an unknown file system"
    if trouble := _not_private(subject.root) or facts["trouble"]:
        fix = f"Correct its mode or owner, or point {PLACE} at a directory of your own."
        return failed(f"Clusters cannot be kept in {place}: {trouble.rstrip('.')}.", fix)
    room, files = f"{facts['free'] / GIB:.1f} GiB free", facts["free_files"]
    if facts["free"] < LEAST_FREE or (files is not None and files < LEAST_FREE_FILES):
        inodes = "" if files is None else f", {files} files"
        fix = f"Free some space, or point {PLACE} at a file system that has some."
        return warning(f"{place} is nearly full: {room}{inodes}.", fix)
    if subject.guessed and not is_shared(facts["file_system"]):
        return warning(
            f"{place} is on {kind}, which is usually a disk of this machine alone: nodes may not"
            " see it.",
            f"Point {PLACE} at a file system that the nodes share; --job tries whether they see"
            " it.",
        )
    return ok(f"{place} is private and writable, on {kind}, {room}.")


def _not_private(root: Path) -> str:
    """Return why the directory is not safe to use, empty if it is; nothing is made."""
    try:
        check_place(root, PLACE)
        if root.exists() or root.is_symlink():
            check_private(root)
    except GpuClusterError as error:
        return error.message
    except OSError as error:  # another user's folder above it
        return error.strerror or str(error)
    return ""


def open_files(subject: Subject) -> Finding:
    """Compare the limit of open files with the connections of a scheduler."""
    _, hard = probe.open_files()  # a scheduler raises its own limit to the hard one
    sizes = sizes_of(subject.profile, look_around())
    workers = sizes.maximum or sizes.per_job
    needed = max(LEAST_FILES, FILES_OF_A_WORKER * workers)
    if 0 <= hard < needed:
        fix = "Ask the site for a higher hard limit of open files, or use fewer workers."
        return warning(f"{hard} files; {workers} workers need {needed} (ulimit -Hn).", fix)
    words = "any number of files" if hard < 0 else f"{hard} files"
    return ok(f"A scheduler may open {words} (ulimit -Hn).")


def outlives_jupyter(subject: Subject) -> Finding | None:
    """Find out whether clusters outlive Jupyter or the shell."""
    if not subject.head_here:
        return None
    detached = find_survival(job=surrounding_job())
    if detached.survives:
        return ok(detached.words)
    fix = "To keep clusters running, start them from a login host, or set head.placement: job."
    return warning(detached.words, fix)


def ssh(subject: Subject) -> Finding | None:
    """Look for what logs in to nodes without a password, if the launcher is ssh."""
    if subject.profile.launcher.name != "ssh" or subject.tried:
        return None
    if shutil.which("ssh") is None:
        return failed("The launcher is ssh, and there is no ssh here.", "Install an ssh client.")
    keys = [name for name in KEYS if (Path.home() / ".ssh" / name).is_file()]
    if keys:
        return ok(f"Keys: {', '.join(keys)}.")
    fix = "Make one (ssh-keygen) and add its public half to ~/.ssh/authorized_keys."
    return warning("~/.ssh has no key of yours, and jobs cannot type passwords or use agents.", fix)


def gpus(subject: Subject) -> Finding:
    """Look at the GPUs of this machine."""
    machine = look_around()
    if machine.gpu_trouble:
        return failed(machine.gpu_trouble, "Without GPUs, workers use CPU cores only.")
    if not machine.gpus:
        return ok(f"None; workers of this machine use its {machine.cpus} cores.")
    return ok(f"{len(machine.gpus)}: {', '.join(machine.gpus)}.")


def dask_settings(subject: Subject) -> Finding | None:
    """Return the settings of Dask that this user has changed."""
    return ok(words) if (words := own_settings()) else None
