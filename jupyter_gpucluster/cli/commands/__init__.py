"""The commands: ``add_X`` adds the arguments of the command X, ``run_X`` runs it.

``add_X`` is left out where a command takes only the arguments that the table adds.

Runs in a terminal.
May import everything below.
"""

from __future__ import annotations

from ...core.fast_dataclass import frozen


@frozen
class Entry:
    """A command in the list of all.

    Parameters
    ----------
    module
        The file of its functions.
    summary
        Its line in the list of commands.
    name
        Whether its first word is a cluster's name or id.
    json
        Whether ``--json`` prints its document.
    """

    module: str
    summary: str
    name: bool = False
    json: bool = True


COMMANDS = {
    "setup": Entry("setup", "write profiles from what the batch system reports"),
    "profiles": Entry("start", "list the profiles"),
    "script": Entry("start", "print the job script and the submit command; submits nothing"),
    "start": Entry("start", "start a cluster"),
    "list": Entry("clusters", "list the clusters"),
    "show": Entry("clusters", "show one cluster with its jobs and its timeline", name=True),
    "connect": Entry("clusters", "show how to connect to a cluster", name=True),
    "scale": Entry("clusters", "change the number of workers", name=True),
    "logs": Entry("jobs", "print the logs of a cluster", name=True),
    "doctor": Entry("doctor", "check a machine, a profile or a cluster, and suggest fixes"),
    "why": Entry("clusters", "explain why a cluster waits, failed or ended", name=True),
    "shell": Entry("jobs", "run a shell or a command in a running job", name=True, json=False),
    "stop": Entry("clusters", "stop clusters"),
    "forget": Entry("clusters", "delete the records of ended clusters"),
    "report": Entry("clusters", "report the GPU-hours of the clusters on record"),
    "environment": Entry("environment", "create or update a Python environment for clusters"),
    "kernel": Entry("environment", "register a Jupyter kernel of an environment, or remove it"),
    "run": Entry("start", "start a cluster, run a script on it, stop it", json=False),
    "bench": Entry("bench", "run a benchmark on a cluster", json=False),
}
