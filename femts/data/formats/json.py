"""Tables in JSON, as programs and web services write them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from femts.data.columns import NOTES, holds_dates
from femts.data.formats.registry import Format, ReadOptions, register_format
from femts.data.unpack import CELL_ROOM, check_columns, check_room, open_text, place
from femts.errors import UsageError
from femts.text import quote

ROOM, MOST_EMPTY = 2**24, 100  # most cells of a table, always and per value
_NAME = "__name__"  # label with the name of a metric
_NAMES = ("target", "name", "label", "id", "key")  # of series, in order


def read_json(path: Path) -> pd.DataFrame:
    """Read a table from JSON, compressed or not, without checking its cells; notes are in `attrs`.

    It is one of:

    - an array of objects, or one object per line; nested objects give columns such as `cpu.user`;
    - any other `orient` of pandas: an object of columns, each an array or an object by row, an object of rows, `split`
      and `table`, or an array of arrays, whose columns are numbered;
    - an object with one of these in it, such as the response of Open-Meteo;
    - the response of Prometheus to a range query, or the export of VictoriaMetrics: a wide table for one series, and a
      long one for several, which are named by the labels that differ;
    - the history of Home Assistant, in the same way by entity;
    - the response of InfluxDB to a query;
    - pairs of a time and a value, or of a value and a time, by the name of each series, as of Graphite, Dynatrace and
      CoinGecko: a wide table if all have the same times, and otherwise a long one.

    Raises:
        UsageError: The file cannot be read, is none of these, or would not fit in memory.
    """
    content = _parsed(path)
    try:
        found = _table(content, path)
    except UsageError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):  # other kinds of content
        found = None
    if found is not None and found.shape[1]:
        return found
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
        try:  # strings may hold other ends of lines, such as U+2028
            return [json.loads(line) for line in text.split("\n") if line.strip()]
        except (ValueError, RecursionError):
            raise UsageError(f"{place(path)} is not JSON ({quote(error)}); write it again, or as CSV.") from error


def _table(content: Any, path: Path) -> pd.DataFrame | None:
    """The table that `content` is or holds; None if there is none."""
    if isinstance(content, Mapping) and {"metric", "values", "timestamps"} <= content.keys():
        return _table([content], path)
    if isinstance(content, Mapping):
        return _of_object(content, path)
    if not isinstance(content, list) or not content:
        return None
    if all(isinstance(row, dict) for row in content):
        if (pairs := _named_pairs(content)) is not None:
            return _of_pairs(pairs, path)
        if (tables := _of_results(content)) is not None:
            return _of_influx(tables, path)
        if all({"metric", "values", "timestamps"} <= row.keys() for row in content):
            series = [(row["metric"], list(zip(row["timestamps"], row["values"], strict=True))) for row in content]
            return _of_series(series, _named_by_labels([labels for labels, _ in series]), path)
        return _of_records(content, path)
    if all(isinstance(row, list) for row in content):
        if all(isinstance(each, dict) and "state" in each for row in content for each in row):
            return _of_states(content, path)
        if len(set(map(len, content))) == 1 and not any(isinstance(cell, dict | list) for cell in content[0]):
            return _of_values(content, path)
    inner = [each for each in content if isinstance(each, list) and each]  # a page with its metadata before it
    if len(inner) == 1 and all(isinstance(each, dict) for each in content if each is not inner[0]):
        return _table(inner[0], path)
    return None


def _of_object(content: Mapping[str, Any], path: Path) -> pd.DataFrame | None:
    columns, data = list(content.values()), content.get("data")
    if isinstance(data, Mapping) and data.get("resultType") == "matrix" and data.get("result"):
        series = [(each["metric"], each["values"]) for each in data["result"]]
        return _of_series(series, _named_by_labels([labels for labels, _ in series]), path)
    if {"columns", "data"} <= content.keys() and isinstance(data, list) and isinstance(content["columns"], list):
        _check_room(len(data), len(content["columns"]), len(data) * len(content["columns"]), path)
        names = [".".join(map(str, name)) if isinstance(name, list) else str(name) for name in content["columns"]]
        frame = pd.DataFrame(data, columns=names)
        return _with_labels(frame, content.get("index", range(len(frame))))
    if isinstance(data, list) and isinstance(content.get("schema"), Mapping) and data:
        frame = _of_records(data, path)
        key = content["schema"].get("primaryKey", [])
        if key == ["index"] and "index" in frame:
            return _with_labels(frame.drop(columns="index"), frame["index"].tolist())
        return frame
    if (pairs := _named_pairs(content)) is not None:
        return _of_pairs(pairs, path)
    if columns and all(isinstance(each, Mapping) for each in columns):
        found = _of_mappings(content, path)
        if found is not None:
            return found
    arrays = columns and all(isinstance(each, list) and len(each) == len(columns[0]) for each in columns)
    if arrays and not any(isinstance(cell, dict) for each in columns for cell in each[:1]):
        return pd.DataFrame(content)
    return _within(content, path)


def _of_records(rows: Sequence[Mapping[str, Any]], path: Path) -> pd.DataFrame:
    """A table of objects, whose nested objects give columns such as `cpu.user`."""
    alone = [name for name in rows[0] if all(map(_is_alone, (row.get(name) for row in rows)))]
    rows = [{**row, **{name: row[name][0] for name in alone}} for row in rows] if alone else rows
    nested = any(isinstance(cell, dict) for row in rows for cell in row.values())
    flat = [dict(_leaves(row)) for row in rows] if nested else rows
    names = dict.fromkeys(name for row in flat for name in row)
    _check_room(len(flat), len(names), sum(map(len, flat)), path)
    return pd.DataFrame(flat, columns=list(names))


def _is_alone(cell: Any) -> bool:
    """Return whether a cell is a list of one object."""
    return isinstance(cell, list) and len(cell) == 1 and isinstance(cell[0], dict)


def _leaves(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, cell in row.items():
        if isinstance(cell, dict) and cell:
            yield from _leaves(cell, f"{before}{name}.")
        else:
            yield f"{before}{name}", cell


def _of_mappings(content: Mapping[str, Mapping[str, Any]], path: Path) -> pd.DataFrame | None:
    """A table of columns by name, or of rows by label, each an object; None if their cells are arrays or objects."""
    if any(isinstance(cell, dict | list) for each in content.values() for cell in each.values()):
        return None
    inner = dict.fromkeys(name for each in content.values() for name in each)
    _check_room(len(content), len(inner), sum(map(len, content.values())), path)
    if _are_labels(list(content)) and not _are_labels(list(inner)):
        return _with_labels(pd.DataFrame(list(content.values()), columns=list(inner)), list(content))
    frame = pd.DataFrame({name: [each.get(row) for row in inner] for name, each in content.items()})
    return _with_labels(frame, list(inner))


def _are_labels(names: Sequence[str]) -> bool:
    """Return whether names are those of rows: numbers or dates."""
    return all(map(str.isdecimal, names)) or holds_dates(pd.Series(names, name="date"))


def _with_labels(frame: pd.DataFrame, labels: Sequence[Any]) -> pd.DataFrame:
    """The frame with the labels of its rows as a first column `date` if they are time stamps: dates, or numbers while no
    column holds dates, unless they are row numbers of which some have been left out."""
    labels, names = list(labels), list(map(str, frame.columns))
    if labels == list(range(len(frame))) or labels == list(map(str, range(len(frame)))) or len(labels) != len(frame):
        return frame
    if any(isinstance(label, list) for label in labels) or "date" in names:
        return frame
    if all(str(label).isdecimal() for label in labels):
        steps = np.diff(np.array(labels, dtype=np.float64))
        even = len(steps) > 0 and bool((steps == steps[0]).all())
        if any(map(_holds_stamps, (frame[name] for name in frame))) or not (
            even or holds_dates(pd.Series(list(map(int, labels)), name="date"))
        ):
            return frame
    frame.insert(0, "date", labels)
    return frame


def _holds_stamps(column: pd.Series) -> bool:
    return not pd.api.types.is_numeric_dtype(column) and holds_dates(column)


def _of_values(content: Sequence[Sequence[Any]], path: Path) -> pd.DataFrame:
    """A table of arrays without names; a first one of words may hold the names."""
    named = (
        len(content) > 1
        and all(isinstance(cell, str) for cell in content[0])
        and len(set(content[0])) == len(content[0])
    )
    named = named and not all(isinstance(cell, str) for cell in content[1])
    rows = content[1:] if named else content
    _check_room(len(rows), len(content[0]), len(rows) * len(content[0]), path)
    frame = pd.DataFrame(list(rows), columns=list(content[0]) if named else list(map(str, range(len(content[0])))))
    if not named and len(frame.columns) > 1 and _holds_stamps(frame["0"].rename("date")):
        return frame.rename(columns={"0": "date"})
    return frame


def _within(content: Mapping[str, Any], path: Path) -> pd.DataFrame | None:
    """The largest table among the values of an object, and a note that names it."""
    sizes = {
        name: len(each)
        for name, each in content.items()
        if isinstance(each, list) and each and all(isinstance(row, dict) for row in each)
    }
    for name, each in content.items():
        if isinstance(each, Mapping) and each:
            lists = list(each.values())
            if all(isinstance(cells, list) and len(cells) == len(lists[0]) > 1 for cells in lists):
                sizes[name] = len(lists[0])
    if not sizes:
        inner = ((name, _of_object(each, path)) for name, each in content.items() if isinstance(each, Mapping) and each)
        name, frame = next(((name, frame) for name, frame in inner if frame is not None), ("", None))
        if frame is None or NOTES in frame.attrs:
            return frame
        return _with_note(frame, f"the table '{quote(name)}' in it is read")
    name = max(sizes, key=sizes.__getitem__)
    frame = _table(content[name], path)
    if frame is None:
        return None
    if len(frame) == 1 and isinstance(content[name], list):
        deeper = _within(content[name][0], path)
        frame = frame if deeper is None else deeper
        if NOTES in frame.attrs:
            return frame
    notes = [f"the table '{quote(name)}' in it is read" + f", the largest of {len(sizes)}" * (len(sizes) > 1)]
    units = content.get(f"{name}_units")
    if isinstance(units, Mapping):
        shown = [f"{quote(key)} in {quote(unit)}" for key, unit in units.items() if key in frame and key != "time"]
        notes += [f"its units are {', '.join(shown[:6])}"] if shown else []
    return _with_note(frame, *notes)


def _with_note(frame: pd.DataFrame, *notes: str) -> pd.DataFrame:
    frame.attrs[NOTES] = (*notes, *frame.attrs.get(NOTES, ()))
    return frame


def _named_pairs(content: Any) -> dict[str, list[tuple[Any, Any]]] | None:
    """Pairs of a time and a value by the name of their series: those in an object, or in each of several objects, which
    have a name besides; None if there are none."""
    if isinstance(content, Mapping):
        found = {str(name): pairs for name, each in content.items() if (pairs := _pairs(each)) is not None}
        return found or None
    if _named_pairs(content[0]) is None:
        return None
    each = [_named_pairs(row) for row in content]
    names = [next((str(row[name]) for name in _NAMES if isinstance(row.get(name), str)), None) for row in content]
    if (
        not all(found is not None and len(found) == 1 for found in each)
        or None in names
        or len(set(names)) < len(names)
    ):
        return None
    return {str(name): pairs for name, found in zip(names, each, strict=True) if found for pairs in found.values()}


def _pairs(content: Any) -> list[tuple[Any, Any]] | None:
    """Times with their values, from a list of pairs of both in either order; None for anything else."""
    if not isinstance(content, list) or not content:
        return None
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in content):
        return None
    for time in (0, 1):
        values = [pair[1 - time] for pair in content]
        if all(cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool)) for cell in values):
            stamps = [pair[time] for pair in content]
            if all(isinstance(cell, str | int | float) for cell in stamps) and holds_dates(
                pd.Series(stamps, name="date")
            ):
                return list(zip(stamps, values, strict=True))
    return None


def _of_pairs(series: Mapping[str, list[tuple[Any, Any]]], path: Path) -> pd.DataFrame:
    """A table of named pairs: wide if all series have the same times."""
    times = [[time for time, _ in pairs] for pairs in series.values()]
    if all(each == times[0] for each in times):
        _check_room(len(times[0]), len(series) + 1, len(times[0]) * (len(series) + 1), path)
        return pd.DataFrame({"date": times[0]} | {name: [cell for _, cell in each] for name, each in series.items()})
    return _of_series([({}, pairs) for pairs in series.values()], list(series), path)


def _of_results(content: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]] | None:
    """The series in the results of InfluxDB, or these series themselves; None for anything else."""
    if not ({"columns", "values"} <= content[0].keys() or isinstance(content[0].get("series"), list)):
        return None
    tables = [each for row in content for each in row.get("series", [row])]
    return tables if tables and all({"columns", "values"} <= each.keys() for each in tables) else None


def _of_influx(tables: Sequence[Mapping[str, Any]], path: Path) -> pd.DataFrame:
    """A table of the series in a response of InfluxDB, whose tags are columns."""
    tags = [each.get("tags") or {} for each in tables]
    rows, columns = sum(len(each["values"]) for each in tables), len(tables[0]["columns"]) + len(tags[0])
    _check_room(rows, columns, rows * columns, path)
    frames = [pd.DataFrame(each["values"], columns=each["columns"]) for each in tables]
    return pd.concat([frame.assign(**tag) for frame, tag in zip(frames, tags, strict=True)], ignore_index=True)


def _named_by_labels(labels: Sequence[Mapping[str, str]]) -> list[str]:
    """Names of series by the labels that differ between them."""
    known = list(dict.fromkeys(name for each in labels for name in each))
    differing = [name for name in known if len({each.get(name) for each in labels}) > 1]
    plain = labels[0].get(_NAME, "value") if labels else "value"
    if len(labels) == 1:
        return [plain]
    return [", ".join(f"{name}={each[name]}" for name in differing if name in each) or plain for each in labels]


def _of_series(
    series: Sequence[tuple[Mapping[str, str], Sequence[Sequence[Any]]]], names: Sequence[str], path: Path
) -> pd.DataFrame:
    """A table of series of pairs of a time and a value: wide for one, long for several. Text that is not a finite number
    counts as missing."""
    lengths = [len(pairs) for _, pairs in series]
    check_room(3 * CELL_ROOM * sum(lengths), path)
    stamps = [pair[0] for _, pairs in series for pair in pairs]
    cells = [pair[1] for _, pairs in series for pair in pairs]
    values = np.array([_number(cell) for cell in cells])
    infinite = int(np.isinf(values).sum())
    values[np.isinf(values)] = np.nan
    if len(series) == 1:
        frame = pd.DataFrame({"date": stamps, names[0]: values})
    else:
        codes, unique = pd.factorize(pd.Series(list(names)))
        series_of_rows = pd.Categorical.from_codes(np.repeat(codes, lengths), unique)
        frame = pd.DataFrame({"unique_id": series_of_rows, "ds": stamps, "y": values})
    if infinite:
        what = "value is infinite and counts" if infinite == 1 else "values are infinite and count"
        frame.attrs[NOTES] = (f"{infinite} {what} as missing",)
    return frame


def _number(cell: Any) -> float:
    if cell is None:
        return math.nan
    try:
        return float(cell)
    except ValueError:
        if cell.strip().lower() in _NO_STATES:
            return math.nan
        raise


_NO_STATES = ("unavailable", "unknown", "none", "null", "")  # of sensors in Home Assistant
_STATES = {"on": 1.0, "off": 0.0}


def _of_states(content: Sequence[Sequence[Mapping[str, Any]]], path: Path) -> pd.DataFrame:
    """A table of the states of entities; those that are words, other than `on` and `off`, are left out with a note."""
    series, names, left = list[tuple[Mapping[str, str], list[tuple[Any, Any]]]](), list[str](), list[str]()
    for states in filter(None, content):
        name = str(states[0].get("entity_id", f"entity {len(names) + 1}"))
        pairs = [(_changed(each), _STATES.get(str(each["state"]).lower(), each["state"])) for each in states]
        try:
            _ = [_number(cell) for _, cell in pairs]
        except ValueError:
            left.append(name)
            continue
        series.append(({}, pairs))
        names.append(name)
    frame = _of_series(series, names, path)
    if left:
        shown = ", ".join(map(quote, left[:6]))
        frame.attrs[NOTES] = (*frame.attrs.get(NOTES, ()), f"{shown}: left out, since the states are not numbers")
    return frame


def _changed(state: Mapping[str, Any]) -> Any:
    return next(state[name] for name in ("last_changed", "last_updated", "lc", "lu") if name in state)


def _check_room(rows: int, columns: int, filled: int, path: Path) -> None:
    """Refuse a table with very many columns, or with few values for its size."""
    check_columns(columns, path)
    if rows * columns > max(ROOM, MOST_EMPTY * filled):
        raise UsageError(
            f"{place(path)} has {rows} rows and {columns} columns, but only {filled} values; give all rows the same "
            "names."
        )
    check_room(CELL_ROOM * rows * columns, path)


def _read(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    yield read_json(path)


def _begins(head: bytes) -> bool:
    return head.lstrip().startswith((b"[", b"{"))


register_format("json", Format((".json", ".jsonl", ".ndjson"), _read, _begins))
