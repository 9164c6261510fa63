"""Run a notebook from its first cell to its last and print what its cells print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tools.shell import main


def run_notebook(path: Path) -> None:
    """Run a copy in memory, in a kernel of this Python, in the current folder."""
    # Here, where an interrupt is caught: these take a second.
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError
    from traitlets.config import Config

    notebook = nbformat.read(path, as_version=4)
    # Sockets in a private folder instead of TCP ports, which ipykernel warns of.
    client = NotebookClient(
        notebook,
        config=Config({"KernelManager": {"transport": "ipc"}}),
        kernel_name="python3",
        timeout=600,
        on_cell_executed=print_streams,
    )
    try:
        client.execute()
    except CellExecutionError as error:
        sys.exit(str(error))
    except DeadKernelError:
        sys.exit("The notebook's kernel has ended; an interrupt ends it too.")


def print_streams(cell: Any, cell_index: int, execute_reply: Any) -> None:
    """Print what a cell wrote; pictures and tables of widgets have no place in a terminal."""
    written = [output.text for output in cell.outputs if output.output_type == "stream"]
    sys.stdout.write("".join(written))
    sys.stdout.flush()


if __name__ == "__main__":
    main(lambda: run_notebook(Path(sys.argv[1])))
