"""Tables in the `.tsf` format of the Monash forecasting archive (Godahewa et al., NeurIPS Datasets 2021).

A header declares the attributes of the series and their step; each line after `@data` has the attributes of one series
and then its values, separated by colons.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.data.columns import NOTES
from femts.data.formats.registry import Format, ReadOptions, register_format
from femts.data.stamps import YEARS
from femts.data.unpack import CELL_ROOM, check_room, open_text, place
from femts.environment import available_memory
from femts.errors import UsageError, suggest
from femts.text import quote

STEPS = {
    "yearly": "YS",
    "quarterly": "QS",
    "monthly": "MS",
    "weekly": "W",
    "daily": "D",
    "hourly": "h",
    "half_hourly": "30min",
    "minutely": "min",
    "secondly": "s",
}
START = "start_timestamp"
OWN = ("unique_id", "ds", "y")


def read_tsf(path: Path) -> pd.DataFrame:
    """Read the series of a `.tsf` file as a long table.

    Args:
        path: the file, compressed or not.

    Returns:
        `unique_id` (the `series_name`, or the number of the series), `ds` (time stamps, or row numbers if the file has
        no start or no frequency, or if its time stamps would go beyond the year 2261), `y` (NaN where the file has `?`),
        and the further attributes.

    Raises:
        UsageError: The file has no `@data`, an unknown frequency, or a line that does not match its header.
    """
    attributes, step = list[tuple[str, str]](), None
    places, cells, values = list[str](), list[list[str]](), list[NDArray[np.float64]]()
    with open_text(path) as file, warnings.catch_warnings():
        lines = iter(enumerate(file, 1))
        for _, line in lines:
            words = line.split("#")[0].split()
            key = words[0].lower() if words else ""
            if key == "@data":
                break
            if key == "@attribute" and len(words) == 3:
                attributes.append((words[1], words[2].lower()))
            elif key == "@frequency" and len(words) == 2:
                step = _step(words[1], path)
        else:
            raise UsageError(f"{place(path)} has no line '@data', which precedes the series of a .tsf file.")
        read, room = 0, available_memory()
        warnings.simplefilter("ignore", DeprecationWarning)  # older NumPy returns fewer values for text
        for number, line in lines:
            if line.strip() and not line.startswith("#"):
                *given, numbers = line.strip().split(":")
                places.append(f"{place(path)}, line {number},")
                if len(given) != len(attributes):
                    raise UsageError(
                        f"{places[-1]} has {len(given)} attributes, but the header declares {len(attributes)}."
                    )
                cells.append(given)
                values.append(_values(numbers, places[-1]))
                read += len(values[-1])
                check_room(CELL_ROOM * read * (3 + len(attributes)), path, room)
    if not values:
        raise UsageError(f"{place(path)} has no series after '@data'.")
    return _long(attributes, step, places, cells, values)


def _step(name: str, path: Path) -> str:
    count, _, unit = name.lower().partition("_")
    if count.isdigit():  # such as 10_minutes and 4_seconds
        short = {"minutes": "min", "seconds": "s", "hours": "h"}.get(unit)
        if short is not None:
            return f"{count}{short}"
    if name.lower() not in STEPS:
        raise UsageError(f"{place(path)} has the unknown frequency '{quote(name)}'{suggest(name, STEPS)}")
    return STEPS[name.lower()]


def _values(text: str, where: str) -> NDArray[np.float64]:
    """The values of a series, separated by commas, NaN for `?`."""
    with suppress(ValueError):
        values = np.fromstring(text.replace("?", "nan"), sep=",")
        if len(values) == text.count(",") + 1:
            return values
    try:
        return np.array(text.replace("?", "nan").split(","), dtype=np.float64)
    except ValueError as error:
        raise UsageError(f"{where} has a value that is not a number ({quote(error)}); write ? for a gap.") from error


def _long(
    attributes: list[tuple[str, str]],
    step: str | None,
    places: list[str],
    cells: list[list[str]],
    values: list[NDArray[np.float64]],
) -> pd.DataFrame:
    """All series as a long table."""
    lengths = np.array(list(map(len, values)))
    given = {name: [row[k] for row in cells] for k, (name, _) in enumerate(attributes)}
    numeric = {name for name, kind in attributes if kind in ("numeric", "real", "integer")}
    starts, names = given.pop(START, None), given.pop("series_name", [f"T{n + 1}" for n in range(len(values))])
    steps = np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)
    table = pd.DataFrame({"unique_id": _repeated(names, lengths), "ds": steps, "y": np.concatenate(values)})
    if starts is not None and step is not None:
        stamps = _stamps(_starts(starts, places), step, steps, lengths)
        if stamps is None:
            table.attrs[NOTES] = (
                "its time stamps would go beyond the year 2261, so the rows of each series are numbered",
            )
        else:
            table["ds"] = stamps
    for name, column in given.items():
        repeated = np.repeat(np.array(column, np.float64), lengths) if name in numeric else _repeated(column, lengths)
        table[f"{name}_" if name in OWN else name] = repeated
    return table


def _repeated(names: list[str], lengths: NDArray[np.int64]) -> pd.Categorical:
    """The text of each series in each of its rows."""
    codes, unique = pd.factorize(pd.Series(names, dtype=object))
    return pd.Categorical.from_codes(np.repeat(codes, lengths), unique)


def _starts(texts: list[str], places: list[str]) -> NDArray[np.datetime64]:
    """First time stamp of each series."""
    text = pd.Series(texts, dtype=object)
    try:
        days = pd.to_datetime(text.str.partition(" ")[0], format="%Y-%m-%d", errors="coerce")
        clocks = text.str.partition(" ")[2].replace("", "00-00-00")
        times = pd.to_datetime("2000-01-01 " + clocks, format="%Y-%m-%d %H-%M-%S", errors="coerce")
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{places[0]} has a start that is no date; write it as 1979-01-31 00-00-00.") from error
    wrong = (days.isna() | times.isna()).to_numpy()
    if wrong.any():
        n = int(np.argmax(wrong))
        raise UsageError(f"{places[n]} has the start '{quote(texts[n])}'; write it as 1979-01-31 00-00-00.")
    return (days + (times - pd.Timestamp("2000-01-01"))).to_numpy().astype("M8[s]")


def _stamps(
    starts: NDArray[np.datetime64], step: str, steps: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.datetime64] | None:
    """Time stamp of each row, from the start of its series and its number in it; None if some are beyond the years that
    pandas supports. Months, quarters and years are dated by their first day."""
    months = {"MS": 1, "QS": 3, "YS": 12}.get(step)
    if months is not None:
        first = starts.astype("M8[M]").astype(np.int64)
        first -= first % months
        stamps = (np.repeat(first, lengths) + months * steps).astype("M8[M]").astype("M8[s]")
    else:  # weeks may begin on any day
        each = pd.Timedelta(7 * to_offset("24h") if step == "W" else to_offset({"D": "24h"}.get(step, step)))
        stamps = np.repeat(starts, lengths) + (each.value // 10**9) * steps.astype("m8[s]")
    return stamps if stamps.max() < np.datetime64(f"{YEARS[1] + 1}-01-01") else None


def _read(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    yield read_tsf(path)


register_format("tsf", Format((".tsf",), _read))
