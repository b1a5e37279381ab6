"""Replaces a run by another in one move, at whatever moment a process is killed.

The new run is built in a folder within that of the run, whose own files stay as they are. Once it is complete, one
rename names it `.ready`: from then on, it is the run that readers see (`current`). Its files are then linked into the run
folder in place of the old ones, and another rename takes `.ready` away. A process that is killed before the first rename
has changed nothing, and one that is killed later leaves the rest to the next command that writes there (`settle`). All
of this needs nothing but atomic renames within one folder; other files in the run folder are not touched.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from femts.errors import RunFailure, UsageError, is_full
from femts.files import PART, locked, remove_parts
from femts.forecaster.run_folder import (
    CALIBRATED,
    CANDIDATES,
    CHECKPOINT,
    CONFIG,
    DONE,
    METRICS,
    NEW,
    READY,
    SCORED,
    clear_runs,
)

T = TypeVar("T")


@contextmanager
def locked_run(folder: Path) -> Iterator[None]:
    """Lock a run folder, created if necessary, and complete or remove what killed processes left in it; see
    `femts.files.locked`."""
    with locked(folder):
        settle(folder)
        yield


@contextmanager
def replacing(folder: Path, name: str = NEW) -> Iterator[Path]:
    """Lock a run folder and yield a folder within it, which may exist, to build the run that replaces its own.

    If the block ends without an error, that run is the new one. If the block is refused with a UsageError, what it
    wrote is removed; after any other error, it is kept for the next call to continue.

    Raises:
        UsageError: Another process is writing to the folder.
        RunFailure: Files cannot be written or removed.
    """
    with locked_run(folder):
        new = folder / name
        begun = new.exists()
        try:
            yield new
        except UsageError:
            if not begun:
                shutil.rmtree(new, ignore_errors=True)
            raise
        try:
            new.rename(folder / READY)
        except OSError as error:
            raise _failure(folder, error) from error
        settle(folder)


def settle(folder: Path) -> None:
    """Move the run that is ready in `folder` into it, and remove temporary files; the folder must be locked.

    Raises:
        RunFailure: Files cannot be written or removed.
    """
    for within in (folder, folder / SCORED):
        remove_parts(within)
        remove_parts((within / CHECKPOINT).parent)
    remove_parts(folder / CANDIDATES)
    ready, done = folder / READY, folder / DONE
    try:
        for left in (done, folder / CALIBRATED):
            if left.exists():
                shutil.rmtree(left)
        if not ready.is_dir():
            return
        clear_runs(folder)
        files = [path.relative_to(ready) for path in ready.rglob("*") if path.is_file() and path.suffix != PART]
        for path in sorted(files, key=_turn):
            link(ready / path, folder / path)
        ready.rename(done)
        shutil.rmtree(done)
    except OSError as error:
        raise _failure(folder, error) from error


def _turn(path: Path) -> tuple[bool, int, bool, Path]:
    """Sorts the files of a run: those that identify it first, and those that finish it last."""
    return path.name == METRICS, -len(path.parts) if path.name == METRICS else 0, path.name != CONFIG, path


def link(source: Path, target: Path) -> None:
    """Give the file `source` the name `target` as well, or copy it where the file system has no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _failure(folder: Path, error: OSError) -> RunFailure:
    where = error.filename or folder
    remedy = "free some disk space" if is_full(error) else "make it writable"
    return RunFailure(f"Could not write {where}: {error.strerror}; {remedy} and run the command again.")


def current(folder: Path) -> Path:
    """The folder to read the run in `folder` from: the one that is ready to replace it, if there is one."""
    for base in (folder, folder.parent):  # the parent holds runs of several horizons, or a scored model
        ready = base / READY / folder.relative_to(base)
        if os.path.isdir(ready):  # returns False for invalid folder names, for which Path would raise
            return ready
    return folder


def read_whole(folder: Path, read: Callable[[Path], T]) -> T:
    """What `read` makes of the run in `folder`; called again if another process replaced that run meanwhile.

    Args:
        folder: run folder.
        read: reads and verifies a run, given the folder to read from; raises UsageError if files do not match.
    """
    while True:
        before = _state(folder)
        try:
            return read(current(folder))
        except UsageError:
            if _state(folder) == before:
                raise


def _state(folder: Path) -> list[tuple[int, int, int] | None]:
    """Changes if the run in `folder` is replaced."""
    states = list[tuple[int, int, int] | None]()
    for path in (folder / READY, folder.parent / READY, folder / METRICS):
        states.append(None)
        with suppress(OSError, ValueError):
            status = path.stat()
            states[-1] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    return states
