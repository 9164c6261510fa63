"""Run the workers' command inside a container."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from ...batch import image_option
from ...batch.quoting import directive_value
from ...core.errors import InvalidInput
from ...profiles import Profile
from ...profiles.sections import Container
from .launchers import find_dialect

ENVIRONMENT_PREFIXES = {"apptainer": "APPTAINERENV_", "singularity": "SINGULARITYENV_"}
CLEAN = frozenset({"-e", "--cleanenv", "-c", "--contain", "-C", "--containall"})
"""Arguments with which these runtimes do not hand all variables on."""


def check_container(profile: Profile, directory: Path) -> None:
    """Refuse what cannot work.

    Raises
    ------
    InvalidInput
        Pyxis without the srun that it is a part of, a pod's image without pods, or a cluster
        directory that cannot be bound.
    """
    container = profile.environment.container
    if container is None:
        return
    if container.runtime == "pod":
        if not image_option(profile.backend) or container.args:
            raise InvalidInput(
                "The runtime `pod` is Kubernetes itself, and takes no arguments.",
                hint="Its other settings go into job.directives, such as"
                " spec.containers[0].imagePullPolicy = Always; other backends need another"
                " runtime.",
                detail="environment.container",
            )
        return
    launcher = profile.launcher
    starts = "" if launcher.name == "none" else find_dialect(launcher).container_runtime
    if container.runtime == "pyxis" != starts:
        raise InvalidInput(
            "Pyxis is a part of srun, which this profile does not use.",
            hint="Set launcher: srun, or use apptainer.",
            detail="environment.container.runtime",
        )
    if container.runtime != "shifter" and set(str(directory)) & set(":,"):
        raise InvalidInput(
            f"{directory} cannot be bound into a container: its name holds ':' or ','.",
            hint="Set head.directory to a directory without these characters.",
            detail="environment.container",
        )


def image_directives(profile: Profile) -> tuple[str, ...]:
    """Return the directives by which the batch system itself runs a job in the container."""
    container = profile.environment.container
    if container is None or container.runtime != "pod":
        return ()
    image = directive_value(container.image, "environment.container.image")
    return (f"{image_option(profile.backend)} = {image}",)


def inside(container: Container, directory: Path, local_directory: str, *, gpus: bool) -> list[str]:
    """Return the words, quoted for the shell, that go before a command to run it in the container.

    Parameters
    ----------
    directory
        The cluster's directory, which the workers read certificates and addresses from.
    local_directory
        Where workers put data, as a word of the shell; empty where Dask chooses.
    """
    image, args = shlex.quote(container.image), map(shlex.quote, container.args)
    if container.runtime in ("pyxis", "pod"):  # srun or the node has made the container already
        return []
    if container.runtime == "shifter":  # the site mounts its file systems, and the driver
        return ["shifter", f"--image={image}", *args]
    words = [container.runtime, "exec", *(["--nv"] if gpus else [])]
    words += ["--bind", shlex.quote(str(directory))]
    if local_directory:
        words += ["--bind", local_directory]
    return [*words, *args, image]


def srun_words(container: Container | None, directory: Path) -> list[str]:
    """Return what makes srun start its ranks in a container."""
    if container is None or container.runtime != "pyxis":
        return []
    mounts = shlex.quote(f"{directory}:{directory}")
    image = shlex.quote(container.image)
    return [
        f"--container-image={image}",
        f"--container-mounts={mounts}",
        *map(shlex.quote, container.args),
    ]


def preparation(
    container: Container | None, local_directory: str, names: Iterable[str]
) -> list[str]:
    """Return the lines that must run on the node before a container starts there.

    Parameters
    ----------
    names
        Variables that the workers need.
    """
    if container is None or container.runtime not in ENVIRONMENT_PREFIXES:
        return []
    # What is bound must be there.
    lines = [f"mkdir -p {local_directory}"] if local_directory else []
    if not CLEAN & set(container.args):
        return lines
    prefix = ENVIRONMENT_PREFIXES[container.runtime]
    for name in names:
        lines.append(f'[ -z "${{{name}+set}}" ] || export {prefix}{name}="${name}"')
    return lines
