"""What a check found: fine, doubtful or failed, in words and with the way out."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import field
from enum import Enum
from typing import Any

from ..core.errors import GpuClusterError, WaitTimeout
from ..core.fast_dataclass import frozen
from ..core.serialize import to_json

WORDS = 76
"""Columns of what was found; the columns before it take twenty-seven."""


class Result(str, Enum):
    """How one check went."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@frozen
class Finding:
    """One line of the report."""

    check: str
    result: Result
    found: str
    way_out: str = ""
    evidence: str = ""
    """Somebody else's words: a command's, or the end of a log."""


@frozen
class Report:
    """All findings about one subject."""

    subject: str
    host: str
    findings: tuple[Finding, ...] = ()
    job: dict[str, Any] = field(default_factory=dict)
    """Of the probe job: id, mark, nodes and the seconds that it waited; empty without one."""
    late: WaitTimeout | None = None
    """Set where the probe job did not start in time."""

    @property
    def result(self) -> Result:
        """The worst of all."""
        results = {finding.result for finding in self.findings}
        return next(
            (each for each in (Result.FAILED, Result.WARNING) if each in results), Result.OK
        )

    def as_json(self) -> dict[str, Any]:
        """Return the document that ``--json`` prints."""
        return {
            "subject": self.subject,
            "host": self.host,
            "result": self.result.value,
            "checks": to_json(self.findings),
            **({"job": self.job} if self.job else {}),
        }

    def lines(self) -> list[str]:
        """Return the table of all checks, with each way out below its line."""
        width = max((len(finding.check) for finding in self.findings), default=0)
        told = [line for finding in self.findings for line in _lines(finding, width)]
        return [*told, "", self.verdict()]

    def verdict(self) -> str:
        """Return what it amounts to, in one sentence."""
        counts = {
            result: sum(finding.result is result for finding in self.findings) for result in Result
        }
        bad, doubtful = counts[Result.FAILED], counts[Result.WARNING]
        number = len(self.findings)
        what = "check" if number == 1 else "checks"
        parts = [f"{number} {what} of {self.subject} on {self.host}"]
        parts += [f"{bad} failed"] if bad else ["none failed"]
        parts += [f"{doubtful} with a warning"] if doubtful else []
        return ", ".join(parts) + "."


def ok(check: str, found: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(check, Result.OK, found)


def warning(check: str, found: str, way_out: str = "") -> Finding:
    """Return a finding that something may go wrong."""
    return Finding(check, Result.WARNING, found, way_out)


def failed(check: str, found: str, way_out: str = "", evidence: str = "") -> Finding:
    """Return a finding that something does not work."""
    return Finding(check, Result.FAILED, found, way_out, evidence)


def refused(check: str, error: GpuClusterError) -> Finding:
    """Return an error as a finding; a field's path is no evidence."""
    evidence = error.detail if error.status >= 500 else ""
    return failed(check, error.message, error.hint, evidence)


def _lines(finding: Finding, width: int) -> Sequence[str]:
    head = f"{finding.result.value:<7}  {finding.check:<{width}}  "
    way_out = f"way out: {finding.way_out}" if finding.way_out else ""
    wrapped = [
        line
        for text in (finding.found, way_out)
        for line in textwrap.wrap(text, WORDS, break_long_words=False, break_on_hyphens=False)
    ]
    wrapped += [f"| {line.rstrip()}" for line in finding.evidence.splitlines() if line.strip()]
    first, *rest = wrapped or [""]
    return [head + first, *(" " * len(head) + line for line in rest)]
