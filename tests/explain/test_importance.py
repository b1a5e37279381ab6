"""Permutation importance on data with known effects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_panels import panel_table
from small_tables import small_table

import femts
from femts.cli import main
from femts.errors import UsageError
from femts.forecaster.importance_picture import plot_importance

HOURS = 1600
QUICK: dict[str, Any] = {"seq_len": 48, "pred_len": 12, "device": "cpu"}


def table() -> pd.DataFrame:
    """`load` depends on `cold` linearly and on `price` times `promo`, not on `dice`."""
    rng, hour = np.random.default_rng(0), np.arange(HOURS)
    cold, dice, price = rng.normal(size=(3, HOURS))
    promo = rng.integers(0, 2, HOURS)
    load = np.sin(2 * np.pi * hour / 24) + cold + np.where(promo == 1, price, -price) + 0.2 * rng.normal(size=HOURS)
    date = pd.date_range("2024-01-01", periods=HOURS, freq="h")
    return pd.DataFrame({"date": date, "load": load, "cold": cold, "dice": dice, "price": price, "promo": promo})


@pytest.fixture(scope="module")
def data() -> femts.data.dataset.Dataset:
    return femts.load_dataset(table(), target=["load"], future_covariates=["cold", "dice", "price", "promo"])


@pytest.fixture(scope="module")
def ridge(data: femts.data.dataset.Dataset) -> femts.Forecaster:
    return femts.train(data, "ridge", **QUICK)


def rises(importance: pd.DataFrame) -> pd.Series:
    return importance.set_index("input")["rise"]


def test_linear_effect_is_important_and_interaction_is_not(ridge: femts.Forecaster) -> None:
    importance = ridge.importance()
    assert list(importance["kind"]) == ["column", "lags", "lags", *["future"] * 4]
    assert list(importance["input"]) == ["load", "1-24", "25-48", "cold", "dice", "price", "promo"]
    assert (importance["low"] <= importance["rise"]).all() and (importance["rise"] <= importance["high"]).all()
    rise = rises(importance)
    assert rise["cold"] > 0.5 and importance["low"][3] > 0.3, "the effect that is taken off before the model"
    assert rise["load"] > rise["1-24"] > rise["25-48"] > 0.02
    assert rise[["dice", "price", "promo"]].abs().max() < 0.1 * rise["cold"]
    pd.testing.assert_frame_equal(ridge.importance(), importance)


def test_tree_feature_groups() -> None:
    rng, rows = np.random.default_rng(0), 700
    cold, dice = rng.normal(size=(2, rows))
    y = np.concatenate([rng.normal(size=7), np.zeros(rows - 7)])
    for row in range(7, rows):
        y[row] = 0.98 * y[row - 7] + 0.3 * rng.normal()  # each day of the week goes a way of its own
    date = pd.date_range("2023-01-01", periods=rows)
    frame = pd.DataFrame({"date": date, "y": y + cold, "cold": cold, "dice": dice})
    settings = {"model.rounds": 20, "model.rows": 3000, "training.covariates": "model"}
    data = femts.load_dataset(frame, target="y", future_covariates=["cold", "dice"])
    one = femts.train(data, "boost", 7, seq_len=28, refit=False, settings=settings)
    importance = one.importance()
    groups = importance[importance["kind"] == "feature"]
    assert list(groups["input"]) == ["last values", "rolling means", "seasons before"]
    rise = rises(importance)
    assert rise["seasons before"] > 0.1 and rise["seasons before"] > 3 * rise[["last values", "rolling means"]].max()
    assert rise["cold"] > 0.3 and abs(rise["dice"]) < 0.1 * rise["cold"]
    assert one.model.exchanged is None
    pd.testing.assert_frame_equal(one.importance(), importance)


def test_network_finds_an_interaction(data: femts.data.dataset.Dataset) -> None:
    rise = rises(femts.train(data, "tide", **QUICK, max_steps=250).importance())
    assert min(rise["cold"], rise["price"], rise["promo"]) > 1
    assert abs(rise["dice"]) < 0.2


def test_baseline_error_matches_evaluate(
    ridge: femts.Forecaster, data: femts.data.dataset.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    from femts.forecaster import importance

    errors = list[float]()
    kept = importance._forecast

    def forecast(of: femts.Forecaster, data: Any, series: Any, cut: Any, steps: int) -> Any:
        made = kept(of, data, series, cut, steps)
        places = cut.when[:, -made.shape[1] :]
        errors.append(float(((made - of.preprocess.scale(data.values)[places]) ** 2).mean()))
        return made

    monkeypatch.setattr(importance, "_forecast", forecast)
    ridge.importance("val", windows=10_000, repeats=1, dataset=data)
    assert errors[0] == pytest.approx(ridge.evaluate("val")["mse"], rel=1e-5)


def test_unread_lags_have_no_importance() -> None:
    rise = rises(femts.train(femts.load_dataset(small_table(600)), "seasonal_naive", **QUICK).importance(windows=40))
    assert rise["25-48"] == 0, "exactly, as it is not read"
    assert rise["1-24"] == pytest.approx(rise["load"] + rise["heat"]) and min(rise["load"], rise["heat"]) > 0.2


def test_panel_permutation_keeps_series_scale() -> None:
    rng, panel = np.random.default_rng(0), panel_table().query("unique_id != 'tiny'")
    kind = panel["unique_id"].map({"long": "a", "short": "b", "young": "b"})
    panel = panel.assign(size=kind, promo=rng.integers(0, 2, len(panel)))
    panel["y"] *= 1 + 0.5 * panel["promo"]
    data = femts.load_dataset(
        panel, target=["y"], future_covariates=["promo"], static_covariates=["size"], calendar=True, panel=True
    )
    tiny = {"model.n_layers": 1, "model.d_model": 16, "model.n_heads": 2}
    fc = femts.train(data, "fem_sm", seq_len=14, pred_len=7, device="cpu", max_steps=20, settings=tiny)
    importance = fc.importance(windows=30)
    assert list(importance["kind"]) == ["column", "lags", "lags", "future", "calendar", "static"]
    rise = rises(importance)
    assert rise["promo"] > 0.2
    assert rise["y"] < 20, "a level of another series would be off by thousands of deviations"
    assert len(fc.importance("test", windows=2, repeats=1)) == 6


def test_refitted_run_explains_the_scored_model(data: femts.data.dataset.Dataset) -> None:
    fc = femts.train(data, "ridge", **QUICK, refit=True)
    assert fc.scored is not None
    pd.testing.assert_frame_equal(fc.importance(windows=20, repeats=1), fc.scored.importance(windows=20, repeats=1))


def test_invalid_importance_arguments_are_refused(ridge: femts.Forecaster) -> None:
    with pytest.raises(UsageError, match="no column 'laod'; did you mean 'load'"):
        ridge.importance(columns=["laod"])
    with pytest.raises(UsageError, match="'windows' takes a whole number of at least 2"):
        ridge.importance(windows=1)
    with pytest.raises(UsageError, match="have zero error"):
        flat = small_table(200).assign(load=np.arange(200) % 24, heat=np.arange(200) % 24)
        femts.train(femts.load_dataset(flat), "seasonal_naive", 6, seq_len=48, device="cpu").importance()


def test_importance_command_and_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ridge: femts.Forecaster
) -> None:
    monkeypatch.chdir(tmp_path)
    table()[["date", "load", "cold"]].to_csv("past.csv", index=False)
    line = "train --dataset past.csv --target load --future-covariates cold --model ridge --horizon 12 --seq-len 48"
    assert main([*line.split(), "--out", "run"]) == 0
    capsys.readouterr()
    assert main("explain run --windows 40 -o why.csv --plot why.svg".split()) == 0
    said = capsys.readouterr()
    assert said.out.startswith("why.csv: 4 inputs, most of all cold +")
    assert "when one input is permuted across 40 validation windows" in said.err
    assert list(pd.read_csv("why.csv")["input"]) == ["load", "1-24", "25-48", "cold"]
    picture = Path("why.svg").read_text()
    assert "<!-- lags 1 to 24 -->" in picture and "<!-- future covariate -->" in picture
    with pytest.raises(UsageError, match="name it"):
        plot_importance(ridge.importance(windows=4, repeats=1), "why.xyz")
