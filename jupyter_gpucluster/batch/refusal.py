"""Turn the answer of a submit command into the error that the user sees."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..core.errors import BackendError, BackendUnavailable
from ..core.fast_dataclass import frozen
from ..core.job import CommandResult, Submission
from .base import Backend

Cure = tuple[str | re.Pattern[str], str]
NOTHING = re.compile(r"(?!)")
FRAME = " \t*#=|+_~<>-"
"""Characters with which sites frame their messages."""
SEPARATOR = r"(\.\.+|[\[({:=>→]|\s-)"
PASSED = re.compile(
    r"^\W*(ok|pass|passed|success)\s*[\])}:,-]"
    r"|^\W*[✓✔]"
    rf"|{SEPARATOR}\s*(ok|pass|passed|success|successful|done|yes|none)\W*$"
    r"|(?<!\bhas )(?<!\bhave )(?<!\balready )\bpassed\W*$"
    # TACC's wrappers around sbatch print this line for each job that names no reservation.
    r"|^\W*no reservation for this job\W*$",
    re.IGNORECASE,
)
"""A check of the site that the job passed."""
NOT_PASSED = re.compile(
    rf"^\W*(fail|failed|error)\s*[\])}}:,-]|{SEPARATOR}\s*(fail|failed|error|denied|no)\b\W*$",
    re.IGNORECASE,
)
ABSENT = re.compile("No such file or directory|command not found|Permission denied")
"""The kind of line that begins with the command's name."""
USAGE = re.compile(r"^(\w+: )?usage: ", re.IGNORECASE)
FAILED = re.compile(r"\b(fail|failed|failure|error|denied|rejected|refused)\b", re.IGNORECASE)
TROUBLE = re.compile(
    rf"{FAILED.pattern}|\b(please|must|requires?|required|specify|missing|needs?|cannot|can't|only"
    r"|(do|does|may|can|will|is|are|was) not|isn't|don't|no longer|not (allowed|permitted|valid)"
    r"|exceed\w*|violat\w*|invalid|illegal|unknown|abort\w*|insufficient|expired|exhausted|limit"
    r"|forbidden|not submitted|at (least|most)|too \w+|unable|used up|over (your|its|the)"
    r"|unrecognized)\b",
    re.IGNORECASE,
)
"""A line that reports why there is no job, as opposed to a greeting."""
USED_UP = re.compile(
    r"insufficient (\w+ ){0,2}(balance|funds?|allocation|credits?|budget|hours)"
    r"|(allocation|balance|budget|credits?)\b.{0,40}\b(exhausted|used up|expired|depleted|exceeded"
    r"|negative|is (zero|0))"
    r"|\b(no|not enough|out of) (\w+[ -]){0,2}?(hours|credits?|balance|budget|allocation|SUs?)\b"
    r".{0,20}\b(left|remain\w*|available)",
    re.IGNORECASE,
)
"""A budget that is spent: a smaller job is refused as well."""
MINIMUM = re.compile(
    r"\bat least\b|\bminim(um|al)\b|\bbelow the\b|\b(fewer|less|smaller|shorter|lower) than\b"
    r"|\btoo (few|small|short|little|low)\b",
    re.IGNORECASE,
)
"""A value that is too small."""
LOWER = re.compile(r"\b(lower|fewer|less|smaller|shorter)\b", re.IGNORECASE)

