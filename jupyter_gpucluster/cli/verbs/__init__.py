"""The verbs and what they do in a line; each one's module has its name."""

from __future__ import annotations

SUMMARIES = {
    "profiles": "list the profiles: the places to run",
    "script": "print the job script and the submit command; submits nothing",
    "start": "start a cluster",
    "list": "list the clusters",
    "show": "show one cluster with its jobs and its timeline",
    "connect": "show how to connect to a cluster",
    "scale": "change the number of workers",
    "logs": "print the logs of a cluster",
    "why": "say why a cluster waits, failed or ended",
    "stop": "stop clusters",
    "forget": "delete the records of ended clusters",
    "run": "start a cluster, run a script on it, stop it",
    "bench": "run a benchmark on a cluster",
}
