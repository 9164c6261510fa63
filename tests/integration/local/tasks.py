"""Functions for workers, which cannot import the tests."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def sent_whole(function: Function) -> Function:
    """Make pickle send the function's code: the module of that name elsewhere has none such."""
    function.__module__ = "__main__"
    return function


@sent_whole
def double(number: int) -> int:
    return 2 * number


@sent_whole
def double_slowly(number: int, seconds: float) -> int:
    time.sleep(seconds)
    return 2 * number


@sent_whole
def hold_the_interpreter(seconds: int) -> None:
    """Sleep in C with the interpreter locked: nothing else in the process runs meanwhile."""
    ctypes.PyDLL(None).sleep(seconds)


@sent_whole
def allocate(count: int) -> int:
    """Use memory faster than anybody spills it."""
    held = bytearray(count)
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(60)
    return len(held)


@sent_whole
def spawn_sleeper(seconds: int) -> int:
    """Start a process of the task's own in a session of its own and leave it running."""
    return subprocess.Popen(["sleep", str(seconds)], start_new_session=True).pid


@sent_whole
def spawn_nameless_sleeper(seconds: int) -> int:
    """Do that, and clear the variables by which it could be told."""
    return subprocess.Popen(["sleep", str(seconds)], env={}, start_new_session=True).pid


@sent_whole
def process_id() -> int:
    return os.getpid()
