"""Scores of a forecaster of a panel: its data, its windows, and the sums over each series."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from femts.data.columns import is_table
from femts.data.panel import Panel, load_panel, panel_for_horizon
from femts.data.preprocess import Preprocess
from femts.data.scaler import Scaler
from femts.data.source import all_rows
from femts.data.windows import PanelWindows
from femts.errors import UsageError
from femts.evaluation.beside import PanelNaiveSums
from femts.evaluation.coverage import CoverageSums
from femts.evaluation.intervals import check_levels
from femts.evaluation.scores import DetailSums, check_groups, scores_frame
from femts.evaluation.series_scores import SeriesSums
from femts.forecaster import scoring
from femts.forecaster.scoring import coverage_sums, interval_bounds, score, scorer
from femts.forecaster.trained import Many
from femts.text import shown

PANEL_GROUPS = ("step", "series")


def own_panel(forecaster: Many, dataset: object) -> Panel:
    """Panel to score `forecaster` on: `dataset`, anything that `load_panel` takes; None loads that
    of the training again.

    Raises:
        UsageError: it cannot be read, has other columns, or a series that was not in the training.
    """
    if dataset is None:
        return forecaster.training_data()
    panel = dataset if isinstance(dataset, Panel) else read_like(forecaster, dataset)
    panel = panel_for_horizon(panel, forecaster.config.pred_len)
    if panel.columns != forecaster.columns:
        raise UsageError(f"Panel '{shown(panel.name)}' has other columns than the training data; give one with those.")
    if panel.schema.roles.static != forecaster.config.schema.roles.static:
        static = ", ".join(forecaster.config.schema.roles.static) or "none"
        raise UsageError(f"Panel '{shown(panel.name)}' has other static columns than the training data ({static}).")
    new = next((name for name in panel.series if name not in forecaster.preprocess.series), None)
    if new is not None:
        raise UsageError(f"Series '{shown(new)}' was not in the training, so it has no training rows; leave it out.")
    return panel


def load_panel_again(forecaster: Many) -> Panel:
    """The panel of the training by its path; see `Trained.training_data`."""
    source = forecaster.config.source
    if source is None or not Path(source).is_file():
        raise UsageError(
            f"The training data '{shown(source or forecaster.config.dataset)}' are not there; pass them as dataset= "
            "(--dataset)."
        )
    panel = panel_for_horizon(read_like(forecaster, source), forecaster.config.pred_len)
    panel = all_rows(panel) if forecaster.config.final else panel
    if panel.record != forecaster.data:
        raise UsageError(
            f"The data {source} are not what this model was trained on; pass other data as dataset=, or at the command "
            "line to `femts backtest RUN DATA`."
        )
    return panel


def score_windows(forecaster: Many, part: str, pred_len: int | None, panel: Panel) -> PanelWindows:
    """As `femts.forecaster.scoring.score_windows`, of every series."""
    return cast(PanelWindows, scoring.score_windows(forecaster, part, pred_len, panel))


def score_beside(
    forecaster: Many, part: str, horizons: Sequence[int], dataset: object = None
) -> tuple[dict[int, dict[str, float | int]], dict[int, dict[str, Any]]]:
    """Scores by horizon, each as `PanelForecaster.evaluate` has it, and what the seasonal naive
    forecast makes of the same windows (`PanelNaiveSums.beside`)."""
    forecaster = scorer(forecaster)
    panel, scores, naive = own_panel(forecaster, dataset), dict[int, Any](), dict[int, Any]()
    for steps in horizons:  # windows of several horizons do not begin at the same rows
        windows = score_windows(forecaster, part, steps, panel)
        sums = naive_sums(forecaster, windows, panel)
        scores[steps] = score(forecaster, windows, [sums])
        naive[steps] = sums.beside(scores[steps]["mse"])
    return scores, naive


def naive_sums(forecaster: Many, windows: PanelWindows, panel: Panel) -> PanelNaiveSums:
    """Accumulator of the errors of the seasonal naive forecast, and of those of the forecaster by series."""
    series = SeriesSums(windows, forecaster.preprocess, panel.season, forecaster.model.most_windows)
    return PanelNaiveSums(panel, series, forecaster.config.seq_len)


def score_details(
    forecaster: Many, windows: PanelWindows, by: str | Sequence[str] | None, level: Sequence[float] | None, panel: Panel
) -> pd.DataFrame:
    """Scores in detail, over `windows` of `panel`; see `PanelForecaster.scores`."""
    groups, levels = check_panel_groups(by), () if level is None else check_levels(level)
    covered = coverage_sums(forecaster, levels, windows) if levels else None
    bounds = interval_bounds(forecaster, levels, windows) if levels else None
    series = SeriesSums(windows, forecaster.preprocess, panel.season, forecaster.model.most_windows, bounds)
    if groups == ("series",):
        score(forecaster, windows, [series])
        return series.frame(panel, levels)
    sums = detail_sums(forecaster, windows, panel)
    score(forecaster, windows, [sums, *([] if covered is None else [covered]), *([] if groups else [series])])
    frame = details_frame(forecaster, sums, groups, covered, levels)
    return frame if groups else frame.assign(**series.ratios(panel))


def detail_sums(forecaster: Many, windows: PanelWindows, panel: Panel) -> DetailSums:
    """Accumulator of the errors of all series, in the scaled units of each."""
    columns = len(forecaster.columns)
    scaled = Preprocess(forecaster.columns, Scaler(np.zeros(columns), np.ones(columns)))
    return DetailSums(windows.pred_len, windows.targets, scaled, panel.season, pools=True)


def details_frame(
    forecaster: Many,
    sums: DetailSums,
    groups: Sequence[str],
    covered: CoverageSums | None = None,
    levels: Sequence[float] = (),
) -> pd.DataFrame:
    """Rows of `scores_frame` in scaled units, without what takes raw ones."""
    nothing = np.empty((0, len(forecaster.targets)))
    frame = scores_frame(sums, forecaster.targets, nothing, groups, covered, levels)
    return frame[frame["units"] == "scaled"].drop(columns=["smape", "mase"]).reset_index(drop=True)


def check_panel_groups(by: str | Sequence[str] | None) -> tuple[str, ...]:
    """`by` as one of `PANEL_GROUPS`, or none; UsageError for another one, or for both."""
    names = check_groups(by, PANEL_GROUPS, "Scores of a panel")
    if len(names) > 1:
        raise UsageError("Scores of a panel are grouped by step or by series, not by both; name one of them.")
    return names


def read_like(forecaster: Many, source: Any) -> Panel:
    """The panel that `load_panel` finds by `source`, read by the schema of the run."""
    if not is_table(source) and not isinstance(source, str | Path):
        raise UsageError(f"The data are a {type(source).__name__}, and this model was trained on a panel; pass one.")
    return load_panel(source, forecaster.config.schema)
