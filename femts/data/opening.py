"""Bytes of a table: of a file, plain or packed, or of standard input, which is called `-`."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from femts.errors import UsageError
from femts.text import shown

STDIN = Path("-")
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)
_HEAD = 8192  # bytes that are looked at


def place(path: Path) -> str:
    """The beginning of a sentence on a file."""
    return "The standard input" if path == STDIN else f"File {path}"


def name_of(path: Path) -> str:
    """The name of a file without its ending, and without that of what packs it."""
    if path == STDIN:
        return "stdin"
    return Path(path.stem).stem if path.suffix.lower() in (".gz", ".bz2", ".xz", ".zip", ".zst") else path.stem


def opened_text(path: Path) -> Path | BinaryIO:
    """A file that holds text: its path where it is plain, and a stream of its bytes where it is packed, or is `-`.

    Raises:
        UsageError: missing, a folder, empty, damaged, binary, or an archive of several files.
    """
    head = check_file(path)
    unpack = next((unpack for magic, unpack in _PACKED.items() if head.startswith(magic)), None)
    if unpack is None:
        _check_head(head, path)
        return path if path != STDIN else raw(path)
    try:
        stream = unpack(path)
        _check_head(stream.read(_HEAD), path)
        stream.seek(0)
        return stream
    except DAMAGE as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> UsageError:
    """A refusal of a file that breaks off, or does not unpack."""
    return UsageError(f"{place(path)} is damaged ({shown(str(error).strip()) or 'it ends early'}); get it anew.")


def check_file(path: Path) -> bytes:
    """The first bytes of a file that can be read and is not empty."""
    try:
        if path != STDIN and path.is_dir():
            raise UsageError(f"{path} is a folder; name the file in it.")
        if path != STDIN and path.is_fifo():
            raise UsageError(f"File {path} is a pipe, which is read only once; send it to standard input, named -.")
        with raw(path) as file:
            head = file.read(_HEAD)
    except FileNotFoundError as error:
        raise UsageError(f"File {path} does not exist; check its name.") from error
    except ValueError as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"File {shown(path)} cannot exist ({error}); check its name.") from error
    except OSError as error:
        reason = error.strerror or shown(error)
        raise UsageError(f"{place(path)} cannot be opened ({reason}); check its name and its rights.") from error
    if not head.strip():
        raise UsageError(f"{place(path)} is empty; give a table with a header and rows.")
    return head


def raw(path: Path) -> BinaryIO:
    """The bytes as they are; those of standard input are kept, as it can be read only once."""
    if path != STDIN:
        return path.open("rb")
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError("The standard input is closed; send a table to it, as by < FILE, or name the file.")
    return io.BytesIO(_piped(sys.stdin))


@lru_cache(maxsize=1)
def _piped(stdin: TextIO) -> bytes:
    return stdin.buffer.read()


def _check_head(head: bytes, path: Path) -> None:
    if any(head.startswith(magic) for magic in _PACKED):
        raise UsageError(f"{place(path)} is packed twice; unpack it and name the CSV file in it.")
    if b"\0" in head:
        raise UsageError(f"{place(path)} is binary; save it as CSV text in UTF-8.")
    if not head.strip():
        raise UsageError(f"{place(path)} is empty; give a table with a header and rows.")


def _zipped(path: Path) -> BinaryIO:
    archive = zipfile.ZipFile(raw(path))
    tables = [
        each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith(("__MACOSX/", "."))
    ]
    if any(each.filename.startswith("xl/") for each in tables):
        raise UsageError(f"{place(path)} is an Excel workbook; give it a name that ends in .xlsx.")
    if len(tables) != 1:
        raise UsageError(f"{place(path)} holds {len(tables)} files; pack one table alone.")
    if tables[0].flag_bits & 1:
        raise UsageError(f"{place(path)} is locked by a password; unpack it and name the CSV file in it.")
    return cast(BinaryIO, archive.open(tables[0]))


def _zstandard(path: Path) -> BinaryIO:
    """All of it at once: the library's stream does not say when a file is cut short."""
    try:
        from zstandard import ZstdDecompressor, ZstdError
    except ImportError as error:
        raise UsageError(f"{place(path)} is packed by zstd; run pip install zstandard, or unpack it.") from error
    with raw(path) as file:
        rest = file.read()
    parts = []
    try:
        while rest:
            frame = ZstdDecompressor().decompressobj()
            parts.append(frame.decompress(rest))
            if not frame.eof:
                raise EOFError("it ends early")
            rest = frame.unused_data
    except ZstdError as error:
        raise EOFError(str(error)) from error
    return io.BytesIO(b"".join(parts))


def _stream(unpacking: Callable[..., Any]) -> Callable[[Path], BinaryIO]:
    return lambda path: cast(BinaryIO, unpacking(raw(path)))


_PACKED: dict[bytes, Callable[[Path], BinaryIO]] = {
    b"\x1f\x8b": _stream(lambda file: gzip.GzipFile(fileobj=file)),
    b"BZh": _stream(bz2.BZ2File),
    b"\xfd7zXZ": _stream(lzma.LZMAFile),
    b"PK\x03\x04": _zipped,
    b"\x28\xb5\x2f\xfd": _zstandard,
}
