"""The finding of a check: fine, doubtful or failed, in words and with a fix."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from typing import Any

from ..core.errors import GpuClusterError, WaitTimeout
from ..core.fast_dataclass import frozen
from ..core.serialize import to_json

WORDS = 76
"""Columns of the words; the columns before them take twenty-seven."""


class Result(str, Enum):
    """Result of one check."""

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
    """The fix."""
    evidence: str = ""
    """Output of a command, or the end of a log."""
    key: str = ""
    """Key of the profile whose other value is the fix."""
    value: str = ""
    """This value."""

    def fixed_by(self, key: str, value: str) -> Finding:
        """Return the finding with a value that `doctor --fix` writes."""
        return replace(self, key=key, value=value)

    def named(self, check: str) -> Finding:
        """Return the finding under the name of its check."""
        return replace(self, check=check)


def collect(findings: Mapping[str, Finding | None]) -> list[Finding]:
    """Return findings under the names of their checks, without checks that do not apply."""
    return [finding.named(check) for check, finding in findings.items() if finding is not None]


@frozen
class Report:
    """Findings about one subject."""

    subject: str
    host: str
    findings: tuple[Finding, ...] = ()
    job: dict[str, Any] = field(default_factory=dict)
    """Id, mark, nodes and waiting time of the probe job; empty without one."""
    late: WaitTimeout | None = None
    """Set where the probe job did not start in time."""

    @property
    def result(self) -> Result:
        """The worst result of all checks."""
        order = [Result.OK, Result.WARNING, Result.FAILED]
        return max((each.result for each in self.findings), key=order.index, default=Result.OK)

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
        """Return the table of all checks, with each fix below its line."""
        width = max((len(finding.check) for finding in self.findings), default=0)
        table = [line for finding in self.findings for line in _lines(finding, width)]
        return [*table, "", self.verdict()]

    def verdict(self) -> str:
        """Return the numbers of checks in one sentence."""
        counts = Counter(finding.result for finding in self.findings)
        number, doubtful = len(self.findings), counts[Result.WARNING]
        words = f"{number} {'check' if number == 1 else 'checks'} of {self.subject} on {self.host}"
        words += f", {counts[Result.FAILED] or 'none'} failed"
        return words + (f", {doubtful} with a warning." if doubtful else ".")


def ok(found: str) -> Finding:
    """Return a finding that all is well."""
    return Finding("", Result.OK, found)


def warning(found: str, way_out: str = "") -> Finding:
    """Return a finding that something may go wrong."""
    return Finding("", Result.WARNING, found, way_out)


def failed(found: str, way_out: str = "", evidence: str = "") -> Finding:
    """Return a finding that something does not work."""
    return Finding("", Result.FAILED, found, way_out, evidence)


def refused(error: GpuClusterError) -> Finding:
    """Return an error as a finding; a field's path is no evidence."""
    evidence = error.detail if error.status >= 500 else ""
    return failed(error.message, error.hint, evidence)


def _lines(finding: Finding, width: int) -> Sequence[str]:
    head = f"{finding.result.value:<7}  {finding.check:<{width}}  "
    fix = f"fix: {finding.way_out}" if finding.way_out else ""
    wrapped = [
        line
        for text in (finding.found, fix)
        for line in textwrap.wrap(text, WORDS, break_long_words=False, break_on_hyphens=False)
    ]
    wrapped += [f"| {line.rstrip()}" for line in finding.evidence.splitlines() if line.strip()]
    first, *rest = wrapped or [""]
    return [head + first, *(" " * len(head) + line for line in rest)]
