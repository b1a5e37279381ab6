"""Errors of a forecaster: windows of a part, scores in detail, and what the intervals cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.config.arguments import check_text
from femts.config.values import check_steps
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset, for_horizon
from femts.data.loading import load_dataset
from femts.data.panel import Panel
from femts.data.panel_preprocess import panel_windows
from femts.data.splits import Split
from femts.data.windows import Windows, part_windows
from femts.errors import UsageError
from femts.evaluation.beside import NaiveSums
from femts.evaluation.coverage import Bounds, CoverageSums, RawWidths
from femts.evaluation.evaluator import Accumulator, evaluate, evaluate_horizons
from femts.evaluation.intervals import Intervals, check_levels
from femts.evaluation.scores import DetailSums, check_groups, scores_frame
from femts.forecaster.trained import D, P, Single, Trained
from femts.text import shown

T = TypeVar("T", bound=Trained[Any, Any])


def scorer(forecaster: T) -> T:
    """The forecaster that scores are of: of one that learned from all rows the one beside it that did not."""
    return forecaster.scored or forecaster


def score_windows(
    forecaster: Trained[Any, Any], part: str, pred_len: int | None, data: Dataset | Panel, like: Windows | None = None
) -> Windows:
    """Windows of `part` that a score is of, on the forecaster's device; `like` are others of the same data."""
    steps = forecaster.config.pred_len if pred_len is None else check_steps(pred_len)
    cut: Any = panel_windows if isinstance(data, Panel) else part_windows
    windows: Windows = cut(
        data, forecaster.preprocess, check_text(part, "part"), forecaster.config.seq_len, steps, like
    )
    return windows.to(forecaster.device)


def scored_part(
    forecaster: Trained[P, D], part: str, pred_len: int | None, dataset: object
) -> tuple[Trained[P, D], Any, D]:
    """The forecaster that scores are of, the windows of `part` to score it on, and their data; as in
    `Forecaster.evaluate`."""
    of = scorer(forecaster)
    data = of._own_data(dataset)
    return of, score_windows(of, part, pred_len, data), data


def own_data(forecaster: Single, dataset: object, data_root: str | Path | None = None) -> Dataset:
    """Data to score `forecaster` on.

    Args:
        forecaster: a trained one.
        dataset: what `load_dataset` takes, read as the run's own data were; None loads those again.
        data_root: where data of the catalogue is looked for.

    Raises:
        UsageError: they cannot be read, or have other columns.
    """
    if dataset is None:
        return forecaster.training_data(data_root)
    data = dataset if isinstance(dataset, Dataset) else read_like(forecaster, dataset, data_root)
    data = for_horizon(data, forecaster.config.pred_len)
    if data.columns != forecaster.columns:
        raise UsageError(
            f"Data set '{shown(data.name)}' has other columns than the training data; give one with the same."
        )
    return data


def training_rows(forecaster: Trained[P, D], dataset: object, data_root: str | Path | None, remedy: str) -> D:
    """The data of the training, by default loaded again; UsageError that ends with `remedy` where
    `dataset` is other data."""
    data = forecaster._own_data(dataset, data_root)
    if data.record != forecaster.data:
        kind = "Panel" if isinstance(data, Panel) else "Data set"
        raise UsageError(f"{kind} '{shown(data.name)}' is not what this model was trained on; {remedy}.")
    return data


def read_like(forecaster: Single, source: Any, data_root: str | Path | None) -> Dataset:
    """The data that `load_dataset` finds by `source`, read by the schema of the run."""
    return load_dataset(source, data_root, schema=forecaster.config.schema)


def load_again(forecaster: Single, data_root: str | Path | None) -> Dataset:
    """The data of the training by its name or path; see `Forecaster.training_data`."""
    source = forecaster.config.source
    if source is None:
        raise UsageError(
            f"The training data '{forecaster.config.dataset}' was passed as an object and is not kept in the run; "
            "pass it again as dataset= (--dataset)."
        )
    if source not in CATALOG and not Path(source).is_file():
        raise UsageError(
            f"The training data {source} is no longer there; put it back, or pass it as dataset= (--dataset)."
        )
    split = Split(**{part: tuple(rows) for part, rows in forecaster.data["split"].items()})
    data = replace(read_like(forecaster, source, data_root), split=split)
    if data.record != forecaster.data:
        raise UsageError(
            f"The data {source} is not what this model was trained on; pass other data as dataset=, or at the command "
            "line to `femts backtest RUN DATA`."
        )
    return data


def score(forecaster: Trained[Any, Any], windows: Windows, also: Sequence[Accumulator] = ()) -> dict[str, float | int]:
    """Mean errors over all `windows`, in scaled units."""
    return evaluate(forecaster.model, windows, forecaster.config.training.eval_batch_size, also=also)


def score_beside(
    forecaster: Single,
    part: str,
    horizons: Sequence[int],
    dataset: object = None,
    most: int | None = None,
    also: Mapping[int, Accumulator] | None = None,
) -> tuple[dict[int, dict[str, float | int]], dict[int, dict[str, Any]]]:
    """Scores at several horizons, from one roll-out of each window, and beside them the seasonal naive forecast.

    Args:
        forecaster: a trained one.
        part, dataset: as in `Forecaster.evaluate`.
        horizons: steps of each forecast to score.
        most: windows at most, spread evenly over those of the longest horizon; None scores all of each horizon.
        also: further sums, by horizon.

    Returns:
        By horizon, in the order given, what `Forecaster.evaluate` returns, and what the naive
        forecast makes of the same windows (`NaiveSums.beside`).

    Raises:
        UsageError: as in `Forecaster.evaluate`, or no horizon.
    """
    forecaster = scorer(forecaster)
    if not horizons:
        raise UsageError("No horizon was given to score; name some, such as [96, 192].")
    data = own_data(forecaster, dataset)
    windows = [score_windows(forecaster, part, horizons[0], data)]
    for steps in horizons[1:]:
        windows.append(score_windows(forecaster, part, steps, data, windows[0]))
    sums = {steps: naive_sums(forecaster, data) for steps in horizons}
    every = {steps: [one] if also is None else [one, also[steps]] for steps, one in sums.items()}
    scores = evaluate_horizons(forecaster.model, windows, forecaster.config.training.eval_batch_size, most, every)
    return scores, {steps: sums[steps].beside(score["mse"]) for steps, score in scores.items()}


