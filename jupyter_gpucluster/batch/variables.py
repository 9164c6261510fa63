"""The variables of all batch systems together, for what is started or asked in a process."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..host import environ
from . import BACKENDS
from .base import Amounts


def of_all_systems() -> environ.SystemVariables:
    """Return the variables of all dialects."""
    every = list(BACKENDS.every())
    return environ.SystemVariables(
        tuple(dict.fromkeys(name for each in every for name in each.job_prefixes)),
        tuple(dict.fromkeys(name for each in every for name in each.steering)),
        frozenset(name for each in every for name in each.locating),
        tuple(pair for each in every for pair in each.command_variables),
    )


def inherited(environment: Mapping[str, str], *, with_job: bool = False) -> dict[str, str]:
    """Return the variables that a head, or a submitted job, takes over.

    Parameters
    ----------
    with_job
        Whether it works inside the batch job that this process is in.
    """
    return environ.inherited(environment, of_all_systems(), with_job=with_job)


def for_commands(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a batch system's command whose answer is read here."""
    return environ.for_commands(environment, of_all_systems())


def node_lists() -> list[tuple[str, ...]]:
    """Return the forms and variables in which all systems list the nodes of a job."""
    lists = (source for each in BACKENDS.every() for source in each.node_lists)
    return list(dict.fromkeys(lists))


def amounts_in(environment: Mapping[str, str]) -> Amounts:
    """Return the variables with amounts of the system whose job a process is in."""
    for each in BACKENDS.every():
        if any(environment.get(source[1]) for source in each.node_lists):
            return each.amounts
    return Amounts()


def surrounding_job(environment: Mapping[str, str] = os.environ) -> str:
    """Return the name that a user gives to the job that a process is in; empty if in none."""
    for backend in BACKENDS.every():
        names = backend.job_variables
        if names and all(environment.get(name) for name in names):
            words = backend.job_words or f"{backend.title} job {{}}"
            return words.format(environment[names[0]])
    return ""
