"""Audit of a run: changes what must not matter, repeats closed-form fits, and counts windows."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.analysis.audit.checks import (
    TOLERANCE,
    Check,
    check_channels,
    check_order,
    distance,
    sample,
    scored_forecasts,
    small,
    values_scored,
)
from femts.analysis.audit.conventions import ConventionScore, convention_scores, window_errors
from femts.analysis.audit.fits import Rows, closed_form, fit_check, fit_distance
from femts.data.dataset import Dataset
from femts.data.describe import count as counted
from femts.data.preprocess import Preprocess
from femts.data.splits import PARTS
from femts.data.windows import training_rows
from femts.errors import OF_FORECASTS, memory_checked
from femts.evaluation.evaluator import Share, evaluate
from femts.forecaster.forecaster import Forecaster, Source, load
from femts.forecaster.scoring import score_windows, training_data

OWN = "audit it on its own data"
SAME_SCORE = 1e-4  # relative, since training may have run on another machine
LITERATURE_BATCH = 32


@dataclass(frozen=True)
class Audit:
    """Findings of an audit.

    Attributes:
        checks: one entry per check.
        scores: test scores under each convention in use.
    """

    checks: tuple[Check, ...]
    scores: tuple[ConventionScore, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not pass; empty if there are none."""
        return tuple(check for check in self.checks if check.passed is False)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {"passed": not self.failed, **asdict(self)}

    def _repr_html_(self) -> str:
        words = {True: "passed", False: "failed", None: "-"}
        rows = [(each.name, words[each.passed], each.says) for each in self.checks]
        return str(pd.DataFrame(rows, columns=["check", "result", "what was found"]).to_html(index=False))


@memory_checked()
def audit(
    forecaster_or_run: Forecaster | str | Path,
    dataset: Source | None = None,
    data_root: str | Path | None = None,
) -> Audit:
    """Check a trained forecaster against its own data, and score it under each of the common conventions.

    Args:
        forecaster_or_run: a forecaster, or the folder of a finished run.
        dataset: the training data, or anything that `load_dataset` accepts; None loads them again by name or path.
        data_root: folder with the files of the catalogue.

    Returns:
        `checks`, of which `failed` are those that did not pass, and `scores`, one for each convention.

    Raises:
        UsageError: There is no such run, or its data are missing or have changed. A failed check raises nothing.
    """
    given = forecaster_or_run
    forecaster = given if isinstance(given, Forecaster) else load(given)
    forecaster = forecaster.scored or forecaster
    model, batch_size, sums = forecaster.model.eval(), forecaster.config.training.eval_batch_size, list[torch.Tensor]()

    def keep(summed: torch.Tensor) -> torch.Tensor:
        sums.append(summed)
        return summed

    data = training_data(forecaster, dataset, data_root, OWN)
    windows = score_windows(forecaster, "test", None, data)
    score = evaluate(model, windows, batch_size, share=Share(reduce=keep))
    scale = torch.from_numpy(forecaster.preprocess.scaler.scale[0, : data.n_targets]) if len(data) == 1 else None
    errors = window_errors(model, windows, scale, batch_size)
    sizes = (LITERATURE_BATCH, forecaster.config.training.batch_size)
    checks = (
        _check_future(forecaster, data),
        _check_scaler(forecaster, data),
        _check_prepared(forecaster, data),
        check_order(model, windows, batch_size),
        _check_count(forecaster, data, int(sums[0][2])),
        check_channels(model, windows),
        _check_score(forecaster, score),
    )
    return Audit(checks, convention_scores(errors, sizes, raw=scale is not None))


def _check_future(forecaster: Forecaster, data: Dataset) -> Check:
    """Forecasts must not depend on rows after the look-back or on other series, and the evaluator must agree with
    `predict`."""
    moved = difference = 0.0
    windows, model = score_windows(forecaster, "test", None, data), forecaster.model
    numbers = sample(windows)
    for number in numbers:
        series, cutoff = windows.place(int(number))
        usual = scored_forecasts(model, windows, number[None]).points
        other = score_windows(forecaster, "test", None, _changed(forecaster, data, series, cutoff))
        moved = max(moved, distance(scored_forecasts(model, other, number[None]).points, usual))
        begin = int(data.spans[series, 0])
        if np.isnan(data.values[begin + max(0, cutoff - forecaster.config.seq_len) : begin + cutoff]).all():
            continue  # predict refuses a look-back without any value
        units = forecaster.preprocess.at(np.array([series]))
        own = torch.from_numpy(units.rescale(_predicted(forecaster, data, series, cutoff)[None]))
        difference = max(difference, distance(own.where(~own.isnan(), usual.cpu().double()), usual))
    others = ", or other series," if len(data) > 1 else ""
    says = (
        f"changing the rows after the look-back{others} moves {counted(len(numbers), 'forecast')} by {small(moved)}, and the "
        f"evaluator's differ by {small(difference)} from predict's (tolerance {TOLERANCE:.0e})"
    )
    return Check("future rows", max(moved, difference) <= TOLERANCE, says)


