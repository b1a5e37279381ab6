"""Intervals calibrated on few windows."""

from __future__ import annotations

import numpy as np
import torch
from every_window import every_window
from scipy.stats import t
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.data.resident import ScaledSeries
from femts.data.windows import Windows
from femts.evaluation.conformal import calibrate, order_statistics
from femts.evaluation.constants import FEW, GRID
from femts.evaluation.few import are_few, student_widths
from femts.models.base import ForecastModel

L, P, C = 6, 8, 2


class FixedForecast(ForecastModel):
    """Zeros, or quantiles whose width falls with the step."""

    def __init__(self, quantiles: bool = False) -> None:
        super().__init__(ModelConfig(L, P, C), (0.1, 0.5, 0.9) if quantiles else ())

    def forward(self, batch: Batch) -> Tensor:
        places = torch.tensor([-1.0, 0.0, 1.0]) if self.quantiles else torch.zeros(1)
        size = torch.linspace(2, 1, P)[:, None, None] * places[None, :, None]
        return size.expand(len(batch.past), P, len(places), C).flatten(1, 2)


def some_windows(count: int, gaps: float = 0.0, seed: int = 0) -> Windows:
    rng = np.random.default_rng(seed)
    series = torch.from_numpy(rng.standard_normal((count + L + P - 1, C)) * [1.0, 5.0]).float()
    observed = torch.from_numpy(rng.random(series.shape) >= gaps) if gaps else None
    return Windows(ScaledSeries(series, observed), L, P)


def test_half_widths_are_monotone() -> None:
    for gaps in [0.0, 0.4]:
        for count in [1, 2, 9, 99]:
            made, scores = calibrate(FixedForecast(), some_windows(count, gaps))
            assert made.few and made.levels == GRID and scores["windows"] == count
            assert made.disjoint == -(-count // P)
            assert (np.diff(made.half_widths, axis=1) >= 0).all() and (np.diff(made.half_widths, axis=0) > 0).all()
            assert np.isfinite(made.half_widths).all()


def test_scale_is_pooled_to_rise_with_the_horizon() -> None:
    series = torch.cat([torch.zeros(L, C), torch.tensor([1.0, 3, 2, 4, 5, 6, 7, 8])[:, None].expand(-1, C)])
    made, _ = calibrate(FixedForecast(), Windows(series, L, P), (80,))
    pooled = np.sqrt((9 + 4) / 2)
    expected = t.ppf(0.9, 2) * np.array([1, pooled, pooled, 4, 5, 6, 7, 8])
    np.testing.assert_allclose(made.half_widths[0, :, 0], expected, rtol=1e-6)


def test_many_windows_use_order_statistics() -> None:
    for count in (FEW, 8 * 20, 700):
        these = some_windows(count)
        made, _ = calibrate(FixedForecast(), these)
        errors = np.ascontiguousarray(every_window(these)[1].abs().numpy().transpose(1, 2, 0))
        assert not made.few
        np.testing.assert_array_equal(made.half_widths, order_statistics(errors, made.levels, made.disjoint))
    assert are_few(99, 19) and not are_few(100, 1) and not are_few(20, 20)


def test_learned_quantiles_are_widened() -> None:
    these = some_windows(9)
    (made, _), (plain, _) = (calibrate(FixedForecast(quantiles), these, (80,)) for quantiles in (True, False))
    np.testing.assert_allclose(made.half_widths[0] + np.linspace(2, 1, P)[:, None], plain.half_widths[0], rtol=1e-5)


def test_channel_without_values_has_no_intervals() -> None:
    these = some_windows(5)
    observed = torch.ones_like(these.rows, dtype=torch.bool)
    observed[L:, 1] = False
    made, _ = calibrate(FixedForecast(), Windows(ScaledSeries(these.rows, observed), L, P))
    assert np.isfinite(made.half_widths[:, :, 0]).all() and made.missing.tolist() == [False, True]


def test_few_windows_cover_normal_errors() -> None:
    covered = []
    for seed in range(400):
        made, _ = calibrate(FixedForecast(), some_windows(P + 1, seed=seed), (80,))
        after = every_window(some_windows(P + 1, seed=seed + 1000))[1].abs().numpy()
        covered.append((after <= made.half_widths[0]).mean())
    assert 0.8 <= np.mean(covered) < 0.95


def test_steps_without_errors_are_wider_by_their_square_root() -> None:
    errors = np.full((8, 1, 4), np.nan)
    for step in range(3):  # as at the end of a short table: one window less at each step
        errors[step, 0, : 4 - step] = step + 1.0
    widths = student_widths(errors, (80,), 1)[0, :, 0] / t.ppf(0.9, 2)
    np.testing.assert_allclose(widths, [1, 2, 3, *(3 * np.sqrt(np.arange(4, 9) / 3))])
