"""`training.compile`: the same loss and gradients, or a refusal."""

from __future__ import annotations

import pytest
import torch
from small_runs import small_run

from femts.config.training import TrainingConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.registry import build_config, build_model
from femts.training.accelerator import find_accelerator, missing_compiler

needs_compiler = pytest.mark.skipif(missing_compiler("cpu") is not None, reason=f"{missing_compiler('cpu')}")


def test_without_a_compiler_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(UsageError, match=r"training.compile.*no C\+\+ compiler.*leave it at false"):
        find_accelerator(TrainingConfig(device="cpu", compile=True))
    assert find_accelerator(TrainingConfig(device="cpu")).device == "cpu"
    with pytest.raises(UsageError, match="goes with precision 32 alone"):
        find_accelerator(TrainingConfig(device="cpu", compile=True, precision="bf16"))


@needs_compiler
def test_compiled_loss_and_gradients_agree_with_the_plain_ones() -> None:
    torch.manual_seed(0)
    settings = {"d_model": 16, "n_layers": 1, "n_heads": 2, "dropout": 0.0}
    model = build_model(
        "fem_sm", build_config("fem_sm", seq_len=8, pred_len=8, n_channels=2, settings=settings)
    ).double()
    batch = Batch(torch.randn(3, 8, 2).double(), future=torch.randn(3, 8, 2).double())
    losses = [loss(batch) for loss in (model.loss, torch.compile(model.loss, dynamic=False, fullgraph=True))]
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-12, atol=0)
    plain, compiled = (torch.autograd.grad(loss, list(model.parameters())) for loss in losses)
    for one, other in zip(compiled, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@needs_compiler
def test_a_compiled_run_scores_like_a_plain_one() -> None:
    plain, compiled = (small_run(max_epochs=1, settings={"training.compile": on}) for on in (False, True))
    assert compiled.metrics["test"]["mse"] == pytest.approx(plain.metrics["test"]["mse"], rel=1e-5)
    assert compiled.config.training.compile is True
