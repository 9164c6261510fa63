"""Plan -> script: the text that a start would submit, without making anything."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from ..batch import find_backend
from ..batch.queue import submit_line
from ..core.cluster import EXISTING, spec_of_group
from ..core.errors import InvalidInput
from ..core.job import Submission
from ..host.cluster_directory import ClusterDirectory
from ..state.view import Script, gpu_hours_estimate
from .plan import Plan, make_plan
from .request import Request
from .script.job import MARK, group_scripts, render
from .spawning import head_command
from .spec import make_spec


def preview(root: Path, request: Request, plan: Plan | None = None) -> Script:
    """Return the scripts and commands of a request, or of a plan that was made of it."""
    plan = plan or make_plan(request, here=False)
    profile = plan.profile
    if profile.backend == EXISTING:
        raise InvalidInput(
            "Attaching to a scheduler submits nothing: there is no script.", detail="profile"
        )
    directory = ClusterDirectory(root / "<id>")
    spec = make_spec(plan, directory, Path(tempfile.gettempdir()) / "gpc-<id>")
    backend = find_backend(profile.backend)
    workers = plan.target.maximum
    plain = render(profile, spec, directory)
    scripts = [("", workers, plain)]
    if spec.in_job:
        head = render(profile, spec, directory, head_command(spec, directory))
        left = workers - spec.worker.per_job
        rest = [("", left, plain)] if left > 0 else []
        scripts = [("", spec.worker.per_job, head), *rest]
    for group, script in group_scripts(profile, spec, directory):
        scripts.append((group, profile.groups[group].count, script))
    texts, commands = [], []
    for number, (group, count, script) in enumerate(scripts, start=0 if spec.in_job else 1):
        tag = f"gpc-<id>-{number}"
        texts.append(script.replace(MARK, tag))
        part = spec_of_group(spec, group)
        submission = Submission(
            tag,
            str(directory.jobs / f"{tag}.sh"),
            -(-count // part.worker.per_job),
            gpus=part.job.gpus,
            text=texts[-1],
            workers=part.worker.per_job,
            arguments=part.job.submit_args,
        )
        commands.append(submit_line(backend, submission))
    # The head of the script holds the directives, and ends before a profile's own lines.
    lines = [*itertools.takewhile(lambda line: line.startswith("#"), plain.splitlines())]
    return Script(
        text="\n".join(texts),
        command="\n".join(commands),
        gpu_hours_estimate=gpu_hours_estimate(spec, workers),
        survives=plan.survival.survives,
        survival=plan.survival.words,
        interactive=backend.interactive_line(lines, spec.job.submit_args),
    )
