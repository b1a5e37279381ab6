"""The command-line interface. Commands import heavy libraries when they run, so that `femts --help` is instant."""

from __future__ import annotations

import errno
import gc
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import typer

from femts.cli.command import app, load_commands
from femts.cli.output import StderrHandler
from femts.cli.started import command_started
from femts.cli.streams import check_memory, check_streams, say
from femts.cli.wording import as_options, command_line, running
from femts.errors import (
    OF_FORECASTS,
    AccuracyWarning,
    FemtsError,
    ScaleWarning,
    TableFaults,
    UsageError,
    memory_checked,
    write_remedy,
)
from femts.plugins import load_plugins
from femts.text import printable, printable_lines, quote, sentence

INTERRUPTED = 130
_Mistake = cast(
    type[Exception], typer.BadParameter.__mro__[1]
)  # base class of usage errors, which typer does not export
_NAMES = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENOENT)

load_commands()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        argv: arguments without the program name; None uses those of the process.

    Returns:
        Exit status: 0 for success, 1 if the run failed, 2 for invalid input, 3 if a check gives an alarm, 130 if
        interrupted.
    """
    with running(sys.argv[1:] if argv is None else argv):
        return _run(argv)


def _run(argv: Sequence[str] | None) -> int:
    """Run one command line; see `main`."""
    if "OMP_WAIT_POLICY" not in os.environ:
        # Threads that wait soon leave their core to others, which halves the time beside a busy process; read by
        # libgomp when torch is imported.
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    gc.set_threshold(10_000)  # imports create objects that stay; searching them for garbage takes a tenth of their time
    try:
        load_plugins()  # plugins may add commands
        command = typer.main.get_command(app)
        check_streams()
        check_memory()
        with command_started(argv is None), memory_checked(), _warnings_as_notes(), _log_on_stderr():
            status = command.main(args=argv, prog_name="femts", standalone_mode=False)
        sys.stdout.flush()  # report a full disk or closed pipe here instead of at interpreter shutdown
    except FemtsError as error:
        from femts.training.stopping import Interrupted

        interrupted, text = isinstance(error, Interrupted), as_options(error)
        if isinstance(error, TableFaults) and error.remedy:
            text = (
                f"{as_options(error.fault)}; run {command_line(sys.argv[1:] if argv is None else argv, error.remedy)}"
            )
        return _fail(text, INTERRUPTED if interrupted else 2 if isinstance(error, UsageError) else 1)
    except _Mistake as error:
        return _usage(error)
    except typer.Abort:
        return _fail("interrupted", INTERRUPTED)
    except OSError as error:
        if error.errno is None:  # not from the operating system
            raise
        _drop_output()
        if error.errno == errno.EPIPE:  # as with `| head`, which is no error for the user
            return 1
        where = error.filename or "the output"
        if error.errno in _NAMES:
            return _fail(f"{quote(where)} cannot be used: {error.strerror}; choose another file or folder.", 2)
        remedy = write_remedy(error, "choose another location")
        return _fail(f"Could not write {where}: {error.strerror}; {remedy}.", 1)
    if status == INTERRUPTED:
        return _fail("interrupted", INTERRUPTED)
    return status if isinstance(status, int) else 0


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Print warnings of femts as notes or, about accuracy, as warnings, without the source line that issued them."""
    plain = warnings.formatwarning

    def form(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if issubclass(category, (*OF_FORECASTS, ScaleWarning)):
            return f"note: {printable(as_options(message).removesuffix('.'))}\n"
        if issubclass(category, AccuracyWarning):
            return f"warning: {printable(as_options(message).removesuffix('.'))}\n"
        return printable_lines(plain(message, category, filename, lineno, line))

    warnings.formatwarning = form
    try:
        yield
    finally:
        warnings.formatwarning = plain


@contextmanager
def _log_on_stderr() -> Iterator[None]:
    """Print log messages of femts at level INFO and above."""
    logger, handler = logging.getLogger("femts"), StderrHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _drop_output() -> None:
    """Discard buffered stdout; otherwise the interpreter reports the error again at shutdown."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, status: int) -> int:
    say(f"femts: {sentence(message)}", error=True)
    return status


def _usage(error: Exception) -> int:
    message = str(error.format_message())  # type: ignore[attr-defined]
    if message.startswith("Usage:"):  # no command was given, so show the help
        say(message)
        return 2
    if "Did you mean" in message:
        return _fail(message.replace(". Did you mean", "; did you mean"), 2)
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "femts"
    options = {name for param in context.command.params for name in param.opts} if context else set()
    run = str(context.params.get("run")) if context else ""
    if "Missing argument" in message and os.path.isfile(run):
        run = quote(run)
        fault = f"The folder of a run comes first, and {run} is a file"
        return _fail(f"{fault}; femts train makes a run, and femts datasets info {run} shows how the file is read.", 2)
    if "extra argument" in message and "--dataset" in options:
        message = f"{message.rstrip('.')}; a file or the name of a dataset follows --dataset"
    return _fail(f"{message.rstrip('.')}; see '{path} --help'.", 2)
