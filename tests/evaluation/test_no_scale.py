"""Series and columns that are constant in training."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from few_candidates import few_candidates
from numpy.typing import NDArray

import femts

ROWS, TRAIN, TEST, P = 70, 42, 56, 7  # two weeks each for validation and test
DAYS = pd.date_range("2024-01-01", periods=ROWS)


def shop(number: int, level: float = 1000.0) -> NDArray[np.float64]:
    rng, day = np.random.default_rng(number), np.arange(ROWS)
    return np.asarray(level * (1 + 0.3 * np.sin(2 * np.pi * day / 7) + 0.05 * rng.normal(size=ROWS)))


def panel(**further: NDArray[np.float64]) -> pd.DataFrame:
    series = {f"s{number}": shop(number) for number in range(5)} | further
    parts = [pd.DataFrame({"unique_id": n, "ds": DAYS[-len(y) :], "y": y}) for n, y in series.items()]
    return pd.concat(parts, ignore_index=True)


def wide(**further: NDArray[np.float64]) -> pd.DataFrame:
    return pd.DataFrame({"date": DAYS, **{f"s{number}": shop(number) for number in range(4)}, **further})


def with_training_rows(rows: Any, number: int = 9) -> NDArray[np.float64]:
    """A shop with the given training rows."""
    values = shop(number)
    values[:TRAIN] = rows
    return values


def sparse_ones(*rows: int) -> NDArray[np.float64]:
    """Zeros with a few ones."""
    values = np.zeros(TRAIN)
    values[list(rows)] = 1
    return values


ODD = {
    "launched after the training rows": with_training_rows(0),
    "launched in the test rows": np.where(np.arange(ROWS) < TEST, 0, shop(9)),
    "one value among zeros": with_training_rows(sparse_ones(5)),
    "two values among zeros": with_training_rows(sparse_ones(5, 20)),
    "a row more than the horizon": shop(9)[-P - 1 :],
    "constant but for its last digits": with_training_rows(1000 + 1e-6 * np.sin(np.arange(TRAIN))),
    "no values in its training rows": with_training_rows(np.nan),
    "constant": np.full(ROWS, 5.0),
}


def trained(table: pd.DataFrame, model: str = "ridge", **more: Any) -> tuple[Any, list[str]]:
    """The forecaster and its scale warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = femts.train(table, model, P, seq_len=14, device="cpu", **more)
    return made, [str(each.message) for each in caught if issubclass(each.category, femts.ScaleWarning)]


@pytest.mark.parametrize("kind", ODD)
def test_constant_series_is_excluded_and_warned(kind: str) -> None:
    model = "seasonal_naive" if len(ODD[kind]) < ROWS else "ridge"  # the shortest series limits how far that one maps
    alone, silent = trained(panel(), model)
    made, said = trained(panel(odd=ODD[kind]), model)
    assert not silent and len(said) == 1 and said[0].startswith("1 of 6 series is nearly constant") and "odd" in said[0]
    for part, score in itertools.product(("val", "test"), ("mse", "mae", "mase", "skill")):
        assert made.metrics[part][score] == pytest.approx(alone.metrics[part][score], rel=1e-4), (part, score)
    assert made.evaluate() == made.metrics["test"]
    whole, alone_whole = made.scores(by=None), alone.scores(by=None)
    for score in ("mse", "mase", "rmsse"):
        assert whole[score].item() == pytest.approx(alone_whole[score].item(), rel=1e-4)
    of_odd = made.scores(by="series").set_index("series").loc["odd"]
    assert np.isfinite(of_odd["mse"]), "its own error in raw units is told all the same"
    ahead = made.predict(panel(odd=ODD[kind])).set_index("unique_id").loc["odd", "y"]
    assert ahead.between(-500, 2500).all()


def test_auto_ignores_a_constant_series() -> None:
    with few_candidates("seasonal_naive", "ridge", "dotm"):
        alone, made = (trained(panel(**odd), "auto")[0] for odd in ({}, {"odd": ODD["one value among zeros"]}))
    assert made.metrics["auto"]["taken"] == alone.metrics["auto"]["taken"]
    assert made.metrics["auto"]["error"] == pytest.approx(alone.metrics["auto"]["error"], rel=1e-4)
    assert made.metrics["test"]["mse"] == pytest.approx(alone.metrics["test"]["mse"], rel=1e-4)


@pytest.mark.parametrize("model", ["seasonal_naive", "dlinear"])
def test_outgrown_series_do_not_affect_selection(model: str) -> None:
    grown = shop(9)
    grown[TRAIN:] *= 1000
    made, said = trained(panel(grown=grown), model, max_steps=5)
    assert made.metrics["val"]["mse"] < 10 < made.metrics["test"]["mse"], "the headline stays the mean over all"
    assert all(row["val_mse"] < 10 for row in made.validations)
    assert made.metrics["outgrown"] == ["grown"] and made.metrics["test"]["dominant"]["name"] == "grown"
    assert len(said) == 2 and all("grown" in each for each in said)


def test_sparse_binary_trending_and_short_series_have_a_scale() -> None:
    day = np.arange(ROWS)
    demand, binary = np.where(day % 9 == 0, 3.0, 0.0), (day % 7 == 0) * 1.0
    _, said = trained(panel(demand=demand, binary=binary, trend=100 * day.astype(np.float64), short=shop(9)[-P - 4 :]))
    assert not said


@pytest.mark.parametrize("kind", ["launched after the training rows", "constant"])
def test_constant_column_is_excluded_and_warned(kind: str) -> None:
    alone, silent = trained(wide(), "seasonal_naive")
    table = wide(odd=ODD[kind])
    made, said = trained(table, "seasonal_naive", target=list(table.columns[1:]))
    assert (
        not silent and len(said) == 1 and said[0].startswith("1 of 5 columns is nearly constant") and "odd" in said[0]
    )
    for part, score in itertools.product(("val", "test"), ("mse", "mase")):
        assert made.metrics[part][score] == pytest.approx(alone.metrics[part][score], rel=1e-6), (part, score)
    scaled = made.scores().query("units == 'scaled'")
    assert scaled["mse"].item() == pytest.approx(made.evaluate()["mse"])
    by = made.scores(by="channel").query("units == 'raw'").set_index("channel")
    assert np.isfinite(by.loc["odd", "mse"])


def test_single_constant_column_is_scored() -> None:
    made, said = trained(wide()[["date"]].assign(odd=ODD["launched after the training rows"]), "naive")
    assert made.metrics["test"]["mse"] < 10 and "excluded from mean errors" not in said[0]


def test_excluded_series_survive_a_roundtrip(tmp_path: Path) -> None:
    file = tmp_path / "panel.csv"
    panel(odd=ODD["one value among zeros"]).to_csv(file, index=False)
    made, _ = trained(femts.load_dataset(file, panel=True), "ridge", out=tmp_path / "run", refit=True)
    again = femts.load(tmp_path / "run")
    assert again.evaluate() == made.evaluate() == made.metrics["test"]
    assert femts.audit(tmp_path / "run").failed == ()


def test_new_constant_series_is_forecast_near_its_level() -> None:
    for rows in [np.full(30, 500.0), np.array([480.0, 520.0]), np.array([500.0]), 500 * np.eye(1, 30)[0]]:
        made, _ = trained(panel(), "dlinear", max_steps=20)
        new = pd.DataFrame({"unique_id": "new", "ds": DAYS[: len(rows)], "y": rows})
        with warnings.catch_warnings(action="ignore"):
            ahead = made.predict(new)["y"]
        assert ahead.between(rows.min() - 250, rows.max() + 250).all()
