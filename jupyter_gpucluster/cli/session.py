"""Where a verb runs: who asks, where its words go, and how waiting shows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..clusters import Clusters
    from ..state.view import ClusterView

Progress = Callable[["ClusterView"], None]


class Session(Protocol):
    """A terminal or a notebook."""

    program: str
    """How the user calls us: ``jupyter gpucluster`` or ``%gpucluster``."""

    python: str
    """The Python that clusters run in where the user names none; empty = the profile's."""

    @property
    def clusters(self) -> Clusters:
        """The clusters of this user."""

    def write(self, text: str) -> None:
        """Show a piece of a result as it comes."""

    def note(self, text: str) -> None:
        """Show a line about what goes on, beside the result."""

    def progress(self) -> AbstractContextManager[Progress]:
        """Show how a cluster comes along while the caller waits."""
