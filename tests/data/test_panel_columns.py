"""Future and static covariates of panels."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.cli import main
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.preprocess import Preprocess
from femts.data.static import StaticCodes, read_static
from femts.data.windows import resident
from femts.errors import GapWarning, UsageError
from femts.forecaster.forecaster import Forecaster

L, P = 14, 7
SMALL = {"model.d_model": 16, "model.n_heads": 2, "model.n_layers": 1}
QUICK: dict[str, Any] = {"pred_len": P, "seq_len": L, "max_steps": 4, "device": "cpu"}


def table(rows: int = 80, effect: tuple[float, ...] = (3, 3, 3, 3)) -> pd.DataFrame:
    """Shops in two regions whose promotions lift sales by `effect` times their size."""
    parts = []
    for k, lift in enumerate(effect):
        rng, size, count = np.random.default_rng(k), 10.0**k, rows + 5 * k
        promo = (rng.uniform(size=count) < 0.3) * 1.0
        values = size * (20 + np.sin(np.arange(count)) + lift * promo + 0.3 * rng.normal(size=count))
        dates = pd.date_range("2024-01-01", periods=count)
        place = {"region": ["north", "south"][k % 2], "area": size, "promo": promo}
        parts.append(pd.DataFrame({"unique_id": f"s{k}", "ds": dates, "y": values, **place}))
    return pd.concat(parts, ignore_index=True)


def split_history(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All but the last P rows of each series, and the last P rows."""
    last = frame.groupby("unique_id").cumcount(ascending=False) < P
    return frame[~last], frame[last]


def trained(model: str, frame: pd.DataFrame, settings: dict[str, Any] | None = None, **reading: Any) -> Forecaster:
    return femts.train(load_dataset(frame, target="y", **reading), model, settings=settings or {}, **QUICK)


def test_future_covariate_improves_the_forecast() -> None:
    history, ahead = split_history(table())
    known, blind = trained("ridge", history, future_covariates="promo"), trained("ridge", history)
    assert known.metrics["test"]["mse"] < 0.3 * blind.metrics["test"]["mse"] and known.metrics["known"]["y"] > 0.8
    forecast = known.predict(history, future=ahead, level=[80])
    assert list(forecast["unique_id"]) == list(ahead["unique_id"]) and list(forecast["ds"]) == list(ahead["ds"])
    size = 10.0 ** forecast["unique_id"].str[1:].astype(int)
    error = (forecast["y"] - ahead["y"].to_numpy()).abs() / size
    assert error.mean() < 0.6
    scores = known.scores(by="series").set_index("series")
    assert (scores["mae"] / 10.0 ** np.arange(4) < 0.8).all()
    shuffled = known.predict(history.sample(frac=1, random_state=0), future=table().sample(frac=1, random_state=0))
    pd.testing.assert_frame_equal(
        shuffled.sort_values(["unique_id", "ds"], ignore_index=True), forecast[shuffled.columns], rtol=1e-6
    )


def test_effects_are_shared_across_similar_series() -> None:
    alike = Preprocess.fit(load_dataset(table(40), target="y", future_covariates="promo"))
    assert not alike.own_effects, "too short for one of their own"
    other = Preprocess.fit(load_dataset(table(400, effect=(3, 3, 3, -3)), target="y", future_covariates="promo"))
    assert 3 in other.own_effects
    again = Preprocess.from_dict(other.to_dict())
    assert again.to_dict() == other.to_dict() and again.own_effects.keys() == other.own_effects.keys()


def test_panel_scaled_in_parts_has_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_dataset(table(400, effect=(3, 3, 3, -3)), target="y", future_covariates="promo")
    preprocess = Preprocess.fit(data)
    whole, chunks = resident(data, preprocess), Dataset.chunks
    monkeypatch.setattr(Dataset, "chunks", lambda data: chunks(data, rows=100))
    parts = resident(data, preprocess)
    assert preprocess.own_effects and whole.offsets is not None and parts.offsets is not None
    assert torch.equal(parts.values, whole.values) and torch.equal(parts.offsets, whole.offsets)


