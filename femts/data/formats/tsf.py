"""Tables in the `.tsf` format of the Monash forecasting archive (Godahewa et al., NeurIPS Datasets 2021).

A header declares the attributes of the series and their step; each line after `@data` has the attributes of one series
and then its values, separated by colons.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.tseries.frequencies import to_offset

from femts.data.formats.registry import Format, ReadOptions, register_format
from femts.data.unpack import open_text, place
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
        no start or no frequency), `y` (NaN where the file has `?`), and the further attributes.

    Raises:
        UsageError: The file has no `@data`, an unknown frequency, or a line that does not match its header.
    """
    attributes, parts = list[tuple[str, str]](), list[pd.DataFrame]()
    step = None
    with open_text(path) as file:
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
        for number, line in lines:
            if line.strip() and not line.startswith("#"):
                parts.append(_series(line.strip(), attributes, step, len(parts), f"{place(path)}, line {number},"))
    if not parts:
        raise UsageError(f"{place(path)} has no series after '@data'.")
    return pd.concat(parts, ignore_index=True)


def _step(name: str, path: Path) -> str:
    count, _, unit = name.lower().partition("_")
    if count.isdigit():  # such as 10_minutes and 4_seconds
        short = {"minutes": "min", "seconds": "s", "hours": "h"}.get(unit)
        if short is not None:
            return f"{count}{short}"
    if name.lower() not in STEPS:
        raise UsageError(f"{place(path)} has the unknown frequency '{quote(name)}'{suggest(name, STEPS)}")
    return STEPS[name.lower()]


def _series(line: str, attributes: list[tuple[str, str]], step: str | None, number: int, where: str) -> pd.DataFrame:
    """The rows of one series, whose line begins with the values of its attributes."""
    cells = line.split(":")
    if len(cells) != len(attributes) + 1:
        raise UsageError(f"{where} has {len(cells) - 1} attributes, but the header declares {len(attributes)}.")
    try:
        values = np.array([np.nan if cell.strip() == "?" else float(cell) for cell in cells[-1].split(",")])
    except ValueError as error:
        raise UsageError(f"{where} has a value that is not a number ({quote(error)}); write ? for a gap.") from error
    given = {name: cell for (name, _), cell in zip(attributes, cells, strict=False)}
    numeric = {name for name, kind in attributes if kind in ("numeric", "real", "integer")}
    start, name = given.pop(START, None), given.pop("series_name", f"T{number + 1}")
    table = pd.DataFrame({"unique_id": name, "ds": np.arange(len(values)), "y": values})
    if start is not None and step is not None:
        table["ds"] = _stamps(start, step, len(values), where)
    for attribute, cell in given.items():
        table[f"{attribute}_" if attribute in OWN else attribute] = float(cell) if attribute in numeric else cell
    return table


def _stamps(start: str, step: str, rows: int, where: str) -> pd.DatetimeIndex:
    try:
        first = pd.to_datetime(start, format="%Y-%m-%d %H-%M-%S" if " " in start else "%Y-%m-%d")
        if step == "W":  # weeks may begin on any day
            return pd.date_range(first, periods=rows, freq="7D")
        # Months, quarters and years are dated by their first day.
        return pd.date_range(to_offset(step).rollback(first), periods=rows, freq=step)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{where} has the start '{quote(start)}'; write it as 1979-01-31 00-00-00.") from error


def _read(path: Path, options: ReadOptions) -> Iterator[pd.DataFrame]:
    yield read_tsf(path)


register_format("tsf", Format((".tsf",), _read))
