"""The commands: ``add_X`` adds the arguments of the command X, ``run_X`` runs it.

Runs in a terminal.
May import everything below.
"""

from __future__ import annotations

MODULES = {
    "profiles": "profiles",
    "script": "start",
    "start": "start",
    "list": "clusters",
    "show": "clusters",
    "connect": "clusters",
    "scale": "clusters",
    "logs": "logs",
    "doctor": "doctor",
    "why": "clusters",
    "shell": "run",
    "stop": "clusters",
    "forget": "clusters",
    "environment": "environment",
    "kernel": "environment",
    "run": "run",
    "bench": "bench",
}
"""The module of each command."""

SUMMARIES = {
    "profiles": "list the profiles",
    "script": "print the job script and the submit command; submits nothing",
    "start": "start a cluster",
    "list": "list the clusters",
    "show": "show one cluster with its jobs and its timeline",
    "connect": "show how to connect to a cluster",
    "scale": "change the number of workers",
    "logs": "print the logs of a cluster",
    "doctor": "check a machine, a profile or a cluster, and suggest fixes",
    "why": "explain why a cluster waits, failed or ended",
    "shell": "open a shell, or run a command, on the node of a running job",
    "stop": "stop clusters",
    "forget": "delete the records of ended clusters",
    "environment": "create or update a Python environment for clusters",
    "kernel": "register a Jupyter kernel of an environment, or remove it",
    "run": "start a cluster, run a script on it, stop it",
    "bench": "run a benchmark on a cluster",
}
