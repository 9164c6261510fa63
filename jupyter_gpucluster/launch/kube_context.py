"""What kubectl is set to as a cluster starts: there its pods are, whatever it is set to later."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..batch.kubernetes.dialect import DNS_LABEL
from ..batch.kubernetes.kubectl import ARGUMENT, context_in, missing_context
from ..batch.kubernetes.manifest import look
from ..batch.queue import ProcessRunner, run_aside
from ..batch.variables import inherited
from ..core.errors import InvalidInput
from ..profiles import Profile
from ..profiles.sections import Job
from .own_pod import ACCOUNT, IN_A_POD

SECONDS = 10.0
OWN_NAMESPACE = "POD_NAMESPACE"
"""By it kubectl itself is told of its pod's namespace before it looks into the account's file."""
USUAL = "default"


def in_this_place(profile: Profile, environ: Mapping[str, str] = os.environ) -> Profile:
    """Return the profile with what it leaves open of its pods' place: context and namespace.

    The context is an argument of kubectl, since its file may have another current one tomorrow,
    and the namespace ``job.account``.  Credentials stay in the file.  What kubectl does not tell
    is left open.

    Raises
    ------
    InvalidInput
        kubectl's file lacks the context that the profile names.
    """
    if profile.backend != "kubernetes":
        return profile
    own = profile.job
    context, namespace = _current(context_in(own.submit_args), environ)
    own = _placed(own, (), context, own.account or namespace)
    groups = {
        name: group.model_copy(
            update={"job": _placed(group.job, own.submit_args, context, own.account)}
        )
        for name, group in profile.groups.items()
    }
    return profile.model_copy(update={"job": own, "groups": groups})


def _placed(job: Job, usual: Sequence[str], context: str, namespace: str) -> Job:
    """Return a job that is sent to a place, where it does not name another one."""
    arguments = tuple(job.submit_args or usual)
    if context and not context_in(arguments):
        arguments = (f"{ARGUMENT}{context}", *arguments)
    return job.model_copy(update={"submit_args": arguments, "account": job.account or namespace})


def _current(wanted: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the context that kubectl would take, and its namespace; empty where it has none."""
    argv = ["kubectl", "config", "view", "--minify", "--output=json"]
    runner = ProcessRunner(inherited(environ), seconds=SECONDS)
    result = run_aside(runner.run([*argv, *([f"{ARGUMENT}{wanted}"] if wanted else [])]))
    if wanted and missing_context(result):
        raise InvalidInput(
            f"kubectl's file has no context {wanted!r}, which job.submit_args name.",
            hint="`kubectl config get-contexts` names those that it has.",
            detail="job.submit_args",
        )
    try:
        told = json.loads(result.stdout) if result.exit_code == 0 else None
    except (ValueError, RecursionError):
        told = None
    context = str(look(told, "contexts", 0, "name") or "")
    namespace = str(look(told, "contexts", 0, "context", "namespace") or "")
    namespace = namespace or _namespace_of_our_pod(environ) or (USUAL if context else "")
    return context, namespace if DNS_LABEL.fullmatch(namespace) else ""


def _namespace_of_our_pod(environ: Mapping[str, str]) -> str:
    """Return what kubectl takes in a pod where its file names none."""
    if IN_A_POD not in environ or not Path(ACCOUNT, "token").is_file():
        return ""
    try:
        told = Path(ACCOUNT, "namespace").read_text("utf-8")
    except (OSError, ValueError):
        told = ""
    return environ.get(OWN_NAMESPACE) or told.strip()
