"""The dialects by name: of this package, of other packages, and of copies beside clusters."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ..core.cluster import EXISTING, CopiedBackend, DialectCopy
from ..core.errors import InvalidInput
from .base import Backend

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "jupyter_gpucluster.backends"
"""Group of the entry points by which other packages add dialects."""
FILE = "dialect.py"
"""Name of the copy in a cluster directory."""
PACKAGE = "jupyter_gpucluster"


class Registry(Mapping[str, Backend]):
    """The dialects by name; each is imported when it is first used.

    Iteration yields the names of this package's dialects; `every` returns all dialects.

    Parameters
    ----------
    places
        Module below this package and class, such as ``slurm:Slurm``, by name.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self.places = places
        self.loaded: dict[str, Backend] = {}
        self.sources: dict[str, tuple[bytes, DialectCopy]] = {}
        """For each loaded dialect of another package, its file and what records hold about it."""
        self.copies: dict[str, Backend] = {}
        """Dialects of other packages by their SHA-256."""

    def __getitem__(self, name: str) -> Backend:
        """Return the dialect of a name.

        Raises
        ------
        KeyError
            There is none of that name.
        InvalidInput
            Another package's dialect cannot be used, or a copy was changed.
        """
        if isinstance(name, CopiedBackend):
            return self._copied(name)
        if name not in self.loaded and name in self.places:
            module, _, title = self.places[name].partition(":")
            self.loaded[name] = getattr(import_module(f".{module}", __package__), title)()
        if name not in self.loaded:
            self.loaded[name] = self._from_package(name)
        return self.loaded[name]

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a dialect, without importing one of this package."""
        if not isinstance(name, CopiedBackend) and (name in self.places or name == EXISTING):
            return name in self.places
        try:
            return isinstance(name, str) and self[name] is not None
        except (KeyError, InvalidInput):
            return False

    def __iter__(self) -> Iterator[str]:
        """Yield the names of this package's dialects."""
        return iter(self.places)

    def __len__(self) -> int:
        """Return the number of this package's dialects."""
        return len(self.places)

    def every(self) -> list[Backend]:
        """Return all dialects that this process can use, those of this package first."""
        found = [self[name] for name in self.places]
        found += [self[name] for name in outside() if name in self]
        return list({type(each): each for each in (*found, *self.copies.values())}.values())

    def _from_package(self, name: str) -> Backend:
        from importlib.util import find_spec

        point = outside()[name]
        try:
            spec = find_spec(point.module)
            path = Path(spec.origin or "") if spec else Path()
            source = path.read_bytes()
            others = set(_imports(source)) - {*sys.stdlib_module_names, PACKAGE}
        except (ImportError, OSError, ValueError, SyntaxError) as error:
            raise _unusable(name, f"{point.value} cannot be read: {error}") from error
        if others:
            raise _unusable(name, f"{path} imports {', '.join(sorted(others))}")
        copy = DialectCopy(FILE, point.attr, hashlib.sha256(source).hexdigest())
        self.sources[name] = source, copy
        return self._load(name, path, source, copy)

    def _copied(self, name: CopiedBackend) -> Backend:
        path, copy = name.path, name.copy
        if copy.sha256 in self.copies:
            return self.copies[copy.sha256]
        try:
            source = path.read_bytes()
        except OSError as error:
            raise _unusable(name, f"{path} cannot be read: {error.strerror}") from error
        if hashlib.sha256(source).hexdigest() != copy.sha256:
            raise _unusable(name, f"{path} is not the file that the cluster was started with")
        return self._load(name, path, source, copy)

    def _load(self, name: str, path: Path, source: bytes, copy: DialectCopy) -> Backend:
        module = ModuleType(f"{__package__}.copy_{copy.sha256[:16]}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # dataclasses look it up
        try:
            exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102  # as an import would
            dialect: Backend = getattr(module, copy.kind)()
        except Exception as error:
            raise _unusable(name, f"{path} fails: {type(error).__name__}: {error}") from error
        self.copies[copy.sha256] = dialect
        return dialect


@functools.cache
def outside() -> dict[str, EntryPoint]:
    """Return the dialects of other installed packages, by name."""
    from importlib.metadata import entry_points  # most commands do without

    return {point.name: point for point in entry_points(group=GROUP)}


def _imports(source: bytes) -> Iterator[str]:
    """Yield the packages that a file imports."""
    import ast

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0] if not node.level else "its own package"


def _unusable(name: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"The dialect of backend {str(name)!r} cannot be used: {why}.",
        hint="A dialect of another package is one file that imports only the standard library and"
        " jupyter_gpucluster; do not change its copy in a cluster directory.",
        detail="backend",
    )
