"""Running averages of weights."""

from pathlib import Path
from typing import Any

import torch
from small_runs import small_run

from femts.data.batch import Batch
from femts.forecaster.run_folder import CHECKPOINT
from femts.models.dlinear import DLinear, DLinearConfig
from femts.models.patchtst import PatchTST, PatchTSTConfig
from femts.training.checkpoint import TrainState
from femts.training.ema import RunningAverage

CONFIG = DLinearConfig(seq_len=3, pred_len=2, n_channels=1)


def trend_weight(average: RunningAverage) -> torch.Tensor:
    model: Any = average.model
    weight: torch.Tensor = model.trend.weight
    return weight


def test_running_average_formula_and_resume() -> None:
    torch.manual_seed(0)
    model = DLinear(CONFIG).double()
    average, expected = RunningAverage(model, 0.5, {}, 0), model.trend.weight.detach().clone()
    for step in range(12):
        if step == 5:
            average = RunningAverage(model, 0.5, average.model.state_dict(), average.steps)
        with torch.no_grad():
            model.trend.weight.add_(torch.randn(2, 3))
        average.update()
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.trend.weight.detach()
    torch.testing.assert_close(trend_weight(average), expected, rtol=1e-12, atol=0)
    assert average.steps == 12


def test_averaged_weights_are_kept(tmp_path: Path) -> None:
    run = small_run(max_epochs=1, out=tmp_path / "run")
    state = TrainState.load(tmp_path / "run" / CHECKPOINT)
    kept = run.model.state_dict()
    assert all(torch.equal(kept[name], value) for name, value in state.average.items())
    assert not any(torch.equal(kept[name], value) for name, value in state.model.items())


def test_ema_zero_keeps_the_last_weights(tmp_path: Path) -> None:
    run = small_run(max_epochs=1, out=tmp_path / "run", settings={"training.ema": 0})
    state = TrainState.load(tmp_path / "run" / CHECKPOINT)
    assert all(torch.equal(run.model.state_dict()[name], value) for name, value in state.model.items())


def test_batch_norm_statistics_are_copied_not_averaged() -> None:
    model = PatchTST(PatchTSTConfig(16, 2, 1, patch_len=8, d_model=4, n_heads=1))
    average = RunningAverage(model, 0.9, {}, 0)
    model(Batch(torch.randn(5, 16, 1)))
    average.update()
    pairs = list(zip(average.model.buffers(), model.buffers(), strict=True))
    assert pairs and all(torch.equal(kept, current) for kept, current in pairs)
