"""The layer, forecasts and training on a CUDA device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from combinations import pairwise
from mixer_cases import PRIORS, gradient_of
from model_cases import of_each_class

import femts
from femts.cli import main
from femts.data.batch import Batch
from femts.data.loading import load_dataset
from femts.errors import UsageError
from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig
from femts.models.registry import build_config, build_model, model_card, model_names
from scripts.bench.__main__ import run
from scripts.bench.measure import peak_bytes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and this machine has none")


@pairwise(prior=PRIORS, causal=(True, False), length=(22, 300))
def test_layer_agrees_with_cpu(prior: str, causal: bool, length: int) -> None:
    torch.manual_seed(0)
    config = FreeEnergyMixerConfig(n_embd=64, n_head=4, prior_type=prior, causal=causal, ssm_rank=4)
    layer = FreeEnergyMixer(config).double()
    assert layer.conditioner is not None
    torch.nn.init.normal_(layer.conditioner.out_proj.weight, std=0.5)
    x = torch.randn(2, length, 64, dtype=torch.float64, requires_grad=True)
    y = layer(x)
    (expected,) = torch.autograd.grad(y.square().sum(), x)
    moved = x.detach().cuda().requires_grad_()
    z = layer.cuda()(moved)
    (got,) = torch.autograd.grad(z.square().sum(), moved)
    torch.testing.assert_close(z.cpu(), y, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(got.cpu(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("prior", PRIORS)
def test_layer_in_bfloat16_is_finite_and_near(prior: str) -> None:
    torch.manual_seed(0)
    layer = FreeEnergyMixer(FreeEnergyMixerConfig(n_embd=64, n_head=4, prior_type=prior, ssm_rank=4)).cuda()
    x = torch.randn(2, 200, 64, device="cuda", requires_grad=True)
    y = layer(x)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        z = layer(x)
    z.float().square().sum().backward()
    assert torch.isfinite(z).all() and torch.isfinite(gradient_of(x)).all()
    assert (z.float() - y).abs().max() < 0.05 * y.abs().max()


def test_flash_backend_runs_or_is_refused() -> None:
    config = FreeEnergyMixerConfig(n_embd=64, n_head=4, softmax_backend="flash")
    layer = FreeEnergyMixer(config).cuda()
    x = torch.randn(2, 128, 64, device="cuda")
    with pytest.raises(UsageError, match="not 16 bits"):
        layer(x)
    assert torch.isfinite(layer.bfloat16()(x.bfloat16())).all()


@pytest.mark.parametrize(
    "name", of_each_class(name for name in model_names() if not model_card(name).model_class.supports.raw)
)
def test_forecaster_agrees_with_cpu(name: str) -> None:
    torch.manual_seed(0)
    settings = {"season": 24} if name == "seasonal_naive" else {}
    model = build_model(name, build_config(name, seq_len=96, pred_len=24, n_channels=3, settings=settings)).eval()
    x = torch.randn(4, 96, 3)
    with torch.no_grad():
        torch.testing.assert_close(model.cuda()(Batch(x.cuda())).cpu(), model.cpu()(Batch(x)), rtol=1e-4, atol=1e-4)


def test_one_epoch_in_bf16_scores_near_the_cpu() -> None:
    data = load_dataset("synthetic")
    few: dict[str, Any] = {"max_steps": 50, "seq_len": 192, "settings": {"model.dropout": 0.0}}
    gpu = femts.train(data, "fem_gla", 24, device="cuda", precision="bf16", **few)
    cpu = femts.train(data, "fem_gla", 24, device="cpu", **few)
    assert gpu.metrics["device"] == "cuda" and gpu.metrics["precision"] == "bf16"
    assert gpu.metrics["val"]["mse"] == pytest.approx(cpu.metrics["val"]["mse"], rel=0.05)


def test_report_and_backtest_on_gpu(tmp_path: Path) -> None:
    run = tmp_path / "run"
    few: dict[str, Any] = {
        "max_steps": 50,
        "seq_len": 192,
        "out": run,
        "settings": {"model.d_model": 16, "model.n_layers": 1},
    }
    femts.train("synthetic", "fem_sm", 24, device="cuda", **few)
    assert main(["report", str(run), "--device", "cuda"]) == 0
    forecaster = femts.Forecaster.load(run, "cuda")
    past, later = (
        femts.backtest(forecaster, "synthetic", n_windows=1, step_size=24, refit=refit) for refit in (False, True)
    )
    assert np.isfinite(past["forecast"]).all() and np.isfinite(later["forecast"]).all()


def test_peak_of_known_allocations_is_exact() -> None:
    size = 1 << 20
    assert (
        peak_bytes(lambda: torch.zeros(size, device="cuda") + torch.ones(size, device="cuda"), "cuda") == 3 * 4 * size
    )


@pytest.mark.parametrize(
    ("command", "precision"),
    [
        ("mixer --lengths 8 70 --tokens 140 --d-model 32", "32"),
        ("train --models sm fem_mamba --seq-len 192 --horizon 24 --batch-size 4", "bf16"),
    ],
)
def test_bench_runs(command: str, precision: str) -> None:
    record = run(f"{command} --repeats 2 --device cuda --precision {precision}".split())
    assert record["machine"]["device"] == "cuda" and record["machine"]["precision"] == precision
    assert all(row["step"]["seconds"] > 0 and row["peak_bytes"] > 0 for row in record["rows"])
