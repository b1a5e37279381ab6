"""Scores of a forecaster: windows of a split, detailed scores, and coverage of the intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from femts.config.arguments import check_text
from femts.config.values import check_steps
from femts.data.catalog import CATALOG
from femts.data.columns import is_table
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.loading import load_dataset
from femts.data.splits import PARTS, Split
from femts.data.windows import Windows, check_whole, check_windows, part_windows
from femts.errors import AccuracyWarning, UsageError, reads, warn
from femts.evaluation.coverage import Bounds
from femts.evaluation.evaluator import evaluate, evaluate_horizons
from femts.evaluation.intervals import Intervals, check_levels
from femts.evaluation.metric import Collector, Metric, own_metrics
from femts.evaluation.metrics.intervals import CRPS, Coverage, Width, interval_metrics
from femts.evaluation.metrics.point import MAE, MSE, RMSE, SMAPE
from femts.evaluation.metrics.relative import MASE, RMSSE, WAPE, Bias, Skill
from femts.evaluation.overall import OverallScores, Scores
from femts.evaluation.scale import SeasonalScale
from femts.evaluation.score_sums import BY_SERIES, ScoreSums, check_groups
from femts.evaluation.values import Units, Viewer
from femts.forecaster.seen import Use, use_of
from femts.text import argument, arguments, quote

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster


def scorer(forecaster: Forecaster) -> Forecaster:
    """The forecaster to score: the scored model of a refitted forecaster, otherwise itself."""
    return forecaster.scored or forecaster


def score_windows(
    forecaster: Forecaster, part: str, pred_len: int | None, data: Dataset, like: Windows | None = None
) -> Windows:
    """Windows of `part` to score, on the forecaster's device; `like` are other windows of the same data."""
    steps = forecaster.config.pred_len if pred_len is None else check_steps(pred_len, "pred_len")
    lengths, part = (forecaster.config.seq_len, steps), check_text(part, "part")
    if steps > forecaster.config.pred_len:
        check_whole(data, part, steps)
    check_windows(data, part, *lengths, forecaster.config.looks_within(data.season))
    windows = part_windows(data, forecaster.preprocess, part, *lengths, None if like is None else like.resident)
    windows.known_steps = forecaster.config.known_steps(steps)
    return windows.to(forecaster.device)


def scored_part(
    forecaster: Forecaster, part: str, pred_len: int | None, dataset: object
) -> tuple[Forecaster, Windows, Dataset]:
    """The forecaster to score, the windows of `part`, and their data; see `Forecaster.evaluate`."""
    of, data = scorer_on(forecaster, part, dataset)
    return of, score_windows(of, part, pred_len, data), data


def scorer_on(forecaster: Forecaster, part: str, dataset: object) -> tuple[Forecaster, Dataset]:
    """The forecaster to score, restricted to the series of `dataset` in their order, and the data; see `own_data`.

    Rows of `part` in other data than those of the training are left out if the forecaster was trained on them.

    Raises:
        UsageError: No row is left.

    Warns:
        AccuracyWarning: Rows are left out, or were used for selection.
    """
    of = scorer(forecaster)
    data = own_data(of, dataset)
    if check_text(part, "part") in ("val", "test") and data.record != of.data:
        data = _unseen(of, part, data)
    if data.series != of.preprocess.series:
        of = replace(of, preprocess=of.preprocess.for_series(data))
    return of, data


