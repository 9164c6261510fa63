"""``%gpucluster`` in a real kernel and in a shell."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbclient import NotebookClient
from traitlets.config import Config

from jupyter_gpucluster.cli.output import Table, Text, facts
from jupyter_gpucluster.clusters import Clusters
from jupyter_gpucluster.core.cluster import Phase
from jupyter_gpucluster.core.errors import GpuClusterError
from jupyter_gpucluster.magic import (
    LIVE,
    GpuClusterMagic,
    MagicError,
    Notebook,
    as_html,
    load_ipython_extension,
)

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def shell(home: Path) -> Iterator[InteractiveShell]:
    """A shell with the extension loaded."""
    # A history would be written into the test's home when that is long gone.
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    load_ipython_extension(shell)
    yield shell
    InteractiveShell.clear_instance()


def test_control_characters_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    error = MagicError([GpuClusterError("\x1b[2J\nno", hint="\x9b")])
    assert error._render_traceback_() == ["\x1b[31merror: \\x1b[2J no\x1b[0m", "hint: \\x9b"]
    Notebook().write("\x1b[2J\n")
    assert capsys.readouterr().out == "\\x1b[2J\n"


def test_html_is_escaped() -> None:
    evil = "<script>alert(1)</script>"
    for block in (
        Table((evil,), ((evil,),), title=evil),
        Table((), (), empty=evil),
        facts(((evil, evil),), title=evil),
        Text(evil, title=evil),
        Text(evil, code=True),
    ):
        assert "<script" not in as_html(block)
        assert "&lt;script&gt;" in as_html(block)


@pytest.mark.parametrize(
    "line, words",
    [
        ("strat", ["error: Unknown command 'strat'.", "hint: Did you mean start?"]),
        ("start local --workers 0", ["error: --workers takes 1 or more, not 0."]),
        ("start local --name 'x", ["error: Cannot read the line: No closing quotation."]),
        ("show nobody", ["error: There is no cluster named nobody."]),
        ("connect nobody", ["error: There is no cluster named nobody."]),
        ("shell nobody", ["error: A notebook has no terminal", "hint: Use one: jupyter"]),
    ],
)
def test_an_error_is_a_red_line_without_a_traceback(
    shell: InteractiveShell, line: str, words: list[str]
) -> None:
    with capture_output() as captured:
        result = shell.run_cell(f"%gpucluster {line}")
    assert isinstance(result.error_in_exec, MagicError)
    assert "Traceback" not in captured.stdout
    for word in words:
        assert word in captured.stdout
    assert "\x1b[31merror: " in captured.stdout


def test_results_are_shown_as_text_and_html(shell: InteractiveShell) -> None:
    with capture_output() as captured:
        shell.run_cell("%gpucluster list")
    [shown] = captured.outputs
    assert shown.data["text/plain"].startswith("no clusters")
    assert shown.data["text/html"].startswith("<p>no clusters")


def test_the_words_can_be_variables(shell: InteractiveShell) -> None:
    shell.user_ns["which"] = "nobody"
    with capture_output() as captured:
        shell.run_cell("%gpucluster why {which}")
    assert "no cluster named nobody" in captured.stdout


@pytest.mark.parametrize(
    "line, usage", [("", "COMMAND"), ("--help", "COMMAND"), ("start --help", "start")]
)
def test_help_is_printed_and_no_error(shell: InteractiveShell, line: str, usage: str) -> None:
    with capture_output() as captured:
        assert shell.run_cell(f"%gpucluster {line}").success
    assert f"usage: %gpucluster {usage}" in captured.stdout


@pytest.mark.parametrize(
    "line, symbol, expected",
    [
        ("%gpucluster st", "st", ["start", "stop"]),
        ("%gpucluster start --w", "--w", ["--workers", "--wait"]),
        ("%gpucluster nonsense ", "", []),
        ("%gpucluster why nob", "nob", []),
    ],
)
def test_commands_and_options_are_completed(
    shell: InteractiveShell, line: str, symbol: str, expected: list[str]
) -> None:
    magic = GpuClusterMagic(shell)
    assert magic.complete(shell, SimpleNamespace(line=line, symbol=symbol)) == expected


@pytest.mark.slow
def test_a_notebook_starts_uses_and_stops_a_cluster(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    cells = {
        "load": "%load_ext jupyter_gpucluster",
        "start": "%gpucluster start local --name alpha --workers 1 --wait 60",
        "list": "%gpucluster list",
        "connect": "%gpucluster connect alpha",
        "again": "first = client, cluster\n%gpucluster connect alpha\nfirst == (client, cluster)",
        "use": "print(client.submit(sum, [1, 2]).result())",
        "python": "import sys\nprint(cluster.view.python == sys.executable)",
        "mistake": "%gpucluster scale alpha --workers x",
        "stop": "%gpucluster stop alpha --wait 60",
        "bound": "print(client.status, cluster.status.name)",
    }
    notebook = execute(list(cells.values()))
    outputs = dict(zip(cells, (cell.outputs for cell in notebook.cells), strict=True))
    assert outputs["start"][-1].data["text/plain"].startswith("alpha: running: 1 of 1 worker")
    assert "<td" in outputs["list"][0].data["text/html"]
    for cell in ("start", "list", "connect", "stop"):
        [live] = outputs[cell][-1].data[LIVE]["clusters"]
        assert live == {"id": Clusters().get("alpha").id, "name": "alpha"}
    assert "client and cluster are ready" in outputs["connect"][0].data["text/plain"]
    assert outputs["again"][-1].data["text/plain"] == "True"
    assert outputs["use"][0].text == "3\n"
    assert outputs["python"][0].text == "True\n"
    [mistake] = outputs["mistake"]
    assert mistake.ename == "MagicError"
    assert mistake.traceback == ["\x1b[31merror: --workers takes a whole number, not 'x'.\x1b[0m"]
    assert outputs["stop"][-1].data["text/plain"] == "alpha: Stopped by you."
    # A client that were still open would look for its scheduler, and complain half a minute later.
    assert outputs["bound"][0].text == "closed closed\n"
    assert Clusters().get("alpha").phase is Phase.STOPPED


@pytest.mark.slow
def test_the_end_of_a_kernel_stops_what_it_started_but_not_what_the_magic_did(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    execute(
        [
            "%load_ext jupyter_gpucluster",
            "%gpucluster start local --name alpha --workers 1 --wait 60",
            "%gpucluster connect alpha",
            "from jupyter_gpucluster import GPUCluster\nmine = GPUCluster('local', 1, name='beta')",
        ]
    )
    clusters = Clusters()
    assert clusters.wait_stopped("beta", timeout=60).phase is Phase.STOPPED
    assert clusters.get("alpha").phase is Phase.RUNNING
    clusters.stop("alpha")
    clusters.wait_stopped("alpha", timeout=60)


def execute(sources: list[str]) -> Any:
    """Run cells in a kernel of this Python and return the notebook."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in sources]
    )
    client = NotebookClient(notebook, timeout=120, allow_errors=True, kernel_name="python3")
    return client.execute(env=dict(os.environ))
