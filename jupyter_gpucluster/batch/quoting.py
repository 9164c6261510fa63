"""Values of a job's directives: each one word that means only itself."""

from __future__ import annotations

import re

from ..core.errors import InvalidInput
from ..core.job import JobShape

FORBIDDEN = re.compile(r"""[\s"'`\\$;|&#(){}\[\]*?!]""")
"""Blanks and quotes begin another option, the rest means something to a shell or a scheduler."""
RESOURCE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)
KIND = re.compile(r"[0-9]*[A-Za-z][A-Za-z0-9_.-]*", re.ASCII)
"""``2080ti`` and ``1g.10gb``, but no number, which would count something."""


def directive_value(text: str, what: str) -> str:
    """Return a value that may go into a directive as it is.

    Parameters
    ----------
    text
        A queue, an account, a mark, a path: never empty.
    what
        The profile's field that holds it, such as ``job.queue``.

    Raises
    ------
    InvalidInput
        It could begin another option or another line.
    """
    if text and text.isprintable() and not text.startswith("-") and not FORBIDDEN.search(text):
        return text
    raise InvalidInput(
        f"{what} {text!r} cannot stand in a job's script.",
        hint="Use a value without blanks, quotes and special characters that does not begin "
        "with '-'; whole directives go into job.directives.",
        detail=what,
    )


def resource_name(text: str, what: str) -> str:
    """Return the name of a resource: it holds no ``,``, ``:`` or ``=``.

    Raises
    ------
    InvalidInput
        It could ask for another resource too.
    """
    if RESOURCE.fullmatch(text):
        return text
    raise InvalidInput(
        f"{what} {text!r} is not the name of a resource.",
        hint="Use letters, digits, '_', '.' and '-', beginning with a letter.",
        detail=what,
    )


def gpu_kind(text: str) -> str:
    """Return a kind of GPU as sites name it: it may begin with a digit.

    Raises
    ------
    InvalidInput
        It could ask for something else too.
    """
    if KIND.fullmatch(text):
        return text
    raise InvalidInput(
        f"job.gpu_type {text!r} is not the name of a kind of GPU.",
        hint="Use letters, digits, '_', '.' and '-', as the site writes it.",
        detail="job.gpu_type",
    )


def hours(seconds: int) -> str:
    """Write a walltime as ``HH:MM:SS``; hours may have more than two digits."""
    whole, rest = divmod(seconds, 3600)
    return f"{whole:02d}:{rest // 60:02d}:{rest % 60:02d}"


def gpu_way(job: JobShape, title: str, ways: tuple[str, ...]) -> str:
    """Return how GPUs are asked for; the first way is the usual one.

    Raises
    ------
    InvalidInput
        The system knows no such way.
    """
    request = job.gpu_request or ways[0]
    if request not in ways:
        raise InvalidInput(
            f"job.gpu_request {request!r} is unknown on {title}.",
            hint=f"Use one of {', '.join(ways)}.",
            detail="job.gpu_request",
        )
    return request


def memory_of(job: JobShape, title: str, ways: tuple[str, ...] = ()) -> int | None:
    """Return the bytes of memory to ask for, None where nothing is to be asked for.

    Parameters
    ----------
    title
        The batch system's name for users.
    ways
        The values of ``job.memory_request`` that it knows beside ``none`` and the empty one.

    Raises
    ------
    InvalidInput
        It knows no such way.
    """
    if job.memory_request not in ("", "none", *ways):
        known = ", ".join((*ways, "none"))
        raise InvalidInput(
            f"job.memory_request {job.memory_request!r} is unknown on {title}.",
            hint=f"Leave it empty for the usual way, or use one of: {known}.",
            detail="job.memory_request",
        )
    return None if job.memory_request == "none" else job.memory