def _unseen(forecaster: Forecaster, part: str, data: Dataset) -> Dataset:
    """`data` without the rows of the split `part` on which `forecaster` was trained, which follow a part of each series.

    Raises:
        UsageError: No row is left.

    Warns:
        AccuracyWarning: Some rows are left out, or were used for selection.
    """
    begin, stop = data.split.part(part).T
    lengths = np.maximum(stop - begin, 0)
    series = np.repeat(np.arange(len(data)), lengths)
    rows = begin[series] + np.arange(len(series)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    use = use_of(forecaster, data, series, rows)
    trained, selected = (np.bincount(series, use == kind, len(data)) for kind in (Use.TRAINING, Use.SELECTION))
    name, seen = quote(data.name), (trained > 0) & (begin > 0)
    if not seen.any() and not (part == "test" and (selected > 0).any()):
        return data
    later = f"provide later rows, or set the split, such as by {argument('test_from=DATE')}"
    if (trained >= lengths)[lengths > 0].all():
        raise UsageError(
            f"All rows of the {part} split of '{name}' were used for training, so their errors would mean nothing; {later}."
        )
    if seen.any():
        of = f" in {int(seen.sum())} of {len(data)} series" if len(data) > 1 else ""
        warn(
            f"The {part} split of '{name}'{of} has {count(int(trained[seen].sum()), 'row')} that were used for training, "
            f"which are left out; {later}.",
            AccuracyWarning,
        )
    if part == "test" and (selected > 0).any():
        of = f" in {int((selected > 0).sum())} of {len(data)} series" if len(data) > 1 else ""
        warn(
            f"The {part} split of '{name}'{of} has rows that were used for validation, so its errors are optimistic; "
            f"{later}.",
            AccuracyWarning,
        )
    ranges = data.split.rows.copy()
    ranges[:, PARTS.index(part), 0] += np.where(seen, trained, 0).astype(np.int64)
    return replace(data, split=Split(ranges))


def own_data(forecaster: Forecaster, dataset: object, data_root: str | Path | None = None) -> Dataset:
    """Data on which to score `forecaster`.

    Args:
        forecaster: a trained forecaster.
        dataset: argument of `load_dataset`, read with the schema of the run; None loads the training data again.
        data_root: folder with the files of the catalogue.

    Raises:
        UsageError: The data cannot be read, or have other columns or a series that was not in the training data.
    """
    if dataset is None:
        return forecaster.training_data(data_root)
    data = dataset if isinstance(dataset, Dataset) else read_like(forecaster, dataset, data_root)
    schema, own = data.schema, forecaster.config.schema
    if bool(schema.panel) != bool(own.panel):
        kinds = ("series", "a table") if own.panel else ("a table", "series")
        raise UsageError(
            f"Dataset '{quote(data.name)}' has {'series of their own' if schema.panel else 'columns of one series'}, "
            f"but this model was trained on {kinds[0]}; load it with "
            f"{arguments({'panel': bool(own.panel)})}."
        )
    data = data.for_horizon(forecaster.config.pred_len)
    if data.columns != forecaster.columns:
        raise UsageError(
            f"Dataset '{quote(data.name)}' has different columns from the training data; provide data with the same "
            "columns."
        )
    check_step_of_training(forecaster, data.freq, f"Dataset '{quote(data.name)}'")
    if schema.roles.static != own.roles.static:
        static = ", ".join(own.roles.static) or "none"
        raise UsageError(
            f"Dataset '{quote(data.name)}' has different static covariates from the training data ({static}); provide the same ones."
        )
    if schema.roles.holidays != own.roles.holidays:
        holidays = arguments({"holidays": own.roles.holidays})
        raise UsageError(f"Dataset '{quote(data.name)}' has different holidays from the training data; use {holidays}.")
    places = forecaster.preprocess.places(data.series)
    if (places < 0).any():
        new = data.series[int(np.argmax(places < 0))]
        raise UsageError(
            f"Series '{quote(new)}' was not in the training data, so it has no training rows; leave it out."
        )
    return data


def check_step_of_training(forecaster: Forecaster, freq: str | None, where: str) -> None:
    """Raise UsageError if data with the step `freq`, called `where`, differ in it from the training data."""
    if freq != forecaster.freq:
        steps = ("no dates" if each is None else f"the step '{each}'" for each in (freq, forecaster.freq))
        raise UsageError(
            "{} has {}, but the training data had {}; provide data with the same step.".format(where, *steps)
        )


def training_data(forecaster: Forecaster, dataset: object, data_root: str | Path | None, remedy: str) -> Dataset:
    """The training data, loaded again by default; raise UsageError ending with `remedy` if `dataset` is other data."""
    data = own_data(forecaster, dataset, data_root)
    if data.record != forecaster.data:
        raise UsageError(f"Dataset '{quote(data.name)}' is not what this model was trained on; {remedy}.")
    return data


def read_like(forecaster: Forecaster, source: Any, data_root: str | Path | None = None) -> Dataset:
    """Load `source` by `load_dataset` with the schema of the run."""
    if not is_table(source) and not isinstance(source, str | Path):
        raise UsageError(f"The data are a {type(source).__name__}; give a name, the path of a file, or a DataFrame.")
    schema, trained = forecaster.config.schema, Path(forecaster.config.source or "").suffix
    if (
        not isinstance(source, str | Path) or Path(source).suffix != trained
    ):  # another format has no such sheet or lines
        layout = replace(schema.form.layout, sheet=None, skip_rows=0)
        schema = replace(schema, form=replace(schema.form, layout=layout))
    return load_dataset(source, data_root, schema=replace(schema, panel=bool(schema.panel)))


def load_again(forecaster: Forecaster, data_root: str | Path | None) -> Dataset:
    """Load the training data again by name or path; see `Forecaster.training_data`."""
    config = forecaster.config
    source = config.source
    if source is None:
        fault = f"The training data '{quote(config.dataset)}' was passed as an object and is not kept in the run"
        raise UsageError(f"{fault}; pass it again as {argument('dataset=TABLE')}.")
    if source not in CATALOG and not Path(source).is_file():
        raise UsageError(
            f"The training data {source} no longer exists; restore it, or pass another as {argument('dataset=TABLE')}."
        )
    data = read_like(forecaster, source, data_root)
    data = replace(data, schema=config.schema)
    if len(data) == 1:
        data = replace(data, split=Split.of(**{part: tuple(rows) for part, rows in forecaster.data["split"].items()}))
    else:
        data = data.all_rows() if config.refit else data.for_horizon(config.pred_len)
    if data.record != forecaster.data:
        raise UsageError(
            f"The data {source} is not what this model was trained on; pass other data as dataset=, or "
            "at the command line to `femts backtest RUN DATA`."
        )
    return data


def score(forecaster: Forecaster, windows: Windows, also: Sequence[Collector] = ()) -> dict[str, float | int]:
    """Mean errors over all `windows`, in scaled units."""
    return evaluate(forecaster.model, windows, forecaster.config.training.eval_batch_size, also=also)


def score_overall(forecaster: Forecaster, windows: Windows, data: Dataset) -> Scores:
    """Scores over all `windows` of `data`."""
    overall = overall_scores(forecaster, data)
    return overall.scores(score(forecaster, windows, overall.collectors))


def overall_scores(forecaster: Forecaster, data: Dataset) -> OverallScores:
    """Collector of the scores of windows of `data`."""
    return OverallScores(forecaster.preprocess, data, forecaster.config.seq_len)


@reads("pred_len")
def check_horizons(horizons: Sequence[int]) -> tuple[int, ...]:
    """Distinct `horizons` in the given order; raise UsageError if there are none or one is not a number of steps."""
    if not horizons:
        raise UsageError("No horizon was given; pass one or more, such as [96, 192].")
    return tuple(dict.fromkeys(check_steps(each, "pred_len") for each in horizons))


def score_horizons(
    forecaster: Forecaster,
    part: str,
    horizons: Sequence[int],
    dataset: object = None,
    most: int | None = None,
    also: Mapping[int, Collector] | None = None,
) -> dict[int, Scores]:
    """Scores at several horizons; for a single series from one recursive forecast of each window.

    Args:
        forecaster: a trained forecaster.
        part, dataset: as in `Forecaster.evaluate`.
        horizons: horizons to score, in steps.
        most: largest number of windows, evenly spaced over those of the longest horizon; None scores all of each
            horizon.
        also: further sums, by horizon.

    Returns:
        The scores of `Forecaster.evaluate` by horizon, in the given order.

    Raises:
        UsageError: As in `Forecaster.evaluate`, or no horizon is given.
    """
    horizons = check_horizons(horizons)
    forecaster, data = scorer_on(forecaster, part, dataset)
    windows = [score_windows(forecaster, part, horizons[0], data)]
    for steps in horizons[1:]:
        windows.append(score_windows(forecaster, part, steps, data, windows[0]))
    overall = {each.pred_len: overall_scores(forecaster, data) for each in windows}
    every = {p: [*one.collectors, *([] if also is None else [also[p]])] for p, one in overall.items()}
    size = forecaster.config.training.eval_batch_size
    if len(data) == 1:
        errors = evaluate_horizons(forecaster.model, windows, size, most, every)
    else:  # windows of several horizons start at different rows
        errors = {
            each.pred_len: evaluate(forecaster.model, each, size, some=most, also=every[each.pred_len])
            for each in windows
        }
    return {steps: overall[steps].scores(one) for steps, one in errors.items()}


def score_details(
    forecaster: Forecaster,
    windows: Windows,
    by: str | Sequence[str] | None,
    level: Sequence[float] | None,
    data: Dataset,
) -> pd.DataFrame:
    """Detailed scores over `windows` of `data`; other arguments as in `Forecaster.scores`.

    Returns:
        By series, one row for each with windows, in raw units: `series`, `units`, `windows`, `mse`, `mae`, `mase` and
        `rmsse` (relative to the mean absolute and the root mean squared change over a season of its training rows; NaN
        if these are 0), `wape` and `bias` (NaN if all values are 0), `skill`, and for each level `coverage-80` and mean
        `width-80`.

        Otherwise one row for each group in scaled units and, for a single series, one in raw units (column `units`),
        with the columns `step` (from 1) and `channel` as requested, `windows`, `mse`, `mae`, `rmse` and

        - `smape`: mean of 200 |y - f| / (|y| + |f|) in raw units, in percent (Makridakis et al., the M4 competition); a
          forecast of 0 for a 0 counts as 0, as in utilsforecast and sktime. NaN in scaled units, whose origin is
          arbitrary.
        - `mase`: absolute error relative to that of the seasonal naive forecast on the training rows
          (Hyndman & Koehler, 2006), or of the naive forecast if these are no longer than a season; NaN if they repeat
          their season exactly. Averaged over channels; for several series, the overall row has the means of `mase` and
          `rmsse` over them, and `wape` and `bias` of their pooled values.
        - `wape` and `bias`: sums of absolute errors and of forecasts minus values, in raw units, relative to the sum of
          absolute values, averaged over channels; NaN if the latter is 0, and in scaled units.
        - `skill`: 1 - `mse` / that of the seasonal naive forecast on the same windows; NaN if the latter is 0 or the
          look-back is shorter than a season. Missing values before the start of a series count as its mean.
        - with `level`, the continuous ranked probability score `crps` from all calibrated quantiles, whichever levels
          are requested (`intervals.quantiles`; see `CRPS`); scores from other quantiles are not
          comparable.
        - for each level `coverage-80`, mean `width-80` and `pinball-80`, the mean pinball loss of both bounds. In raw
          units, `crps`, widths and pinball losses are NaN with a transform, although `coverage` has raw widths then,
          too.
    """
    groups, levels = check_groups(by), () if level is None else check_levels(level)
    bounds = interval_bounds(forecaster, levels, windows) if levels else None
    if groups == BY_SERIES:
        sums = series_sums(forecaster, data, bounds, levels)
        score(forecaster, windows, [sums])
        return series_frame(forecaster, sums, windows)
    steps = step_sums(forecaster, data, bounds, levels)
    if len(data) == 1 or groups:
        score(forecaster, windows, [steps])
        return steps.frame(forecaster.targets, groups)
    pooled = series_sums(forecaster, data)
    score(forecaster, windows, [steps, pooled])
    return steps.frame(forecaster.targets).assign(**means_over_series(pooled, windows))


def score_details_at_horizons(
    forecaster: Forecaster,
    part: str,
    horizons: Sequence[int],
    by: str | Sequence[str] | None,
    level: Sequence[float] | None,
    dataset: object,
) -> pd.DataFrame:
    """As `score_details` for several horizons in turn, which the column `pred_len` identifies.

    Raises:
        UsageError: As in `Forecaster.scores`, or no horizon is given.
    """
    steps, frames = check_horizons(horizons), list[pd.DataFrame]()
    of, data = scorer_on(forecaster, part, dataset)
    for one in steps:
        frames.append(score_details(of, score_windows(of, part, one, data), by, level, data))
        frames[-1].insert(0, "pred_len", one)
    return pd.concat(frames, ignore_index=True)


def step_sums(
    forecaster: Forecaster, data: Dataset, bounds: Bounds | None = None, levels: Sequence[float] = ()
) -> ScoreSums:
    """Sums of the scores by step and channel, with those of intervals at `levels`; for several series in the scaled
    units of each."""
    one = len(data) == 1
    points: list[Metric] = [MSE(), MAE(), RMSE(), *([SMAPE(), MASE(), WAPE(), Bias()] if one else []), Skill()]
    crps = [CRPS(bounds.intervals.standard)] if bounds is not None else []
    metrics = [*points, *own_metrics(), *crps, *interval_metrics(levels)]
    viewer = Viewer(forecaster.preprocess, data.season, SeasonalScale.of(data) if one else None, bounds)
    return ScoreSums(metrics, viewer, "step", ("scaled", "raw") if one else ("scaled",), pools=not one)


def series_sums(
    forecaster: Forecaster, data: Dataset, bounds: Bounds | None = None, levels: Sequence[float] = ()
) -> ScoreSums:
    """Sums of the scores by series, in raw units."""
    metrics = [MSE(), MAE(), MASE(), RMSSE(), WAPE(), Bias(), Skill(), *own_metrics()]
    of_levels = [kind(level) for level in levels for kind in (Coverage, Width)]
    viewer = Viewer(forecaster.preprocess, data.season, SeasonalScale.of(data), bounds)
    return ScoreSums([*metrics, *of_levels], viewer, "series", ("raw",))


def series_frame(forecaster: Forecaster, sums: ScoreSums, windows: Windows) -> pd.DataFrame:
    """Rows of `score_details` by series."""
    numbers = windows.series_of(windows.subsample(forecaster.model.most_windows)).cpu()
    return sums.by_series(windows.names, torch.bincount(numbers, minlength=len(windows.names)).numpy())


def means_over_series(sums: ScoreSums, windows: Windows) -> dict[str, float]:
    """Scores of all series together that depend on the scale of each: means of `mase` and `rmsse` over series with a
    scale of their own, `wape` and `bias` of all values."""
    counted = None if windows.counted is None else windows.counted.cpu().numpy()
    return {
        metric.name: sums.overall(metric, "raw", counted if metric.over_series == "averaged" else None)
        for metric in sums.metrics
        if metric.name in ("mase", "rmsse", "wape", "bias")
    }


def score_coverage(forecaster: Forecaster, windows: Windows, level: Sequence[float]) -> pd.DataFrame:
    """Coverage by step and channel; see `Forecaster.coverage`."""
    levels, one = check_levels(level), len(windows.names) == 1
    units: Units = "raw" if one else "scaled"
    viewer = Viewer(forecaster.preprocess, bounds=interval_bounds(forecaster, levels, windows))
    kinds: dict[str, list[Metric]] = {kind.kind: [kind(level) for level in levels] for kind in (Coverage, Width)}
    sums = ScoreSums([each for several in kinds.values() for each in several], viewer, "step", (units,), not one)
    score(forecaster, windows, [sums])
    index = pd.MultiIndex.from_product(
        [levels, range(1, windows.pred_len + 1), forecaster.targets], names=["level", "step", "channel"]
    )
    cells = {
        name: np.concatenate([sums.scores(each, units, groups=True, targets=True).ravel() for each in several])
        for name, several in kinds.items()
    }
    return pd.DataFrame({**cells, "units": units}, index).reset_index()


def interval_bounds(forecaster: Forecaster, levels: Sequence[float], windows: Windows) -> Bounds:
    """Bounds of `windows` at the standard levels and the given ones."""
    intervals, model = calibrated(forecaster), forecaster.model
    intervals.check(levels, windows.pred_len)
    return Bounds(intervals, windows, model.quantiles, levels)


def calibrated(forecaster: Forecaster) -> Intervals:
    """Intervals of the forecaster; raise UsageError if it has none."""
    if forecaster.intervals is None:
        raise UsageError("This run has no intervals; create them with `femts calibrate RUN`, or calibrate() in Python.")
    return forecaster.intervals
