"""The command line ``jupyter gpucluster COMMAND``; each command is a file in ``commands``.

Runs in a terminal.
May import everything below.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import GpuClusterError
from .dispatch import read, top_help
from .output import Outcome
from .terminal import Terminal

DEBUG = "JUPYTER_GPUCLUSTER_DEBUG"
INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE


def main(words: Sequence[str] | None = None) -> int:
    """Run one command in this terminal and return the exit code.

    Parameters
    ----------
    words
        The command and its arguments; None = those of the process.
    """
    words = sys.argv[1:] if words is None else list(words)
    open_streams()
    try:
        code = perform(words, Terminal())
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes standard output once more at exit and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # of a stream: the errors of a command are shown as such
        return unwritten(error)
    return code


def is_stream(error: Exception) -> bool:
    """Return whether an error is one of writing to the terminal: only files have names."""
    return isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None


def unwritten(error: OSError) -> int:
    """Report unwritten output on the stream that still works; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    reason = (error.strerror or "unknown error").lower()
    print(f"error: Cannot write output: {reason}.", file=sys.stderr)
    return 1


def open_streams() -> None:
    """Replace closed streams: Python has no stream if its descriptor was closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))
    # Names of files need not be UTF-8.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def perform(words: Sequence[str], terminal: Terminal) -> int:
    """Run one command in a terminal, show its answer and return the exit code."""
    if not words or words[0] in ("-h", "--help", "help"):
        text = top_help(terminal.program) + "\n"
        (terminal.write if words else sys.stderr.write)(text)
        return 0 if words else 2
    if words[0] == "--version":
        from jupyter_gpucluster import __version__

        terminal.write(f"{__version__}\n")
        return 0
    # With --json even the error about an unreadable command line is JSON.
    terminal.json = "--json" in words and words[0] != "bench"
    try:
        outcome = _answer(words, terminal)
    except SystemExit:  # argparse has printed a command's help
        return 0
    except GpuClusterError as error:
        outcome = Outcome(document=error.as_json(), errors=(error,))
    terminal.show(outcome)
    return outcome.code


def _answer(words: Sequence[str], terminal: Terminal) -> Outcome:
    try:
        run, arguments = read(words, terminal.program)
        terminal.json = getattr(arguments, "json", None) is True
        return run(arguments, terminal)
    except (GpuClusterError, BrokenPipeError):
        raise
    except Exception as error:  # a user gets a line for our own mistakes too
        if os.environ.get(DEBUG) or is_stream(error):
            raise
        hint = f"With {DEBUG}=1 in the environment the same command shows where."
        raise GpuClusterError(f"Unexpected {type(error).__name__}: {error}", hint=hint) from error
