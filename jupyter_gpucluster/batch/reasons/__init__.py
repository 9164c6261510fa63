"""Messages of batch systems and their meaning: one TOML file for each system.

A table ``[TOPIC.WAY]`` maps parts of messages to sentences for users, such as ``[waiting.starts]``
for the beginnings of reasons to wait.  `Reasons.explain` reads the topics ``waiting`` and
``ended``, others are the dialect's own; the ways are in `WAYS`.
The first rule that fits counts.  A rule is a sentence, or a table with the sentence as ``say`` and

- ``state``: the state of a job with this reason,
- ``unsatisfiable``: true if neither time nor the site can end the wait.

``[lines]`` has the patterns of `Phrases`, and ``[refusals]`` its fixes.  ``{reason}`` in a sentence
is the text found; the names in `SHARED` stand for sentences that several systems have.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from ...core.fast_dataclass import frozen
from ...core.job import FINAL, JobState, JobStatus
from ..base import ENDS, ended_with
from ..refusal import SHARED, Phrases

WAYS: Mapping[str, Callable[[str, str], object]] = {
    "is": lambda part, message: part == message,
    "starts": lambda part, message: message.startswith(part),
    "contains": lambda part, message: part.lower() in message.lower(),
    "fullmatch": re.fullmatch,
    "search": re.search,
}


@frozen
class Rule:
    """The meaning of a message.

    Parameters
    ----------
    part
        Text or pattern by which the message is recognised.
    """

    part: str
    say: str
    state: JobState | None = None
    unsatisfiable: bool = False


NO_RULE = Rule("", "")


class Reasons:
    """Rules of one system; the file is read when a rule is first needed."""

    def __init__(self, system: str) -> None:
        self._file = Path(__file__).with_name(f"{system}.toml")

    @cached_property
    def _tables(self) -> dict[str, Any]:
        tables: dict[str, Any] = tomllib.loads(self._file.read_text(encoding="utf-8"))
        return tables

    @cache  # noqa: B019 -- one object for each system, which lives as long as the process
    def rules(self, topic: str) -> tuple[tuple[str, Rule], ...]:
        """Return the rules of a topic in the file's order, each with its way of comparison."""
        made = []
        for way, table in self._tables.get(topic, {}).items():
            for part, value in table.items():
                fields: dict[str, Any] = {"say": value} if isinstance(value, str) else dict(value)
                if "state" in fields:
                    fields["state"] = JobState(fields["state"])
                made.append((way, Rule(part, **fields)))
        return tuple(made)

    def find(self, topic: str, message: str) -> Rule:
        """Return the first rule of a topic that fits a message, or `NO_RULE`."""
        fitting = (rule for way, rule in self.rules(topic) if WAYS[way](rule.part, message))
        return next(fitting, NO_RULE)

    def say(self, topic: str, message: str, /, **values: str) -> str:
        """Return the sentence for a message with values put in, or an empty text."""
        sentence = self.find(topic, message).say
        for name, value in values.items():
            sentence = sentence.replace(f"{{{name}}}", value)
        return sentence

    def explain(
        self, status: JobStatus, title: str, sentences: Mapping[JobState, str], **values: str
    ) -> str:
        """Return the sentence about a job: by its reason, else by its state.

        Parameters
        ----------
        title
            The batch system's name for users.
        sentences
            The system's own about states; others are in `ENDS`.
        values
            For the names in the rules' sentences.
        """
        state, reason = status.state, status.reason
        waits = state in (JobState.PENDING, JobState.HELD)
        topic = "waiting" if waits else "ended" if state in FINAL else ""
        if sentence := self.say(topic, reason, **values) or sentences.get(state, ""):
            return sentence
        if waits:
            return f"{title} says: {reason}." if reason else "Waits in the queue."
        return ended_with(status.exit_code) if state is JobState.FAILED else ENDS.get(state, "")

    @cached_property
    def phrases(self) -> Phrases:
        """The form of the submit command's messages, and the fix of each refusal."""
        lines = dict(self._tables.get("lines", {}))
        prefix = lines.pop("prefix", "")
        patterns = {name: re.compile(text) for name, text in lines.items()}
        fixes = []
        for part, fix in self._tables["refusals"].items():
            for name, sentence in SHARED.items():
                fix = fix.replace(f"{{{name}}}", sentence)
            fixes.append((re.compile(part), fix))
        return Phrases(tuple(fixes), prefix=prefix, **patterns)
