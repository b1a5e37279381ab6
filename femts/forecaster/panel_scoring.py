"""Scores of a forecaster of a panel: its data, its windows, and the sums over each series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from femts.config.arguments import check_text
from femts.config.values import check_steps
from femts.data.interchange import is_table
from femts.data.panel import Panel, load_panel, panel_for_horizon
from femts.data.panel_preprocess import panel_windows
from femts.data.windows import PanelWindows
from femts.errors import UsageError
from femts.evaluation.evaluator import evaluate
from femts.evaluation.series_scores import SeriesSums
from femts.forecaster.trained import Many
from femts.text import shown


def own_panel(forecaster: Many, dataset: object) -> Panel:
    """Panel to score `forecaster` on: `dataset`, anything that `load_panel` takes; None loads that
    of the training again.

    Raises:
        UsageError: it cannot be read, has other columns, or a series that was not in the training.
    """
    if dataset is None:
        return forecaster.training_data()
    panel = dataset if isinstance(dataset, Panel) else _read_like(forecaster, dataset)
    panel = panel_for_horizon(panel, forecaster.config.pred_len)
    if panel.columns != forecaster.columns:
        raise UsageError(f"Panel '{shown(panel.name)}' has other columns than the training data; give one with those.")
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
    panel = panel_for_horizon(_read_like(forecaster, source), forecaster.config.pred_len)
    if panel.record != forecaster.data:
        raise UsageError(f"The data {source} are not what this model was trained on; pass other data as dataset=.")
    return panel


def score_panel(forecaster: Many, windows: PanelWindows) -> dict[str, float | int]:
    """Mean errors over all `windows`, in the scaled units of each series."""
    return evaluate(forecaster.model, windows, forecaster.config.training.eval_batch_size)


def score_series(forecaster: Many, windows: PanelWindows, panel: Panel) -> pd.DataFrame:
    """Scores of each series; see `PanelForecaster.scores`."""
    sums = SeriesSums(windows, forecaster.preprocess)
    evaluate(forecaster.model, windows, forecaster.config.training.eval_batch_size, also=[sums])
    return sums.frame(panel)


def score_windows(forecaster: Many, part: str, pred_len: int | None, panel: Panel) -> PanelWindows:
    """Windows of `part` of every series, on the forecaster's device."""
    steps = forecaster.config.pred_len if pred_len is None else check_steps(pred_len)
    part = check_text(part, "part")
    return panel_windows(panel, forecaster.preprocess, part, forecaster.config.seq_len, steps).to(forecaster.device)


def _read_like(forecaster: Many, source: Any) -> Panel:
    if not is_table(source) and not isinstance(source, str | Path):
        raise UsageError(f"The data are a {type(source).__name__}, and this model was trained on a panel; pass one.")
    return load_panel(source, forecaster.config.schema)
