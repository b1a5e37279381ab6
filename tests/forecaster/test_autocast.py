"""The caller's autocast does not change results, and training in bfloat16 stays near float32."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import femts

SETTINGS = {"model.d_model": 16, "model.n_layers": 1, "model.n_heads": 2}


def bf16_autocast() -> AbstractContextManager[None]:
    return torch.autocast("cpu", dtype=torch.bfloat16)


def waves(rows: int = 300) -> pd.DataFrame:
    hour = np.arange(rows)
    dates = pd.date_range("2024", periods=rows, freq="h")
    return pd.DataFrame({"date": dates, "a": 5 + np.sin(hour / 4), "b": 3 + np.cos(hour / 4)})


@pytest.mark.parametrize("model", ["fem_sm", "fem_sm_ridge", "dlinear"])
def test_autocast_does_not_change_results(model: str) -> None:
    table = waves()
    look_back = table[["a", "b"]].to_numpy()[None, -48:]

    def made() -> list[object]:
        settings = SETTINGS if model != "dlinear" else {}
        forecaster = femts.train(table, model, 12, seq_len=48, max_steps=4, settings=settings)
        cutoffs: dict[str, Any] = {"n_windows": 2, "step_size": 12}
        return [
            forecaster.predict(table, 12, [80]).iloc[:, 1:].to_numpy(),
            forecaster.predict_array(look_back),
            list(forecaster.evaluate().values()),
            forecaster.metrics["test"]["mse"],
            femts.backtest(forecaster, table, **cutoffs)["forecast"].to_numpy(),
            forecaster.explain(table).select_dtypes("number").to_numpy() if model == "fem_sm" else 0,
        ]

    plain = made()
    with bf16_autocast():
        lowered = made()
    for one, other in zip(plain, lowered, strict=True):
        np.testing.assert_array_equal(one, other)  # type: ignore[arg-type]


def test_autocast_does_not_change_a_panel_forecast() -> None:
    panel = waves(120).melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})
    forecaster = femts.train(panel, "fem_sm", 12, seq_len=24, max_steps=4, settings=SETTINGS)
    plain = forecaster.predict(panel)
    with bf16_autocast():
        pd.testing.assert_frame_equal(forecaster.predict(panel), plain, check_exact=True)


@pytest.mark.parametrize("model", ["fem_gla", "fem_sm", "itransformer"])
def test_training_in_bfloat16_is_near_float32(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where `auto` trains in bfloat16."""

    def validations() -> list[float]:
        settings = {**SETTINGS, "model.dropout": 0.0, "training.val_every": 10, "training.lr": 1e-2}
        forecaster = femts.train(waves(), model, 12, seq_len=48, max_steps=30, settings=settings)
        return [row["val_mse"] for row in forecaster.validations]

    plain = validations()

    import lightning_fabric  # which femts has imported without torchmetrics; that takes seconds

    whole = lightning_fabric.Fabric

    def fabric(**options: Any) -> lightning_fabric.Fabric:
        return whole(**{**options, "precision": "bf16-mixed"})

    monkeypatch.setattr(lightning_fabric, "Fabric", fabric)
    lowered = validations()
    assert lowered != plain and plain[-1] < 0.8 * plain[0]
    assert lowered == pytest.approx(plain, rel=0.05)
