"""Errors of a forecaster: windows of a part, scores in detail, and what the intervals cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from femts.config.arguments import check_text
from femts.config.values import check_steps
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset, for_horizon
from femts.data.loading import load_dataset
from femts.data.splits import Split
from femts.data.windows import Windows, part_windows
from femts.errors import UsageError
from femts.evaluation.coverage import CoverageSums
from femts.evaluation.evaluator import Accumulator, evaluate, evaluate_horizons
from femts.evaluation.intervals import LEVELS, Intervals, calibrate, check_levels, refuse_unreachable
from femts.evaluation.scores import DetailSums, check_groups, scores_frame
from femts.forecaster.parts import Network, Parts
from femts.text import shown


def score_windows(
    forecaster: Parts, part: str, pred_len: int | None, data: Dataset, like: Windows | None = None
) -> Windows:
    """Windows of `part` that a score is of, on the forecaster's device; `like` are others of the same data."""
    steps = forecaster.config.pred_len if pred_len is None else check_steps(pred_len)
    windows = part_windows(
        data, forecaster.preprocess, check_text(part, "part"), forecaster.config.seq_len, steps, like
    )
    return windows.to(forecaster.device)


def own_data(forecaster: Parts, dataset: object, data_root: str | Path | None = None) -> Dataset:
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


def training_rows(forecaster: Parts, dataset: object, data_root: str | Path | None, remedy: str) -> Dataset:
    """The data of the training, by default loaded again; UsageError that ends with `remedy` where
    `dataset` is other data."""
    data = own_data(forecaster, dataset, data_root)
    if data.record != forecaster.data:
        raise UsageError(f"Data set '{shown(data.name)}' is not what this model was trained on; {remedy}.")
    return data


def read_like(forecaster: Parts, source: Any, data_root: str | Path | None) -> Dataset:
    """The data that `load_dataset` finds by `source`, read by the schema of the run."""
    return load_dataset(source, data_root, schema=forecaster.config.schema)


def load_again(forecaster: Parts, data_root: str | Path | None) -> Dataset:
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
        raise UsageError(f"The data {source} is not what this model was trained on; pass other data as dataset=.")
    return data


def score(forecaster: Parts, windows: Windows, also: Sequence[Accumulator] = ()) -> dict[str, float | int]:
    """Mean errors over all `windows`, in scaled units."""
    return evaluate(forecaster.model, windows, forecaster.config.training.eval_batch_size, also=also)


def score_horizons(
    forecaster: Parts, part: str, horizons: Sequence[int], dataset: object = None, most: int | None = None
) -> dict[int, dict[str, float | int]]:
    """Scores at several horizons, each as `Forecaster.evaluate` has it, from one roll-out of each window.

    Args:
        forecaster: a trained one.
        part, dataset: as in `Forecaster.evaluate`.
        horizons: steps of each forecast to score.
        most: windows at most, spread evenly over those of the longest horizon; None scores all of each horizon.

    Returns:
        What `Forecaster.evaluate` returns, by horizon, in the order given.

    Raises:
        UsageError: as in `Forecaster.evaluate`, or no horizon.
    """
    if not horizons:
        raise UsageError("No horizon was given to score; name some, such as [96, 192].")
    data = own_data(forecaster, dataset)
    windows = [score_windows(forecaster, part, horizons[0], data)]
    for steps in horizons[1:]:
        windows.append(score_windows(forecaster, part, steps, data, windows[0]))
    return evaluate_horizons(forecaster.model, windows, forecaster.config.training.eval_batch_size, most)


def score_details(
    forecaster: Parts, windows: Windows, by: str | Sequence[str] | None, level: Sequence[float] | None, data: Dataset
) -> pd.DataFrame:
    """Scores in detail, over `windows` of `data`; the rest as in `Forecaster.scores`.

    Returns:
        One row for each group in scaled units, then one in raw ones, as `units` says, with the
        columns `step` (from 1) and `channel` as asked for, `windows`, `mse`, `mae`, `rmse` and

        - `smape`: mean of 200 |y - f| / (|y| + |f|), percent (Makridakis et al., the M4
          competition); it depends on where the units put 0, and is NaN where a forecast and its
          target both are 0.
        - `mase`: absolute error over that of the seasonal naive forecast on the training rows
          (Hyndman & Koehler, 2006); NaN where those repeat their season exactly.
        - `skill`: 1 - `mse` / that of the seasonal naive forecast on the same windows; NaN where
          that makes no error, and where the look-back is shorter than a season.
        - with `level` the continuous ranked probability score `crps`, from all quantiles that are
          calibrated, whichever levels are asked for (`intervals.quantiles`; see
          `CoverageSums.crps`); scores of other quantiles do not compare.
        - for each level `coverage-80`, mean `width-80` and `pinball-80`, the mean pinball loss of both ends.
    """
    groups, levels = check_groups(by), () if level is None else check_levels(level)
    covered = coverage_sums(forecaster, levels, windows.pred_len) if levels else None
    sums = DetailSums(windows.pred_len, windows.targets, forecaster.preprocess, data.season)
    score(forecaster, windows, [sums] if covered is None else [sums, covered])
    return scores_frame(sums, forecaster.targets, data.train_values[:, : windows.targets], groups, covered, levels)


def score_coverage(forecaster: Parts, windows: Windows, level: Sequence[float]) -> pd.DataFrame:
    """Coverage by step and channel; see `Forecaster.coverage`."""
    levels = check_levels(level)
    sums = coverage_sums(forecaster, levels, windows.pred_len)
    score(forecaster, windows, [sums])
    steps = range(1, windows.pred_len + 1)
    index = pd.MultiIndex.from_product([levels, steps, forecaster.targets], names=["level", "step", "channel"])
    places = [sums.levels.index(level) for level in levels]
    width = sums.width[places] * forecaster.preprocess.scaler.scale[: windows.targets]
    cells = {"coverage": sums.coverage[places].ravel(), "width": width.ravel(), "units": "raw"}
    return pd.DataFrame(cells, index).reset_index()


def new_intervals(forecaster: Parts, pred_len: int | None, level: Sequence[float], data: Dataset) -> Intervals:
    """Intervals calibrated anew; see `Forecaster.calibrate`."""
    before = forecaster.config.pred_len if forecaster.intervals is None else forecaster.intervals.steps
    usual = level is None or (isinstance(level, list | tuple) and not level)
    more = () if usual else check_levels(level)
    if forecaster.model.levels:
        steps = before if pred_len is None else check_steps(pred_len)
        own = Intervals.of_model(forecaster.model, steps, len(forecaster.targets))
        own.at(more, steps)
        return own
    windows = score_windows(forecaster, "val", before if pred_len is None else pred_len, data)
    refuse_unreachable(more, len(windows), windows.disjoint)
    intervals, _ = calibrate(forecaster.model, windows, (*LEVELS, *more), forecaster.config.training.eval_batch_size)
    return intervals


def coverage_sums(forecaster: Parts, levels: Sequence[float], steps: int) -> CoverageSums:
    """Accumulator of all levels that are calibrated, `levels` among them."""
    intervals = calibrated(forecaster)
    intervals.at(levels, steps)
    return CoverageSums(intervals.levels, intervals.half_widths[:, :steps], forecaster.model.quantiles)


def calibrated(forecaster: Network) -> Intervals:
    """Intervals of the forecaster; UsageError where it has none."""
    if forecaster.intervals is None:
        raise UsageError("This run has no intervals; make them by `femts calibrate RUN`, or in Python by calibrate().")
    return forecaster.intervals
