"""Phase of a season: where in it a stamp lies, the same for one stamp in whichever table it stands."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset

from femts.data.grid import NANOSECONDS

_MONTHS = {"MS": 1, "ME": 1, "BMS": 1, "BME": 1, "QS": 3, "QE": 3, "BQS": 3, "BQE": 3, "YS": 12, "YE": 12}


def phases(stamps: pd.Index | None, freq: str | None, season: int) -> NDArray[np.int64] | None:
    """Number of steps, 0 to `season` - 1, by which each of `stamps` (n,) lies behind the beginning of a season.

    Seasons are counted from a fixed stamp, on the clock of the stamps' own time zone. None without stamps or a
    season, and for a step that this does not count, such as business hours.
    """
    if stamps is None or freq is None or season < 2:
        return None
    if freq.isdecimal():
        return np.asarray(stamps, dtype=np.int64) // int(freq) % season
    assert isinstance(stamps, pd.DatetimeIndex)
    offset, stamps = to_offset(freq), stamps.tz_localize(None)
    base = offset.rule_code.split("-")[0]
    if isinstance(offset, pd.offsets.Tick):
        step = int(pd.Timedelta(offset.nanos, unit="ns").value)
        return stamps.asi8 * NANOSECONDS[stamps.unit] // step % season
    if base in ("D", "W"):
        return stamps.as_unit("s").asi8 // (86_400 * (7 if base == "W" else 1) * offset.n) % season
    if base == "B":
        return np.busday_count("1970-01-01", stamps.to_numpy().astype("datetime64[D]")) // offset.n % season
    if base in _MONTHS:
        months = np.asarray(stamps.year, dtype=np.int64) * 12 + np.asarray(stamps.month) - 1
        return months // (_MONTHS[base] * offset.n) % season
    return None
