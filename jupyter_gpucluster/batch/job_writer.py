"""Run apart: writes what dask-jobqueue's Job classes make of their arguments, line for line.

Apart, since importing dask-jobqueue brings all of Dask, takes over SIGINT and writes into the
user's home, and since its classes fill what they are not told from the user's Dask configuration.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import sys
import warnings
from typing import Any, TextIO

IDLE_SECONDS = 120
"""After how long without a question the process ends; it holds some 60 MB."""


def main(answers: TextIO) -> None:
    """Answer questions from standard input, one a line, until there are no more for a while."""
    warnings.simplefilter("ignore")
    with contextlib.suppress(Exception):  # the next question gets the error
        importlib.import_module("dask_jobqueue")
    while select.select([sys.stdin], [], [], IDLE_SECONDS)[0]:
        question = sys.stdin.readline()
        if not question:
            return
        try:
            told = json.loads(question)
            said = write(told["class"], told["told"])
        except Exception as error:  # whatever a class raises is told
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=answers, flush=True)


def write(job_class: str, told: dict[str, Any]) -> dict[str, Any]:
    """Return the head of a job's script and the worker's command, as a Job class writes them.

    Parameters
    ----------
    job_class
        Its name within dask-jobqueue, such as ``slurm.SLURMJob``.
    told
        The arguments of its constructor.
    """
    module, _, name = job_class.partition(".")
    kind = getattr(importlib.import_module(f"dask_jobqueue.{module}"), name)
    config = importlib.import_module("dask.config")
    # The package's own defaults are left; half an hour's walltime is none of ours, and HTCondor's
    # class demands to know the disk.
    config.refresh(paths=[], env={})
    config.set({f"jobqueue.{kind.config_name}.walltime": None, "jobqueue.htcondor.disk": 1})
    job = kind(**told)
    attributes = getattr(job, "job_header_dict", None)  # HTCondor's description
    lines = [f"{key} = {value}" for key, value in attributes.items()] if attributes else []
    return {"head": lines or job.job_header.splitlines(), "command": job._command_template}


if __name__ == "__main__":
    os.chdir("/")  # a folder that is in use could not be removed; imports have looked at theirs
    with os.fdopen(os.dup(sys.stdin.fileno()), "w") as own:
        main(own)
