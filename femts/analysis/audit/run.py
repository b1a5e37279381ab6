"""Audit of a run: what must not matter is changed, what was fitted is fitted again, windows are counted."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from femts.analysis.audit import panel
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
from femts.analysis.audit.fits import closed_form, fit_check, fit_distance
from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.preprocess import Preprocess
from femts.data.splits import PARTS
from femts.data.windows import Windows, part_windows
from femts.errors import AgeWarning, GapWarning, memory_checked
from femts.evaluation.evaluator import Share, evaluate
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.load import load
from femts.forecaster.panel_forecaster import PanelForecaster
from femts.forecaster.panel_scoring import score_windows
from femts.forecaster.scoring import training_rows
from femts.forecaster.trained import Source

OWN = "audit it on its own data"
SAME_SCORE = 1e-4  # relative; trained perhaps on another machine
LITERATURE_BATCH = 32


@dataclass(frozen=True)
class Audit:
    """Findings of an audit.

    Attributes:
        checks: one entry a check.
        scores: the test score under each convention in use.
    """

    checks: tuple[Check, ...]
    scores: tuple[ConventionScore, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not pass; empty for a sound run."""
        return tuple(check for check in self.checks if check.passed is False)

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {"passed": not self.failed, **asdict(self)}


@memory_checked()
def audit(
    forecaster_or_run: Forecaster | PanelForecaster | str | Path,
    dataset: Source | Panel | None = None,
    data_root: str | Path | None = None,
) -> Audit:
    """Check a trained forecaster against its own data, and score it under each convention in use.

    Args:
        forecaster_or_run: a forecaster, or the folder of a finished run.
        dataset: the data of the training, or anything `load_dataset` takes; None loads it again by its name or path.
        data_root: where a data set of the catalogue is looked for.

    Returns:
        `checks`, of which `failed` are those that did not pass, and `scores`, one a convention.

    Raises:
        UsageError: there is no such run, or its data are not there or have changed. A check that fails raises nothing.
    """
    given = forecaster_or_run
    forecaster: Forecaster | PanelForecaster = given if isinstance(given, Forecaster | PanelForecaster) else load(given)
    forecaster = forecaster.scored or forecaster
    model, batch_size, sums = forecaster.model.eval(), forecaster.config.training.eval_batch_size, list[torch.Tensor]()

    def keep(summed: torch.Tensor) -> torch.Tensor:
        sums.append(summed)
        return summed

    own: tuple[Check, ...]
    if isinstance(forecaster, PanelForecaster):
        series = training_rows(forecaster, dataset, data_root, OWN)
        windows: Windows = score_windows(forecaster, "test", None, series)
        score, scale = evaluate(model, windows, batch_size, share=Share(reduce=keep)), None
        own = (
            panel.check_future(forecaster, series),
            panel.check_scaler(forecaster, series),
            panel.check_prepared(forecaster, series),
            panel.check_count(forecaster, series, int(sums[0][2])),
        )
    else:
        data = training_rows(forecaster, dataset, data_root, OWN)
        windows = _test_windows(forecaster, data)
        score = evaluate(model, windows, batch_size, share=Share(reduce=keep))
        scale = torch.from_numpy(forecaster.preprocess.scaler.scale[: data.targets])
        own = (
            _check_future(forecaster, data),
            _check_scaler(forecaster, data),
            _check_prepared(forecaster, data),
            _check_count(forecaster, data, int(sums[0][2])),
        )
    *fits, counts = own
    order, channels = check_order(model, windows, batch_size), check_channels(model, windows)
    errors = window_errors(model, windows, scale, batch_size)
    sizes = (LITERATURE_BATCH, forecaster.config.training.batch_size)
    checks = (*fits, order, counts, channels, _check_score(forecaster, score))
    return Audit(checks, convention_scores(errors, sizes, raw=scale is not None))


def _test_windows(forecaster: Forecaster, data: Dataset) -> Windows:
    config = forecaster.config
    return part_windows(data, forecaster.preprocess, "test", config.seq_len, config.pred_len).to(forecaster.device)


