"""Forecasts of the series of a panel, each from its own end on."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.config.arguments import check_names
from femts.config.values import check_steps
from femts.data.columns import is_table, to_frame
from femts.data.dataset import Dataset
from femts.data.panel import Panel, read_panel
from femts.data.panel_effects import joined
from femts.data.panel_preprocess import panel_offsets, static_inputs
from femts.data.preprocess import Preprocess
from femts.data.raw import Raw, raw_rows
from femts.data.static import with_static
from femts.errors import GapWarning, RunFailure, UsageError, suggest
from femts.evaluation.evaluator import windows_at_a_time
from femts.forecaster.bounds import Ahead, Ends, raw_bounds
from femts.forecaster.forecasting import forecast_model
from femts.forecaster.inputs import tell_age, tell_ended, tell_units
from femts.forecaster.panel_inputs import ends_of, known_ahead_of, steps_ahead, tell_stopped, tell_young
from femts.forecaster.scoring import calibrated
from femts.forecaster.trained import Many
from femts.models.base import Forecasts
from femts.text import shown

Array = NDArray[np.float64]


def read_history(forecaster: Many, history: pd.DataFrame) -> Panel:
    """The series of a user's `history`, on the step of the training."""
    if not is_table(history):
        raise UsageError(f"The history is a {type(history).__name__}; give a DataFrame with the training columns.")
    schema = forecaster.config.schema
    history = to_frame(history, "The history", schema.form)
    return read_panel(history, "history", "-", schema, "The history", forecaster.freq)


def chosen_series(panel: Panel, names: Sequence[str] | None) -> Panel:
    """The series `names` of `panel`, in their order; None stands for all."""
    if names is None:
        return panel
    chosen = check_names(names, "series")
    missing = next((name for name in chosen if name not in panel.series), None)
    if missing is not None:
        raise UsageError(f"The history has no series '{shown(missing)}'{suggest(missing, panel.series)}")
    return panel.with_series({name: panel.series[name] for name in chosen})


def forecast_panel(
    forecaster: Many, panel: Panel, horizon: int | None, ends: Ends, future: pd.DataFrame | None
) -> pd.DataFrame:
    """Forecast what follows each series of `panel`; see `PanelForecaster.predict`."""
    steps = check_steps(forecaster.config.pred_len if horizon is None else horizon)
    if any(ends):
        calibrated(forecaster).at(ends.needed, steps)
    tell_age(max(ends_of(panel)), forecaster.until, forecaster.freq, forecaster.config)
    tell_stopped(panel, forecaster.config.pred_len)
    scales, length = forecaster.preprocess.series, forecaster.config.seq_len
    known = [(name, scales[name], data.values[-length:]) for name, data in panel.series.items() if name in scales]
    tell_units(known, forecaster.targets)
    if any(ends):
        tell_young(panel, forecaster.preprocess.series, forecaster.config.seq_len)
    ahead = steps_ahead(panel, steps)
    return forecast_series(forecaster, panel, ahead, ends, known_ahead_of(panel, future, ahead, forecaster.freq))


def forecast_series(
    forecaster: Many, panel: Panel, ahead: Sequence[pd.Index], ends: Ends, in_advance: Array | None
) -> pd.DataFrame:
    """Forecast the stamps `ahead` of each series of `panel`, as `PanelForecaster.predict` returns them.

    Args:
        forecaster: a trained one.
        panel: the series up to where their forecasts begin.
        ahead: the same number of steps after the end of each.
        ends: of intervals.
        in_advance: what is known of these steps (S, steps, K); None where nothing is.
    """
    config, steps = forecaster.config, len(ahead[0])
    ready = ready_series(forecaster, panel, in_advance, ahead)
    size = windows_at_a_time(ready.read[0], 256)
    pieces = [forecast_model(forecaster, read, steps, raw) for read, raw in ready.pieces(size)]
    scaled = Forecasts(
        torch.cat([piece.points for piece in pieces]),
        torch.cat([piece.quantiles for piece in pieces if piece.quantiles is not None])
        if forecaster.model.quantiles
        else None,
    )
    targets = len(forecaster.targets)
    if not bool(scaled.points[..., :targets].isfinite().all()):
        raise RunFailure("The forecast is not finite; train again with a lower training.lr, or with other data.")
    made = Ahead(list(panel.series), ready.preprocess, ready.recent, ahead, scaled, ready.offsets, targets)
    points = made.raw()
    bounds = raw_bounds(forecaster, made, points, ends) if any(ends) else {}
    columns = {"": points, **{f"-{name}": values for name, values in bounds.items()}}
    ended = np.asarray(np.isnan(ready.recent[..., :targets]).all(axis=(1, 2)))
    if ended.any():
        tell_ended([name for name, over in zip(panel.series, ended, strict=True) if over], config.seq_len)
    return _long_table(forecaster, panel, ready, columns, ahead)


