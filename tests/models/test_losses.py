"""Losses and their gradients, compared with formulas in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.base import ForecastModel
from femts.models.losses import BUILT_IN, LOSSES, find_loss, register_loss

B, P, C = 3, 5, 2
LEVELS = (0.25, 0.5, 0.75)


def relative(forecast: Tensor, batch: Batch) -> Tensor:
    """A user-defined loss: absolute error relative to the target."""
    seen = 1.0 if batch.future_observed is None else batch.future_observed.to(forecast.dtype)
    error = (forecast - batch.target).abs() / (1 + batch.target.abs()) * seen
    return error.sum() / (torch.ones_like(error) * seen).sum()


def plain_pinball(error: Tensor) -> Tensor:
    """Mean over levels of the pinball loss of `error` (..., Q)."""
    levels = torch.tensor(LEVELS, dtype=torch.float64)
    return torch.where(error > 0, levels * error, (levels - 1) * error).mean(-1)


PLAIN: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": lambda forecast, target: (forecast - target) ** 2,
    "mae": lambda forecast, target: (forecast - target).abs(),
    "pinball": lambda forecast, target: plain_pinball(target[..., None] - forecast),
    "relative": lambda forecast, target: (forecast - target).abs() / (1 + target.abs()),
}


@pytest.fixture(autouse=True)
def registered() -> Any:
    with patch.dict(LOSSES):
        register_loss("relative")(relative)
        yield


def test_every_loss_is_tested() -> None:
    assert {*BUILT_IN, *LOSSES.names()} == set(PLAIN)
    with pytest.raises(UsageError, match="Unknown loss 'relativ'; did you mean 'relative'"):
        find_loss("relativ")


def test_loss_and_gradient_match_the_formula() -> None:
    for dim in [-2, -1]:
        for gaps in [False, True]:
            for name in PLAIN:
                generator = torch.Generator().manual_seed(0)
                quantiles = LEVELS if name == "pinball" else ()
                model = ForecastModel(ModelConfig(4, P, C), quantiles)
                model.absolute, model.own_loss = name == "mae", find_loss(name)
                outputs = torch.randn(B, P * model.n_outputs, C, generator=generator, dtype=torch.float64)
                target = torch.randn(B, P, C, generator=generator, dtype=torch.float64)
                observed = torch.rand(B, P, C, generator=generator) > 0.3 if gaps else None

                leaf = outputs.clone().requires_grad_()
                seen = None if observed is None else observed.movedim(1, dim)
                found = model.error(leaf.movedim(1, dim), target.movedim(1, dim), seen, dim)
                (slope,) = torch.autograd.grad(found, leaf)

                other = outputs.clone().requires_grad_()
                forecast = other.unflatten(1, (P, -1)).movedim(2, -1) if quantiles else other
                errors = PLAIN[name](forecast, target)
                expected = errors.mean() if observed is None else errors[observed].mean()
                (wanted,) = torch.autograd.grad(expected, other)
                torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-15)
                torch.testing.assert_close(slope, wanted, rtol=1e-12, atol=1e-15)
