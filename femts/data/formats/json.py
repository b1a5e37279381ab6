"""Tables in JSON, as programs and web services write them, among these Prometheus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from femts.data.formats.registry import Format, ReadOptions, register_format
from femts.data.unpack import CELL_ROOM, check_room, open_text, place
from femts.errors import UsageError
from femts.text import quote

SUFFIXES = (".json", ".jsonl", ".ndjson")
_NAME = "__name__"  # label with the name of a metric


def read_json(path: Path) -> pd.DataFrame:
    """Read a table from JSON, compressed or not, without checking its cells.

    It is one of:

    - an array of objects, or one object per line; nested objects give columns such as `cpu.user`;
    - an object of columns, each an array, or an object by row or time stamp, as pandas writes it;
    - the response of Prometheus to a range query: a wide table for one series, and a long one for several, which are
      named by the labels that differ.

    Raises:
        UsageError: The file cannot be read, or is none of these.
    """
    content = _parsed(path)
    if isinstance(content, list) and content and all(isinstance(row, dict) for row in content):
        return pd.json_normalize(content)
    named = content if isinstance(content, dict) else {}
    columns, data = list(named.values()), named.get("data")
    if isinstance(data, dict) and data.get("resultType") == "matrix" and data.get("result"):
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            return _of_prometheus(data["result"])
    if columns and all(isinstance(each, dict) for each in columns):
        rows = list(dict.fromkeys(row for each in columns for row in each))
        frame = pd.DataFrame({name: [each.get(row) for row in rows] for name, each in named.items()})
        if rows != list(map(str, range(len(rows)))):  # an index of time stamps
            frame.insert(0, "date", rows, allow_duplicates=True)
        return frame
    if columns and all(isinstance(each, list) and len(each) == len(columns[0]) for each in columns):
        return pd.DataFrame(named)
    raise UsageError(
        f"{place(path)} is not a table; give an array of objects, one object per line, or an object of columns of the "
        "same length."
    )


def _parsed(path: Path) -> Any:
    """The content of a file of JSON, or a list of that of its lines."""
    try:
        with open_text(path, rows=False) as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise UsageError(f"{place(path)} is not UTF-8 text (byte {error.start}); save it in UTF-8.") from error
    check_room(CELL_ROOM * len(text), path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise UsageError(f"{place(path)} is not JSON ({quote(error)}); write it again, or as CSV.") from error


def _of_prometheus(result: list[dict[str, Any]]) -> pd.DataFrame:
    """The series of a range vector, whose values are pairs of Unix seconds and text."""
    labels = [each["metric"] for each in result]
    known = list(dict.fromkeys(name for each in labels for name in each))
    differing = [name for name in known if len({each.get(name) for each in labels}) > 1]
    series = [", ".join(f"{name}={each[name]}" for name in differing if name in each) for each in labels]
    rows = [(name, *pair) for name, each in zip(series, result, strict=True) for pair in each["values"]]
    long = pd.DataFrame(rows, columns=["unique_id", "ds", "y"])
    if len(result) > 1:
        return long
    return long.rename(columns={"ds": "date", "y": labels[0].get(_NAME, "value")}).drop(columns="unique_id")


def _read(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    yield read_json(path)


def _write(frame: pd.DataFrame) -> bytes:
    stamps = frame.select_dtypes(["datetime", "datetimetz"])
    text = frame.assign(**{name: stamps[name].map(pd.Timestamp.isoformat, na_action="ignore") for name in stamps})
    cells = text.astype(object).where(frame.notna(), None)
    # pandas' own writer rounds to 15 digits
    return json.dumps(cells.to_dict("records"), ensure_ascii=False, default=str).encode()


def _begins(head: bytes) -> bool:
    return head.lstrip().startswith((b"[", b"{"))


register_format("json", Format(SUFFIXES, _read, _write, _begins))
