"""Where kubectl looks: context and namespace, as its arguments and as variables of ours."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...core.errors import BackendUnavailable
from ...core.job import CommandResult

CONTEXT, NAMESPACE = "GPUCLUSTER_CONTEXT", "GPUCLUSTER_NAMESPACE"
"""Variables by which listing commands find the cluster and the namespace that the pods are in."""
KUBECTL = f'exec kubectl ${{{CONTEXT}:+--context="${CONTEXT}"}}'
LIST = (
    f'{KUBECTL} ${{{NAMESPACE}:+--namespace="${NAMESPACE}"}} get pods --output=json --selector="$1"'
)
"""The script is fixed, and so is that nothing but a selector may be added."""
FREE = f"{KUBECTL} get nodes,pods --all-namespaces --output=json"
ARGUMENT = "--context="
NO_CONTEXT = re.compile(
    r'^error: context "(?P<name>.+)" does not exist$'
    r"|^error: cannot locate context (?P<looked>.+)$"
    r"|context was not found for specified context: (?P<listed>.+)$",
    re.IGNORECASE | re.MULTILINE,
)
"""What kubectl says where its file lacks the context that it was told of [tried, 1.32]."""


def elsewhere(account: str, arguments: Sequence[str]) -> dict[str, str]:
    """Return the variables that tell what lists pods where they are sent to."""
    found = {CONTEXT: context_in(arguments), NAMESPACE: account}
    return {name: value for name, value in found.items() if value}


def arguments_elsewhere(account: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the same as arguments."""
    found = {ARGUMENT: context_in(arguments), "--namespace=": account}
    return tuple(f"{option}{value}" for option, value in found.items() if value)


def context_in(arguments: Sequence[str]) -> str:
    """Return the context that arguments of kubectl name, of which the last counts."""
    named = [word for word in arguments if word.startswith(ARGUMENT)]
    return named[-1].removeprefix(ARGUMENT) if named else ""


def missing_context(result: CommandResult) -> str:
    """Return the context that kubectl was told of and that its file lacks."""
    found = NO_CONTEXT.search(result.stderr) if result.exit_code else None
    return next(filter(None, found.groups())) if found else ""


def refuse_without_context(result: CommandResult) -> None:
    """Tell of a context that is not there from one that has no such pods.

    Raises
    ------
    BackendUnavailable
        kubectl's file lacks the context, so that nobody was asked.
    """
    if name := missing_context(result):
        back = f"kubectl config rename-context OTHER {shlex.quote(name)}"
        raise BackendUnavailable(
            f"kubectl's file lacks the context {name!r}.",
            hint=f"Give one that name again ({back}), or log in to that cluster once more;"
            " until then pods there are left as they are.",
            detail=result.stderr,
        )


def has_contexts(environ: Mapping[str, str]) -> bool:
    """Tell whether kubectl has a file; in a pod without one it takes the service account."""
    usual = str(Path(environ.get("HOME", "/"), ".kube", "config"))
    files = (environ.get("KUBECONFIG") or usual).split(os.pathsep)
    return any(os.path.exists(file) for file in files if file)  # noqa: PTH110  # never raises


def without_context(argv: Sequence[str]) -> list[str]:
    """Return a command for kubectl without a file."""
    return [word for word in argv if not word.startswith(ARGUMENT)]