SMALLER_ARRAYS = "Ask for fewer workers: the site allows smaller arrays."
NO_ARRAYS = (
    "This was one job, so the number of workers is not the cause: remove directives for arrays "
    "from job.directives, or ask the site's support whether job arrays are switched off."
)
NOT_UNDERSTOOD = "Correct or remove job.submit_args and job.directives."
EMPTY_SCRIPT = (
    "The job's script is empty: check the quota and the free space where clusters are kept."
)
UNREADABLE_SCRIPT = (
    "The job's script cannot be read: check that the cluster's directory is there and readable."
)
WINDOWS_LINES = (
    "Remove the line ends of Windows (CR LF) from job.directives and from the shell commands of "
    "the profile."
)
BUDGET_USED_UP = (
    "The budget of your account or project is used up: set job.account to another one, or ask the "
    "site for more."
)
TOO_SMALL = (
    "The message names a minimum: raise that value in the profile, or change job.queue to one for "
    "smaller jobs."
)
WRITTEN_BY_SITE = re.compile(
    r"\bplease\b|https?://|\w@\w+\.\w|^\[ADMISSION RULE\]|\bJSV\b", re.IGNORECASE
)
SITES_RULE = (
    "A rule of the site refused the job: change the profile as the site's message says, or ask the "
    "site's support."
)
SHARED = {
    "smaller_arrays": SMALLER_ARRAYS,
    "empty_script": EMPTY_SCRIPT,
    "unreadable_script": UNREADABLE_SCRIPT,
    "windows_lines": WINDOWS_LINES,
    "budget_used_up": BUDGET_USED_UP,
    "sites_rule": SITES_RULE,
}
"""Cures of several systems, by their names in the files of `reasons`."""
MOST_SITES_LINES, LONGEST_LINE = 3, 300


@frozen
class Phrases:
    """The form of messages of one system's submit command.

    Parameters
    ----------
    fixes
        Pattern in a line -> what to change, names before sentences.  ``{reason}`` in it is the
        text found.
    prefix
        What the command puts before each of its lines; it is not shown.
    own
        What it puts before errors, after the prefix; it is not shown.
    system
        Lines that only the system itself writes, and no plugin, filter or wrapper of a site.
    general
        Those of them that name no cause, beside which a site's own sentence tells more.
    noise
        Lines that tell nothing: usage texts, lines that accepted jobs get as well.
    """

    fixes: tuple[Cure, ...]
    prefix: str = ""
    own: re.Pattern[str] = NOTHING
    system: re.Pattern[str] = NOTHING
    general: re.Pattern[str] = NOTHING
    noise: re.Pattern[str] = NOTHING


@frozen
class Line:
    """A line that may tell why.

    Parameters
    ----------
    text
        Without frame and prefix, as it is shown.
    whole
        As it was printed, in which fixes are looked up.
    own
        Whether the submit command printed it, with its prefix.
    system, general
        See `Phrases`.
    """

    text: str
    whole: str
    own: bool
    system: bool
    general: bool

    @property
    def telling(self) -> bool:
        """True if it reports trouble."""
        if self.own or self.system or self.general:
            return True
        return bool(TROUBLE.search(self.text) or USED_UP.search(self.text))


def refusal(title: str, result: CommandResult, phrases: Phrases, count: int = 1) -> BackendError:
    """Return the error for a submission that the system refused.

    Parameters
    ----------
    title
        The system's name.
    count
        How many jobs were submitted as one array.
    """
    said = result.stderr.strip() or result.stdout.strip()
    lines = [*_lines(result.stderr, phrases), *_lines(result.stdout, phrases)]
    line, fix = _known(lines, phrases.fixes)
    line = line or _first(lines)
    if line is not None:
        sites = _sites(lines, line, phrases.fixes)
        words = _sentences(each.text for each in lines if each in (*sites, line))
        fix = _fitting(fix, line, sites, count)
    elif said:
        words, fix = "it printed its help in place of a reason", NOT_UNDERSTOOD
    else:
        words = "no reason given"
    return BackendError(
        f"{title} refused the job: {words}",
        hint=fix,
        detail=f"$ {' '.join(result.argv)}\nexit code {result.exit_code}\n{said}",
    )


def unsubmitted(
    backend: Backend,
    submission: Submission,
    result: CommandResult,
    phrases: Phrases,
    unclear: object,
) -> BackendError:
    """Return the error for an answer without ids: a refusal, or no answer if that is unclear."""
    if result.exit_code and not unclear:
        return refusal(backend.title, result, phrases, submission.count)
    words = f"{backend.title} did not answer {result.argv[0]}."
    return BackendUnavailable(words, detail=result.stderr)


