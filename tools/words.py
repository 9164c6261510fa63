"""Find private words in texts and names, and docstrings that begin with a question word.

`words_allowed.txt` beside this file lists what may stay, with a reason or a count.  A count may
only shrink: ``python -m tools.words --write`` lowers the counts.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.shell import CHECKOUT, Stop, main, say

ALLOWED = CHECKOUT / "tools" / "words_allowed.txt"
PACKAGE = CHECKOUT / "jupyter_gpucluster"
FIELD_TEXTS = ("jupyter_gpucluster/profiles/model.py", "jupyter_gpucluster/profiles/sections.py")
"""Modules whose docstrings are texts for users: they describe the keys of profiles."""

BETTER = {
    "asked for": "requested",
    "bury": "record the death",
    "buried": "recorded",
    "but for": "except",
    "cure": "fix",
    "cures": "fixes",
    "epitaph": "end reason",
    "excused": "not counted",
    "go on": "continue",
    "goes on": "continues",
    "heirs": "leftover processes",
    "hopeless": "unsatisfiable",
    "in vain": "without effect",
    "is there yet": "did not exit",
    "last words": "end reason",
    "mend": "fix",
    "nobody": "no user, no client, no process",
    "none of": "no, not",
    "nor": "no, not",
    "queueing": "batch system",
    "queueing system": "batch system",
    "queueing systems": "batch systems",
    "said": "answered, reported",
    "somebody": "a user, another user, a client",
    "stands beneath": "appears below",
    "survival": "keeps running when Jupyter stops",
    "survives": "keeps running",
    "tell": "report, name, show",
    "tells": "reports, names, shows",
    "told": "reported",
    "verb": "command",
    "verbs": "commands",
    "way out": "fix",
    "words of": "text of, answer of",
}
"""Words of the authors, and the word of the field."""

NAMES = (
    *("bury", "buried", "cure", "cures", "elsewhere", "epitaph", "excused", "heirs", "hopeless"),
    *("mend", "nobody", "queueing", "relieved", "said", "somebody", "speaking", "survival"),
    *("told", "verb", "verbs"),
)
"""Parts of names that are private words."""

PHRASE = re.compile(rf"\b({'|'.join(map(re.escape, BETTER))})\b", re.IGNORECASE)
QUESTION = re.compile(r"\s*(What|How|Which|Where|Who|Whether|When|Whose)\b")
TYPESCRIPT_TEXT = re.compile(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`((?:[^`\\]|\\.)*)`")
CODE = re.compile(r"```.*?```|``.*?``|`[^`\n]*`|\]\([^)]*\)", re.DOTALL)
JSON_TEXT = re.compile(r'"(?:title|description|caption|label)":\s*"((?:[^"\\]|\\.)*)"')
NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class Found(NamedTuple):
    """A private word in a text or a name, or a docstring that begins with a question word."""

    file: str
    word: str
    line: int
    text: str


def in_python(file: str, source: str, *, texts: bool) -> Iterator[Found]:
    """Find words in the strings, names and docstrings of a module."""
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)  # of a lambda it is no list
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                docstrings.add(id(statement.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in docstrings and not file.startswith(FIELD_TEXTS):
                if QUESTION.match(node.value):
                    yield Found(file, "docstring", node.lineno, node.value.strip().split("\n")[0])
            elif texts and " " in node.value:
                yield from in_text(file, node.lineno, node.value)
        elif texts:
            for name in _names(node):
                yield from in_name(file, getattr(node, "lineno", 1), name)


def _names(node: ast.AST) -> Iterator[str]:
    """Return the names that a node defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name


def in_name(file: str, line: int, name: str) -> Iterator[Found]:
    """Find private words among the parts of a name."""
    for part in NAME_PART.findall(name):
        if part.lower() in NAMES:
            yield Found(file, f"name {part.lower()}", line, name)


def in_text(file: str, line: int, text: str) -> Iterator[Found]:
    """Find private words in a text."""
    for match in PHRASE.finditer(text):
        before = text.count("\n", 0, match.start())
        yield Found(file, match[1].lower(), line + before, " ".join(text.split())[:160])


def in_typescript(file: str, source: str) -> Iterator[Found]:
    """Find words in the strings of a module."""
    for match in TYPESCRIPT_TEXT.finditer(source):
        text = match[1] or match[2] or match[3] or ""
        if " " in text:
            yield from in_text(file, source.count("\n", 0, match.start()) + 1, text)


def in_document(file: str, source: str) -> Iterator[Found]:
    """Find words in a Markdown document outside code."""
    text = CODE.sub(lambda match: "\n" * match[0].count("\n"), source)
    for number, line in enumerate(text.split("\n"), 1):
        yield from in_text(file, number, line)


def find() -> Iterator[Found]:
    """Search the package, the extension's source, its settings, tools and documents."""
    for folder in (PACKAGE, CHECKOUT / "tools", CHECKOUT / "tests", CHECKOUT / "benchmarks"):
        for path in sorted(folder.rglob("*.py")):
            if "labextension" not in path.parts and path != Path(__file__):
                yield from in_python(_name(path), path.read_text(), texts=folder == PACKAGE)
    for path in sorted((CHECKOUT / "src").rglob("*.ts*")):
        if "__tests__" not in path.parts:
            yield from in_typescript(_name(path), path.read_text())
    for path in sorted((CHECKOUT / "schema").glob("*.json")):
        for match in JSON_TEXT.finditer(path.read_text()):
            yield from in_text(_name(path), 1, match[1])
    for path in (CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))):
        yield from in_document(_name(path), path.read_text())


def _name(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def read_allowed() -> tuple[set[tuple[str, str]], Counter[tuple[str, str]]]:
    """Return the words of files that may stay for a reason, and the counts of the others."""
    reasons: set[tuple[str, str]] = set()
    counts: Counter[tuple[str, str]] = Counter()
    for line in ALLOWED.read_text().splitlines():
        if line and not line.startswith("#"):
            file, word, why = (part.strip() for part in line.split("|"))
            if why.isdecimal():
                counts[file, word] = int(why)
            else:
                reasons.add((file, word))
    return reasons, counts


def words() -> None:
    """Refuse private words that are not on the list, and counts that are too high."""
    reasons, counts = read_allowed()
    found = [each for each in find() if (each.file, each.word) not in reasons]
    now = Counter((each.file, each.word) for each in found)
    if "--write" in sys.argv:
        _write(now & counts if counts else now)
        return
    excess = {key for key, count in now.items() if count > counts[key]}
    for each in found:
        if (each.file, each.word) in excess:
            better = BETTER.get(each.word, "begin with a noun or a verb such as Return")
            say(f"{each.file}:{each.line}: {each.word}: {each.text}\n    better: {better}")
    stale = sorted(key for key, count in counts.items() if now[key] < count)
    if stale:
        say("\n".join(f"{file} | {word}: fewer than listed" for file, word in stale))
    if excess:
        raise Stop("private words; docs/design.md has the words to use")
    if stale:
        raise Stop("lower the counts of private words: python -m tools.words --write")


def _write(counts: Counter[tuple[str, str]]) -> None:
    kept = [
        line
        for line in ALLOWED.read_text().splitlines()
        if not line.rpartition("|")[2].strip().isdecimal()
    ]
    lines = [f"{file} | {word} | {count}" for (file, word), count in sorted(counts.items())]
    ALLOWED.write_text("\n".join([*kept, *lines]) + "\n")


if __name__ == "__main__":
    main(words)
