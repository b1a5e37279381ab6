"""Runs trained with the pinball loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from every_window import every_window
from sklearn.metrics import mean_pinball_loss
from small_runs import DATA, MODELS, essence, small_run
from small_tables import small_table

import femts
from femts.cli import main
from femts.config.training import TrainingConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.evaluation.evaluator import evaluate
from femts.evaluation.quantiles import conformal_bounds, ends_of
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.forecasting import forecast_batch
from femts.forecaster.scoring import score_windows
from femts.models.base import Forecasts
from femts.models.parts.quantiles import quantile_at

PINBALL = {"training.loss": "pinball"}
LEARNED = TrainingConfig().quantiles
L, P, C = 48, 24, len(DATA.columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    small_run(out=out, settings=PINBALL)
    return out


@pytest.fixture
def history() -> pd.DataFrame:
    return DATA.frame().tail(L)


def learned_quantiles(forecaster: Forecaster, part: str, steps: int = P) -> tuple[torch.Tensor, np.ndarray]:
    """Quantiles of the model and targets, in scaled units."""
    windows = score_windows(forecaster, part, steps, DATA)
    batch, y = every_window(windows)
    with torch.no_grad():
        return forecaster.model.rolled_out(batch, steps), y.numpy()


def test_quantiles_are_ignored_without_pinball_loss() -> None:
    other = small_run(settings={"training.loss": "mse", "training.quantiles": "0.1,0.5"})
    assert essence(other) == essence(small_run())
    assert other.model.quantiles == () and "val_pinball" not in other.validations[0]


def test_best_validation_minimizes_pinball_loss(forecaster: Forecaster) -> None:
    losses = [row["val_pinball"] for row in forecaster.validations]
    best = int(np.argmin(losses))
    assert forecaster.metrics["kept_step"] == forecaster.validations[best]["step"]
    assert ("pinball", losses[best]) in forecaster.metrics["val"].items()
    quantiles, y = learned_quantiles(forecaster, "val")
    each = [mean_pinball_loss(y.ravel(), quantiles[:, :, q].ravel(), alpha=a) for q, a in enumerate(LEARNED)]
    assert losses[best] == pytest.approx(np.mean(each), rel=1e-5)
    median = quantiles[:, :, LEARNED.index(0.5)].numpy()
    assert forecaster.metrics["val"]["mae"] == pytest.approx(np.abs(median - y).mean(), rel=1e-5)
    assert losses[-1] < losses[0], "it has learned nothing"


def test_quantile_run_roundtrip(forecaster: Forecaster, folder: Path, tmp_path: Path) -> None:
    config = yaml.safe_load((folder / "config.yaml").read_text())["training"]
    assert (config["loss"], config["quantiles"]) == ("pinball", list(LEARNED))
    assert forecaster.model.quantiles == LEARNED
    trained = small_run(settings=PINBALL)
    forecaster.save(tmp_path / "copy")
    assert essence(forecaster) == essence(trained) == essence(femts.load(tmp_path / "copy"))
    assert (folder / "metrics.csv").read_text().startswith("step,train_loss,val_mse,val_mae,val_pinball,lr,seconds\n")


def test_intervals_are_calibrated_quantiles_in_raw_units(forecaster: Forecaster, history: pd.DataFrame) -> None:
    table = forecaster.predict(history, level=[50, 80, 90, 95], quantiles=[0.1, 0.5, 0.975])
    plain = forecaster.predict(history)
    pd.testing.assert_frame_equal(table[list(plain)], plain)
    assert list(table)[1:4] + list(table)[9:14] == [
        "s0", "s0-lo-50", "s0-hi-50", "s0-hi-95", "s0-q-10", "s0-q-50", "s0-q-97.5", "s1"
    ]  # fmt: skip
    scaled = forecaster.preprocess.transform(history[list(DATA.columns)].to_numpy()[None])
    quantiles = forecast_batch(forecaster, Batch(torch.from_numpy(scaled).float()), P).quantiles
    assert quantiles is not None
    val, y = learned_quantiles(forecaster, "val")
    inner: dict[str, Any] = {"lo": np.inf, "hi": -np.inf}
    for level in (50.0, 80.0, 90.0, 95.0):
        (low, high), (val_low, val_high) = (
            [quantile_at(v, LEARNED, end).numpy() for end in ends_of(level)] for v in (quantiles, val)
        )
        outside = np.sort(np.maximum(val_low - y, y - val_high), axis=0)
        correction = outside[-(-int(level) * (len(outside) + 1) // 100) - 1]
        inner["lo"] = np.minimum(inner["lo"], low[0] - correction)  # each interval holds those within
        inner["hi"] = np.maximum(inner["hi"], high[0] + correction)
        for name, bound in inner.items():
            found = table[[f"{column}-{name}-{level:g}" for column in DATA.columns]].to_numpy()
            np.testing.assert_allclose(found, forecaster.preprocess.scaler.inverse(bound.astype(np.float64)), rtol=1e-4)
    for column in DATA.columns:
        assert (table[f"{column}-q-10"] == table[f"{column}-lo-80"]).all()
        assert (table[f"{column}-q-97.5"] == table[f"{column}-hi-95"]).all()
        assert (table[f"{column}-q-50"] == table[column]).all()


@pytest.mark.parametrize("settings", [PINBALL, {}], ids=["pinball", "mse"])
def test_quantiles_and_levels_never_cross(settings: dict[str, Any], history: pd.DataFrame) -> None:
    forecaster = small_run(settings=settings)
    assert forecaster.intervals is not None
    table = forecaster.predict(history, quantiles=forecaster.intervals.quantiles)
    assert len(forecaster.intervals.quantiles) == 11
    for column in DATA.columns:
        names = [f"{column}-q-{100 * q:g}" for q in forecaster.intervals.quantiles]
        assert (table[names].diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)


def test_any_level_and_horizon_can_be_calibrated(forecaster: Forecaster, history: pd.DataFrame) -> None:
    with pytest.raises(UsageError, match=rf"calibrated for {P} steps, not for 40"):
        forecaster.predict(history, 40, level=[80])
    assert forecaster.predict(history, quantiles=[0.075]).shape[1] == 1 + 2 * C
    forecaster = forecaster.calibrate(40, [85], dataset=DATA)
    made = forecaster.intervals
    assert made is not None and made.levels == (50, 80, 85, 90, 95, 99)
    table = forecaster.predict(history, 40, level=[85], quantiles=[0.075])
    assert len(table) == 40 and (table["s0-q-7.5"] == table["s0-lo-85"]).all()
    validated = forecaster.coverage("val", [50, 85, 99], 40, dataset=DATA).groupby("level")["coverage"].min()
    # On the windows that it was calibrated on, in every step and channel; the last bits put one of them on either side.
    assert (validated >= np.array([0.5, 0.85, 0.99]) - 1 / made.windows).all()


def test_coverage_and_scores_match_the_intervals(forecaster: Forecaster) -> None:
    table = forecaster.coverage("test", [95, 80], dataset=DATA)
    assert table["level"].unique().tolist() == [95, 80] and len(table) == 2 * P * C
    scaled, raw = (row for _, row in forecaster.scores(level=[80, 95], dataset=DATA).iterrows())
    reported = forecaster.metrics["intervals"]["test"]
    for level in (80, 95):
        mine = table[table["level"] == level]
        assert scaled[f"coverage-{level}"] == pytest.approx(mine["coverage"].mean())
        assert raw[f"width-{level}"] == pytest.approx(mine["width"].mean())
        assert reported[str(level)]["coverage"] == pytest.approx(scaled[f"coverage-{level}"])
        assert reported[str(level)]["width"] == pytest.approx(scaled[f"width-{level}"])
    assert 0 < scaled["crps"] < scaled["mae"], "a spread that says something is worth more than none"
    for levels in ([80], [99, 50]):
        assert forecaster.scores(level=levels, dataset=DATA)["crps"].tolist() == [scaled["crps"], raw["crps"]]
    grouped = forecaster.scores(by="channel", level=[80], dataset=DATA).query("units == 'raw'")
    assert grouped["crps"].mean() == pytest.approx(raw["crps"])


def test_quantile_run_audit_backtest_and_refit() -> None:
    run = small_run("fem_sm", settings=PINBALL)
    assert femts.audit(run, DATA).failed == ()
    table = femts.backtest(run, DATA, n_windows=2, step_size=P)
    assert len(table) == 2 * P * C
    before = run.predict(DATA.frame().iloc[:-P])[list(DATA.columns)].to_numpy()
    np.testing.assert_array_equal(table["forecast"].tail(P * C), before.ravel())
    assert len(femts.backtest(run, DATA, n_windows=1, step_size=P, refit=True)) == P * C


def test_quantiles_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, run, out = tmp_path / "mine.csv", tmp_path / "run", tmp_path / "out.csv"
    DATA.frame().to_csv(table, index=False)
    small = [f"--set={key}={value}" for key, value in {**MODELS["dlinear"], **PINBALL}.items()]
    train = f"train --dataset {table} --model dlinear --horizon 24 --seq-len 48 --max-epochs 1 --out {run}"
    assert main([*train.split(), *small, "--set", "training.quantiles=.1,.5,.9"]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(run), "--level", "80,95", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["crps_quantiles"] == [0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995]
    assert [(row["units"], row["crps"] > 0) for row in record["scores"]] == [("scaled", True), ("raw", True)]
    assert main(["predict", str(run), str(table), "--level", "95", "--quantiles", "0.1,.9", "-o", str(out)]) == 0
    assert list(pd.read_csv(out))[1:6] == ["s0", "s0-lo-95", "s0-hi-95", "s0-q-10", "s0-q-90"]
    assert main(["calibrate", str(run), "--horizon", "30", "--level", "85"]) == 0
    assert femts.load(run).predict(DATA.frame(), 30, level=[85]).shape == (30, 1 + 3 * C)


@pytest.mark.parametrize("model", ["dlinear", "itransformer"])
def test_intervals_with_future_covariates_match_the_scores(model: str) -> None:
    frame = small_table(400)
    frame["open"] = (np.random.default_rng(5).uniform(size=len(frame)) < 0.3).astype(float)
    frame["load"] += 3 * frame["open"]
    past = ["heat"] if model == "itransformer" else []
    data = femts.load_dataset(frame, target=["load"], past_covariates=past, future_covariates=["open"])
    run = femts.train(data, model, seq_len=24, pred_len=12, max_epochs=1, device="cpu", settings=PINBALL)
    assert run.intervals is not None and run.targets == ("load",)
    kept = []

    class Keep:
        def update(self, forecasts: Forecasts, batch: Batch) -> None:
            assert forecasts.quantiles is not None
            kept.append(forecasts.quantiles)

    evaluate(run.model, score_windows(run, "test", None, data), also=[Keep()])
    last = torch.cat(kept)[-1:]
    table = run.predict(frame[:-12], level=[80], quantiles=[0.5], future=frame[-12:])
    assert list(table) == ["date", "load", "load-lo-80", "load-hi-80", "load-q-50"]
    levels = run.intervals.levels
    corrections = list(torch.from_numpy(run.intervals.half_widths).double())
    for level, (lower, upper) in zip(levels, conformal_bounds(last, LEARNED, levels, corrections), strict=True):
        if level == 80:
            for name, bound in (("lo", lower), ("hi", upper)):
                expected = run.preprocess.inverse(bound[0].numpy())[:, 0]
                np.testing.assert_allclose(table[f"load-{name}-80"], expected, rtol=1e-4, atol=1e-4)
    assert femts.audit(run).failed == ()
    assert list(run.coverage(level=[80])["channel"].unique()) == ["load"]