def naive_sums(forecaster: Single, data: Dataset) -> NaiveSums:
    """Accumulator of the errors of the seasonal naive forecast of `data`."""
    values = data.train_values[:, : len(forecaster.targets)]
    return NaiveSums(forecaster.preprocess, values, data.season, forecaster.config.seq_len)


def score_details(
    forecaster: Single, windows: Windows, by: str | Sequence[str] | None, level: Sequence[float] | None, data: Dataset
) -> pd.DataFrame:
    """Scores in detail, over `windows` of `data`; the rest as in `Forecaster.scores`.

    Returns:
        One row for each group in scaled units, then one in raw ones, as `units` says, with the
        columns `step` (from 1) and `channel` as asked for, `windows`, `mse`, `mae`, `rmse` and

        - `smape`: of raw values, mean of 200 |y - f| / (|y| + |f|), percent (Makridakis et al., the M4
          competition), in which a forecast of 0 for a 0 counts as 0, as in utilsforecast and
          sktime; NaN in scaled units, which put 0 anywhere.
        - `mase`: absolute error over that of the seasonal naive forecast on the training rows
          (Hyndman & Koehler, 2006), or of the naive one where these are no longer than a season;
          NaN where those repeat their season exactly. Of several channels the mean of theirs.
        - `skill`: 1 - `mse` / that of the seasonal naive forecast on the same windows; NaN where
          that makes no error, and where the look-back is shorter than a season.
        - with `level` the continuous ranked probability score `crps`, from all quantiles that are
          calibrated, whichever levels are asked for (`intervals.quantiles`; see
          `CoverageSums.crps`); scores of other quantiles do not compare.
        - for each level `coverage-80`, mean `width-80` and `pinball-80`, the mean pinball loss of both ends.
          In raw units `crps`, widths and pinball losses are NaN with a transform or a bound; `coverage`
          has raw widths then, too.
    """
    groups, levels = check_groups(by), () if level is None else check_levels(level)
    covered = coverage_sums(forecaster, levels, windows) if levels else None
    sums = DetailSums(windows.pred_len, windows.targets, forecaster.preprocess, data.season)
    score(forecaster, windows, [sums] if covered is None else [sums, covered])
    return scores_frame(sums, forecaster.targets, data.train_values[:, : windows.targets], groups, covered, levels)


def score_coverage(forecaster: Single, windows: Windows, level: Sequence[float]) -> pd.DataFrame:
    """Coverage by step and channel; see `Forecaster.coverage`."""
    levels, preprocess = check_levels(level), forecaster.preprocess
    sums = coverage_sums(forecaster, levels, windows)
    widths = RawWidths(interval_bounds(forecaster, levels, windows), preprocess)
    score(forecaster, windows, [sums] if preprocess.linear else [sums, widths])
    scaled = preprocess.scaler.scale[: windows.targets] * sums.width
    return _coverage_rows(forecaster, levels, sums, scaled if preprocess.linear else widths.mean, "raw")


def coverage_frame(forecaster: Trained[Any, Any], windows: Windows, level: Sequence[float]) -> pd.DataFrame:
    """Coverage of `windows` by level, step and channel, and the mean `width` in scaled units."""
    levels = check_levels(level)
    sums = coverage_sums(forecaster, levels, windows)
    score(forecaster, windows, [sums])
    return _coverage_rows(forecaster, levels, sums, sums.width, "scaled")


def _coverage_rows(
    forecaster: Trained[Any, Any], levels: Sequence[float], sums: CoverageSums, width: NDArray[np.float64], units: str
) -> pd.DataFrame:
    """One row for each of `levels`, step and channel of `sums`, whose `width` (K, S, C) is in these `units`."""
    steps = range(1, width.shape[1] + 1)
    index = pd.MultiIndex.from_product([levels, steps, forecaster.targets], names=["level", "step", "channel"])
    places = [sums.levels.index(level) for level in levels]
    cells = {"coverage": sums.coverage[places].ravel(), "width": width[places].ravel(), "units": units}
    return pd.DataFrame(cells, index).reset_index()


def coverage_sums(forecaster: Trained[Any, Any], levels: Sequence[float], windows: Windows) -> CoverageSums:
    """Accumulator over `windows` of all levels that are calibrated, `levels` among them."""
    return CoverageSums(interval_bounds(forecaster, levels, windows))


def interval_bounds(forecaster: Trained[Any, Any], levels: Sequence[float], windows: Windows) -> Bounds:
    """Bounds of `windows` at all levels that are calibrated, `levels` among them."""
    intervals, model = calibrated(forecaster), forecaster.model
    intervals.at(levels, windows.pred_len)
    return Bounds(intervals, windows, model.quantiles, model.most_windows)


def calibrated(forecaster: Trained[Any, Any]) -> Intervals:
    """Intervals of the forecaster; UsageError where it has none."""
    if forecaster.intervals is None:
        raise UsageError("This run has no intervals; make them by `femts calibrate RUN`, or in Python by calibrate().")
    return forecaster.intervals
