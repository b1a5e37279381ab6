"""Atomic file writes, locks on output folders, and hashes of files."""

from __future__ import annotations

import errno
import fcntl
import glob
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from femts.errors import RunFailure, UsageError, write_remedy

PART = ".part"  # suffix of a temporary file that has not been renamed yet
LONGEST = 40  # characters of a file's name in that of its temporary file, which systems limit to 255 bytes
_NOT_HERE = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)  # raised by file systems without O_TMPFILE


def file_sha256(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_file(path: str | Path, content: bytes | memoryview) -> None:
    """Write `content` to `path` atomically.

    Symbolic links are followed and kept, and an existing file keeps its mode. Readers see either the old or the new
    file, even with concurrent writers. A `path` that is not a regular file (a terminal, pipe or device) is written to
    directly. If the file system supports unnamed files, a killed process leaves no temporary file, except a complete
    `.part` if it dies just before the final rename; `remove_parts` deletes it.

    Raises:
        RunFailure: The system refuses; the message names `path`.
    """
    try:
        target, mode = _target(Path(path))
        if target is None:
            _write_to(Path(path), content)
        else:
            _replace(target, content, mode)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RunFailure(
            f"Could not write {path}: {reason}; {write_remedy(error, 'choose another location')}."
        ) from error


def _target(path: Path) -> tuple[Path | None, int | None]:
    """The file behind `path` and its mode, if it exists; None for other kinds and for files that a process has open."""
    real = Path(os.path.realpath(path))
    # /dev/stdout may be a file that the shell has opened and keeps writing to.
    if path.is_absolute() and path.parts[1] in ("dev", "proc"):
        return None, None
    try:
        status = real.stat()
    except FileNotFoundError:
        return real, None
    return (real, stat.S_IMODE(status.st_mode)) if stat.S_ISREG(status.st_mode) else (None, None)


def is_stream(path: Path) -> bool:
    """Return whether `path` is a pipe, terminal or device, or a file that another process holds open as one."""
    return not path.is_dir() and _target(path)[0] is None


def _write_to(path: Path, content: bytes | memoryview) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as file:
        file.write(content)


def _replace(path: Path, content: bytes | memoryview, mode: int | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name[:LONGEST]}.{secrets.token_hex(8)}{PART}")
    descriptor, named = _unnamed(path.parent), False
    if descriptor is None:
        descriptor, named = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666), True
    try:
        with open(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if not named:
                # Python follows the link in /proc only if a src_dir_fd is given; the absolute path ignores its value.
                os.link(f"/proc/self/fd/{file.fileno()}", part, src_dir_fd=file.fileno(), follow_symlinks=True)
                named = True
                os.replace(part, path)  # immediately: a process killed in between leaves the part
                return
        os.replace(part, path)
    except BaseException:
        if named:
            part.unlink(missing_ok=True)
        raise


def _unnamed(folder: Path) -> int | None:
    """An unnamed file in `folder` that disappears with its process; None if the file system does not support these."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o666)
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
        return None


def check_target(path: Path) -> None:
    """Raise UsageError unless `path` can name a file: its folder exists, and it is not a folder itself."""
    if not path.parent.is_dir():
        raise UsageError(f"Folder {path.parent} does not exist; create it, or write {path.name} elsewhere.")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it.")


def check_folder(folder: Path) -> None:
    """Raise UsageError if `folder` neither exists nor can be created, naming what is in the way."""
    for path in (folder, *folder.parents):
        if os.path.isdir(path):
            return
        if os.path.lexists(path):
            what = "a file"
            if os.path.islink(path):
                end = "which is a file" if os.path.exists(path) else "which leads nowhere"
                what = f"a link to {os.readlink(path)}, {end}"
            within = "" if path == folder else f"would be in {path}, which "
            raise UsageError(f"The output {folder} {within}is {what}; name a folder.")


def remove_parts(folder: Path, name: str = "") -> None:
    """Delete temporary files of killed writes in `folder`, or only those of the file `name`; no other process may be
    writing them."""
    for part in folder.glob(f".{glob.escape(name[:LONGEST])}*{PART}"):
        part.unlink(missing_ok=True)


class Busy(UsageError):
    """Another process holds the lock of a folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock `folder` against writes by other processes, creating it if necessary.

    The lock is released when the process ends, in whatever way, and leaves no file.

    Raises:
        Busy: Another process holds the lock.
        UsageError: `folder` is a file.
        RunFailure: The folder cannot be created.
    """
    made = _made(folder)
    descriptor = _lock(folder)
    try:
        try:
            yield
        except BaseException:
            for path in made:  # still empty if nothing was written
                with suppress(OSError):
                    path.rmdir()
            raise
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int:
    descriptor = None
    try:
        while descriptor is None or not _is_at(descriptor, folder):
            if descriptor is not None:  # the holder removed the folder between the two calls below
                os.close(descriptor)
                descriptor = None
            with suppress(FileNotFoundError):  # or before them
                folder.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if descriptor is not None:
            os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise Busy(f"Folder {folder} is being written by another run; wait for it or choose another.") from error
        raise RunFailure(f"Could not write {folder}: {error.strerror}; choose another folder.") from error
    return descriptor


def _is_at(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(folder))
    except FileNotFoundError:
        return False


def _made(folder: Path) -> list[Path]:
    """Create `folder` and its parents; returns the created ones, innermost first."""
    check_folder(folder)
    missing = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RunFailure(f"Could not write {folder}: {reason}; choose another folder.") from error
    return missing
