"""Forecasts of a panel from many past moments, counted from the end of each series."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.analysis.backtest.cutoffs import USUAL, Cutoffs, check_cutoffs, flattered, together
from femts.data.dataset import Dataset
from femts.data.frequency import steps_between
from femts.data.panel import Panel
from femts.data.splits import ratio_split
from femts.errors import UsageError
from femts.forecaster.forecasting import Ends
from femts.forecaster.panel_forecaster import PanelForecaster, PanelSource
from femts.forecaster.panel_forecasting import forecast_series
from femts.forecaster.panel_inputs import ends_of, steps_ahead
from femts.forecaster.panel_scoring import read_like
from femts.text import shown

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Moment:
    """Cutoff of a backtest: its number, from 1, and the rows of each series that precede its forecast."""

    window: int
    rows: dict[str, int]


def backtest_panel(
    forecaster: PanelForecaster, source: PanelSource, cutoffs: Cutoffs, refit: bool, say: Callable[[str], None]
) -> pd.DataFrame:
    """Backtest of a panel, one batch of forecasts a cutoff; see `femts.analysis.backtest.run.backtest`."""
    steps = forecaster.config.pred_len if cutoffs.horizon is None else cutoffs.horizon
    check_cutoffs(cutoffs, steps)
    panel = source if isinstance(source, Panel) else read_like(forecaster, source)
    if panel.columns != forecaster.columns or panel.freq != forecaster.freq:
        raise UsageError(f"Panel '{shown(panel.name)}' has other columns, or another step, than the training data.")
    if panel.targets > 1:
        raise UsageError(f"A backtest of a panel takes one target, not {panel.targets}; train on one.")
    windows = USUAL if cutoffs.windows is None else cutoffs.windows
    moments = [_moment(panel, window, (windows - window) * cutoffs.step + steps) for window in range(1, windows + 1)]
    _tell_short(panel, moments, steps, say)
    moments = [each for each in moments if each.rows]
    if not refit:
        _tell_learned(forecaster, panel, moments, say)
        return together([_forecast(forecaster, panel, each, steps) for each in moments], say)
    started, forecasts = time.monotonic(), list[pd.DataFrame]()
    for each in moments:
        forecasts.append(_forecast(_fit_before(forecaster, panel, each, say), panel, each, steps))
    say(f"{len(moments)} trainings and their forecasts took {time.monotonic() - started:.1f} s")
    return together(forecasts, say)


def scaled_backtest(frame: pd.DataFrame, forecaster: PanelForecaster, columns: tuple[str, ...]) -> pd.DataFrame:
    """The `columns` of a backtest in the scaled units of each series; NaN for one that was not in the training."""
    scaled = frame.astype(dict.fromkeys(columns, float))
    stored = forecaster.preprocess.series
    values = scaled[list(columns)].to_numpy(copy=True)
    for name, rows in frame.groupby("series", sort=False).indices.items():
        values[rows] = stored[name].rescale(values[rows, :, None])[..., 0] if name in stored else np.nan
    scaled[list(columns)] = values
    return scaled


def _moment(panel: Panel, window: int, after: int) -> _Moment:
    """Cutoff number `window`, `after` rows before the end, without series that have less than a season before it."""
    rows = {name: len(data.values) - after for name, data in panel.series.items()}
    return _Moment(window, {name: row for name, row in rows.items() if row >= panel.season and row > 0})


def _tell_short(panel: Panel, moments: list[_Moment], steps: int, say: Callable[[str], None]) -> None:
    short = [name for name in panel.series if any(name not in moment.rows for moment in moments)]
    if not any(moment.rows for moment in moments):
        raise UsageError(
            f"No series of '{shown(panel.name)}' has a season of {panel.season} rows before a forecast of {steps} "
            f"steps (the longest has {panel.rows} rows); ask for fewer windows, or bring more rows."
        )
    if short:
        say(
            f"{len(short)} of {len(panel.series)} series, the first '{shown(short[0])}', are left out at cutoffs that "
            f"have less than a season of {panel.season} rows before them"
        )


def _tell_learned(
    forecaster: PanelForecaster, panel: Panel, moments: list[_Moment], say: Callable[[str], None]
) -> None:
    first_rows_of = dict[str, int]()
    for each in moments:
        first_rows_of = {**each.rows, **first_rows_of}  # the first moment of a series has its first row
    learned = sum(_is_learned(forecaster, panel.series[name], name, row) for name, row in first_rows_of.items())
    if learned:
        say(flattered(f"{learned} series", final=forecaster.scored is not None))


def _is_learned(forecaster: PanelForecaster, data: Dataset, name: str, row: int) -> bool:
    """Tell if `row` of the series `name` comes no later than the last that was learned from or chosen on."""
    until = forecaster.series_until.get(name)
    if until is None or data.dates is None or forecaster.freq is None:
        return False
    steps = steps_between(until, data.dates[row], forecaster.freq)
    return steps is not None and steps <= 0


def _fit_before(
    forecaster: PanelForecaster, panel: Panel, moment: _Moment, say: Callable[[str], None]
) -> PanelForecaster:
    """A forecaster trained on all rows before the cutoff, of all series that have one there."""
    from femts.training.refit import refit  # with sklearn, only where something is trained

    before, started = _rows_before(panel, moment), time.monotonic()
    name = f"{panel.name}, before cutoff {moment.window}"
    made = refit(forecaster, replace(before, name=name, source=None, sha256=before.fingerprint()))
    say(
        f"trained on the {sum(moment.rows.values())} rows of {len(moment.rows)} series before cutoff {moment.window} "
        f"in {time.monotonic() - started:.1f} s"
    )
    return made


def _rows_before(panel: Panel, moment: _Moment) -> Panel:
    return panel.with_series({name: first_rows(panel.series[name], rows) for name, rows in moment.rows.items()})


def _forecast(forecaster: PanelForecaster, panel: Panel, moment: _Moment, steps: int) -> pd.DataFrame:
    """All forecasts of one cutoff, beside the last season, repeated, and what happened."""
    form, targets = forecaster.config.schema.form, panel.targets
    before = _rows_before(panel, moment)
    wide = forecast_series(forecaster, before, steps_ahead(before, steps), Ends((), ()), _known(panel, moment, steps))
    naive, actual = [], []
    for name, rows in moment.rows.items():
        values = panel.series[name].values[:, :targets]
        naive.append(_last_season(values[:rows], panel.season, steps))
        actual.append(values[rows : rows + steps])
    return pd.DataFrame(
        {
            "window": moment.window,
            "series": wide[form.series],
            "cutoff": pd.Index(ends_of(before)).repeat(steps),
            "date": wide[form.time or "ds"],
            "forecast": wide[forecaster.targets[0]],
            "seasonal_naive": np.concatenate(naive)[:, 0],
            "actual": np.concatenate(actual)[:, 0],
        }
    )


def _known(panel: Panel, moment: _Moment, steps: int) -> Array | None:
    """Columns known in advance at the steps that are forecast (S, steps, K), as if they had been right."""
    columns = ((panel.series[name].covariates, rows) for name, rows in moment.rows.items())
    cut = [values[rows : rows + steps] for values, rows in columns if values is not None]
    return np.stack(cut) if cut else None


def _last_season(values: Array, season: int, steps: int) -> Array:
    """The last season of `values` (rows, T), repeated for `steps`; gaps hold the value before them."""
    filled = pd.DataFrame(values).ffill().bfill().to_numpy()
    return np.asarray(filled[-season:][np.arange(steps) % season])


def first_rows(data: Dataset, rows: int) -> Dataset:
    """The first `rows` of a series, at least one, as a data set of their own."""
    assert data.dates is not None, "a panel has stamps"
    covariates = None if data.covariates is None else data.covariates[:rows]
    past = {"values": data.values[:rows], "dates": data.dates[:rows], "covariates": covariates}
    return replace(data, **past, split=ratio_split(rows))
