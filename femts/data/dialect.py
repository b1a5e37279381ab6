"""How a text file separates its cells, and where its table begins."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from femts.data.eurostat import is_eurostat
from femts.data.header import MOST_BEFORE, Header, find_header, is_plain
from femts.data.unpack import open_text, place
from femts.text import quote

SEPARATORS = ",;\t|"
BLANKS = r"\s+"
SAMPLE, SAMPLE_ROWS = 2**20, 1000  # leading characters and rows from which separators are inferred
BEGINNING = 2**16  # leading characters that show whether a table is plain
LOOK = 200  # leading rows whose cells are counted
MOST_COMMENTS = 100  # leading comment lines
_DECIMAL = re.compile(r"[+-]?(\d+,\d*|,\d+|\d{1,3}(\.\d{3})+,\d+)([eE][+-]?\d+)?")
ROUND = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # could be a decimal or a thousands separator
_ENGLISH = re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+|[+-]?\d{1,3}(,\d{3}){2,}")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")
_DAY = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")


@dataclass(frozen=True)
class Dialect:
    """How a text file is read.

    Attributes:
        separator: separator of cells; `BLANKS` for any number of blanks.
        decimal: decimal mark.
        header: names of the columns.
        skip: number of lines before the header, or before the first data row if the header is not a single line with
            all names.
        plain: whether the line after those is the header.
        comments: whether lines that begin with `#` are left out; lines are counted without these.
        encoding: encoding of the file.
        doubt: why numbers with a comma cannot be used; empty if they can.
        notes: messages to show the user once.
    """

    separator: str
    decimal: str
    header: list[str]
    skip: int
    plain: bool
    comments: bool
    encoding: str
    doubt: str = ""
    notes: tuple[str, ...] = ()


def find_dialect(path: Path, skip_rows: int = 0) -> Dialect:
    """Infer how to read a text file from its beginning.

    Args:
        path: the file, compressed or not.
        skip_rows: number of leading lines that are no part of the table.

    Raises:
        UsageError: The file cannot be read.
    """
    with open_text(path) as file:
        begin = [file.readline(SAMPLE) for _ in range(skip_rows)]
        sample, most = "", BEGINNING
        while True:
            sample += file.read(most - len(sample))
            ended, encoding = len(sample) < most, file.buffer.raw.encoding  # type: ignore[attr-defined]
            if ended or sample.count("\n") + sample.count("\r") > 2:
                whole = sample if ended else sample[: max(map(sample.rfind, "\n\r")) + 1]
                dialect = _dialect(whole, begin, encoding, path)
                if ended or most >= SAMPLE or (dialect.plain and dialect.separator == "," and not dialect.skip):
                    return dialect
            most = max(2 * most, SAMPLE)


def _dialect(sample: str, begin: list[str], encoding: str, path: Path) -> Dialect:
    """The dialect of a file from its first lines, without those skipped at its beginning."""
    lines = sample.splitlines(keepends=True) if "#" in sample else []
    leading = _comments(lines)
    inner = [line for line in lines[leading:] if line.startswith("#")]
    comments = bool(leading) or not lines or not lines[0].startswith("#")
    comments &= 10 * len(inner) <= len(lines) - leading and not (begin and begin[-1].startswith("#"))
    if comments and (leading or inner):
        sample = "".join(line for line in lines if not line.startswith("#"))
    skip = sum(not (comments and line.startswith("#")) for line in begin)
    header = next(filter(None, csv.reader(io.StringIO(sample, newline=""))), [])
    separator = ","
    if is_eurostat(sample.split("\t", 1)[:1]):
        separator, header = "\t", _table(sample, "\t")[0]
    elif any(mark in cell for cell in header for mark in SEPARATORS[1:]):
        separator, header = _separator(sample)
    rows, _ = _rows(sample, separator, LOOK)
    if not is_plain(rows):
        found = _search(sample, lines[leading - 1].strip("#% \n").split() if comments and leading else [])
        if found is not None:
            mark, table, stops = found
            plain = table.data == table.before + 1 and all(table.names[1:]) and mark != BLANKS
            first = table.before if plain else table.data  # the first row that pandas reads
            above = stops[first - 1] if first else 0
            rest = "".join(list(io.StringIO(sample, newline=""))[above:])
            decimal, doubt = _decimal(rest, mark, path)
            if mark == BLANKS and _has_words_behind(rest, len(table.names)):
                table.names.append("")
                plain = False
            return Dialect(mark, decimal, table.names, skip + above, plain, comments, encoding, doubt, table.notes)
    decimal, doubt = _decimal(sample, separator, path)
    return Dialect(separator, decimal, header, skip, True, comments, encoding, doubt)


def _comments(lines: list[str]) -> int:
    """Number of lines before the header that begin with `#`; 0 if the last one has as many cells as the next line, and
    so is the header."""
    count = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    if not count or count > MOST_COMMENTS:
        return 0
    marks = (tuple(line.count(mark) for line in lines[count - 1 : count + 1]) for mark in SEPARATORS)
    return 0 if any(0 < counts[0] == counts[-1] for counts in marks) else count


def _rows(text: str, separator: str, most: int) -> tuple[list[list[str]], list[int]]:
    """The first rows of a text as stripped cells, empty for a blank line, and the number of lines up to each."""
    if separator == BLANKS:
        rows = [line.split() for line in islice(io.StringIO(text, newline=""), most)]
        return rows, list(range(1, len(rows) + 1))
    rows, ends = [], list[int]()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=False)
    for row in islice(reader, most):
        rows.append([cell.strip() for cell in row])
        ends.append(reader.line_num)
    return rows, ends


def _has_words_behind(text: str, width: int) -> bool:
    """Return whether some lines have a word behind the `width` cells of the others, such as `Provisional`."""
    lines = [cells for cells in map(str.split, io.StringIO(text, newline="")) if len(cells) > width]
    return bool(lines) and all(len(cells) == width + 1 and cells[-1].isalpha() for cells in lines)


def _search(sample: str, remark: Sequence[str] = ()) -> tuple[str, Header, list[int]] | None:
    """The separator that gives the largest table with a header, that header, and the number of lines up to each row;
    blanks only if no other separator does. `remark` are the words of the last comment above the table."""
    best: tuple[int, str, Header, list[int]] | None = None
    for mark in (*SEPARATORS, BLANKS):
        if mark == BLANKS and best is not None:
            break
        if mark not in sample and mark != BLANKS:
            continue
        try:
            rows, ends = _rows(sample, mark, SAMPLE_ROWS)
        except csv.Error:
            continue
        rows = _with_clocks(rows) if mark == BLANKS else rows
        table = find_header(rows, mark == BLANKS, remark)
        if table is None:
            continue
        width, below = len(table.names), [row for row in rows[table.data :] if row]
        cells = width * sum(len(row) == width for row in below)
        enough = 2 * cells >= width * len(below) and (bool(below) or mark != BLANKS)
        if enough and (best is None or cells > best[0]):
            best = cells, mark, table, ends
    return None if best is None else best[1:]


def _with_clocks(rows: list[list[str]]) -> list[list[str]]:
    """Rows separated by blanks, in which the header has a name `time` after the first if dates and times of day are two
    cells of the rows below it."""
    for number, row in enumerate(rows[:MOST_BEFORE]):
        below = [each for each in rows[number + 1 : number + 11] if each]
        if (
            row
            and below
            and all(
                len(each) == len(row) + 1 and _DAY.fullmatch(each[0]) and _CLOCK.fullmatch(each[1]) for each in below
            )
        ):
            return [*rows[:number], ["date", "time", *row[1:]], *rows[number + 1 :]]
    return rows


def _separator(sample: str) -> tuple[str, list[str]]:
    """The first mark in the header that gives all rows as many cells as the header, and that header; if none does, the
    comma, provided that the header contains one."""
    tables = {mark: _table(sample, mark) for mark in SEPARATORS}
    in_order = sorted((mark for mark in tables if len(tables[mark][0]) > 1), key=lambda mark: len(tables[mark][0][0]))
    even = (mark for mark in in_order if len(set(map(len, tables[mark]))) == 1)
    separator = next(even, "," if "," in in_order else next(iter(in_order), ","))
    return separator, tables[separator][0]


def _table(sample: str, mark: str) -> list[list[str]]:
    rows = filter(None, csv.reader(io.StringIO(sample, newline=""), delimiter=mark))
    return list(islice(rows, SAMPLE_ROWS + 1)) or [[]]


def _decimal(sample: str, separator: str, path: Path) -> tuple[str, str]:
    """Decimal mark of a table, and why commas in its numbers could be either kind of mark; empty if they are clear."""
    if separator == ",":
        return ".", ""
    rows = _rows(sample, separator, SAMPLE_ROWS + 1)[0]
    cells = [cell for row in rows for cell in row]
    numbers = [cell for cell in cells if _DECIMAL.fullmatch(cell)]
    if not numbers or any(_ENGLISH.fullmatch(cell) for cell in cells):
        return ".", ""
    if separator != ";" and all(ROUND.fullmatch(cell) for cell in numbers):
        return ".", (
            f"{place(path)} has '{quote(numbers[0])}', in which the comma could be a decimal or a thousands "
            "separator; remove thousands separators, or use decimal points."
        )
    return ",", ""
