"""Scores over all windows, and recursive forecasts."""

import numpy as np
import pytest
import torch
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.data.windows import Windows
from femts.errors import UsageError
from femts.evaluation.evaluator import Share, evaluate
from femts.models.base import ForecastModel
from femts.models.dlinear import DLinear, DLinearConfig
from femts.models.naive import Naive


class CountUp(ForecastModel):
    """Continues a series that grows by 1, three steps at a time, and records its inputs."""

    def __init__(self) -> None:
        super().__init__(ModelConfig(4, 3, 1))
        self.seen: list[Tensor] = []

    def forward(self, batch: Batch) -> Tensor:
        self.seen.append(batch.past)
        return batch.past[:, -1:] + torch.arange(1.0, 4.0).view(1, 3, 1)


def test_forecasts_are_fed_back() -> None:
    for horizon, calls in [(1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (7, 3)]:
        model = CountUp()
        forecast = model.forecast(Batch(torch.arange(4.0).view(1, 4, 1)), horizon)
        assert forecast.flatten().tolist() == [4.0 + step for step in range(horizon)]
        assert len(model.seen) == calls
        assert all(x.shape == (1, 4, 1) for x in model.seen)


def test_non_positive_horizon_is_refused() -> None:
    for horizon in [0, -3]:
        with pytest.raises(UsageError, match=f"horizon of {horizon} steps"):
            CountUp().forecast(Batch(torch.zeros(1, 4, 1)), horizon)


@pytest.fixture
def windows() -> Windows:
    return Windows(torch.randn(60, 3, generator=torch.Generator().manual_seed(0))[4:57], 10, 5)


def test_scores_average_all_windows_steps_and_channels(windows: Windows) -> None:
    scores = evaluate(Naive(ModelConfig(10, 5, 3)), windows, batch_size=7)
    values = windows.rows.double().numpy()
    errors = [values[s + 10 : s + 15] - values[s + 9] for s in range(39)]
    assert scores["windows"] == len(errors) == 39
    assert scores["mse"] == pytest.approx(np.mean(np.square(errors)), rel=1e-6)
    assert scores["mae"] == pytest.approx(np.mean(np.abs(errors)), rel=1e-6)


def test_scores_are_independent_of_batch_size(windows: Windows) -> None:
    model = DLinear(DLinearConfig(10, 5, 3))
    one, all_at_once = evaluate(model, windows, 1), evaluate(model, windows, 1000)
    assert one["mse"] == pytest.approx(all_at_once["mse"], rel=1e-6)


def test_subsampled_windows_are_evenly_spaced(windows: Windows) -> None:
    for most in [1, 5, 39, 100]:
        model = CountUp()
        model.config = ModelConfig(10, 3, 1)
        scores = evaluate(model, Windows(torch.arange(51.0).unsqueeze(1), 10, 3), some=most)
        begins = torch.cat([x[:, 0, 0] for x in model.seen])
        assert scores["windows"] == len(begins) == min(most, 39)
        gaps = begins.diff()
        assert begins[0] == 0 and (most == 1 or begins[-1] == 38) and (most < 3 or gaps.max() - gaps.min() <= 1)
        assert scores["mse"] == 0


def test_process_shares_sum_to_the_total(windows: Windows) -> None:
    model = DLinear(DLinearConfig(10, 5, 3))
    kept: list[Tensor] = []

    def keep(sums: Tensor) -> Tensor:
        kept.append(sums.clone())
        return sums

    for rank in range(3):
        evaluate(model, windows, 4, share=Share(rank, 3, keep))
    total = torch.stack(kept).sum(0)
    assert int(total[2]) == 39 * 5 * 3
    assert (total[0] / total[2]).item() == pytest.approx(evaluate(model, windows)["mse"], rel=1e-6)


def test_evaluate_uses_eval_mode_and_float32(windows: Windows) -> None:
    seen = []

    class Watch(Naive):
        def forward(self, batch: Batch) -> Tensor:
            product = batch.past.transpose(1, 2) @ batch.past  # autocast would make this bfloat16
            seen.append((self.training, product.dtype, torch.is_grad_enabled()))
            return super().forward(batch)

    model = Watch(ModelConfig(10, 5, 3)).train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        evaluate(model, windows)
    assert set(seen) == {(False, torch.float32, False)}
    assert model.training
