"""Finds the program `lab` and runs it."""

from __future__ import annotations

import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

StrPath: TypeAlias = "str | os.PathLike[str]"

#: Environment variable with the path of the program.
VARIABLE = "PLAYRATE_LAB"
#: Exit code of `lab` for bad input.
_BAD_INPUT = 2


class LabError(RuntimeError):
    """The program `lab` was not found, or failed with the error in the message."""


class BadInputError(LabError, ValueError):
    """An argument or a scenario is wrong; the message names it and says what would be right."""


def error_of(exit_code: int, message: str) -> LabError:
    """Returns the error for the exit code and the final message of `lab`."""
    kind = BadInputError if exit_code == _BAD_INPUT else LabError
    return kind(message or f"lab ended with exit code {exit_code}")


@contextmanager
def exit_on_error(program: str) -> Iterator[None]:
    """Ends the process with a message on an error: with exit code 2 for bad input, 1 for others, as `lab` does."""
    try:
        yield
    except KeyError as error:
        message, code = f"a row has no field {error}; make the rows again with this version of lab", _BAD_INPUT
    except (OSError, ValueError, LabError) as error:
        message, code = str(error), _BAD_INPUT if isinstance(error, ValueError) else 1
    else:
        return
    print(f"{program}: {message}", file=sys.stderr)
    sys.exit(code)


def split(text: str, separator: str) -> list[str]:
    """Splits at separators outside parentheses, as `lab` reads lists and specs."""
    pieces, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == separator and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


def find_lab(lab: StrPath | None = None) -> Path:
    """Returns the absolute path of the program: `lab`, that of `PLAYRATE_LAB`, or the first on the `PATH`.

    Raises:
        LabError: if there is none.
    """
    named = lab if lab is not None else os.environ.get(VARIABLE)
    found = shutil.which(named or "lab")
    if found:
        return Path(found).resolve()
    if named is None:
        what = f"there is no `lab` on the PATH; install it, or set {VARIABLE} to its path"
    else:
        source = f"the environment variable {VARIABLE}" if lab is None else "the argument `lab`"
        what = f"{os.fspath(named)} ({source}) is not a program that can be run"
    raise LabError(what)


def call(
    program: StrPath, arguments: Sequence[str], *, directory: StrPath | None = None, progress: bool = False
) -> str:
    """Runs the program, in `directory` if it is given, and returns its standard output.

    Its progress goes to `sys.stderr`, line by line.

    Ctrl-C, or an interrupt of a notebook, shuts the program down cleanly: it keeps the finished runs.

    Raises:
        LabError: if its exit code is not 0.
    """
    # A file, because the program would block on an unread pipe while its standard error is being read.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [os.fspath(program), *arguments],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            # A terminal's Ctrl-C reaches this process only; a second one would end the program at once.
            start_new_session=True,
        )
        assert process.stderr is not None
        message: list[str] = []
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        reader = threading.Thread(target=_read_lines, args=(process.stderr, lines))
        reader.start()
        try:
            while (line := _next(lines)) is not None:
                if line.startswith("error: ") or message:
                    message.append(line.removeprefix("error: "))
                elif progress:
                    print(line, end="", file=sys.stderr, flush=True)
            process.wait()
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        finally:
            reader.join()
        if process.returncode != 0:
            raise error_of(process.returncode, "".join(message).strip())
        output.seek(0)
        return output.read().decode()


def _read_lines(stream: IO[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Puts each line of `stream` into `lines`, and None at its end."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _next(lines: queue.SimpleQueue[str | None]) -> str | None:
    """Returns the next line; an interrupt is noticed within a tenth of a second.

    polars makes the system restart calls that a signal interrupts, so a blocking read would not return.
    """
    while True:
        try:
            return lines.get(timeout=0.1)
        except queue.Empty:
            pass
