"""Learned quantiles made honest, against computations by hand, and their coverage where it is promised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from even_intervals import covering, even_intervals
from every_window import every_window
from scipy.stats import norm
from sklearn.metrics import mean_pinball_loss
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.data.resident import ScaledSeries
from femts.data.windows import Windows
from femts.errors import UsageError
from femts.evaluation.conformal import calibrate, passes
from femts.evaluation.evaluator import evaluate
from femts.evaluation.quantiles import PinballSums, check_quantiles, conformal_bounds, ends_of, level_of, quantile_at
from femts.models.base import ForecastModel

KNOWN = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
P, C = 2, 2


class Spread(ForecastModel):
    """Quantiles of a normal around 0 whose deviation is `factor` times the size of the last value."""

    def __init__(self, factor: float = 1.0, known: Sequence[float] = KNOWN) -> None:
        super().__init__(ModelConfig(1, P, C), known)
        self.factor = factor

    def forward(self, batch: Batch) -> Tensor:
        places = torch.tensor(self.factor * norm.ppf(self.quantiles)).float()
        return (batch.past[:, -1:].abs() * places[:, None]).repeat(1, P, 1)


def windows(count: int, seed: int = 0, gaps: float = 0.0) -> Windows:
    """Independent windows of 1 + P rows, of which the last P are normal noise as wide as the first row says.

    `Windows` of stride 1 would overlap and see each other's noise as look-back, so these are picked apart.
    """
    rng = np.random.default_rng(seed)
    wide = rng.uniform(0.5, 3, (count, 1, C))
    rows = np.concatenate([wide, wide * rng.normal(size=(count, P, C))], axis=1).reshape(-1, C)
    observed = None if not gaps else torch.from_numpy(rng.random(rows.shape) >= gaps)

    class Apart(Windows):
        def _rows(self, index: Tensor) -> Tensor:
            return (1 + P) * index[:, None] + self._steps

    spans = torch.tensor([[0, len(rows), 0, count]])
    return Apart(ScaledSeries(torch.from_numpy(rows).float(), observed), 1, P, spans)


def quantiles_of(model: ForecastModel, these: Windows) -> tuple[Tensor, np.ndarray]:
    batch, y = every_window(these)
    return model.rolled_out(batch, P), y.numpy()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([0], "Quantile '0' is not a number between 0 and 1"),
        ([0.5, 1.0], "Quantile '1.0' is not"),
        ([float("nan")], "Quantile 'nan' is not"),
        (["low"], "Quantile 'low' is not"),
        ("0.5", "Quantile '0.5' is not"),
        ([True], "Quantile 'True' is not"),
        ([], "No quantile is named"),
    ],
)
def test_quantiles_that_are_none_are_refused(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_quantiles(given)


def test_ends_and_levels_are_exact() -> None:
    assert check_quantiles([0.9, np.float64(0.1), 0.9]) == (0.9, 0.1)
    assert [ends_of(level) for level in (50, 80, 90, 95, 99)] == [
        (0.25, 0.75), (0.1, 0.9), (0.05, 0.95), (0.025, 0.975), (0.005, 0.995)
    ]  # fmt: skip
    for level in (50.0, 80.0, 85.0, 90.0, 95.0, 97.5, 99.0, 99.9):
        assert [level_of(end) for end in ends_of(level)] == [level, level]
    assert level_of(0.5) == 0
    made = even_intervals((80.0, 95.0), np.zeros((2, 1, 1)))
    assert made.quantiles == (0.025, 0.1, 0.5, 0.9, 0.975)


def test_quantiles_between_and_beyond_those_known() -> None:
    forecast = torch.tensor([-3.0, 0.0, 5.0])[None, None, :, None]
    for quantile, expected in ((0.1, -3), (0.5, 0), (0.7, 2.5), (0.9, 5), (0.3, -1.5), (0.01, -3), (0.999, 5)):
        assert float(quantile_at(forecast, (0.1, 0.5, 0.9), quantile)) == pytest.approx(expected, abs=1e-6)


def test_corrections_are_the_order_statistics_of_how_far_targets_are_outside() -> None:
    model, val = Spread(0.7), windows(139)
    made, _ = calibrate(model, val)
    assert (made.levels, made.windows) == ((50, 80, 90, 95, 99), 139)
    forecast, y = quantiles_of(model, val)
    for level, correction in zip(made.levels, made.half_widths, strict=True):
        low, high = (quantile_at(forecast, KNOWN, end).numpy() for end in ends_of(level))
        outside = np.sort(np.maximum(low - y, y - high), axis=0)
        np.testing.assert_array_equal(correction, outside[math.ceil(140 * level / 100) - 1])
    assert (made.half_widths[1:] > 0).all(), "too narrow quantiles move outwards"
    assert (calibrate(Spread(3.0), val)[0].half_widths[:4] < 0).all(), "and too wide ones inwards"


@pytest.mark.parametrize("most", [1, 7 * 139 * C, 10**9])
def test_blocks_of_steps_make_no_difference(most: int) -> None:
    calls = 0

    class Count(Spread):
        def forward(self, batch: Batch) -> Tensor:
            nonlocal calls
            calls += 1
            return super().forward(batch)

    made, _ = calibrate(Count(), windows(139), batch_size=1000, most=most)
    assert calls == passes(139, P, C, most, learned=5) == {1: 2, 7 * 139 * C: 2, 10**9: 1}[most]
    np.testing.assert_array_equal(made.half_widths, calibrate(Spread(), windows(139), batch_size=7)[0].half_widths)


def test_bounds_hold_the_median_and_each_other_whatever_the_corrections() -> None:
    forecast, _ = quantiles_of(Spread(), windows(50))
    levels = (50.0, 80.0, 95.0)
    corrections = np.random.default_rng(0).normal(-0.5, 2, (3, P, C)).astype(np.float32)
    bounds = list(conformal_bounds(forecast, KNOWN, levels, list(torch.from_numpy(corrections).double())))
    lower, upper = (torch.stack(side) for side in zip(*bounds, strict=True))
    median = forecast[:, :, 3].double()
    assert (lower <= median).all() and (upper >= median).all()
    assert (lower.diff(dim=0) <= 0).all() and (upper.diff(dim=0) >= 0).all()
    plain = list(conformal_bounds(forecast, KNOWN, levels, list(torch.full((3, P, C), 0.25))))
    torch.testing.assert_close(plain[1][0], forecast[:, :, 1].double() - 0.25)
    torch.testing.assert_close(plain[2][1], forecast[:, :, 6].double() + 0.25)


@pytest.mark.parametrize("factor", [0.3, 1.0, 3.0], ids=["too narrow", "right", "too wide"])
def test_exchangeable_windows_are_covered_as_promised(factor: float) -> None:
    """However wrong the quantiles are; 4 standard deviations bound the share of independent windows."""
    model, val, test = Spread(factor), windows(2000), windows(10_000, seed=1)
    made, _ = calibrate(model, val)
    sums = covering(made, test, KNOWN)
    evaluate(model, test, also=[sums])
    for level, measured in zip(made.levels, sums.coverage, strict=True):
        share = level / 100
        deviation = math.sqrt(share * (1 - share) * (1 / len(val) + 1 / len(test)))
        assert np.abs(measured - share).max() < 4 * deviation


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_coverage_width_and_pinball_against_sklearn(gaps: float) -> None:
    model, test = Spread(0.8), windows(90, 1, gaps)
    made, _ = calibrate(model, windows(300, 0, gaps))
    one_by_one, at_once = (covering(made, test, KNOWN) for _ in range(2))
    own = PinballSums(KNOWN)
    evaluate(model, test, 1, also=[one_by_one])
    evaluate(model, test, 1000, also=[at_once, own])
    for name in ("coverage", "width", "pinball", "crps"):
        np.testing.assert_allclose(getattr(one_by_one, name), getattr(at_once, name), rtol=1e-12)
    forecast, target = quantiles_of(model, test)
    seen = test.seen(torch.arange(len(test)))
    there = np.ones_like(target, dtype=bool) if seen is None else (seen[:, 1:] & seen[:, :1]).numpy()
    assert gaps == 0 or not there.all()
    bounds = conformal_bounds(forecast, KNOWN, made.levels, list(torch.from_numpy(made.half_widths).double()))
    for k, (level, (lower, upper)) in enumerate(zip(made.levels, bounds, strict=True)):
        for step, channel in np.ndindex(P, C):
            some = there[:, step, channel]
            low, high, y = (np.asarray(v)[some, step, channel] for v in (lower, upper, target.astype(np.float64)))
            assert at_once.coverage[k, step, channel] == pytest.approx(np.mean((low <= y) & (y <= high)))
            assert at_once.width[k, step, channel] == pytest.approx(np.mean(high - low))
            losses = [mean_pinball_loss(y, end, alpha=a) for end, a in zip((low, high), ends_of(level), strict=True)]
            assert at_once.pinball[k, step, channel] == pytest.approx(np.mean(losses), rel=1e-6)
    expected = [
        mean_pinball_loss(target[there], forecast[:, :, q].numpy()[there], alpha=alpha) for q, alpha in enumerate(KNOWN)
    ]
    assert own.mean == pytest.approx(np.mean(expected), rel=1e-6)
    assert own.sums[1] == there.sum()


def test_the_median_alone_is_split_conformal() -> None:
    """With no quantiles beside it, intervals are those of absolute errors around it."""

    class Zero(Spread):
        def forward(self, batch: Batch) -> Tensor:
            return torch.zeros(len(batch.past), P * self.n_outputs, C)

    val = windows(139)
    made, plain = (calibrate(Zero(known=known), val)[0] for known in ((0.5,), ()))
    np.testing.assert_array_equal(made.half_widths, plain.half_widths)
    test = windows(90, 1)
    sums = [covering(made, test, known) for known in ((0.5,), ())]
    for model, each in zip((Zero(known=(0.5,)), Zero(known=())), sums, strict=True):
        evaluate(model, test, also=[each])
    for name in ("coverage", "width", "pinball", "crps"):
        np.testing.assert_allclose(getattr(sums[0], name), getattr(sums[1], name), rtol=1e-6)
