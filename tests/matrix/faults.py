"""Faults between a command and its answer.

Each takes the world, the command and what runs it, and returns the answer.  Words are the systems'
own: recordings, and the stand-ins' messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from jupyter_gpucluster.core.job import CommandResult

from .world import Fault, World

Run = Callable[[], CommandResult]


def no_answer(world: World, argv: list[str], run: Run) -> CommandResult:
    """Let a command hang until its time limit; it does nothing."""
    return CommandResult(tuple(argv), None, "", "no answer")


def answer_lost(world: World, argv: list[str], run: Run) -> CommandResult:
    """Let a command do its work, and hang afterwards."""
    run()
    return CommandResult(tuple(argv), None, "", "no answer")


def down(world: World, argv: list[str], run: Run) -> CommandResult:
    """Let the system be down."""
    return world.silence(argv)


def garbage(world: World, argv: list[str], run: Run) -> CommandResult:
    """Let a command work, and print something else with exit code 0."""
    return replace(run(), stdout="\x00\x7f<html>502 Bad Gateway</html>\n")


def several_ids(world: World, argv: list[str], run: Run) -> CommandResult:
    """Let a submission print the id of another job beside its own."""
    answer = run()
    return replace(answer, stdout=f"{answer.stdout}{re.sub(r'[0-9]+', '7', answer.stdout)}")


def denied(world: World, argv: list[str], run: Run) -> CommandResult:
    """Let the system refuse."""
    return CommandResult(tuple(argv), 1, "", f"{argv[0]}: error: Access/permission denied\n")


def empty(world: World, argv: list[str], run: Run) -> CommandResult:
    """Let a listing with exit code 0 lack every job."""
    return lying(world, "all", run)


def partial(world: World, argv: list[str], run: Run) -> CommandResult:
    """Let a listing with exit code 0 lack all jobs but the first."""
    return lying(world, "others", run)


def lying(world: World, lies: str, run: Run) -> CommandResult:
    """Return an answer with exit code 0 that lacks jobs; look-ups of single jobs hang meanwhile."""
    world.site.lies = lies
    try:
        return replace(run(), exit_code=0, stderr="")
    finally:
        world.site.lies = ""


def swapped(world: World, argv: list[str], run: Run) -> CommandResult:
    """Return the answer to another command, with exit code 0."""
    return CommandResult(tuple(argv), 0, "12345\n", "")


def flapping(fault: Fault) -> Fault:
    """Return a fault that every second command has."""

    def some(world: World, argv: list[str], run: Run) -> CommandResult:
        world.answered[some] += 1
        return fault(world, argv, run) if world.answered[some] % 2 else run()

    return some


def once(fault: Fault) -> Fault:
    """Return a fault that only the first command has."""

    def first(world: World, argv: list[str], run: Run) -> CommandResult:
        world.answered[first] += 1
        return fault(world, argv, run) if world.answered[first] == 1 else run()

    return first
