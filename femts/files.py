"""Files that are written whole or not at all, and folders that one process at a time writes to."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from femts.errors import RunFailure, UsageError

PART = ".part"  # how a file ends that is not yet in its place
_NOT_HERE = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)  # of a file system without unnamed files


def write_file(path: str | Path, content: bytes | memoryview) -> None:
    """Write `content` to `path`, whole or not at all, as far as it is a file.

    A link stays, and what it names is replaced; a file that is there keeps its mode. Where `path`
    is no file (a terminal, a pipe, a device) it is written to. Readers see the former file or the
    new one, whoever else writes at the same time. Where the file system knows files without a name,
    a process that is killed leaves nothing beside it, but for a whole `.part` if that was in the
    instant between naming the new file and putting it in its place; `remove_parts` takes it away.

    Raises:
        RunFailure: the system refuses; the text names `path`.
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
            f"Could not write {path}: {reason}; free some disk space or choose another location."
        ) from error


def _target(path: Path) -> tuple[Path | None, int | None]:
    """The file behind `path`, and its mode if it is there; None for what is no file and for what a process has open."""
    real = Path(os.path.realpath(path))
    # /dev/stdout may be a file: the one that a shell has opened, and goes on to write to.
    if path.is_absolute() and path.parts[1] in ("dev", "proc"):
        return None, None
    try:
        status = real.stat()
    except FileNotFoundError:
        return real, None
    return (real, stat.S_IMODE(status.st_mode)) if stat.S_ISREG(status.st_mode) else (None, None)


def _write_to(path: Path, content: bytes | memoryview) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as file:
        file.write(content)


def _replace(path: Path, content: bytes | memoryview, mode: int | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{secrets.token_hex(8)}{PART}")
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
                # Only with some src_dir_fd does Python follow the link in /proc, and an absolute path needs none.
                os.link(f"/proc/self/fd/{file.fileno()}", part, src_dir_fd=file.fileno(), follow_symlinks=True)
                named = True
                os.replace(part, path)  # at once: killed in between, it would stay a part
                return
        os.replace(part, path)
    except BaseException:
        if named:
            part.unlink(missing_ok=True)
        raise


def _unnamed(folder: Path) -> int | None:
    """A file in `folder` that has no name and is gone with its process; None where there is no such thing."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o666)
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
        return None


def check_folder(folder: Path) -> None:
    """UsageError unless a folder is at `folder`, or can be made there: what stands in its way is named."""
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


def remove_parts(folder: Path) -> None:
    """Remove what killed writes have left in `folder`; nobody else may write there."""
    for part in folder.glob(f".*{PART}"):
        part.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold `folder`, which is made where it is missing, against every other process that would write to it.

    The lock ends with the process, however that ends, and leaves no file.

    Raises:
        UsageError: another process holds it, or it is a file.
        RunFailure: it cannot be made.
    """
    made = _made(folder)
    descriptor = _lock(folder)
    try:
        try:
            yield
        except BaseException:
            for path in made:  # still empty, where nothing was kept
                with suppress(OSError):
                    path.rmdir()
            raise
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int:
    descriptor = None
    try:
        while (
            descriptor is None
            or not os.path.exists(folder)
            or not os.path.samestat(os.fstat(descriptor), os.stat(folder))
        ):
            if descriptor is not None:  # removed by whoever held it, between the two calls below
                os.close(descriptor)
                folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if descriptor is not None:
            os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise UsageError(
                f"Folder {folder} is being written by another run; wait for it or choose another."
            ) from error
        raise RunFailure(f"Could not write {folder}: {error.strerror}; choose another folder.") from error
    return descriptor


def _made(folder: Path) -> list[Path]:
    """Make `folder` and those above it; what was made, the innermost first."""
    check_folder(folder)
    missing = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RunFailure(f"Could not write {folder}: {reason}; choose another folder.") from error
    return missing
