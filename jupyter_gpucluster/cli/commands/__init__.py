"""The commands: ``add_X`` adds the arguments of the command X, ``run_X`` runs it.

Runs in a terminal.
May import everything below.
"""

from __future__ import annotations

COMMANDS = {
    "profiles": ("profiles", "list the profiles"),
    "script": ("start", "print the job script and the submit command; submits nothing"),
    "start": ("start", "start a cluster"),
    "list": ("clusters", "list the clusters"),
    "show": ("clusters", "show one cluster with its jobs and its timeline"),
    "connect": ("clusters", "show how to connect to a cluster"),
    "scale": ("clusters", "change the number of workers"),
    "logs": ("logs", "print the logs of a cluster"),
    "doctor": ("doctor", "check a machine, a profile or a cluster, and suggest fixes"),
    "why": ("clusters", "explain why a cluster waits, failed or ended"),
    "shell": ("run", "open a shell, or run a command, on the node of a running job"),
    "stop": ("clusters", "stop clusters"),
    "forget": ("clusters", "delete the records of ended clusters"),
    "environment": ("environment", "create or update a Python environment for clusters"),
    "kernel": ("environment", "register a Jupyter kernel of an environment, or remove it"),
    "run": ("run", "start a cluster, run a script on it, stop it"),
    "bench": ("bench", "run a benchmark on a cluster"),
}
"""The module and the summary of each command."""
