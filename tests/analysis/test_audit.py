"""Every registered model passes the audit, and planted leaks are detected."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from model_cases import DATA, check_audit, of_each_class, quick_run
from small_panels import panel_forecaster, panel_table
from torch import Tensor

import femts
from femts.analysis.audit import run as audit_module
from femts.cli import main
from femts.data.batch import Batch
from femts.data.loading import load_dataset
from femts.data.preprocess import Preprocess
from femts.data.synthetic import synthetic_frame
from femts.data.windows import Windows
from femts.errors import UsageError
from femts.evaluation import evaluator
from femts.forecaster.forecaster import Forecaster
from femts.models.base import Supports
from femts.models.dlinear import DLinear
from femts.models.itransformer import ITransformer
from femts.models.registry import model_card, model_names
from femts.training.train import train

WINDOWS = 120 - 12 + 1


def failed(forecaster: Forecaster) -> set[str]:
    return {check.name for check in femts.audit(forecaster).failed}


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", of_each_class(name for name in model_names() if not model_card(name).model_class.supports.raw)
)
def test_every_model_passes_the_audit(model: str) -> None:
    check_audit(model)


@pytest.mark.parametrize("model", ["ridge", "dlinear"])
def test_panel_model_passes_the_audit(model: str) -> None:
    audit = femts.audit(panel_forecaster(model))
    assert {check.name: check.passed for check in audit.checks} == {
        "future rows": True,
        "scaler": True,
        "closed-form weights": True if model == "ridge" else None,
        "order and batch size": True,
        "every window": True,
        "other channels": None,
        "stored score": True,
    }
    assert {score.units for score in audit.scores} == {"scaled"}


def test_bounded_panel_forecasts_pass_the_audit() -> None:
    table = panel_table()
    table["y"] = table["y"].where(table["unique_id"] != "long", 0.0)
    data = load_dataset(table, min=1e-3, panel=True)
    assert not femts.audit(train(data, "dlinear", 7, seq_len=14, max_steps=2)).failed


@pytest.mark.parametrize("make", [quick_run, panel_forecaster])
def test_scaler_fitted_on_later_rows_is_detected(
    make: Callable[[str], Forecaster], monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = Preprocess.fit
    with monkeypatch.context() as patch:
        patch.setattr(Preprocess, "fit", lambda data, *rest, **more: fit(data.learning("test"), *rest, **more))
        leaky = make("dlinear")
    assert failed(leaky) == {"scaler"}


@pytest.mark.parametrize("model", ["naive", "fem_sm"])
def test_look_back_shifted_into_the_future_is_detected(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = Windows.batch

    def late(windows: Windows, index: Tensor) -> Batch:
        batch = cut(windows, index)
        return replace(batch, past=torch.cat([batch.past[:, 1:], batch.target[:, :1]], dim=1))

    monkeypatch.setattr(Windows, "batch", late)
    assert "future rows" in failed(quick_run(model))


def test_dropped_last_batch_of_windows_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    length = Windows.__len__
    with monkeypatch.context() as patch:
        patch.setattr(Windows, "__len__", lambda windows: length(windows) // 32 * 32)
        forecaster = quick_run("dlinear")
        assert failed(forecaster) == {"every window"}
    assert {"every window", "stored score"} == failed(forecaster)  # mended since, but the score is as it was


def test_dropped_last_batch_of_the_evaluator_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def drop_last(model: Any, windows: Any, *args: Any, **options: Any) -> dict[str, float | int]:
        whole = torch.arange(len(windows) // 32 * 32)
        return {**evaluator.evaluate(model, windows, *args, some=whole, **options), "windows": len(windows)}

    forecaster = quick_run("dlinear")
    monkeypatch.setattr(audit_module, "evaluate", drop_last)
    assert "every window" in failed(forecaster)


def test_closed_form_fitted_on_all_rows_is_detected() -> None:
    forecaster = quick_run("ridge")
    forecaster.model.prepare(torch.from_numpy(forecaster.preprocess.transform(DATA.values)).float())
    assert failed(forecaster) == {"closed-form weights", "stored score"}


def test_batch_dependent_forecasts_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    forward = DLinear.forward
    monkeypatch.setattr(
        DLinear,
        "forward",
        lambda model, batch: forward(model, replace(batch, past=batch.past - batch.past.mean((0, 1)))),
    )
    assert "order and batch size" in failed(quick_run("dlinear"))


def test_false_channel_independence_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ITransformer, "supports", Supports(channels=1))
    assert failed(quick_run("itransformer")) == {"other channels"}


@pytest.mark.parametrize("make", [quick_run, panel_forecaster])
def test_stored_score_mismatch_is_detected(make: Callable[[str], Forecaster]) -> None:
    forecaster = make("dlinear")
    model: Any = forecaster.model
    with torch.no_grad():
        model.trend.weight += 0.01
    assert failed(forecaster) == {"stored score"}
    fewer: Any = {**forecaster.metrics, "test": {**forecaster.metrics["test"], "windows": 3}}
    forecaster = replace(forecaster, metrics=fewer)
    assert failed(forecaster) == {"stored score", "every window"}


def test_constant_data_skip_the_scaler_check() -> None:
    frame = synthetic_frame(600)
    frame.loc[:, frame.columns != "date"] = 1.0
    checks = {check.name: check for check in femts.audit(train(load_dataset(frame), "naive", 12, seq_len=24)).checks}
    assert checks["scaler"].passed is None
    assert "cannot tell" in checks["scaler"].says


def test_data_with_gaps_pass_the_audit() -> None:
    frame = synthetic_frame(600)
    frame.loc[480 - 24 :: 7, "s1"] = np.nan  # the first test window's look-back begins in a gap
    forecaster = quick_run("ridge", data=load_dataset(frame))
    found = femts.audit(forecaster)
    assert found.failed == ()
    assert found.scores[0].mse == pytest.approx(forecaster.metrics["test"]["mse"], rel=1e-6)


def test_short_data_pass_the_audit() -> None:
    frame = synthetic_frame(60)
    frame["date"] = pd.date_range("2018-01-01", periods=60, freq="MS")
    made = train(frame, "ridge", 12)
    assert made.config.seq_len == 12 and not femts.audit(made, load_dataset(frame)).failed


def test_other_data_are_refused() -> None:
    for forecaster, other in (
        (quick_run("naive"), synthetic_frame(700)),
        (panel_forecaster("naive"), panel_table().iloc[3:]),
    ):
        with pytest.raises(UsageError, match="is not what this model was trained on; audit it on its own"):
            femts.audit(forecaster, other)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    synthetic_frame(600).to_csv(folder / "mine.csv", index=False)
    train(folder / "mine.csv", "dlinear", 12, seq_len=24, max_epochs=1, device="cpu", out=folder / "run")
    return folder / "run"


def test_audit_shows_itself_as_a_table() -> None:
    audit = femts.audit(panel_forecaster("ridge"))
    shown = re.findall(r"<td>(.*?)</td>", audit._repr_html_())
    assert shown[::3] == [check.name for check in audit.checks]
    assert set(shown[1::3]) == {"passed", "-"}


def test_audit_command_passes(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", str(run)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.count("passed") == 6
    assert f"every window (femts)            scaled      {WINDOWS}" in out
    assert main(["audit", str(run), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["passed"]
    assert [score["windows"] for score in record["scores"]] == [WINDOWS, 96, WINDOWS, WINDOWS]


def test_audit_command_names_the_failed_check(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    length = Windows.__len__
    monkeypatch.setattr(Windows, "__len__", lambda windows: length(windows) // 32 * 32)
    assert main(["audit", str(run)]) == 1
    out, err = capsys.readouterr()
    assert "FAILED" in out
    assert err.startswith(f"femts: The audit of {run} failed at 'every window': 32 of 49 val")
    assert all(line.startswith("femts: ") and line.endswith(".") for line in err.splitlines())