def _lines(said: str, phrases: Phrases) -> list[Line]:
    """Return the lines that may tell why, each once."""
    found: list[Line] = []
    helping = False
    for raw in said.splitlines():
        whole = raw.strip()
        # With a blank behind it, a prefix without words is one, too.
        bare = f"{whole} ".removeprefix(phrases.prefix)
        own = phrases.own.match(bare)
        bare = (bare[own.end() :] if own else bare).strip()
        text = whole if ABSENT.fullmatch(bare) else _unframed(bare)
        helping = bool(USAGE.match(bare)) or (helping and not own)
        passed = PASSED.search(bare) and not NOT_PASSED.search(bare)
        if helping or passed or phrases.noise.search(text) or not any(map(str.isalpha, text)):
            continue
        general = bool(phrases.general.search(whole))
        system = general or bool(phrases.system.search(whole))
        line = Line(text[:LONGEST_LINE], whole, bool(own), system, general)
        if raw[:1].isspace() and not own and found and found[-1].own:
            # HTCondor quotes a line of the submit file below its error.
            found[-1] = _joined(found[-1], line)
        elif line not in found:
            found.append(line)
    return found


def _joined(line: Line, rest: Line) -> Line:
    """Return a line together with the indented one below it."""
    text, whole = f"{line.text} {rest.text}", f"{line.whole} {rest.whole}"
    return Line(text[:LONGEST_LINE], whole, line.own, line.system, line.general)


def _unframed(text: str) -> str:
    """Return a line without its frame; a single character may belong to an option."""
    if re.match(r"[*#=|+_~>-](\s|[*#=|+_~>-]{2})", text):
        text = text.lstrip(FRAME)
    if re.search(r"(\s|[*#=|+_~<-]{2})[*#=|+_~<-]$", text):
        text = text.rstrip(FRAME)
    return text.strip()


def _known(lines: list[Line], fixes: tuple[Cure, ...]) -> tuple[Line | None, str]:
    """Return the line with a fix, and the fix: those that report trouble come first."""
    for candidates in ([line for line in lines if line.telling], lines):
        for part, fix in ((USED_UP, BUDGET_USED_UP), *fixes):
            for line in candidates:
                if reason := _found(part, line):
                    return line, fix.replace("{reason}", reason)
    return None, ""


def _found(part: str | re.Pattern[str], line: Line) -> str:
    """Return the text of a line that a pattern finds."""
    match = re.search(part, line.whole)
    return match[0] if match else ""


def _first(lines: list[Line]) -> Line | None:
    """Return the line that tells most where no fix is known."""
    for fits in (
        lambda line: line.own and not line.general,
        lambda line: FAILED.search(line.text) and not line.general,
        lambda line: line.telling,
    ):
        if fitting := [line for line in lines if fits(line)]:
            return fitting[0]
    return lines[0] if lines else None


def _sites(lines: list[Line], shown: Line, fixes: tuple[Cure, ...]) -> list[Line]:
    """Return the lines that the site wrote itself, beside the line that is shown."""
    others = [line for line in lines if line != shown and not line.system]
    others = [line for line in others if not any(_found(part, line) for part, _ in fixes)]
    reporting = [line for line in others if line.telling]
    if reporting or (shown.telling and not shown.general):
        return reporting[-MOST_SITES_LINES:]
    # Without a sign of trouble the last lines count: they stand nearest to the refusal.
    return others[-MOST_SITES_LINES:]


def _fitting(fix: str, line: Line, sites: list[Line], count: int) -> str:
    """Return the fix, or another one where the answer contradicts it."""
    if fix == SMALLER_ARRAYS and count == 1:
        return NO_ARRAYS
    if line.general and any(each.telling for each in sites):
        return SITES_RULE
    if LOWER.search(fix) and MINIMUM.search(line.text):
        return TOO_SMALL
    by_site = not line.own and not line.system and line.telling
    return fix or (SITES_RULE if by_site or WRITTEN_BY_SITE.search(line.whole) else "")


def _sentences(texts: Iterable[str]) -> str:
    """Join lines; only the last may lack a mark at its end."""
    *first, last = texts
    return " ".join([*(text if text[-1] in ".:;,!?" else f"{text}." for text in first), last])