def test_static_text_of_parquet_equals_that_of_a_frame(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = table().assign(kind=lambda rows: rows["unique_id"].map({"s0": "1", "s1": None}).astype(object))
    frame.to_parquet(tmp_path / "shops.parquet")
    reading: dict[str, Any] = {"future_covariates": "promo", "static_covariates": ["region", "area", "kind"]}
    one, other = load_dataset(frame, **reading), load_dataset(tmp_path / "shops.parquet", **reading)
    assert one.static is not None and other.static is not None and one.static["kind"].tolist() == ["1", *[None] * 3]
    pd.testing.assert_frame_equal(one.static, other.static)
    assert one.fingerprint() == other.fingerprint()


def test_new_series_uses_shared_effects_and_own_static_values() -> None:
    forecaster = trained("fem_sm", table(), SMALL, future_covariates="promo", static_covariates=["region", "area"])
    history, ahead = split_history(table())
    new = {"s0": "new", "s1": "s1"}
    some = history[history["unique_id"].isin(new)].assign(unique_id=lambda rows: rows["unique_id"].map(new))
    later = ahead[ahead["unique_id"].isin(new)].assign(unique_id=lambda rows: rows["unique_id"].map(new))
    with pytest.warns(GapWarning, match="1 of 2 series is new"):
        forecast = forecaster.predict(some, future=later)
    assert np.isfinite(forecast["y"]).all()
    expected = forecaster.predict(history, future=ahead).set_index("unique_id")
    np.testing.assert_allclose(forecast["y"][P:], expected.loc["s1", "y"], rtol=1e-5)
    with pytest.warns(GapWarning, match="static covariate 'region' has categories not seen in training, the first"):
        forecaster.predict(history.assign(region="moon"), future=ahead)


@pytest.mark.parametrize("model", ["fem_sm", "fem_gla_ridge"])
def test_static_covariates_change_the_forecast(model: str, tmp_path: Path) -> None:
    small = SMALL if model == "fem_sm" else SMALL | {"model.longest": P}
    forecaster = trained(model, table(), small | {"training.lr": 0.01}, static_covariates="region")
    assert asdict(forecaster.config.model_config)["n_static"] == 2
    one = table().query("unique_id == 's0'")
    north = forecaster.predict(one, 3 * P)
    south = forecaster.predict(one.assign(region="south"), 3 * P)
    assert not np.allclose(north["y"], south["y"]) and len(north) == 3 * P
    forecaster.save(tmp_path / "run")
    pd.testing.assert_frame_equal(femts.load(tmp_path / "run").predict(one, 3 * P), north)
    evaluated = forecaster.evaluate(pred_len=2 * P)
    assert np.isfinite(evaluated["mse"])


@pytest.mark.parametrize(
    ("words", "cells"),
    [
        (["1", "2", "3a"], [1, 2]),
        (["1", "01", "x"], [1.0]),
        (["True", "False", "x"], [True, False]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_static_categories_match_numeric_values(words: list[Any], cells: list[Any]) -> None:
    def encode(given: list[Any]) -> Any:
        names = [str(k) for k in range(len(given))]
        static = read_static(pd.DataFrame({"region": given}), ["region"], np.arange(len(given)), names)
        return codes.encode(static) if codes else static

    codes = None
    codes = StaticCodes.fit(encode(words))
    at = [words.index(cell) if cell in words else k for k, cell in enumerate(cells)]
    np.testing.assert_array_equal(encode(cells), encode(words)[at])


def test_integer_and_categorical_static_values_agree() -> None:
    def static(cells: pd.Series) -> pd.DataFrame:
        return read_static(cells.to_frame("region"), ["region"], np.arange(len(cells)), ["a", "b", "c"])

    numbers = pd.Series([1, 2, 7])
    for one, other in ((numbers, numbers.astype("category")), (numbers.astype("category"), numbers)):
        codes = StaticCodes.fit(static(one))
        np.testing.assert_allclose(codes.encode(static(other)), codes.encode(static(one)))
    with pytest.warns(GapWarning, match="the first '9'"):
        StaticCodes.fit(static(numbers.astype("category"))).encode(static(pd.Series([9, 9, 9])))


def test_covariates_pass_audit_and_must_match_training() -> None:
    frame = table()
    audit = femts.audit(trained("ridge", frame, future_covariates="promo"))
    assert not audit.failed, audit
    placed = trained("fem_sm", frame, SMALL, static_covariates="region")
    with pytest.raises(UsageError, match=r"different static covariates from the training data \(region\)"):
        placed.evaluate(dataset=load_dataset(frame, target="y"))


def test_panel_with_several_targets() -> None:
    frame = table().assign(other=lambda rows: rows["y"].to_numpy() * 2 + 1)
    data = load_dataset(frame, target=["y", "other"], static_covariates="region")
    forecast = femts.train(data, "fem_sm", settings=SMALL, **QUICK).predict(frame, level=[80])
    assert list(forecast.columns[2:5]) == ["y", "y-lo-80", "y-hi-80"] and "other-hi-80" in forecast
    assert np.isfinite(forecast.iloc[:, 2:]).all(axis=None)


def test_invalid_future_covariates_are_refused() -> None:
    for change, says in [
        (lambda ahead: None, "was trained with future covariates; provide promo for the 7 steps after the end of"),
        (lambda ahead: ahead.head(3), "has no 'promo' of series 's0' at 2024-03-17"),
        (
            lambda ahead: ahead.drop(columns="promo"),
            "The table of future covariates has no column 'promo'; give unique_id",
        ),
        (lambda ahead: ahead.assign(promo="much"), "has the text 'much' in column 'promo'"),
        (lambda ahead: ahead.assign(promo=np.nan), "has no 'promo' of series 's0'"),
        (lambda ahead: pd.concat([ahead, ahead]), "has series 's0' twice at 2024-03-14"),
        (lambda ahead: ahead.assign(unique_id=None), "has no name in 'unique_id' at data row 1"),
        (lambda ahead: 3, "was trained with future covariates"),
    ]:
        history, ahead = split_history(table())
        forecaster = trained("naive", history, future_covariates="promo")
        with pytest.raises(UsageError, match=says):
            forecaster.predict(history, future=change(ahead))


def test_invalid_covariates_are_refused() -> None:
    frame = table()
    with pytest.raises(
        UsageError, match="Model 'ridge' does not support static covariates; use one that does, such as fem_sm"
    ):
        trained("ridge", frame, static_covariates="region")
    with pytest.raises(UsageError, match=r"Setting 'model\.n_static' is determined by static_covariates"):
        trained("fem_sm", frame, {"model.n_static": 2})
    with pytest.raises(UsageError, match="Static covariate 'region' has no value"):
        trained("fem_sm", frame.assign(region=np.nan), static_covariates="region")
    with pytest.raises(UsageError, match="Static covariate 'ds2' of series 's0' changes from '2024-01-01' to"):
        load_dataset(frame.assign(ds2=frame["ds"].astype(str)), target="y", static_covariates="ds2")
    with pytest.raises(UsageError, match="A single series cannot have static covariates such as 'region'"):
        one = frame.query("unique_id == 's0'").drop(columns="unique_id").rename(columns={"ds": "date"})
        femts.load_dataset(one, target="y", static_covariates="region")
    forecaster = trained("fem_sm", frame, SMALL, static_covariates="area")
    with pytest.raises(UsageError, match="The history has no column 'area', which the training data had"):
        forecaster.predict(frame.drop(columns="area"))
    with pytest.raises(UsageError, match="has 'big' in the static covariate 'area', which was numeric in training"):
        forecaster.predict(frame.assign(area="big"))
    with pytest.raises(UsageError, match="no column was named as one"):
        forecaster.predict(frame, future=frame)


def test_covariates_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    history, ahead = split_history(table())
    history.to_csv("shops.csv", index=False)
    ahead.to_csv("ahead.csv", index=False)
    roles = "--target y --future-covariates promo --static-covariates region,area --calendar"
    small = " ".join(f"--set {name}={value}" for name, value in SMALL.items())
    line = f"train --dataset shops.csv --panel {roles} --model fem_sm --horizon 7 --seq-len 14 --max-steps 2 {small}"
    assert main([*line.split(), "--out", "run"]) == 0
    assert main(["predict", "run", "shops.csv", "--future", "ahead.csv", "-o", "out.csv"]) == 0
    expected = femts.load("run").predict(history, future=ahead)
    np.testing.assert_allclose(pd.read_csv("out.csv")["y"], expected["y"])
    assert main([*line.split(), "--out", "run", "--resume"]) == 0
    assert torch.isfinite(femts.load("run").model.state_dict()["static_in.weight"]).all()


def test_compound_series_key(tmp_path: Path) -> None:
    days = [*pd.date_range("2024-01-01", periods=40)]
    keys = [("north", 1, "a"), ("north", 2, "b"), ("south", 1, "a")]
    parts = [
        pd.DataFrame({"day": days, "region": region, "shop": shop, "kind": kind, "sold": np.arange(40.0) % 7 + shop})
        for region, shop, kind in keys
    ]
    table = pd.concat(parts).sort_values(["day", "region"], kind="stable")
    path = tmp_path / "sales.csv"
    table.to_csv(path, index=False)
    reading: dict[str, Any] = {
        "columns": {"time": "day", "series": "region+shop"},
        "target": "sold",
        "static_covariates": "kind",
    }
    for source in (table, path):
        data = femts.load_dataset(source, **reading)
        assert data.series == ("north / 1", "north / 2", "south / 1")
        assert data["south / 1"].values[:, 0].tolist() == parts[2]["sold"].tolist()
        assert data.static is not None and data.static["kind"].tolist() == ["a", "b", "a"]
    one = {**reading, "columns": {"time": "day", "series": "key"}}
    joined = table.assign(key=table["region"] + " / " + table["shop"].astype(str)).drop(columns=["region", "shop"])
    runs = [
        femts.train(femts.load_dataset(t, **r), "fem_sm", 3, seq_len=7, max_steps=2)
        for t, r in ((table, reading), (joined, one))
    ]
    first, second = (run.predict(t) for run, t in zip(runs, (table, joined), strict=True))
    assert list(first.columns) == ["region+shop", "day", "sold"]
    np.testing.assert_array_equal(first["sold"], second["sold"])
    with pytest.raises(UsageError, match="no name in 'region"):
        femts.load_dataset(table.assign(region=table["region"].where(table["shop"] == 1)), **reading)
