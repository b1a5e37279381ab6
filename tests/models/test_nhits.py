"""N-HiTS, compared with explicit stacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_tables import small_table
from torch import Tensor

import femts
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.nhits import Interpolation, NHiTS, NHiTSConfig, Stack
from femts.models.registry import build_config

B, L, P, C, K, E = 3, 11, 7, 2, 4, 2
QUANTILES = (0.1, 0.5, 0.9)


def make(quantiles: tuple[float, ...] = (), seq_len: int = L, pred_len: int = P, **settings: Any) -> NHiTS:
    torch.manual_seed(0)
    return NHiTS(NHiTSConfig(seq_len, pred_len, C, **{"hidden": 16, **settings}), quantiles).double().eval()


def draws() -> Batch:
    def draw(*shape: int) -> Tensor:
        return torch.randn(B, *shape, generator=generator, dtype=torch.float64)

    generator = torch.Generator().manual_seed(1)
    return Batch(draw(L, C), known=draw(L + P, K), static=draw(E), future=draw(P, C))


def interpolate(coefficients: Tensor, steps: int) -> Tensor:
    """Linear interpolation of coefficients (K,) to `steps` steps."""
    count, values = len(coefficients), []
    for step in range(steps):
        place = min(max((step + 0.5) * count / steps - 0.5, 0), count - 1)
        low = min(int(place), max(count - 2, 0))
        values.append(coefficients[low] + (place - low) * (coefficients[min(low + 1, count - 1)] - coefficients[low]))
    return torch.stack(values)


def plain_stack(stack: Stack, series: Tensor, beside: Tensor | None, pool: int) -> tuple[Tensor | None, list[Tensor]]:
    """Backcast (L,) and a forecast (P,) for each output, for one channel."""
    groups = [series[max(end - pool, 0) : end].max() for end in range(len(series), 0, -pool)]
    hidden = stack.series.weight @ torch.stack(groups) + stack.series.bias
    if stack.beside is not None and beside is not None:
        hidden = hidden + stack.beside.weight @ beside
    hidden = hidden.clamp(min=0)
    for layer in stack.mlp:
        if isinstance(layer, torch.nn.Linear):
            hidden = (layer.weight @ hidden + layer.bias).clamp(min=0)
    made = stack.forecast.weight @ hidden + stack.forecast.bias
    forecasts = [interpolate(each, P) for each in made.chunk(stack.outputs)]
    if stack.backcast is None:
        return None, forecasts
    return interpolate(stack.backcast.weight @ hidden + stack.backcast.bias, L), forecasts


@pytest.mark.parametrize(("pool", "downsample", "outputs"), [(1, 1, 3), (2, 4, 1), (3, 2, 3), (20, 20, 1)])
def test_stack_and_gradients_match_the_paper(pool: int, downsample: int, outputs: int) -> None:
    torch.manual_seed(0)
    config = NHiTSConfig(L, P, C, pool=(pool, 1), downsample=(downsample, 1), hidden=8, n_hidden=3)
    stack = Stack(config, 0, E, outputs).double()
    x, beside = (torch.randn(B, *shape, dtype=torch.float64) for shape in ((C, L), (E,)))

    def plain(x: Tensor, beside: Tensor) -> tuple[Tensor, Tensor]:
        made = [[plain_stack(stack, channel, e, pool) for channel in w] for w, e in zip(x, beside, strict=True)]
        back = torch.stack([torch.stack([b for b, _ in row if b is not None]) for row in made])
        return back, torch.stack([torch.stack([torch.stack(f) for _, f in row]) for row in made])

    def passes(run: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> list[Tensor]:
        leaves = [each.clone().requires_grad_() for each in (x, beside)]
        outs = run(*leaves)
        loss = torch.stack([(out * torch.linspace(-1, 2, out.numel()).view_as(out)).sum() for out in outs]).sum()
        return [*outs, *torch.autograd.grad(loss, [*leaves, *stack.parameters()])]

    for one, other in zip(passes(stack), passes(plain), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("quantiles", [(), QUANTILES], ids=["mean", "quantiles"])
def test_forecast_sums_the_stacks(quantiles: tuple[float, ...]) -> None:
    model, batch = make(quantiles, n_known=K, n_static=E), draws()
    assert batch.known is not None and batch.static is not None
    series = batch.past[1, :, 1]
    mean, deviation = series.mean(), (series.var(correction=0) + 1e-5).sqrt()
    left = (series - mean) / deviation
    forecasts = [left[-1]] * model.n_outputs
    stack: Any
    for stack, pool in zip(model.stacks, model.config.pool, strict=True):
        back, parts = plain_stack(stack, left, torch.cat([batch.known[1].flatten(), batch.static[1]]), pool)
        forecasts = [one + part for one, part in zip(forecasts, parts, strict=True)]
        left = left if back is None else left - back
    expected = torch.stack(forecasts, dim=1).flatten() * deviation + mean  # a step's quantiles side by side
    torch.testing.assert_close(model(batch)[1, :, 1], expected)


def test_short_look_backs_and_horizons() -> None:
    for seq_len, pred_len in [(1, 1), (3, 1), (2, 30), (52, 13)]:
        model = make(seq_len=seq_len, pred_len=pred_len, pool=(24, 4, 1), downsample=(24, 12, 1))
        assert model(Batch(torch.randn(B, seq_len, C, dtype=torch.float64))).shape == (B, pred_len, C)


def test_interpolation_matches_torch() -> None:
    coefficients = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = torch.nn.functional.interpolate(coefficients, 13, mode="linear")
    torch.testing.assert_close(Interpolation(13, 4)(coefficients), expected)


def test_shift_and_scale_equivariance() -> None:
    model, batch = make(n_known=K, n_static=E), draws()
    moved = replace(batch, past=5 + 100 * batch.past)
    torch.testing.assert_close(model(moved), 5 + 100 * model(batch), rtol=1e-3, atol=1e-3)
    shifted = replace(batch, past=5 + batch.past)
    torch.testing.assert_close(model(shifted), 5 + model(batch), rtol=1e-10, atol=1e-10)


def test_channels_are_independent() -> None:
    model, batch = make(), draws()
    other = batch.past.clone()
    other[..., 1:] = 9
    torch.testing.assert_close(model(Batch(other))[..., 0], model(Batch(batch.past))[..., 0])


def test_constant_window_has_finite_gradients() -> None:
    model, batch = make(n_known=K, n_static=E), draws()
    model.loss(replace(batch, past=torch.full_like(batch.past, 3.0))).backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all(), name


@pytest.mark.parametrize("quantiles", [False, True])
def test_roundtrip_is_bit_identical(quantiles: bool, tmp_path: Path) -> None:
    reading: dict[str, Any] = {"future_covariates": "open", "calendar": True}
    data = femts.load_dataset(small_table(columns=("load", "open")), target="load", **reading)
    settings = {"model.hidden": 16} | ({"training.loss": "pinball"} if quantiles else {})
    fc = femts.train(data, "nhits", 12, seq_len=24, max_steps=3, settings=settings, device="cpu", out=tmp_path / "run")
    again = femts.load(tmp_path / "run")
    assert again.scores("test", dataset=data).equals(fc.scores("test"))
    for name, weights in fc.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], weights), name


def test_unequal_stack_settings_are_refused() -> None:
    for pool, downsample in [("2,2", "4,2,1"), ("2", "2,1")]:
        sentence = (
            rf"^Settings 'model\.pool' \({pool}\) and 'model\.downsample' \({downsample}\) need one number per stack"
        )
        with pytest.raises(UsageError, match=sentence):
            build_config(
                "nhits", seq_len=L, pred_len=P, n_channels=C, settings={"pool": pool, "downsample": downsample}
            )
