"""Bytes of a table from a file, compressed or not, or from standard input (`-`), within the limits of memory."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from femts.data.describe import count as counted
from femts.environment import available_memory
from femts.errors import UsageError
from femts.text import quote

STDIN = Path("-")
COMPRESSED = (".gz", ".bz2", ".xz", ".zip", ".zst")
UTF8, WINDOWS = "utf-8", "cp1252"
MOST_COLUMNS = 2**20
MOST_LINE, MOST_CELL = 2**24, 2**18  # bytes
MOST_EACH = 2**10  # average bytes per cell over many rows
CELL_ROOM = 16  # bytes per cell while a table is built, with two copies at once
CELL = 24  # bytes that a cell takes during parsing, in addition to its text
_ENDS, _MARKS = (b"\n", b"\r"), (b",", b";", b"\t", b"|")  # line ends and cell separators
SMALL = 2**22  # bytes of a piece up to which the memory left is not asked for
_CHUNK = 2**18  # bytes decompressed at a time
_MARKUP = (b"<!doctype", b"<html", b"<table", b"<?xml")  # how pages begin, but not headers such as <DATE>,<OPEN>
_DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)


def place(path: Path) -> str:
    """Description of a file to start a message with."""
    return "The standard input" if path == STDIN else f"File {path}"


def name_of(path: Path) -> str:
    """Name of a file without its extension and that of its compression."""
    if path == STDIN:
        return "stdin"
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSED else path.stem


class TextBytes(io.RawIOBase):
    """UTF-8 bytes of a text file, decompressed and converted while reading; input that would not fit in memory is refused
    early.

    Attributes:
        encoding: that of the file, known once reading has begun.
        ended: whether all bytes have been read.
        last: whether a reader has no more rows, which it may set.
        watched: whether cells are inspected for `zeros`, which may be set.
        zeros: whether a cell has begun with a zero and another digit, such as 0075.
    """

    def __init__(self, path: Path, source: BinaryIO, cells: int | None, rows: bool, comments: bool) -> None:
        self._path, self._source, self._cells, self._rows = path, source, cells, rows
        self._line, self._cell, self._left, self._ahead = 0, 0, b"", cast("bytes | None", None)
        self._comments = _Comments() if comments else None
        self.ended, self.last = False, False
        self.watched, self.zeros = False, False
        self._decoder: codecs.IncrementalDecoder | None = None
        self.encoding = ""
        self._taken, self._room = 0, cast("int | None", None)

    def start_piece(self) -> None:
        """Reset the count of bytes held in memory at once."""
        self._taken, self._room = 0, None

    @property
    def comments(self) -> int:
        """Number of lines that began with `#` and were left out."""
        return 0 if self._comments is None else self._comments.count

    def readable(self) -> bool:
        """See `io.RawIOBase`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See `io.RawIOBase`; raises UsageError if the content is binary, markup, damaged or too large."""
        while not self._left:
            chunk = self._read(len(buffer)) if self._ahead is None else self._ahead
            self._ahead = self._read(len(buffer)) if chunk else b""
            self.ended = not self._ahead
            self._left = self._converted(chunk)
            self._check(self._left)
            if self._comments is not None:
                self._left = self._comments.left_out(self._left)
            if not chunk:
                break
        chunk, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def _read(self, size: int) -> bytes:
        try:
            return self._source.read(size)
        except _DAMAGE as error:
            raise _damaged(self._path, error) from error

    def close(self) -> None:
        """See `io.RawIOBase`."""
        self._source.close()
        super().close()

    def _converted(self, chunk: bytes) -> bytes:
        """The next bytes in UTF-8; the first ones tell the encoding."""
        if not self.encoding:
            if any(map(chunk.startswith, _PACKED)):
                raise UsageError(
                    f"{place(self._path)} is compressed twice; decompress it and name the CSV file inside."
                )
            _check_empty(chunk, self._path)
            if chunk.lstrip(codecs.BOM_UTF8 + b" \t\r\n").lower().startswith(_MARKUP):
                raise UsageError(
                    f"{place(self._path)} is a web page or XML, not a table; download the table itself, or open the file "
                    "in a spreadsheet and save it as CSV."
                )
            self.encoding = _encoding_of(chunk)
            if self.encoding != UTF8:
                self._decoder = codecs.getincrementaldecoder(self.encoding)()
        return chunk if self._decoder is None else self._decoder.decode(chunk, final=not chunk).encode()

    def _check(self, chunk: bytes) -> None:
        if b"\0" in chunk:
            raise UsageError(
                f"{place(self._path)} is binary; convert it to CSV, JSON, Parquet, Feather or Excel, or read it in Python "
                "and pass a DataFrame."
            )
        end = max(map(chunk.rfind, _ENDS))
        self._line = len(chunk) + (self._line if end < 0 else -1 - end)
        end = max(end, *map(chunk.rfind, _MARKS))
        self._cell = len(chunk) + (self._cell if end < 0 else -1 - end)
        if self._rows and (self._line > MOST_LINE or self._cell > MOST_CELL):
            what, most = ("line", MOST_LINE) if self._line > MOST_LINE else ("cell", MOST_CELL)
            raise UsageError(
                f"{place(self._path)} has a {what} of more than {most >> 10} KiB; put each row on its own line, with "
                "separators between cells."
            )
        import numpy as np  # slow, and not needed by all that import this module

        values = np.frombuffer(chunk, np.uint8)  # counts faster than bytes do
        ends, marks = (max(int(np.count_nonzero(values == mark[0])) for mark in kinds) for kinds in (_ENDS, _MARKS))
        self._taken += len(chunk) + CELL * (ends + marks)
        if self.watched and not self.zeros and len(values) > 3:
            (at,) = np.nonzero((values[1:-2] == ord("0")) & (values[2:-1] - ord("0") < 10))  # below 0 wraps around
            at = at[_limits()[values[at]]]
            after = values[at + 3]
            self.zeros = bool(((after - ord("0") < 10) | _limits()[after]).any())
        if self._cells is not None and self._taken > max(MOST_EACH * self._cells, 16 * MOST_LINE):
            raise UsageError(
                f"{place(self._path)} has {self._taken >> 20} MiB where a few rows are expected; close its quotes, "
                "and remove blank lines."
            )
        if self._taken > SMALL:
            self._room = available_memory() + SMALL if self._room is None else self._room
            check_room(self._taken, self._path, self._room)


@lru_cache(maxsize=1)
def _limits() -> Any:
    """Whether each byte limits a cell, (256,) of bool."""
    import numpy as np

    return np.isin(np.arange(256), np.frombuffer(b'\n\r",;\t|', np.uint8))


class _Comments:
    """Leaves out lines that begin with `#` from chunks of bytes.

    Attributes:
        count: number of lines left out.
    """

    def __init__(self) -> None:
        self.count = 0
        self._begins, self._inside = True, False  # whether a chunk begins a line, or within one to be left out

    def left_out(self, chunk: bytes) -> bytes:
        """The chunk, which follows the last one, without these lines."""
        if not chunk:
            return chunk
        begins, self._begins = self._begins, chunk.endswith(_ENDS)
        if not self._inside and b"#" not in chunk:
            return chunk
        kept, at = list[bytes](), 0
        if begins and not self._inside:
            mark = len(codecs.BOM_UTF8) if chunk.startswith(codecs.BOM_UTF8) else 0
            if chunk[mark : mark + 1] == b"#":
                self._inside, self.count = True, self.count + 1
        while at < len(chunk):
            if self._inside:
                end = _next(chunk, _ENDS, at)
                if end < 0:
                    break
                at = end + 1
                at += chunk[at : at + 1] == b"\n" and chunk[end : end + 1] == b"\r"
                self._inside = chunk[at : at + 1] == b"#"
                self.count += self._inside
                continue
            begin = _next(chunk, (b"\n#", b"\r#"), at)
            kept.append(chunk[at : len(chunk) if begin < 0 else begin + 1])
            if begin < 0:
                break
            at, self._inside, self.count = begin + 1, True, self.count + 1
        return b"".join(kept)


def _next(chunk: bytes, marks: tuple[bytes, ...], start: int) -> int:
    """Place of the first of `marks` from `start` on; -1 if there is none."""
    return min((place for mark in marks if (place := chunk.find(mark, start)) >= 0), default=-1)


def _encoding_of(head: bytes) -> str:
    """Encoding of text that begins with `head`, which may end within a character; UTF-8 also for what is no text."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder(UTF8)().decode(head)
    except UnicodeDecodeError:
        with suppress(UnicodeDecodeError):
            head.decode(WINDOWS)
            return UTF8 if b"\0" in head else WINDOWS
    return UTF8