def _changed(forecaster: Forecaster, data: Dataset, series: int, cutoff: int) -> Dataset:
    """The data with changed values everywhere except in the first `cutoff` rows of a series."""
    units, noise = forecaster.preprocess.at(data.codes()), np.random.default_rng(0).normal(10, 1, data.values.shape)
    values, begin = units.restore(units.scale(data.values) + noise), int(data.spans[series, 0])
    values[begin : begin + cutoff] = data.values[begin : begin + cutoff]
    return replace(data, values=values)


def _predicted(forecaster: Forecaster, data: Dataset, series: int, cutoff: int) -> NDArray[np.float64]:
    """Forecast by `predict` from the rows of a series before `cutoff`, (P, T) in raw units; NaN for a target without a
    value."""
    preprocess, names, ahead = forecaster.preprocess, forecaster.config.schema.roles.future, None
    one = data.take(np.array([series]))
    if names:
        usual = preprocess.known if forecaster.config.reads.columns else preprocess.effects
        assert usual is not None
        ahead = one.frame().iloc[cutoff : cutoff + forecaster.config.pred_len].drop(columns=list(forecaster.columns))
        # as the evaluator does, whereas predict would refuse
        ahead = ahead.fillna(dict(zip(names, usual.mean, strict=True)))
    with warnings.catch_warnings():
        for kind in OF_FORECASTS:
            warnings.simplefilter("ignore", kind)
        forecast = forecaster.predict(one.take(np.array([0]), np.array([cutoff])).frame(), future=ahead)
    return forecast[list(forecaster.targets)].to_numpy()


def _check_scaler(forecaster: Forecaster, data: Dataset) -> Check:
    """The scale of each series must be that of its training rows, without later rows."""
    parts = {"the training rows": "train", "training and validation rows": "val", "all rows": "test"}
    reads, scaler = forecaster.config.reads, forecaster.config.training.scaler
    fits = {rows: Preprocess.fit(data.learning(part), None, reads, scaler) for rows, part in parts.items()}
    return fit_check("scaler", {rows: fit_distance(forecaster.preprocess, one) for rows, one in fits.items()})


def _check_prepared(forecaster: Forecaster, data: Dataset) -> Check:
    """Closed-form weights must be those of the training rows, without later rows."""
    windows = score_windows(forecaster, "train", None, data)
    learned = {"the training rows": data, "all rows": data.learning("test")}

    def rows(one: Forecaster) -> Rows:
        gap = max(one.config.seq_len, int(data.train_lengths.max()))
        return {name: training_rows(each, windows, gap) for name, each in learned.items()}

    return closed_form(forecaster, rows)


def _check_count(forecaster: Forecaster, data: Dataset, values_counted: int) -> Check:
    """Every window of the validation and test split must exist, be scored now, and have been scored in training."""
    (seq_len, steps), counts = (forecaster.config.seq_len, forecaster.config.pred_len), {}
    for part in PARTS[1:]:
        ranges, past = data.split.part(part).tolist(), data.split.overhang(part, steps).tolist()
        many = [
            max(0, stop - start - steps + 1 + more) if start > 0 else 0
            for (start, stop), more in zip(ranges, past, strict=True)
        ]
        windows = score_windows(forecaster, part, None, data) if sum(many) else None
        counted = None if windows is None or windows.counted is None else windows.counted.cpu().numpy()
        values = list[int]()  # for each window
        for number, (start, stop) in enumerate(ranges):
            begin = int(data.spans[number, 0])
            targets = data.values[begin : begin + stop, : data.n_targets]
            targets = targets if counted is None else targets[:, counted[number]]
            values += values_scored(targets, start, many[number], seq_len, steps).tolist()
        counts[part] = (0 if windows is None else len(windows), len(values))
    scored = range(0) if windows is None else windows.subsample(forecaster.model.most_windows).tolist()
    counts["values scored"] = (values_counted, sum(values[number] for number in scored))
    if "test" in forecaster.metrics:
        counts["in the stored score"] = (int(forecaster.metrics["test"]["windows"]), len(scored))
    says = ", ".join(f"{count} of {whole} {what}" for what, (count, whole) in counts.items())
    return Check("every window", all(count == whole for count, whole in counts.values()), says)


def _check_score(forecaster: Forecaster, score: dict[str, float | int]) -> Check:
    """The weights must reproduce the stored score."""
    stored = forecaster.metrics.get("test")
    if stored is None:
        return Check("stored score", None, "no score is stored")
    pairs = [(score[key], stored[key]) for key in ("mse", "mae")]
    says = "the weights give " + "; ".join(f"{now:.6f}, stored {then:.6f}" for now, then in pairs) + " (MSE, MAE)"
    return Check("stored score", all(abs(now - then) <= SAME_SCORE * abs(then) for now, then in pairs), says)
