"""The rows that a cluster adds to Dask's HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..state.view import ClusterView


def status_rows(view: ClusterView, dashboard_link: str) -> str:
    """Return table rows; everything in them is escaped."""
    return "".join(
        f'<tr><td colspan="2" style="text-align: left;"><strong>{escape(name)}:</strong> '
        f"{escape(value)}</td></tr>"
        for name, value in _facts(view, dashboard_link)
    )


def _facts(view: ClusterView, dashboard_link: str) -> Iterator[tuple[str, str]]:
    target = view.target
    yield "Profile", view.title or view.profile
    if target.adaptive:
        yield f"Requested ({view.unit})", f"{target.minimum} to {target.maximum}, with the load"
    else:
        yield f"Requested ({view.unit})", str(target.maximum)
    if not view.encrypted:
        yield "Warning", "not encrypted"
    if view.simulated:
        yield "Warning", "simulated"
    if not dashboard_link:
        # The head wants a token with each request, which Jupyter's proxy adds and no browser has.
        yield "How to open the dashboard", "through JupyterLab, from the list of clusters"