def open_bytes(path: Path, cells: int | None = None, rows: bool = True, comments: bool = False) -> io.BufferedReader:
    """Open a text file, compressed or not, or standard input, as bytes in UTF-8; the `raw` stream is a `TextBytes`.

    Args:
        path: the file.
        cells: approximate number of cells read at a time; None reads all at once.
        rows: whether each line is a row, of limited length.
        comments: whether lines that begin with `#` are left out.

    Raises:
        UsageError: The file is missing, a folder, empty or damaged; or, while reading, it is binary, an archive of
            several files, or too large.
    """
    head = check_file(path)
    unpack = next((unpack for magic, unpack in _PACKED.items() if head.startswith(magic)), None)
    try:
        source = raw(path) if unpack is None else unpack(path)
    except _DAMAGE as error:
        raise _damaged(path, error) from error
    return io.BufferedReader(TextBytes(path, source, cells, rows, comments), _CHUNK)


def open_text(path: Path, rows: bool = True) -> io.TextIOWrapper:
    """Open as in `open_bytes`, decoded from UTF-8 with line ends kept."""
    return io.TextIOWrapper(open_bytes(path, rows=rows), encoding="utf-8-sig", newline="")


def check_file(path: Path) -> bytes:
    """First bytes of a file; UsageError if it is empty or cannot be read."""
    try:
        if path != STDIN and path.is_dir():
            raise UsageError(f"{path} is a folder; name the file in it.")
        if path != STDIN and path.is_fifo():
            raise UsageError(
                f"File {path} is a pipe, which can be read only once; send it to standard input and use - as the path."
            )
        with raw(path) as file:
            head = file.read(2**13)
    except FileNotFoundError as error:
        raise UsageError(f"File {path} does not exist; check the path.") from error
    except ValueError as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"File {quote(path)} cannot exist ({error}); check the path.") from error
    except OSError as error:
        reason = error.strerror or quote(error)
        raise UsageError(f"{place(path)} cannot be opened ({reason}); check the path and its permissions.") from error
    _check_empty(head, path)
    return head


