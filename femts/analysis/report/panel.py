"""A report on a run of a panel: its scores, its best and worst series, and forecasts of some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from femts.analysis.audit.checks import scored_forecasts
from femts.analysis.report.measure import Baseline, naive_models
from femts.analysis.report.page import by_units, interval_rows, misses, shared
from femts.analysis.report.render import render
from femts.analysis.report.samples import MOST_VALUES, pack, packed_stamps, sample_bounds, shown_levels
from femts.data.frequency import last_dates
from femts.data.panel import Panel
from femts.data.splits import PARTS
from femts.data.windows import PanelWindows
from femts.evaluation.evaluator import Accumulator, evaluate
from femts.evaluation.scores import DetailSums
from femts.evaluation.verdict import judge
from femts.forecaster.panel_forecaster import PanelForecaster
from femts.forecaster.panel_forecasting import last_rows
from femts.forecaster.panel_scoring import detail_sums, details_frame, naive_sums, score_windows
from femts.forecaster.scoring import coverage_sums

MOST_SERIES = 24  # that are drawn, and that a table names at either end
SECTIONS = {
    "Forecasts": "forecasts-of-series",
    "Scores": "scores-of-series",
    "By step": "by-step",
    "By series": "by-series",
    "Intervals": "intervals-of-series",
    "Data": "data-of-series",
    "Model and training": "model-and-training",
    "Record": "record",
}


@dataclass(frozen=True, eq=False)
class PanelMeasured:
    """Measurements of the test part of all series.

    Attributes:
        test: `mse`, `mae` and `windows`, as `PanelForecaster.evaluate` gives them.
        sums: errors of the model and of the naive ones, by name.
        series: a row a series as `PanelForecaster.scores` gives them, those with the highest MASE first.
        ratios: means of `mase` and `rmsse` over the series that have them.
        overall: the row of the model over all series and steps, with what the intervals cover.
        levels: percent; what is covered, rising.
        season: steps of a season of the data.
        beside: errors of the seasonal naive forecast on the same windows, skill and MASE.
    """

    test: dict[str, float | int]
    sums: dict[str, DetailSums]
    series: pd.DataFrame
    ratios: dict[str, float]
    overall: pd.DataFrame
    levels: tuple[float, ...]
    season: int
    beside: dict[str, Any]


def panel_page(forecaster: PanelForecaster, panel: Panel) -> str:
    """The whole page on a panel."""
    windows = score_windows(forecaster, "test", None, panel)
    measured, model = _measure(forecaster, panel, windows), forecaster.config.model
    frames = {name: details_frame(forecaster, sums, ()) for name, sums in measured.sums.items()}
    contenders = {name: by_units(frame)[0] for name, frame in (frames | {model: measured.overall}).items()}
    by_step = {name: details_frame(forecaster, sums, ("step",))["mse"] for name, sums in measured.sums.items()}
    ranked = measured.series if len(measured.series) <= 2 * MOST_SERIES else measured.series.dropna(subset="mase")
    series = ranked.to_dict("records")
    rows = [len(data.values) for data in panel.series.values()]
    return render(
        "report.html",
        **shared(forecaster, contenders, by_step, _samples(forecaster, panel, windows, measured.series)),
        sections=SECTIONS,
        of_what=f"each of {len(panel.series)} series",
        data=panel,
        measured=measured,
        verdict=judge(measured.test, measured.beside),
        misses=misses(contenders[model], measured.levels),
        errors={},
        intervals=interval_rows(contenders[model], measured.levels),
        series=series if len(series) <= 2 * MOST_SERIES else [*series[:MOST_SERIES], *series[-MOST_SERIES:]],
        all_series=len(measured.series),
        ratios=measured.ratios,
        better=float((measured.series["skill"] > 0).mean()),
        rows={"all": sum(rows), "least": min(rows), "most": max(rows)},
        missing=sum(int((~data.observed).sum()) for data in panel.series.values() if data.observed is not None),
        parts=[_part(forecaster, panel, name) for name in PARTS],
    )


def _measure(forecaster: PanelForecaster, panel: Panel, windows: PanelWindows) -> PanelMeasured:
    """Scores of the forecaster and of the naive ones over every test window, in one pass."""
    intervals, config = forecaster.intervals, forecaster.config
    levels = intervals.levels if intervals is not None and intervals.steps >= config.pred_len else ()
    covered = coverage_sums(forecaster, levels, windows) if levels else None
    own, beside = detail_sums(forecaster, windows, panel), naive_sums(forecaster, windows, panel)
    naive = naive_models(config, len(forecaster.targets), panel.season)
    others = {name: Baseline(model, detail_sums(forecaster, windows, panel)) for name, model in naive.items()}
    also: list[Accumulator] = [own, beside, *others.values(), *([] if covered is None else [covered])]
    test = evaluate(forecaster.model, windows, config.training.eval_batch_size, also=also)
    sums = {config.model: own, **{name: other.sums for name, other in others.items()}}
    ordered = beside.series.frame(panel).sort_values("mase", ascending=False, kind="stable", ignore_index=True)
    overall = details_frame(forecaster, own, (), covered, levels)
    ratios = beside.series.ratios(panel)
    return PanelMeasured(test, sums, ordered, ratios, overall, levels, panel.season, beside.beside(test["mse"]))


def _samples(forecaster: PanelForecaster, panel: Panel, windows: PanelWindows, ranked: pd.DataFrame) -> dict[str, Any]:
    """The last test window of some series for the page's script, the worst and the best among them;
    as `sample_windows`, each with its `name`."""
    config, levels = forecaster.config, shown_levels(forecaster)
    past, steps = min(config.seq_len, max(config.pred_len, 2 * panel.season)), config.pred_len
    most = max(1, min(MOST_SERIES, MOST_VALUES // (past + (2 + 2 * len(levels)) * steps), len(ranked)))
    names = [ranked["series"][k] for k in np.unique(np.linspace(0, len(ranked) - 1, most).round().astype(int))]
    places = [windows.names.index(name) for name in names]
    last = windows.ends.cpu()[places] - 1
    scored = scored_forecasts(forecaster.model, windows, last)
    bounds, forecasts = sample_bounds(forecaster, windows, last, scored), scored.points.cpu().double().numpy()
    drawn = []
    for place, name in enumerate(names):
        data, one = panel.series[name], forecaster.preprocess.series[name]
        assert data.dates is not None, "a panel has stamps"
        end = data.split.test[1]  # where the last window ends
        values = np.concatenate([last_rows(data.values[:end], past + steps), one.inverse(forecasts[place])])
        ends = {level: np.concatenate([low[place], high[place]]) for level, (low, high) in bounds.items()}
        drawn.append(
            {
                "name": name,
                "stamps": packed_stamps(last_dates(data.dates[:end], panel.freq, past + steps)),
                "series": pack(values.T),
                "bounds": {level: pack(one.inverse(each).T) for level, each in ends.items()},
            }
        )
    dates = next(iter(panel.series.values())).dates
    time = "date" if isinstance(dates, pd.DatetimeIndex) else "number"
    facts = {"channels": 1, "past": past, "horizon": steps, "time": time, "levels": list(bounds), "why": None}
    return {**facts, "windows": drawn}


def _part(forecaster: PanelForecaster, panel: Panel, part: str) -> dict[str, Any]:
    windows = score_windows(forecaster, part, None, panel)
    rows = sum(getattr(data.split, part)[1] - getattr(data.split, part)[0] for data in panel.series.values())
    return {"name": part, "rows": rows, "windows": len(windows), "series": int((windows.spans[:, 3] > 0).sum())}
