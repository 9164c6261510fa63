"""Code outside batch/ does not depend on which batch system a cluster uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpucluster.batch import BACKENDS

PACKAGE = Path(__file__).parents[2] / "jupyter_gpucluster"
VARIABLE = re.compile(r"\b(?:SLURM|SBATCH|PBS|LSB|LSF|OAR|COBALT|SGE|KUBERNETES|_CONDOR)_[A-Z*]")
READERS = ("profiles/jobqueue_options.py", "profiles/jobqueue_yaml.py")
"""The readers of dask-jobqueue's YAML, whose sections have the names of systems."""
LAUNCHERS = ("launch/script/launchers.py",)
"""srun's own variables, which name ranks: a launcher is no batch system."""
FILES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if "batch" not in path.relative_to(PACKAGE).parts[:1]
    and str(path.relative_to(PACKAGE)) not in READERS
]


def findings(path: Path) -> Iterator[str]:
    """Yield the places where a file compares, looks up or reads by the name of a system."""
    tree = ast.parse(path.read_text("utf-8"))
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            parts = list(node.keys)
        for part in parts:
            elements = part.elts if isinstance(part, (ast.Tuple, ast.Set, ast.List)) else [part]
            for each in elements:
                if isinstance(each, ast.Constant) and each.value in BACKENDS:
                    yield f"{path.name}:{each.lineno}: {each.value!r}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            if VARIABLE.search(node.value) and str(path.relative_to(PACKAGE)) not in LAUNCHERS:
                yield f"{path.name}:{node.lineno}: {node.value[:60]}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_code_outside_depends_on_a_batch_system(path: Path) -> None:
    assert list(findings(path)) == []