def _check_empty(head: bytes, path: Path) -> None:
    if not head.strip():
        raise UsageError(f"{place(path)} is empty; provide a table with a header and rows.")


def check_columns(columns: int, path: Path) -> None:
    """Refuse tables with an implausible number of columns."""
    if columns > MOST_COLUMNS:
        raise UsageError(
            f"{place(path)} has {counted(columns, 'column')}, but at most {MOST_COLUMNS} are supported; drop some."
        )


def check_room(needed: int, path: Path, room: int | None = None) -> None:
    """Refuse a file that needs at least `needed` bytes if `room`, by default all memory, is less."""
    room = available_memory() if room is None else room
    if needed > room:
        raise too_large(path, f" ({room >> 20} MiB)")


def too_large(path: Path, room: str = "") -> UsageError:
    """Error for a file that does not fit in memory."""
    return UsageError(
        f"{place(path)} does not fit into memory{room}; use fewer rows or columns, or a machine with more memory."
    )


def _damaged(path: Path, error: Exception) -> UsageError:
    return UsageError(f"{place(path)} is damaged ({quote(str(error).strip()) or 'it ends early'}); download it again.")


def raw(path: Path) -> BinaryIO:
    """Uncompressed bytes of a file; standard input, which can be read only once, is kept in memory."""
    if path != STDIN:
        return path.open("rb")
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError(
            "The standard input is closed; redirect a table to it with < FILE, or give the path of a file."
        )
    return io.BytesIO(_piped(sys.stdin))


@lru_cache(maxsize=1)
def _piped(stdin: TextIO) -> bytes:
    content, room = bytearray(), available_memory() // 2  # it is copied once more
    while chunk := stdin.buffer.read(_CHUNK):
        content += chunk
        check_room(len(content), STDIN, room)
    return bytes(content)


def _zip(path: Path) -> BinaryIO:
    archive = zipfile.ZipFile(raw(path))
    tables = [
        each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith(("__MACOSX/", "."))
    ]
    if any(each.filename.startswith("xl/") for each in tables):
        raise UsageError(f"{place(path)} is an Excel workbook; rename it to end in .xlsx.")
    if len(tables) != 1:
        raise UsageError(f"{place(path)} holds {counted(len(tables), 'file')}; compress only one table.")
    if tables[0].flag_bits & 1:
        raise UsageError(f"{place(path)} is password-protected; decompress it and name the CSV file inside.")
    return cast(BinaryIO, archive.open(tables[0]))


def _zstd(path: Path) -> BinaryIO:
    try:
        import pyarrow
    except ImportError as error:
        raise UsageError(
            f"{place(path)} is compressed with zstd; run pip install pyarrow, or decompress it."
        ) from error
    return cast(BinaryIO, pyarrow.CompressedInputStream(pyarrow.PythonFile(raw(path), mode="r"), "zstd"))


_PACKED: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": lambda path: gzip.GzipFile(fileobj=raw(path)),
    b"BZh": lambda path: bz2.BZ2File(raw(path)),
    b"\xfd7zXZ": lambda path: lzma.LZMAFile(raw(path)),  # noqa: SIM115
    b"PK\x03\x04": _zip,
    b"\x28\xb5\x2f\xfd": _zstd,
}
