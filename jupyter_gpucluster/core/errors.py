"""One tree of errors; each owns its HTTP status, its exit code and a hint, and is safe to show."""

from __future__ import annotations


class GpuClusterError(Exception):
    """Something went wrong that the user may be told in these words.

    Parameters
    ----------
    message
        One sentence: what is wrong.
    hint
        One sentence: the fix.  Empty without one.
    detail
        Evidence that is worth keeping beside the message (a command's output, a field's path).
    """

    status = 500
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")  # for scripts and notebooks, which print the traceback
        self.detail = detail

    def as_json(self) -> dict[str, str]:
        """Return the body that REST answers and ``--json`` print."""
        return {"message": self.message, "hint": self.hint, "detail": self.detail}


# Bad input: the same request fails again until it is changed.


class InvalidInput(GpuClusterError):
    """A value that cannot be used; ``detail`` holds the field's path where there is one."""

    status = 422
    exit_code = 2


class ProfileError(InvalidInput):
    """A profile file that cannot be read; the message names file, line and column."""


class ProfileNotFound(InvalidInput):
    """No profile of that name on the search path."""

    status = 404


class UnsuitableEnvironment(InvalidInput):
    """The chosen Python lacks what a cluster needs, or has a version out of range."""


class LimitReached(InvalidInput):
    """The profile allows no more workers or clusters than there are."""

    status = 409


class ClusterNotFound(GpuClusterError):
    """No cluster of that name or id."""

    status = 404


class ClusterConflict(GpuClusterError):
    """The cluster's phase, or another cluster's name, forbids the request."""

    status = 409


# Trouble on this machine.


class StateError(GpuClusterError):
    """The state directory is unsafe, full or not writable."""

    status = 507


class InstallationFailed(GpuClusterError):
    """Packages could not be installed; ``detail`` holds the installer's own words."""

    status = 502


class RecordError(GpuClusterError):
    """A record that this version cannot read."""


class NewerRecord(RecordError):
    """A record that a newer version has written; it is whole."""


class HeadUnreachable(GpuClusterError):
    """The head's process is alive, or may be, but does not answer."""

    status = 503


class WaitTimeout(GpuClusterError):
    """The cluster did not get there in the time allowed; it continues by itself."""

    status = 504
    exit_code = 3


# What batch systems answer.


class BackendError(GpuClusterError):
    """The scheduler refused; ``detail`` holds command, exit code and its own words.

    Parameters
    ----------
    accepted
        Ids of the jobs of a submission that it took before it refused the others.
    """

    status = 502

    def __init__(
        self, message: str, *, hint: str = "", detail: str = "", accepted: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint, detail=detail)
        self.accepted = accepted


class BackendUnavailable(BackendError):
    """The scheduler did not answer; nothing is known to have changed."""

    status = 503


class UsageError(Exception):
    """A request to a job server that makes no sense; the text goes back to the head."""
