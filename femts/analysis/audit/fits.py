"""Repeats fits: what is stored with a run must equal a fit to its training rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from femts.analysis.audit.checks import Check, small
from femts.data.preprocess import Preprocess
from femts.forecaster.forecaster import Forecaster
from femts.models.base import ForecastModel
from femts.models.registry import build_model

SAME_SCALER = 1e-9  # relative; both are float64 sums of the same rows
SAME_WEIGHTS = 1e-4  # relative; solved in float64 and stored in float32, perhaps on another machine
CLOSED_FORM = "closed-form weights"
Rows = Mapping[str, tuple[Tensor, Tensor | None]]  # training rows (rows, C) and their observed mask, by description


def fit_distance(stored: Preprocess, fitted: Preprocess) -> float:
    """Largest difference of the means (in deviations), of the deviations (relative), and of the weights of known
    effects."""
    (mean, scale), like = (stored.scaler.mean, stored.scaler.scale), fitted.scaler
    largest = float(np.abs([(mean - like.mean) / like.scale, scale / like.scale - 1]).max())
    if stored.effects is None or fitted.effects is None:
        return largest
    weights = stored.effects.weight, fitted.effects.weight
    if weights[0].shape != weights[1].shape:  # other knots
        return float("inf")
    return max(largest, float(np.abs(weights[0] - weights[1]).max()))


def fit_check(name: str, distances: Mapping[str, float], same: float = SAME_SCALER) -> Check:
    """Verdict on stored values from their `distances` to fits: to the training rows, and to larger sets of rows."""
    says = "the stored values differ by " + ", ".join(
        f"{small(by)} from a fit to {rows}" for rows, by in distances.items()
    )
    alone, *wider = distances.values()
    if alone <= same and min(wider) <= same:
        return Check(name, None, f"{says}, so these data cannot tell them apart")
    return Check(name, alone <= same, says)


def closed_form(forecaster: Forecaster, rows: Callable[[Forecaster], Rows]) -> Check:
    """Verdict on closed-form weights, for a mean on those of all members, after fitting them again to the `rows` of
    each."""
    parts = forecaster.members or (forecaster,)
    parts = tuple(one for one in parts if type(one.model).prepare is not ForecastModel.prepare)
    if not parts:
        return Check(CLOSED_FORM, None, "the model has none")
    distances = dict[str, float]()
    for one in parts:
        for name, (values, observed) in rows(one).items():
            distances[name] = max(distances.get(name, 0.0), _fitted_again(one, values, observed))
    return fit_check(CLOSED_FORM, distances, SAME_WEIGHTS)


def _fitted_again(forecaster: Forecaster, values: Tensor, observed: Tensor | None) -> float:
    """Largest relative difference of the stored weights from a fit to `values` (rows, C); infinite if there are
    none."""
    model = forecaster.model
    stored = model.state_dict()
    trained = {key for key, value in model.named_parameters() if value.requires_grad}
    with torch.random.fork_rng(devices=[]):
        fresh = build_model(forecaster.config.model, forecaster.config.model_config)
    before = {key: value.clone() for key, value in fresh.state_dict().items()}
    fresh.prepare(values.cpu(), None if observed is None else observed.cpu())
    fitted = {k: v for k, v in fresh.state_dict().items() if k not in trained and not torch.equal(v, before[k])}
    differences = (float((stored[k].cpu() - v).abs().max() / v.abs().max()) for k, v in fitted.items())
    return max(differences, default=float("inf"))
