"""Forecasts of the series of a panel, each from its own end on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.config.values import check_steps
from femts.data.dataset import Dataset
from femts.data.grid import future_dates
from femts.data.panel import Panel, read_panel
from femts.data.panel_preprocess import fit_series
from femts.data.preprocess import Preprocess
from femts.data.raw import Raw, raw_rows
from femts.errors import GapWarning, RunFailure, UsageError
from femts.evaluation.evaluator import windows_at_a_time
from femts.forecaster.forecasting import Ends, forecast_model, named_bounds, scaled_ends
from femts.forecaster.inputs import tell_ended
from femts.forecaster.parts import PanelParts
from femts.forecaster.scoring import calibrated
from femts.models.base import Forecasts

Array = NDArray[np.float64]


def forecast_panel(forecaster: PanelParts, history: pd.DataFrame, horizon: int | None, ends: Ends) -> pd.DataFrame:
    """Forecast what follows each series of `history`; see `PanelForecaster.predict`."""
    config = forecaster.config
    steps = check_steps(config.pred_len if horizon is None else horizon)
    if any(ends):
        calibrated(forecaster).at(ends.needed, steps)
    if not isinstance(history, pd.DataFrame):
        raise UsageError(f"The history is a {type(history).__name__}; give a DataFrame with the training columns.")
    panel = read_panel(history, "history", "-", config.schema, "The history", forecaster.freq)
    recent = np.stack([_last(data.values, config.seq_len) for data in panel.series.values()])
    read, preprocess = _scaled(forecaster, panel, recent)
    pieces = _forecasts(forecaster, read, recent, preprocess, steps)
    scaled = Forecasts(
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


def _forecasts(
    forecaster: PanelParts, read: torch.Tensor, recent: Array, preprocess: Sequence[Preprocess], steps: int
) -> list[Forecasts]:
    """Forecasts of look-backs (S, L, C), scaled in `read` and raw in `recent`, some at a time."""
    size = windows_at_a_time(read[0], 256)
    if not forecaster.model.reads_raw:
        return [forecast_model(forecaster, part, steps) for part in read.split(size)]
    raws = [raw_rows(one, rows) for one, rows in zip(preprocess, recent, strict=True)]
    parts = [Raw(*map(torch.stack, zip(*raws[k : k + size], strict=True))) for k in range(0, len(raws), size)]
    return [forecast_model(forecaster, x, steps, raw) for x, raw in zip(read.split(size), parts, strict=True)]


def _last(values: Array, steps: int) -> Array:
    """The last `steps` rows (steps, C), NaN before the first one."""
    return np.pad(values[-steps:], ((max(0, steps - len(values)), 0), (0, 0)), constant_values=np.nan)


def _scaled(forecaster: PanelParts, panel: Panel, recent: Array) -> tuple[torch.Tensor, list[Preprocess]]:
    """Look-backs (S, L, C) as the model reads them, and the preprocessing of each; warns of series that are new."""
    stored = forecaster.preprocess.series
    new = [name for name in panel.series if name not in stored]
    preprocess = [stored.get(name) or fit_series(data) for name, data in panel.series.items()]
    if new:
        text = (
            f"{len(new)} of {len(panel.series)} series are new, the first '{new[0]}'; each is scaled by its own rows."
        )
        warnings.warn(text, GapWarning, stacklevel=5)
    scaled = [
        one.transform(rows, None, f"Series '{name}'")
        for one, rows, name in zip(preprocess, recent, panel.series, strict=True)
    ]
    return torch.from_numpy(np.stack(scaled)).float().to(forecaster.device), preprocess


def _long_table(
    forecaster: PanelParts,
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
            ahead[last] = future_dates(last, forecaster.freq, steps)
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
