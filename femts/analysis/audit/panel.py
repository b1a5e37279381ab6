"""Audit of a run of a panel: the checks of a single table, over the windows of all series."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from femts.analysis.audit.checks import TOLERANCE, Check, distance, sample, scored_forecasts, small, values_scored
from femts.analysis.audit.fits import Rows, closed_form, fit_check, fit_distance
from femts.analysis.backtest.panel import first_rows
from femts.data.panel import Panel
from femts.data.panel_preprocess import PanelPreprocess, fit_scales, panel_training_rows
from femts.data.splits import PARTS, Split
from femts.errors import GapWarning
from femts.forecaster.forecasting import Ends
from femts.forecaster.panel_forecaster import PanelForecaster
from femts.forecaster.panel_forecasting import forecast_series
from femts.forecaster.panel_inputs import steps_ahead
from femts.forecaster.panel_scoring import score_windows
from femts.forecaster.trained import Trained


def check_future(forecaster: PanelForecaster, panel: Panel) -> Check:
    """Neither rows after the look-back nor other series may matter, and the evaluator must see what `predict` sees."""
    windows, steps = score_windows(forecaster, "test", None, panel), forecaster.config.pred_len
    moved = difference = 0.0
    numbers = sample(windows)
    for number in numbers:
        name, cutoff = windows.place(int(number))
        usual = scored_forecasts(forecaster.model, windows, number[None]).points
        other = score_windows(forecaster, "test", None, _changed(panel, forecaster.preprocess, name, cutoff))
        moved = max(moved, distance(scored_forecasts(forecaster.model, other, number[None]).points, usual))
        one, data = forecaster.preprocess.series[name], panel.series[name]
        assert data.dates is not None, "a panel has stamps"
        alone = panel.with_series({name: first_rows(data, cutoff)})
        in_advance = None if data.covariates is None else data.covariates[None, cutoff : cutoff + steps]
        with warnings.catch_warnings(action="ignore", category=GapWarning):
            table = forecast_series(forecaster, alone, steps_ahead(alone, steps), Ends((), ()), in_advance)
        within = torch.from_numpy(one.rescale(one.inverse(usual.cpu().double().numpy())))  # the domain, as predict is
        own = torch.from_numpy(one.rescale(table[list(forecaster.targets)].to_numpy()))[None]
        difference = max(difference, distance(own.where(~own.isnan(), within), within))  # none of a series that ended
    says = (
        f"changing the rows after the look-back, and all other series, moves {len(numbers)} forecasts by "
        f"{small(moved)}, and the evaluator's differ by {small(difference)} from predict's ({TOLERANCE:.0e} may be)"
    )
    return Check("future rows", max(moved, difference) <= TOLERANCE, says)


def _changed(panel: Panel, preprocess: PanelPreprocess, name: str, cutoff: int) -> Panel:
    """The panel with other values everywhere but in the first `cutoff` rows of the series `name`."""
    noise, series = np.random.default_rng(0), {}
    for each, data in panel.series.items():
        one, changed, first = preprocess.series[each], data.values.copy(), cutoff if each == name else 0
        scaled = one.transform(changed[first:]) + noise.normal(1, 1, changed[first:].shape)
        changed[first:] = np.where(np.isnan(changed[first:]), np.nan, one.inverse(scaled))
        series[each] = replace(data, values=changed)
    return replace(panel, series=series)


def check_scaler(forecaster: PanelForecaster, panel: Panel) -> Check:
    """The scale of each series must be that of its training rows, and not also that of later ones."""
    stored = forecaster.preprocess.series
    parts = {"the training rows": "train", "validation rows as well": "val", "test rows as well": "test"}
    distances = {}
    for rows, part in parts.items():
        fits = fit_scales(_learning(panel, part))
        distances[rows] = max(fit_distance(stored[name], one) for name, one in fits.items())
    return fit_check("scaler", distances)


def check_prepared(forecaster: PanelForecaster, panel: Panel) -> Check:
    """Weights in closed form must be those of the training rows, and not also those of later ones."""
    windows = score_windows(forecaster, "train", None, panel)
    panels = {"the training rows": panel, "test rows as well": _learning(panel, "test")}

    def rows(one: Trained[Any, Any]) -> Rows:
        gap = max(one.config.seq_len, panel.train_rows)
        return {name: panel_training_rows(each, windows, gap) for name, each in panels.items()}

    return closed_form(forecaster, rows)


def _learning(panel: Panel, last: str) -> Panel:
    """The panel, each series with all rows up to the end of its part `last` for training."""
    series = {}
    for name, data in panel.series.items():
        stop = getattr(data.split, last)[1]
        train = (data.split.train[0], max(stop, data.split.train[1]))
        series[name] = replace(data, split=Split(train, data.split.val, data.split.test))
    return replace(panel, series=series)


def check_count(forecaster: PanelForecaster, panel: Panel, values_counted: int) -> Check:
    """Every window of the later parts must be there, be scored, and have been scored in the training."""
    steps, counts = forecaster.config.pred_len, {}
    for part in PARTS[1:]:
        many = [
            max(0, stop - start - steps + 1) if start > 0 else 0
            for start, stop in (getattr(data.split, part) for data in panel.series.values())
        ]
        windows = score_windows(forecaster, part, None, panel) if sum(many) else None
        counted = None if windows is None or windows.counted is None else windows.counted.cpu().numpy()
        values = list[int]()  # of each window
        for number, data in enumerate(panel.series.values()):
            start, stop = getattr(data.split, part)
            targets = data.values[:stop, : panel.targets]
            targets = targets if counted is None else targets[:, counted[number]]
            values += values_scored(targets, start, many[number], forecaster.config.seq_len, steps).tolist()
        counts[part] = (0 if windows is None else len(windows), len(values))
    scored = range(0) if windows is None else windows.spread(forecaster.model.most_windows).tolist()
    counts["values scored"] = (values_counted, sum(values[number] for number in scored))
    if "test" in forecaster.metrics:
        counts["in the stored score"] = (int(forecaster.metrics["test"]["windows"]), len(scored))
    says = ", ".join(f"{count} of {whole} {what}" for what, (count, whole) in counts.items())
    return Check("every window", all(count == whole for count, whole in counts.values()), says)
