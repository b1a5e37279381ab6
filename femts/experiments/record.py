"""The record of a finished cell, with everything needed to trace and reproduce its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from femts.analysis.audit.checks import scored_forecasts
from femts.data.dataset import Dataset
from femts.data.protocols import HORIZONS
from femts.environment import commit, run_environment
from femts.evaluation.overall import Scores, compared_with_naive
from femts.evaluation.window_errors import WindowErrors
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.scoring import score, score_horizons, score_windows

# number of evenly spaced validation windows for recursive forecasts; the test split is scored completely
MOST_VALIDATED = 2048
SAMPLES = 2
RECORDED = ("mse", "mae", "windows", "wape", "bias")


def make_record(forecaster: Forecaster, data: Dataset) -> dict[str, Any]:
    """Record of a trained forecaster and its training data, without `format` and `cell`."""
    metrics, (rolled, window_errors) = forecaster.metrics, _rolled(forecaster, data)
    return {
        **{part: _errors(metrics[part]) for part in ("test", "val")},
        "naive": compared_with_naive(metrics["test"]),
        "rolled": rolled,
        "window_errors": window_errors,
        "series_errors": _errors_by_series(forecaster, data) if data.schema.panel else {},
        **{name: metrics[name] for name in ("kept_step", "steps", "stopped", "seconds")},
        "config": forecaster.config.to_dict(),
        "data": dict(forecaster.data),
        "parameters": metrics["parameters"],
        "history": [dict(row) for row in forecaster.validations],
        "samples": _samples(forecaster, data),
        "kernels": metrics["kernels"],
        "place": run_environment(metrics["device"], metrics["precision"]),
        "commit": commit(),
    }


def _errors(scores: Mapping[str, Any]) -> dict[str, Any]:
    """The errors of the model in `scores`, without the comparison with naive forecasts, which a record has once."""
    compared = Scores.__required_keys__ | Scores.__optional_keys__
    return {name: value for name, value in scores.items() if name in RECORDED or name not in compared}


def _rolled(forecaster: Forecaster, data: Dataset) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scores at longer horizons, and thinned test errors by window, both by horizon.

    The scores, `val` and `test`, with the seasonal naive forecast for the latter, are those of models designed for
    recursive forecasts, at the horizons of the published tables. The model's own horizon is included if models of
    shorter ones may compete with it, validated on the same windows. Panels have neither, and models that score a subset
    of windows have no errors.
    """
    if data.schema.panel or forecaster.model.most_windows is not None:
        return {}, {}
    own, look_back = forecaster.config.pred_len, forecaster.config.seq_len
    rivals = [p for p in HORIZONS if p > own or p == own > HORIZONS[0]] if forecaster.model.supports.recursive else []
    split = data.split
    fitting = [
        p for p in rivals if not split.short(p) and all(split.fits(part, look_back, p) for part in ("val", "test"))
    ]
    errors = {own: _own_errors(forecaster, data)} | {p: WindowErrors() for p in fitting}
    test = score_horizons(forecaster, "test", fitting, data, also=errors) if fitting else {}
    val = score_horizons(forecaster, "val", fitting, data, MOST_VALIDATED) if fitting else {}
    rolled = {
        str(p): {"val": _errors(val[p]), "test": _errors(test[p]), "naive": compared_with_naive(test[p])}
        for p in fitting
    }
    return rolled, {str(p): each.thinned() for p, each in errors.items()}


def _errors_by_series(forecaster: Forecaster, data: Dataset) -> dict[str, Any]:
    """Thinned test errors by series, by horizon; empty for a model that scores a subset of windows."""
    if forecaster.model.most_windows is not None:
        return {}
    windows = score_windows(forecaster, "test", None, data)
    number = windows.series_of(windows.subsample(None)).cpu()
    return {str(windows.pred_len): _own_errors(forecaster, data).thinned(number)}


def _own_errors(forecaster: Forecaster, data: Dataset) -> WindowErrors:
    """Errors of all test windows at the own horizon, scored again if the run is an earlier one."""
    if forecaster.test_errors is not None:
        return forecaster.test_errors
    errors = WindowErrors()
    score(forecaster, score_windows(forecaster, "test", None, data), [errors])
    return errors


def _samples(forecaster: Forecaster, data: Dataset) -> list[dict[str, Any]]:
    """The first and last test window of the last target, which is the target of the ETT sets.

    Each has the first forecast row and, in raw units with five digits, the recent past (at most as long as the
    horizon), the true values (None if unknown) and the forecast; for a panel also the name of its series.
    """
    look_back, steps, channel = forecaster.config.seq_len, forecaster.config.pred_len, data.n_targets - 1
    windows = score_windows(forecaster, "test", None, data)
    numbers = torch.linspace(0, len(windows) - 1, SAMPLES).long()
    scaled = scored_forecasts(forecaster.model, windows, numbers).points.cpu().double().numpy()
    units, samples = forecaster.preprocess.at(windows.series_of(numbers).cpu().numpy()), []
    for number, forecast in zip(numbers.tolist(), units.inverse(scaled), strict=True):
        place, row = windows.place(number)
        values = data.values[slice(*data.spans[place])]
        said = {"series": data.series[place]} if data.schema.panel else dict[str, Any]()
        values = values[:, channel]
        series = {
            "past": values[max(row - look_back, row - steps, 0) : row],
            "truth": values[row : row + steps],
            "forecast": forecast[:, channel],
        }
        shortened = {
            name: [None if np.isnan(value) else float(f"{value:.5g}") for value in x] for name, x in series.items()
        }
        samples.append({"row": row, "channel": data.columns[channel], **said, **shortened})
    return samples
