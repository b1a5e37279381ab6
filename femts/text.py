"""Text from data made fit for display: no control characters, limited length, and strict JSON."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

MOST = 80  # characters of a name or cell in a message
MOST_IN_ALL = 1500  # characters of a message; paths in it may be long
MOST_CELL = 400  # characters of a table cell on a terminal
_START, _END = "\x02", "\x03"  # of arguments in a message; names and cells have none, because `quote` escapes them
_MARKED = re.compile(f"{_START}([^{_START}{_END}]*){_END}")
_LONG = 256  # bits of the largest integer written out; Python refuses to convert very long ones


def printable(text: object) -> str:
    """`text` on one line, with terminal control characters replaced by escapes such as `\\x1b`."""
    plain = str(text)
    if plain.isprintable():
        return plain
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain)


def printable_lines(text: object) -> str:
    """`text` as in `printable`, with its line breaks kept."""
    return "\n".join(map(printable, str(text).split("\n")))


def quote(value: object, most: int = MOST) -> str:
    """`value` as shown in messages: printable, with the middle cut out if it is longer than `most`."""
    if isinstance(value, int) and value.bit_length() > _LONG:
        return f"a number of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    plain = str(value)
    if len(plain) > most:
        end = most // 4
        plain = f"{plain[: most - end - 3]}...{plain[-end:]}"
    return printable(plain)


def rough(number: float) -> str:
    """A number by its first two digits, such as 0.27 or 140."""
    return f"{float(f'{number:.2g}'):g}"


def sentence(text: object) -> str:
    """A complete message: one printable line of limited length."""
    return quote(" ".join(str(text).split()), MOST_IN_ALL)


class Message(str):
    """A message to the user in the words of Python, one printable line of limited length.

    Attributes:
        marked: the text with its arguments marked (`argument`), for messages that quote it and for other doors.
    """

    marked: str

    def __new__(cls, text: object) -> Self:
        made = super().__new__(cls, sentence(reworded(text, str)))
        made.marked = marked(text)
        return made


class Blank(str):
    """A word in a message for a value that the reader knows, such as NAME."""


def argument(python: str) -> str:
    """An argument in a message, such as `seq_len` or `sheet=NAME`, marked so that each door writes it in its own words;
    the message has to become a `Message`, as the text of errors and warnings does."""
    return f"{_START}{python}{_END}"


def arguments(given: Mapping[str, Any]) -> str:
    """Keywords of a call in Python, such as `freq='D', target=['a']`, marked as in `argument`."""
    return argument(", ".join(f"{name}={_literal(value)}" for name, value in given.items()))


def marked(text: object) -> str:
    """`text` with the marks of its arguments, if it is a `Message` or an error with one."""
    return str(getattr(text, "marked", text))


def reworded(text: object, words: Callable[[str], str]) -> str:
    """`text` with each marked argument as `words` writes it, and without marks."""
    plain = _MARKED.sub(lambda found: words(found[1]), marked(text))
    return plain.replace(_START, "").replace(_END, "")


def _literal(value: Any) -> str:
    match value:
        case Mapping():
            return f"{{{', '.join(f'{key!r}: {_literal(each)}' for key, each in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_literal, value))}]"
    return quote(repr(value)) if isinstance(value, str) and not isinstance(value, Blank) else str(value)


def strict_json(value: Any, **how: Any) -> str:
    """`value` as standard JSON: NaN and infinities become null; `how` are keywords of `json.dumps`."""
    try:  # the records of thousands of series, of which most are finite, take seconds
        return json.dumps(value, allow_nan=False, **how)
    except (TypeError, ValueError):
        return json.dumps(_finite(value), allow_nan=False, **how)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Text table with columns two spaces apart; numbers are right-aligned, and floats have four digits."""
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
    """`cell`, prefixed with an apostrophe if a spreadsheet would read it as a formula."""
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
    """Suffix for a cell with `done` of `asked` results, such as ` (2 of 3 seeds)`; empty if complete."""
    return f" ({done} of {asked} {what})" if done < asked else ""
