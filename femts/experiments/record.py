"""The record of a finished cell: everything that says where a number comes from and how to get it again."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from femts.analysis.audit.checks import scored_forecasts
from femts.data.dataset import Dataset
from femts.data.protocols import HORIZONS
from femts.environment import commit, run_environment
from femts.evaluation.window_errors import WindowErrors
from femts.experiments.cell import Cell
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.scoring import score, score_windows, score_with_naive, scored_part

MOST_VALIDATED = 2048  # windows, evenly spaced, of a roll-out on the validation part; the test part is scored whole
SAMPLES = 2


def make_record(cell: Cell, forecaster: Forecaster, data: Dataset) -> dict[str, Any]:
    """The record of `cell` from its trained forecaster and the data that it was trained on."""
    metrics, (rolled, window_errors) = forecaster.metrics, _rolled(forecaster, data)
    return {
        "format": cell.record_format,
        "cell": cell.to_dict(),
        **{name: metrics[name] for name in ("test", "val", "naive")},
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


def _rolled(forecaster: Forecaster, data: Dataset) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scores at longer horizons, and errors of the test part by window, thinned, both by horizon.

    The scores, `val` and `test` with the seasonal naive forecast beside the latter, are those of a
    model that is made to be rolled out, at the horizons of the published tables. Its own is among
    them where models of shorter ones may compete with it, validated on the same windows as they are.
    A panel has neither, and a model that scores some windows alone no errors.
    """
    if data.schema.panel or forecaster.model.most_windows is not None:
        return {}, {}
    own, look_back = forecaster.config.pred_len, forecaster.config.seq_len
    rivals = [p for p in HORIZONS if p > own or p == own > HORIZONS[0]] if forecaster.model.supports.recursive else []
    fitting = [p for p in rivals if all(data.split.fits(part, look_back, p) for part in ("val", "test"))]
    errors = {p: WindowErrors() for p in dict.fromkeys((own, *fitting))}
    test, naive = score_with_naive(forecaster, "test", tuple(errors), data, also=errors)
    val = score_with_naive(forecaster, "val", fitting, data, MOST_VALIDATED)[0] if fitting else {}
    rolled = {str(p): {"val": val[p], "test": test[p], "naive": naive[p]} for p in fitting}
    return rolled, {str(p): each.thinned() for p, each in errors.items()}


def _errors_by_series(forecaster: Forecaster, data: Dataset) -> dict[str, Any]:
    """Errors of the test part by series, thinned, by horizon; none of a model that scores some windows alone."""
    if forecaster.model.most_windows is not None:
        return {}
    of, windows, _ = scored_part(forecaster, "test", None, data)
    errors = WindowErrors()
    score(of, windows, [errors])
    return {str(windows.pred_len): errors.thinned(windows.series_of(windows.subsample(None)).cpu())}


def _samples(forecaster: Forecaster, data: Dataset) -> list[dict[str, Any]]:
    """The first and last test window in the last target, which is the one of the ETT sets.

    Each has the row that the forecast begins at, and in raw units, with five digits, its recent
    past (at most as long as the horizon), what happened (None where that is not known) and what was
    forecast; of a panel the name of its series, too.
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
