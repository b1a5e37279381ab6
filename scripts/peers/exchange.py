"""What the runner and a tool tell each other: a folder of files that needs only pandas, since each has its own libraries.

The runner writes `task.json` and `rows.csv`. A tool reads them as `Windows`, and `answer` writes `forecasts.csv` and
`about.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

QUANTILES = [round(0.1 * k, 1) for k in range(1, 10)]
LEVELS = [20, 40, 60, 80]  # of the intervals whose ends are these quantiles, in percent
COLUMNS = [f"q-{100 * q:g}" for q in QUANTILES]
KEYS = ["unique_id", "ds"]
DATES = {"h": ["hour", "dayofweek"], "min": ["hour", "minute", "dayofweek"], "D": ["dayofweek", "month"]}
DATES |= {"B": ["dayofweek", "month"], "W": ["week", "month"], "MS": ["month"], "QS": ["quarter"]}


@dataclass(frozen=True)
class Windows:
    """The windows of a task.

    Attributes:
        rows: `unique_id` (a series or column), `ds`, `y` (empty in the last window), the known covariates, and `window`,
            the number of the window in which the row is forecast, 0 before the first one.
        horizon: number of steps in a window.
        windows: number of windows.
        season: number of steps in a season.
        freq: pandas frequency.
        covariates: columns that are known in advance.
        time_limit: longest training in seconds, for tools that ask for one.
    """

    rows: pd.DataFrame
    horizon: int
    windows: int
    season: int
    freq: str
    covariates: list[str]
    time_limit: float

    @classmethod
    def read(cls, folder: Path) -> Windows:
        """The windows that the runner wrote."""
        rows = pd.read_csv(folder / "rows.csv", parse_dates=["ds"], float_precision="round_trip")
        return cls(rows, **json.loads((folder / "task.json").read_text()))

    def history(self, window: int, filled: bool = False) -> pd.DataFrame:
        """The rows before a window, gaps `filled` by linear interpolation for tools that refuse them."""
        rows = self.rows[self.rows["window"] < window].drop(columns="window").reset_index(drop=True)
        if filled:
            rows["y"] = rows.groupby("unique_id")["y"].transform(lambda y: y.interpolate().bfill())
        return rows

    @property
    def dates(self) -> list[str]:
        """Attributes of stamps that are features of tools that ask for a choice, none for yearly steps."""
        return next((dates for step, dates in DATES.items() if self.freq.split("-")[0].endswith(step)), [])

    def future(self, window: int) -> pd.DataFrame:
        """Series, stamps and known covariates of a window."""
        rows = self.rows[self.rows["window"] == window]
        return rows[[*KEYS, *self.covariates]].reset_index(drop=True)


def from_levels(frame: pd.DataFrame, model: str) -> pd.DataFrame:
    """Quantiles of `model` from a table of Nixtla's libraries with the intervals `LEVELS`."""
    low, high = ([f"{model}-{side}-{level}" for level in LEVELS] for side in ("lo", "hi"))
    return named(frame, [*low[::-1], model, *high], model)


def named(frame: pd.DataFrame, columns: list[Any], model: str) -> pd.DataFrame:
    """The columns of `frame` that hold the quantiles from 0.1 to 0.9, as forecasts of `model`."""
    made = frame[[*KEYS, *columns]].set_axis([*KEYS, *COLUMNS], axis=1)
    return made.assign(model=model)


def answer(
    forecasts: Callable[[Windows, dict[str, Any]], Iterator[pd.DataFrame]], packages: list[str], **settings: Any
) -> None:
    """Forecast the task whose folder is the argument of this process.

    Args:
        forecasts: makes a table for each window and model: `unique_id`, `ds`, `model` and `COLUMNS`. It may add to the
            settings, its second argument.
        packages: packages whose versions are recorded.
        settings: settings that are recorded and given to `forecasts`.
    """
    folder = Path(sys.argv[1])
    pd.concat(forecasts(Windows.read(folder), settings)).to_csv(folder / "forecasts.csv", index=False)
    about = {"versions": {name: version(name) for name in packages}, "settings": settings}
    (folder / "about.json").write_text(json.dumps(about))
