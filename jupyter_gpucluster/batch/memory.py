"""Whether a job asks for memory, and by which of the ways that its system knows."""

from __future__ import annotations

from ..core.errors import InvalidInput
from ..core.job import JobShape


def memory_of(job: JobShape, title: str, ways: tuple[str, ...] = ()) -> int | None:
    """Return the bytes of memory to ask for, None where nothing is to be asked for.

    Parameters
    ----------
    title
        What users call the queueing system.
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
            f"{title} knows no memory request {job.memory_request!r}.",
            hint=f"Leave it empty for the usual way, or use one of: {known}.",
            detail="job.memory_request",
        )
    return None if job.memory_request == "none" else job.memory
