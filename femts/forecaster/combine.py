"""Combines several forecasters into one that forecasts their mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from femts.config.arguments import check_kind
from femts.data.describe import count
from femts.data.known import EFFECT_ALONE
from femts.errors import UsageError, memory_checked
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.members import member_record
from femts.forecaster.metrics import RunMetrics
from femts.models.mean import MEAN, MeanConfig, MeanModel, Member

GIVE = "give several that femts.train or femts.load returned"
# Properties that all members must share, as named in messages.
_SHARED: dict[str, Callable[[Forecaster], object]] = {
    "columns": lambda one: one.columns,
    "targets": lambda one: one.targets,
    "step": lambda one: one.freq,
    "data schema": lambda one: one.config.schema,
    "training data or split": lambda one: dict(one.data),
    "horizon": lambda one: one.config.pred_len,
    "scaling": lambda one: one.preprocess.reading(False, EFFECT_ALONE).to_dict(),
    "training rows": lambda one: (one.config.refit, one.scored is None),
}
# Properties that members with future covariates must share; some of them may read the calendar as well.
_SHARED_BY_READERS: dict[str, Callable[[Forecaster], object]] = {
    "use of future covariates": lambda one: (
        one.config.reads._replace(calendar=0),
        None if one.preprocess.known is None else one.preprocess.known.of_columns().to_dict(),
    ),
}


@memory_checked()
def mean_of(forecasters: Sequence[Forecaster], weights: ArrayLike | None = None) -> Forecaster:
    """Combine trained forecasters into one that forecasts their mean.

    The members keep their models, which the mean shares. The mean needs intervals of its own, made by `calibrate`;
    `metrics["members"]` describes how each member was trained, and `members` returns them.

    Args:
        forecasters: two or more, trained on the same data for the same horizon; their look-backs may differ.
        weights: one weight for each of them, or (forecasters, targets), one for each target of each; the weights of a
            target are normalised. None weights all equally.

    Returns:
        A forecaster without intervals and scores. If the members were refitted on all rows, the mean of their scored
        models is its `scored`.

    Raises:
        UsageError: There are fewer than two, they differ in what they forecast, one has learned quantiles or is a mean
            itself, or the weights are invalid.
    """
    check_kind(forecasters, list | tuple, "The forecasters", GIVE)  # type: ignore[arg-type]
    for one in forecasters:
        check_kind(one, Forecaster, "One of the forecasters", GIVE)
        _check_member(one)
    if len(forecasters) < 2:
        raise UsageError(f"A mean needs at least two forecasters, not {len(forecasters)}; {GIVE}.")
    first, *others = forecasters
    for other in others:
        _check_same(first, other, _SHARED)
    readers = [one for one in forecasters if one.config.reads.any] or [first]
    first_reading = max(readers, key=lambda one: one.config.reads.calendar)  # the first of those with most inputs
    for other in readers:
        _check_same(first_reading, other, _SHARED_BY_READERS)
    members = tuple(Member(one.config.model, one.config.model_config) for one in forecasters)
    shape = {"pred_len": first.config.pred_len, "n_channels": len(first.columns)}
    shares = None if weights is None else _shares(weights, len(forecasters), len(first.targets), shape["n_channels"])
    longest = max(one.config.seq_len for one in forecasters)
    mean = MeanConfig(seq_len=longest, **shape, members=members, weights=shares)
    # Members without future covariates are unaffected by those of others. A mean has no quantiles to be validated by.
    training = first_reading.config.training
    training = replace(training, metric="") if training.metric == "pinball" else training
    config = replace(first_reading.config, model=MEAN, model_config=mean, training=training)
    scored = [one.scored for one in forecasters if one.scored is not None]
    made = Forecaster(
        MeanModel(mean, [one.model for one in forecasters]).eval(),
        config,
        first_reading.preprocess.reading(config.reads_raw),
        first.freq,
        first.data,
        RunMetrics(members=[member_record(one) for one in forecasters]),
        until=first.until,
        series_until=first.series_until,
        series_trained=first.series_trained,
        scored=mean_of(scored, weights) if scored else None,
        _dataset=first._dataset,
    )
    return made.to(made.device)


def _shares(weights: ArrayLike, members: int, targets: int, channels: int) -> tuple[tuple[float, ...], ...]:
    """Weights (members, channels) that sum to 1 over the members; channels that are not targets have equal weights."""
    try:
        given = np.asarray(weights, dtype=np.float64)
        each = np.broadcast_to(given[:, None] if given.ndim == 1 else given, (members, targets))
    except (TypeError, ValueError):
        each = np.full((members, targets), np.nan)
    if not (np.isfinite(each).all() and (each >= 0).all() and (each.sum(axis=0) > 0).all()):
        raise UsageError(
            f"The weights of {members} forecasters of {count(targets, 'target')} are {members} numbers of at least 0, "
            "or "
            f"{members} x {targets}, of which those of a target are not all 0."
        )
    equal = np.full((members, channels - targets), 1 / members)
    return tuple(map(tuple, np.hstack([each / each.sum(axis=0), equal]).tolist()))


def _check_member(forecaster: Forecaster) -> None:
    """Raise UsageError if a forecaster cannot be a member of a mean."""
    name = forecaster.config.model
    if isinstance(forecaster.model, MeanModel):
        raise UsageError(
            f"Model '{name}' is a mean itself and cannot be a member of another; pass its members instead."
        )
    if forecaster.config.quantiles:
        raise UsageError(
            f"Model '{name}' learned quantiles, which cannot be averaged; train it without training.loss=pinball."
        )


def _check_same(one: Forecaster, other: Forecaster, shared: Mapping[str, Callable[[Forecaster], object]]) -> None:
    """Raise UsageError if two forecasters differ in what they forecast or were trained on."""
    for what, of in shared.items():
        if of(one) != of(other):
            raise UsageError(
                f"The forecasters '{one.config.model}' and '{other.config.model}' differ in their {what}, so they "
                "cannot be averaged; train them with the same settings."
            )