def _check_future(forecaster: Forecaster, data: Dataset) -> Check:
    """Rows after the look-back may not matter, and the evaluator must see what `predict` sees."""
    moved = difference = 0.0
    preprocess, model = forecaster.preprocess, forecaster.model
    windows, noise = _test_windows(forecaster, data), np.random.default_rng(0).normal(10, 1, data.values.shape)
    numbers, frame = sample(windows), data.frame()
    for number in numbers:
        cutoff = data.split.test[0] + int(number)  # the first row that this window forecasts, whatever the windows say
        changed = data.values.copy()
        changed[cutoff:] += noise[cutoff:] * preprocess.scaler.scale
        usual = scored_forecasts(model, windows, number[None]).points
        other = _test_windows(forecaster, replace(data, values=changed))
        moved = max(moved, distance(scored_forecasts(model, other, number[None]).points, usual))
        if np.isnan(data.values[max(0, cutoff - forecaster.config.seq_len) : cutoff]).all():
            continue  # predict refuses a look-back without any value
        own = torch.from_numpy(preprocess.rescale(_predicted(forecaster, frame, cutoff)))[None]
        difference = max(difference, distance(own.where(~own.isnan(), usual.cpu().double()), usual))
    says = (
        f"changing the rows after the look-back moves {len(numbers)} forecasts by {small(moved)}, and the evaluator's "
        f"differ by {small(difference)} from predict's ({TOLERANCE:.0e} may be)"
    )
    return Check("future rows", max(moved, difference) <= TOLERANCE, says)


def _predicted(forecaster: Forecaster, frame: pd.DataFrame, cutoff: int) -> NDArray[np.float64]:
    """Forecast by `predict` from the rows before `cutoff`, (P, T) in raw units; NaN for a target without a value."""
    effects, names, ahead = forecaster.preprocess.effects, forecaster.config.schema.roles.future, None
    if effects is not None and names:
        ahead = frame.iloc[cutoff : cutoff + forecaster.config.pred_len].drop(columns=list(forecaster.columns))
        ahead = ahead.fillna(dict(zip(names, effects.mean, strict=True)))  # as the evaluator, where predict refuses
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GapWarning)
        warnings.simplefilter("ignore", AgeWarning)
        return forecaster.predict(frame.iloc[:cutoff], future=ahead)[list(forecaster.targets)].to_numpy()


def _check_scaler(forecaster: Forecaster, data: Dataset) -> Check:
    """The scaler must be that of the training rows, and not also that of later ones."""
    (first, stop), end = data.split.train, data.split.test[1]
    ends = {"the training rows": stop, "validation rows as well": data.split.val[1], "test rows as well": end}
    # Of rows that are given, and not looked up where training does.
    fits = {rows: Preprocess.fit_rows(data, data.values[first:last], slice(first, last)) for rows, last in ends.items()}
    return fit_check("scaler", {rows: fit_distance(forecaster.preprocess, one) for rows, one in fits.items()})


def _check_prepared(forecaster: Forecaster, data: Dataset) -> Check:
    """Weights in closed form must be those of the training rows, and not also those of later ones."""
    series, first = part_windows(data, forecaster.preprocess, "train", 1, 1).series, data.split.train[0]
    rows = {}
    for name, stop in {"the training rows": data.split.train[1], "test rows as well": data.split.test[1]}.items():
        observed = None if data.observed is None else torch.from_numpy(data.observed[first:stop])
        rows[name] = (series[first:stop], observed)
    return closed_form(forecaster, lambda _: rows)


def _check_count(forecaster: Forecaster, data: Dataset, counted: int) -> Check:
    """Every window must be there, be scored, and have been scored in the training."""
    config, counts = forecaster.config, {}
    for part in PARTS:
        start, stop = getattr(data.split, part)
        rows = stop - start + (0 if part == "train" else config.seq_len)
        windows = part_windows(data, forecaster.preprocess, part, config.seq_len, config.pred_len)
        rows += data.split.overhang(part, config.pred_len)
        if part != "train" or not forecaster.preprocess.reads_raw:  # of those it learns nothing
            counts[part] = (len(windows), rows - config.seq_len - config.pred_len + 1)
    first, stop = data.split.test
    values, most = data.values[:stop, : data.targets], forecaster.model.most_windows
    values = values if windows.counted is None else values[:, windows.counted[0].numpy()]
    scored = values_scored(values, first, counts["test"][1], config.seq_len, config.pred_len)
    counts["values scored"] = (counted, int(scored[windows.spread(most).numpy()].sum()))
    if "test" in forecaster.metrics:
        stored = counts["test"][1] if most is None else min(most, counts["test"][1])
        counts["in the stored score"] = (int(forecaster.metrics["test"]["windows"]), stored)
    says = ", ".join(f"{count} of {whole} {what}" for what, (count, whole) in counts.items())
    return Check("every window", all(count == whole for count, whole in counts.values()), says)


def _check_score(forecaster: Forecaster | PanelForecaster, score: dict[str, float | int]) -> Check:
    """The weights must give the score that was stored with them."""
    stored = forecaster.metrics.get("test")
    if stored is None:
        return Check("stored score", None, "no score is stored")
    pairs = [(score[key], stored[key]) for key in ("mse", "mae")]
    says = (
        "the weights give " + ", ".join(f"{now:.6f} where {then:.6f} is stored" for now, then in pairs) + " (MSE, MAE)"
    )
    return Check("stored score", all(abs(now - then) <= SAME_SCORE * abs(then) for now, then in pairs), says)
