"""Forecasts of the series of a panel, each from its own end on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.config.arguments import check_names
from femts.config.values import check_steps
from femts.data.dataset import Dataset
from femts.data.grid import future_dates
from femts.data.panel import Panel, read_panel
from femts.data.panel_preprocess import fit_series
from femts.data.preprocess import Preprocess
from femts.errors import GapWarning, RunFailure, UsageError, suggest
from femts.evaluation.evaluator import windows_at_a_time
from femts.forecaster.forecasting import Ends, Scaled, forecast_model, named_bounds, scaled_ends
from femts.forecaster.inputs import tell_ended
from femts.forecaster.scoring import calibrated
from femts.forecaster.trained import Many
from femts.text import shown

Array = NDArray[np.float64]


def forecast_panel(
    forecaster: Many, history: pd.DataFrame, horizon: int | None, ends: Ends, series: Sequence[str] | None
) -> pd.DataFrame:
    """Forecast what follows each series of `history`; see `PanelForecaster.predict`."""
    config = forecaster.config
    steps = check_steps(config.pred_len if horizon is None else horizon)
    if any(ends):
        calibrated(forecaster).at(ends.needed, steps)
    return forecast_series(forecaster, chosen_series(read_history(forecaster, history), series), steps, ends)


def read_history(forecaster: Many, history: pd.DataFrame) -> Panel:
    """The series of a user's `history`, on the step of the training."""
    if not isinstance(history, pd.DataFrame):
        raise UsageError(f"The history is a {type(history).__name__}; give a DataFrame with the training columns.")
    return read_panel(history, "history", "-", forecaster.config.schema, "The history", forecaster.freq)


def chosen_series(panel: Panel, names: Sequence[str] | None) -> Panel:
    """The series `names` of `panel`, in their order; None stands for all."""
    if names is None:
        return panel
    chosen = check_names(names, "series")
    missing = next((name for name in chosen if name not in panel.series), None)
    if missing is not None:
        raise UsageError(f"The history has no series '{shown(missing)}'{suggest(missing, panel.series)}")
    return replace(panel, series={name: panel.series[name] for name in chosen})


def forecast_series(forecaster: Many, panel: Panel, steps: int, ends: Ends) -> pd.DataFrame:
    """Forecast `steps` after the end of each series of `panel`, as `PanelForecaster.predict` returns them."""
    config = forecaster.config
    recent = np.stack([last_rows(data.values, config.seq_len) for data in panel.series.values()])
    read, preprocess = scaled_recent(forecaster, panel, recent)
    pieces = [forecast_model(forecaster, part, steps) for part in read.split(windows_at_a_time(read[0], 256))]
    scaled = Scaled(
        torch.cat([piece.points for piece in pieces]),
        torch.cat([piece.quantiles for piece in pieces if piece.quantiles is not None])
        if forecaster.model.quantiles
        else None,
    )
    targets = len(forecaster.targets)
    points = scaled.points[..., :targets].cpu().double().numpy()
    if not np.isfinite(points).all():
        raise RunFailure("The forecast is not finite; train again with a lower training.lr, or with other data.")
    pairs = {0.0: (points, points)}
    if any(ends):
        pairs |= scaled_ends(calibrated(forecaster), forecaster.model.quantiles, scaled, (steps, targets))
    columns = {"": points, **{f"-{name}": values for name, values in named_bounds(pairs, ends).items()}}
    ended = np.asarray(np.isnan(recent[..., :targets]).all(axis=(1, 2)))
    if ended.any():
        tell_ended([name for name, over in zip(panel.series, ended, strict=True) if over], config.seq_len)
    return _long_table(forecaster, panel, preprocess, columns, ended)


def last_rows(values: Array, steps: int) -> Array:
    """The last `steps` rows (steps, C), NaN before the first one."""
    return np.pad(values[-steps:], ((max(0, steps - len(values)), 0), (0, 0)), constant_values=np.nan)


def scaled_recent(forecaster: Many, panel: Panel, recent: Array) -> tuple[torch.Tensor, list[Preprocess]]:
    """Look-backs (S, L, C) as the model reads them, and the preprocessing of each; warns of series that are new."""
    stored = forecaster.preprocess.series
    new = [name for name in panel.series if name not in stored]
    preprocess = [stored.get(name) or fit_series(data) for name, data in panel.series.items()]
    if new:
        text = (
            f"{len(new)} of {len(panel.series)} series are new, the first '{new[0]}'; each is scaled by its own rows."
        )
        warnings.warn(text, GapWarning, stacklevel=6)
    scaled = [
        one.transform(rows, None, f"Series '{name}'")
        for one, rows, name in zip(preprocess, recent, panel.series, strict=True)
    ]
    return torch.from_numpy(np.stack(scaled)).float().to(forecaster.device), preprocess


def _long_table(
    forecaster: Many,
    panel: Panel,
    preprocess: Sequence[Preprocess],
    columns: Mapping[str, Array],
    ended: NDArray[np.bool_],
) -> pd.DataFrame:
    """A long table of scaled forecasts and bounds (S, steps, T) by the ending of their name, in raw units."""
    form, steps = forecaster.config.schema.form, next(iter(columns.values())).shape[1]
    time, value = form.time or "ds", form.value
    stamps, ahead = [], dict[object, pd.Index]()
    for data in panel.series.values():
        last = _end(data)
        if last not in ahead:
            ahead[last] = future_dates(last, panel.freq, steps)
        stamps.append(ahead[last])
    table = {
        form.series: np.repeat(np.array(list(panel.series), dtype=object), steps),
        time: pd.Index(np.concatenate([each.to_numpy() for each in stamps])) if stamps else [],
    }
    for ending, scaled in columns.items():
        raw = np.stack([one.inverse(values) for one, values in zip(preprocess, scaled, strict=True)])
        raw[ended] = np.nan
        table[f"{value}{ending}"] = raw[..., 0].reshape(-1)
    return pd.DataFrame(table)


def _end(data: Dataset) -> pd.Timestamp:
    """The last stamp of a series."""
    assert data.dates is not None, "a panel has stamps"
    return data.dates[-1]