class Ready(NamedTuple):
    """Series that are ready to be forecast.

    Attributes:
        recent: last rows (S, L, C), raw units, NaN where missing or before a series began.
        read: look-backs (S, L, C + E) as the model reads them.
        preprocess: of each series.
        offsets: of the steps to come (S, steps, C); None where nothing is known in advance.
        raw: the look-backs before scaling, for a model that reads them so; else None.
    """

    recent: Array
    read: torch.Tensor
    preprocess: Sequence[Preprocess]
    offsets: Array | None
    raw: Raw | None

    def pieces(self, size: int) -> list[tuple[torch.Tensor, Raw | None]]:
        """Look-backs of `size` series at a time, scaled and before scaling."""
        read = self.read.split(size)
        if self.raw is None:
            return [(each, None) for each in read]
        raw = zip(*(part.split(size) for part in self.raw), strict=True)
        return [(each, Raw(*parts)) for each, parts in zip(read, raw, strict=True)]


def ready_series(forecaster: Many, panel: Panel, in_advance: Array | None, ahead: Sequence[pd.Index]) -> Ready:
    """The series of `panel`, with what is known of the steps `ahead` of each; warns of series that are new."""
    stored, length = forecaster.preprocess, forecaster.config.seq_len
    new = [name for name in panel.series if name not in stored.series]
    preprocess = [stored.of(name, data) for name, data in panel.series.items()]
    if new:
        text = (
            f"{len(new)} of {len(panel.series)} series are new, the first '{new[0]}'; each is scaled by its own rows."
        )
        warnings.warn(text, GapWarning, stacklevel=7)
    recent = np.stack([last_rows(data.values, length) for data in panel.series.values()])
    rows = {name: _rows_read(data, length) for name, data in panel.series.items()}
    before, after = _offsets(rows.values(), preprocess, in_advance, ahead, length)
    scaled = [
        one.transform(last_rows(data.values, max(length, len(data.values))), taken_off, f"Series '{name}'")[-length:]
        for one, (name, data), taken_off in zip(preprocess, rows.items(), before, strict=True)
    ]
    read = torch.from_numpy(np.stack(scaled)).float()
    static = static_inputs(stored, panel)
    read = read if static is None else with_static(read, static)
    raw = None
    if forecaster.model.reads_raw:
        before = [None if taken_off is None else taken_off[-length:] for taken_off in before]
        each = [raw_rows(*series) for series in zip(preprocess, recent, before, strict=True)]
        raw = Raw(*map(torch.stack, zip(*each, strict=True)))
    return Ready(recent, read.to(forecaster.device), preprocess, after, raw)


def _rows_read(data: Dataset, length: int) -> Dataset:
    """The last `length` rows of a series, after those with the last value of a channel without one in the first."""
    assert data.dates is not None, "a panel has stamps"
    first = max(0, len(data.values) - length)
    gone = (np.flatnonzero(~np.isnan(channel)) for channel in data.values[:first, np.isnan(data.values[first])].T)
    rows = [*sorted({int(valid[-1]) for valid in gone if len(valid)}), *range(first, len(data.values))]
    covariates = None if data.covariates is None else data.covariates[rows]
    return replace(data, values=data.values[rows], covariates=covariates, dates=data.dates[rows])


def _offsets(
    series: Collection[Dataset],
    preprocess: Sequence[Preprocess],
    in_advance: Array | None,
    ahead: Sequence[pd.Index],
    length: int,
) -> tuple[Sequence[Array | None], Array | None]:
    """Offsets of all rows of each series, at least `length`, and of the steps ahead of all; none without effects.

    Rows before a series began are missing, so what is taken off them does not matter.
    """
    if in_advance is None:
        return [None] * len(series), None
    rows = list[tuple[Preprocess, Dataset]]()
    for number, (one, data) in enumerate(zip(preprocess, series, strict=True)):
        assert data.covariates is not None and data.dates is not None
        covariates = np.concatenate([data.covariates, in_advance[number]])
        values = np.concatenate([data.values, np.full((len(ahead[number]), data.values.shape[1]), np.nan)])
        when = data.dates.append(ahead[number])
        rows.append((one, replace(data, values=values, covariates=covariates, dates=when)))
    offsets = panel_offsets(rows)
    assert offsets is not None
    steps, before, after, stop = len(ahead[0]), list[Array | None](), list[Array](), 0
    for _, data in rows:
        stop += len(data.values)
        last = offsets[stop - len(data.values) : stop - steps]
        before.append(np.pad(last, ((max(0, length - len(last)), 0), (0, 0))))
        after.append(offsets[stop - steps : stop])
    return before, np.stack(after)


def last_rows(values: Array, steps: int) -> Array:
    """The last `steps` rows (steps, C), NaN before the first one."""
    if len(values) >= steps:
        return values[-steps:]
    return np.pad(values, ((steps - len(values), 0), (0, 0)), constant_values=np.nan)


def _long_table(
    forecaster: Many, panel: Panel, ready: Ready, columns: Mapping[str, Array], ahead: Sequence[pd.Index]
) -> pd.DataFrame:
    """A long table of forecasts and bounds (S, steps, T) by the ending of their name."""
    form, steps, targets = forecaster.config.schema.form, len(ahead[0]), forecaster.targets
    table = {
        form.series: np.repeat(np.array(list(panel.series), dtype=object), steps),
        form.time or "ds": joined(ahead),
    }
    ended = np.asarray(np.isnan(ready.recent[..., : len(targets)]).all(axis=1))[:, None]
    raw = {ending: np.where(ended, np.nan, values) for ending, values in columns.items()}
    for k, target in enumerate(targets):
        table |= {f"{target}{ending}": values[..., k].reshape(-1) for ending, values in raw.items()}
    return pd.DataFrame(table)
