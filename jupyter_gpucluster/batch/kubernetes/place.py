"""The context and the namespace of kubectl as a cluster starts: there its pods stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...core.errors import InvalidInput
from ...core.job import CommandResult
from ..base import Destination, Question, Sent
from . import kubectl
from .kubectl import ARGUMENT, DNS_LABEL, IN_A_POD, context_in, missing_context
from .manifest import look, read_object

OWN_NAMESPACE = "POD_NAMESPACE"
"""Variable from which kubectl itself takes its pod's namespace, before the account's file."""
USUAL = "default"


def ask_about_place(job: Sent) -> Question:
    """Return the command that shows the context that kubectl takes for a job."""
    wanted = context_in(job.submit_args)
    context = (f"{ARGUMENT}{wanted}",) if wanted else ()
    return Question(("kubectl", "config", "view", "--minify", "--output=json", *context))


def placed(
    jobs: Sequence[Sent], result: CommandResult, variables: Mapping[str, str]
) -> list[Destination]:
    """Return jobs with what they leave open of their place.

    The context is an argument of kubectl, since its file may have another current one tomorrow,
    and the namespace ``job.account``.  Credentials stay in the file.  What kubectl does not answer
    is left open.

    Raises
    ------
    InvalidInput
        kubectl's file lacks the context that the profile names.
    """
    own, *others = jobs
    wanted = context_in(own.submit_args)
    if wanted and missing_context(result):
        raise InvalidInput(
            f"kubectl's file has no context {wanted!r}, which job.submit_args name.",
            hint="`kubectl config get-contexts` names those that it has.",
            detail="job.submit_args",
        )
    shown = read_object(result)
    context = str(look(shown, "contexts", 0, "name") or "")
    namespace = str(look(shown, "contexts", 0, "context", "namespace") or "")
    namespace = namespace or _namespace_of_our_pod(variables) or (USUAL if context else "")
    namespace = namespace if DNS_LABEL.fullmatch(namespace) else ""
    first = _placed(own, (), context, namespace)
    rest = [_placed(job, first.submit_args, context, first.account) for job in others]
    return [first, *rest]


def _placed(job: Sent, usual: Sequence[str], context: str, namespace: str) -> Destination:
    """Return a job that is sent to a place, where it does not name another one."""
    arguments = tuple(job.submit_args or usual)
    if context and not context_in(arguments):
        arguments = (f"{ARGUMENT}{context}", *arguments)
    return Destination(job.account or namespace, tuple(job.directives), arguments)


def _namespace_of_our_pod(variables: Mapping[str, str]) -> str:
    """Return the namespace that kubectl takes in a pod if its file names none."""
    if IN_A_POD not in variables or not Path(kubectl.ACCOUNT, "token").is_file():
        return ""
    try:
        own = Path(kubectl.ACCOUNT, "namespace").read_text("utf-8")
    except (OSError, ValueError):
        own = ""
    return variables.get(OWN_NAMESPACE) or own.strip()
