"""A pod from the lines of a script's head: ``#KUBERNETES spec.priorityClassName = batch``.

Paths are written as kubectl's JSONPath writes them (https://kubernetes.io/docs/reference/kubectl/
jsonpath/): a dot within a key has a backslash before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ...core.errors import InvalidInput
from ...core.job import CommandResult
from ..base import json_in
from ..directives import Syntax

PREFIX = "#KUBERNETES "
RUNS = "says what runs in the pod, which is the cluster's script"
RESTART = "spec.restartPolicy"
RESERVED = {
    "spec.containers[0].command": RUNS,
    "spec.containers[0].args": RUNS,
    "metadata.generateName": "lets Kubernetes name the pod, by whose name the cluster finds it",
    "metadata.namespace": "sends the pod to a namespace that is not read; set job.account",
    RESTART: "lets a worker start again in its pod, which is up to the cluster",
}
"""Fields of a pod that are not up to a profile."""
OF_ACCESS = re.compile(r"--(?:namespace|cluster|user|kubeconfig|server)\b|--context(?!=.)|-[ns]")
"""Arguments of kubectl that lead elsewhere than its commands to list and to delete go."""
STEP = re.compile(r"((?:[^\s.\[\]\\=]|\\.)+)((?:\[\d{1,4}\])*)(?:\.|$)")
TEXTS = (("metadata",), ("spec", "nodeSelector"))
"""Below these the API wants text, be it of digits only."""
Step = str | int


def escaped(key: str) -> str:
    """Write a key as one step of a path."""
    return key.replace(".", r"\.")


def steps_of(path: str) -> tuple[Step, ...]:
    """Return the keys and numbers of a path.

    Raises
    ------
    InvalidInput
        It is no path.
    """
    steps: list[Step] = []
    place = 0
    while place < len(path) and (match := STEP.match(path, place)):
        steps.append(re.sub(r"\\(.)", r"\1", match[1]))
        steps += [int(number) for number in re.findall(r"\d+", match[2])]
        place = match.end()
    if not steps or place < len(path) or re.search(r"(?<!\\)\.$", path):
        raise InvalidInput(
            f"{path[:80]!r} is not the path of a field of a pod.",
            hint="Write it from the pod's root, with a backslash before a dot within a key:"
            r" spec.nodeSelector.nvidia\.com/gpu\.product = NVIDIA-A100-SXM4-40GB.",
            detail="job.directives",
        )
    return tuple(steps)


def value_of(steps: tuple[Step, ...], text: str) -> Any:
    """Return what is meant by the text behind ``=``: JSON where it is some, else the text."""
    if any(steps[: len(begin)] == begin for begin in TEXTS) and not text.startswith(
        ("{", "[", '"')
    ):
        return text
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text


def pod_of(options: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the pod that paths and values make, the later ones in place of the earlier.

    Raises
    ------
    InvalidInput
        A path is none, or leads through what is no object.
    """
    pod: dict[str, Any] = {"spec": {"containers": [{"name": "worker"}]}}
    for path, text in options:
        steps = steps_of(path)
        _put(pod, steps, value_of(steps, text), path)
    return pod


def read_object(result: CommandResult) -> dict[str, Any]:
    """Return the object that kubectl printed, empty if it printed none."""
    shown = json_in(result.stdout) if result.exit_code == 0 else None
    return shown if isinstance(shown, dict) else {}


def look(thing: Any, *steps: Step) -> Any:
    """Return what stands at a place of an object, None where there is none."""
    for step in steps:
        if isinstance(thing, dict) and isinstance(step, str):
            thing = thing.get(step)
        elif isinstance(thing, list) and isinstance(step, int) and step < len(thing):
            thing = thing[step]
        else:
            return None
    return thing


def _put(thing: Any, steps: tuple[Step, ...], value: Any, path: str) -> None:
    for step, after in zip(steps, (*steps[1:], None), strict=True):
        fits = isinstance(thing, dict if isinstance(step, str) else list)
        if not fits or (isinstance(step, int) and step > len(thing)):
            raise InvalidInput(
                f"{path[:80]!r} is not a field of the pod: the part before {step!r} cannot contain"
                " it.",
                hint="Correct the path; items of a list are counted from 0, without gaps.",
                detail="job.directives",
            )
        below = value if after is None else {} if isinstance(after, str) else []
        if isinstance(step, int) and step == len(thing):
            thing.append(below)
        elif after is None or (isinstance(step, str) and step not in thing):
            thing[step] = below
        thing = thing[step]


def _no_number(text: str) -> float:
    """Refuse NaN and Infinity, which no reader of JSON but Python's takes."""
    raise ValueError(text)


class Fields(Syntax):
    """Lines that set the fields of a pod."""

    def option_of(self, line: str) -> tuple[str, str]:
        name, _, value = line.removeprefix(PREFIX).partition("=")
        return name.strip(), value.strip()

    def names_in(self, line: str) -> set[str]:
        return {".".join(map(str, steps_of(self.option_of(line)[0])))}

    def reserved(self, text: str) -> str:
        option, value = self.option_of(text)
        steps_of(option)  # refuses a path that is none
        if option == self.name:
            return "sets the job's name, by which the cluster finds it"
        if option == RESTART and value.strip('"') == "Never":
            return ""
        return next((why for field, why in self.refused.items() if option.startswith(field)), "")

    def check(self, generated: Sequence[str], lines: Sequence[str]) -> None:
        """Refuse what makes another pod of fields that are not up to a profile.

        Raises
        ------
        InvalidInput
            A directive sets one in another spelling or with all that is around it, or its line is
            skipped.
        """
        plain, made = (pod_of(map(self.option_of, each)) for each in (generated, lines))
        for field, why in self.refused.items():
            if look(made, *steps_of(field)) != look(plain, *steps_of(field)):
                raise InvalidInput(
                    f"job.directives or job.skip_directives change {field}, which {why}.",
                    hint="Set single fields, leave this one out, and do not skip its line.",
                    detail="job.directives",
                )

    def check_argument(self, text: str) -> None:
        """Refuse an argument that leads elsewhere than listings go.

        Raises
        ------
        InvalidInput
            It names a namespace, a server or a user.
        """
        if OF_ACCESS.match(text):
            raise InvalidInput(
                f"The argument {text!r} sends pods to a namespace that is not read.",
                hint="job.account is the namespace, --context=NAME in one word another context; for"
                " the rest set KUBECONFIG where Jupyter starts.",
                detail="job.submit_args",
            )
