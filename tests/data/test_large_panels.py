"""What is done in pieces or in single precision for large panels gives the same as at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.data import effects_fit, even, pieces, resident, rows, scaler
from femts.data.effects import DateTerms
from femts.data.read import read_table
from femts.data.resident import Factors, Odd, ScaledSeries
from femts.data.rows import number_series
from femts.data.scaler import Scaler
from femts.data.windows import Windows
from femts.evaluation.intervals import Intervals
from femts.forecaster.forecaster import Forecaster
from femts.training.refit import held_out_intervals

L, P, LENGTHS = 14, 7, (150, 150, 150, 120, 90)
ROLES: dict[str, Any] = {"target": "y", "future_covariates": ["promo", "price"]}


def panel() -> pd.DataFrame:
    """Series with a binary covariate and one in single precision, which has a gap."""
    rng, parts = np.random.default_rng(0), list[pd.DataFrame]()
    for number, length in enumerate(LENGTHS):
        promo = rng.random(length) < 0.3
        price = np.round(rng.lognormal(1, 0.5, length), 2).astype(np.float32)
        y = rng.poisson(5 * (1 + promo) * (1 + np.sin(np.arange(length) * 2 * np.pi / 7))).astype(np.float64)
        y[length // 2] *= 50
        days = pd.date_range("2024-01-01", periods=length)
        parts.append(pd.DataFrame({"unique_id": f"s{number}", "ds": days, "y": y, "promo": promo * 1, "price": price}))
    parts[1].loc[7, "price"] = np.nan
    return pd.concat(parts, ignore_index=True)


def trained(table: pd.DataFrame, refit: bool = False) -> Forecaster:
    return femts.train(femts.load_dataset(table, **ROLES), "ridge", P, seq_len=L, device="cpu", refit=refit)


def test_covariates_in_single_precision_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    table = panel()
    ahead = table.assign(ds=table["ds"] + pd.Timedelta(days=P))
    ahead = pd.concat([table, ahead]).drop_duplicates(["unique_id", "ds"]).fillna({"price": 1.0})
    plain, expected = femts.load_dataset(table, **ROLES), trained(table)
    forecast = expected.predict(table, future=ahead)
    monkeypatch.setattr(rows, "CELLS", 1)
    data, made = femts.load_dataset(table, **ROLES), trained(table)
    assert plain.covariates.dtype == np.float64 and data.covariates.dtype == np.float32
    assert data.sha256 == plain.sha256
    pd.testing.assert_frame_equal(data.frame(), plain.frame(), check_exact=True)
    assert made.preprocess.to_dict() == expected.preprocess.to_dict()
    pd.testing.assert_frame_equal(made.predict(table, future=ahead), forecast, check_exact=True)


def test_covariates_that_need_double_precision_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CELLS", 1)
    monkeypatch.setattr(pieces, "ROWS", 100)
    table = panel().astype({"price": np.float64})
    table.loc[400, "price"] = 0.1
    data = femts.load_dataset(table, **ROLES)
    assert data.covariates.dtype == np.float64
    np.testing.assert_array_equal(data.covariates, table[["promo", "price"]].to_numpy(np.float64))


@pytest.mark.parametrize("missing", [[], [40], [0, 200, 201]])
def test_rows_without_gaps_are_as_those_that_are_placed_one_by_one(
    missing: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = panel().drop(index=missing)
    made = femts.load_dataset(table, **ROLES)
    monkeypatch.setattr(even, "_consecutive", lambda *_: False)
    plain = femts.load_dataset(table, **ROLES)
    pd.testing.assert_frame_equal(made.frame(), plain.frame(), check_exact=True)
    assert made.spans.tolist() == plain.spans.tolist()


def test_odd_readings_are_left_out_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    n, first = sum(LENGTHS), torch.tensor([0, *np.cumsum(LENGTHS)[:-1]])
    generator = torch.Generator().manual_seed(0)
    values, odd = torch.randn(n, 2, generator=generator), torch.rand(n, 2, generator=generator) < 0.3
    none = Factors.of(np.ones((n, 2)))
    series = ScaledSeries(values, odd=Odd(odd, odd, (none, none)))
    expected = np.where(odd, np.nan, values)
    for begin, stop in zip(first.tolist(), [*first.tolist()[1:], n], strict=True):
        expected[begin:stop] = pd.DataFrame(expected[begin:stop]).ffill().fillna(0.0)
    for size in (1, 100, 10**6):
        monkeypatch.setattr(resident, "ROWS", size)
        np.testing.assert_array_equal(series.learned(first).values, expected)


def test_scaler_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    sets = [[rng.lognormal(size=(length, 2))] * 3 for length in (300, 300, 300, 300, 300, 170, 170)]
    expected = Scaler.fit(sets, 2)
    for cells in (1, 1300):
        monkeypatch.setattr(scaler, "CELLS", cells)
        assert Scaler.fit(sets, 2).to_dict() == expected.to_dict()


def test_categories_are_numbered_as_text() -> None:
    text = pd.Series(["b", "a", "b", "d", "a"])
    of_text, of_categories = number_series(text, 5, ""), number_series(text.astype("category"), 5, "")
    assert of_text[0].tolist() == of_categories[0].tolist() == [0, 1, 0, 2, 1]
    assert of_text[1] == of_categories[1] == ("b", "a", "d")


def test_parquet_is_read_row_group_by_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    table = panel().assign(count=pd.array(range(sum(LENGTHS)), dtype="Int64")).astype({"unique_id": "category"})
    table.loc[500, "count"] = pd.NA  # whole numbers in the first row groups and fractions in others
    table["zoned"] = table["ds"].dt.tz_localize("UTC")
    table.to_parquet(tmp_path / "mine.parquet", row_group_size=100, index=False)
    whole = read_table(tmp_path / "mine.parquet")
    monkeypatch.setattr(pieces, "CELLS", 1)
    pd.testing.assert_frame_equal(read_table(tmp_path / "mine.parquet"), whole, check_exact=True)


def test_rows_before_a_season_are_sampled_without_a_list_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    training, seen = np.array([[0, 30], [30, 33], [40, 40], [40, 90]]), list[np.ndarray]()
    monkeypatch.setattr(effects_fit, "MOST_ROWS", 20)

    def scaled(numbers: np.ndarray) -> np.ndarray:
        seen.append(numbers)
        return numbers[:, None] % 7.0

    dated = DateTerms(False, None)
    effects_fit.fit_effects(scaled, np.arange(90.0)[:, None] % 5, None, 7, dated, training)
    every = np.concatenate([np.arange(begin, stop - 7) for begin, stop in training.tolist()])
    assert seen[0].tolist() == every[effects_fit._sampled(len(every))].tolist()
    assert seen[1].tolist() == (seen[0] + 7).tolist()


def test_intervals_are_those_of_windows_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = list[Windows | None]()

    def noting(forecaster: Forecaster, like: Windows | None = None) -> Intervals:
        shared.append(like)
        made, plain = held_out_intervals(forecaster, like=like), held_out_intervals(forecaster)
        assert made.to_bytes() == plain.to_bytes()
        return made

    monkeypatch.setattr("femts.training.fit.held_out_intervals", noting)
    trained(panel(), refit=True)
    assert len(shared) == 1 and shared[0] is not None


@pytest.mark.parametrize("share", [0.0, 0.02, 0.7])
def test_largest_factors_are_those_of_all_rows(share: float) -> None:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((300, 2)) < share, 1 + rng.random((300, 2)), 1.0)
    made = Factors.joined([Factors.of(dense[first : first + 70], first) for first in range(0, 300, 70)])
    assert len(made.rows) == (dense > 1).any(axis=1).sum()
    begin = torch.from_numpy(rng.integers(-20, 280, 50))
    for steps in (0, 1, 5, 20):
        rows = (begin[:, None] + torch.arange(steps)).clamp(0, 299)
        expected = np.ones((50, 2)) if not steps else dense[rows.numpy()].max(axis=1)
        np.testing.assert_array_equal(made.most(rows), expected.astype(np.float32))
