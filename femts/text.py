"""Text from data, fit to be shown: no control characters, no more of it than a reader wants, and JSON that is JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MOST = 80  # characters of a name or a cell within a sentence
MOST_IN_ALL = 1500  # of a sentence; the paths in it may be long
MOST_CELL = 400  # characters of a table on a terminal
_LONG = 256  # bits of a number that is written out; Python refuses to write very long ones


def printable(text: object) -> str:
    """`text` on one line, an escape (such as `\\x1b`) for each character that would act on a
    terminal instead of showing."""
    plain = str(text)
    if plain.isprintable():
        return plain
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


def printable_lines(text: object) -> str:
    """`text` as `printable` has it, its lines kept."""
    return "\n".join(map(printable, str(text).split("\n")))


def quote(value: object, most: int = MOST) -> str:
    """`value` as it stands in a message: printable, and where it is longer than `most` its beginning and its end."""
    if isinstance(value, int) and value.bit_length() > _LONG:
        return f"a number of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    plain = str(value)
    if len(plain) > most:
        end = most // 4
        plain = f"{plain[: most - end - 3]}...{plain[-end:]}"
    return printable(plain)


def sentence(text: object) -> str:
    """A whole message: on one line, printable, and not endless."""
    return quote(" ".join(str(text).split()), MOST_IN_ALL)


def strict_json(value: Any, **how: Any) -> str:
    """`value` as JSON that every reader takes: null for a number that is NaN or infinite; `how` as in `json.dumps`."""
    return json.dumps(_finite(value), allow_nan=False, **how)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns two blanks apart; numbers are set to the right, floats get four digits, and text is
    made fit to be shown."""
    header = [quote(name, MOST_CELL) for name in header]
    body = [[f"{cell:.4f}" if isinstance(cell, float) else _cell(cell) for cell in row] for row in rows]
    right = [all(_is_number(row[i]) for row in body) for i in range(len(header))]
    lines = [list(header), *body]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def _cell(cell: object) -> str:
    return "-" if cell is None else quote(cell, MOST_CELL)


def _is_number(cell: str) -> bool:
    return cell.removeprefix("-").removesuffix("%").replace(".", "", 1).isdigit() or cell in ("-", "nan", "mean")


def spreadsheet_safe(cell: object) -> object:
    """A cell of a table for people; text that a spreadsheet would take for a formula begins with an apostrophe."""
    return (
        f"'{cell}"
        if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") and not _number(cell)
        else cell
    )


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def part_of(done: int, asked: int, what: str) -> str:
    """Ending of a cell that has `done` of the `asked` for, as ` (2 of 3 seeds)`; empty where it has all."""
    return f" ({done} of {asked} {what})" if done < asked else ""
