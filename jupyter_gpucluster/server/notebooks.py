"""The notebooks that come with the package, and copying one to where the user works."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupyter_server.services.contents.manager import ContentsManager
from jupyter_server.utils import ensure_async
from tornado import web

from ..core.cluster import ENDED
from ..core.errors import ClusterConflict, InvalidInput
from ..state.view import ClusterView

FOLDER = Path(__file__).parent.parent / "notebooks"


def bundled() -> dict[str, Path]:
    """Return the notebooks by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.ipynb"))}


def titles() -> list[dict[str, str]]:
    """Return name and title of each notebook."""
    return [{"name": name, "title": title_of(path)} for name, path in bundled().items()]


def title_of(path: Path) -> str:
    """Return a notebook's heading, which is its first line."""
    first: str = json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"][0]
    return first.removeprefix("# ").strip()


async def copy(
    name: str, directory: str, contents: ContentsManager, cluster: ClusterView | None = None
) -> str:
    """Put a copy of a notebook into a folder, under a name that is free there.

    Parameters
    ----------
    name
        Name without the ending.
    directory
        Folder as Jupyter names it: relative to its root, with slashes.
    contents
        The server's contents manager.
    cluster
        The cluster that the copy is to measure; without one it starts its own.

    Returns
    -------
    str
        Path of the copy.

    Raises
    ------
    HTTPError
        There is no such notebook.
    InvalidInput
        There is no such folder.
    ClusterConflict
        The cluster has ended.
    """
    found = await asyncio.to_thread(bundled)
    if name not in found:
        raise web.HTTPError(404, "There is no such notebook.")
    values = parameters_for(cluster) if cluster else {}
    folder = directory.strip("/")
    if not await ensure_async(contents.dir_exists(folder)):
        raise InvalidInput("There is no such folder.", detail="directory")
    source = json.loads(await asyncio.to_thread(found[name].read_text, encoding="utf-8"))
    set_parameters(source, values)
    free = await ensure_async(contents.increment_filename(found[name].name, folder))
    path = f"{folder}/{free}" if folder else free
    model: dict[str, Any] = {"type": "notebook", "format": "json", "content": source}
    await ensure_async(contents.save(model, path))
    return path


def parameters_for(cluster: ClusterView) -> dict[str, str | int]:
    """Return the parameters with which a notebook measures a cluster that runs already."""
    if cluster.phase in ENDED:
        raise ClusterConflict(f"Cluster {cluster.name} has ended.", hint="Start another one.")
    return {"cluster_name": cluster.name, "workers": max(1, cluster.workers.ready)}


def set_parameters(notebook: dict[str, Any], values: Mapping[str, str | int]) -> None:
    """Change values in the cell of parameters; what is said about them stays."""
    for cell in notebook["cells"]:
        if "parameters" in cell["metadata"].get("tags", ()):
            text = "".join(cell["source"])
            for name, value in values.items():
                # A name of a cluster reads the same in JSON and in Python.
                line = f"{name} = {json.dumps(value)}"
                text = re.sub(rf"(?m)^{name} = .*?(?=  #|$)", line, text)
            cell["source"] = text
