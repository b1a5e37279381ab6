"""Tables whose last rows have future covariates but no targets, from training to forecast."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.data.recent import read_recent
from femts.errors import AgeWarning, GapWarning, UsageError

ROLES: dict[str, Any] = {"target": ["sales"], "future_covariates": ["price", "promo"]}
H = 10


def sheet(rows: int = 200, ahead: int = H, seed: int = 0, **first: object) -> pd.DataFrame:
    """Daily sales that jump with `promo` and fall with `price`, empty in the last rows; `kind` is text."""
    rng, steps = np.random.default_rng(seed), np.arange(rows + ahead)
    promo = (rng.random(len(steps)) < 0.3).astype(float)
    price = 10 + np.round(rng.normal(size=len(steps)), 2)
    sales = 100 + 5 * np.sin(steps * 2 * np.pi / 7) + 20 * promo - 3 * price + rng.normal(size=len(steps))
    sales[rows:] = np.nan
    dates = pd.date_range("2024-01-01", periods=len(steps))
    return pd.DataFrame({"date": dates, **first, "sales": sales, "price": price, "promo": promo})


@pytest.fixture(scope="module")
def trained() -> femts.Forecaster:
    return femts.train(sheet(), "ridge", seq_len=28, refit=True, **ROLES)


def test_last_rows_are_the_future(trained: femts.Forecaster) -> None:
    data = femts.load_dataset(sheet(), **ROLES)
    assert data.rows == 200 and data.observed is None
    assert data.notes[-1] == "the last 10 rows have no 'sales' and are read as the future of 'price', 'promo'"
    assert trained.config.pred_len == H
    table = sheet()
    apart = trained.predict(table[:-H], future=table[-H:])
    with pytest.warns(GapWarning, match="In the history, the last 10 rows have no 'sales'"):
        pd.testing.assert_frame_equal(trained.predict(table), apart)
    with warnings.catch_warnings(action="error"):  # said at loading
        pd.testing.assert_frame_equal(trained.predict(data), apart)
    with pytest.warns(GapWarning):
        pd.testing.assert_frame_equal(trained.predict(table.sample(frac=1, random_state=0)), apart)
    pd.testing.assert_frame_equal(
        femts.forecast(table, **ROLES), femts.forecast(table[:-H], H, future=table[-H:], **ROLES)
    )


def test_fewer_rows_than_the_horizon(trained: femts.Forecaster) -> None:
    with (
        pytest.warns(GapWarning),
        pytest.raises(UsageError, match=r"has 'price' for 4 steps .* use horizon=4, or") as e,
    ):
        trained.predict(sheet()[: -(H - 4)])
    assert e.value.remedy == {"horizon": 4}
    table = sheet()
    table.loc[205:, "promo"] = np.nan
    with pytest.warns(GapWarning), pytest.raises(UsageError, match=r"has 'promo' for 5 steps .* use horizon=5, or"):
        trained.predict(table)
    with pytest.warns(GapWarning):
        assert len(trained.predict(table, 5)) == 5
    with pytest.raises(UsageError, match="provide price, promo for the 10 steps"):
        trained.predict(table[:-H])


def test_a_table_of_the_future_replaces_the_rows(trained: femts.Forecaster) -> None:
    table = sheet()
    plans = {"none": table[-H:].assign(promo=0), "all": table[-H:].assign(promo=1)}
    made = trained.predict(table, future=plans).groupby("scenario", sort=False)["sales"].mean()
    assert made["all"] - made["none"] == pytest.approx(20, abs=1)
    pd.testing.assert_frame_equal(
        trained.predict(table, future=plans["all"]), trained.predict(table[:-H], future=plans["all"])
    )


def test_late_readings_before_a_table_of_the_future(trained: femts.Forecaster) -> None:
    """Two rows whose sales are not known yet do not move the beginning of the forecast."""
    table = sheet(200, H + 2)
    with pytest.warns(GapWarning, match="lacks 2 of"):
        made = trained.predict(table[:-H], future=table[-H:])
    assert made["date"].tolist() == table["date"][-H:].tolist()


def test_text_and_past_covariates() -> None:
    table = sheet().assign(kind=np.where(np.arange(210) % 3, "card", "flyer"), visits=np.arange(210) % 11)
    roles: dict[str, Any] = {"target": ["sales"], "future_covariates": ["kind", "price"], "past_covariates": ["visits"]}
    data = femts.load_dataset(table, **roles)
    assert data.rows == 210 and data.ahead is None  # visits have been counted
    table.loc[200:, "visits"] = np.nan
    data = femts.load_dataset(table, **roles)
    assert data.rows == 200 and data.ahead is not None and data.ahead.steps == H
    assert data.notes[-1] == "the last 10 rows have no 'sales', 'visits' and are read as the future of 'kind', 'price'"
    del roles["past_covariates"]
    pd.testing.assert_frame_equal(
        femts.forecast(table, **roles), femts.forecast(table[:-H], H, future=table[-H:], **roles)
    )


def test_series_of_a_panel() -> None:
    """Series that end together share their last reading, those that ended before have their own, and new ones none."""
    late = sheet(seed=1, shop="late")
    late.loc[198:, "sales"] = np.nan
    ended = sheet(150, seed=2, shop="ended")
    new = sheet(seed=3, shop="new").tail(H)
    table = pd.concat([sheet(shop="usual"), late, ended, new])
    data = femts.load_dataset(table, **ROLES)
    assert data.series == ("usual", "late", "ended") and data.lengths.tolist() == [200, 200, 150]
    assert any("the last 10 rows of 4 series have no 'sales'" in note and "new=['new']" in note for note in data.notes)
    forecaster = femts.train(data, "ridge", seq_len=28, refit=True)
    with pytest.warns(AgeWarning):
        made = forecaster.predict(data)
    known = table.groupby("shop", sort=False).tail(H)
    with pytest.warns(AgeWarning):
        apart = forecaster.predict(table.groupby("shop").head(-H), future=known)
    pd.testing.assert_frame_equal(made.rename(columns={"ds": "date"}), apart)
    assert apart["date"].tolist() == known[known["shop"] != "new"]["date"].tolist()
    with pytest.warns(GapWarning):
        assert forecaster.predict(table, new=["new"])["shop"].tolist()[-H:] == ["new"] * H
    with pytest.warns(GapWarning), pytest.raises(UsageError, match=r"'price' of series 'ended' for 4 steps"):
        forecaster.predict(pd.concat([table[table["shop"] == "usual"], ended[: -(H - 4)]]))


def test_weekly_sums_end_with_the_readings() -> None:
    table = sheet(28 * 7, 21)  # from a Monday on
    reading: dict[str, Any] = {"freq": "W", "aggregate": "sum"}
    data = femts.load_dataset(table, **ROLES, **reading)
    assert data.rows == 28 and data.ahead is not None and data.ahead.steps == 3
    pd.testing.assert_frame_equal(
        femts.forecast(data, model="seasonal_naive"),
        femts.forecast(table[:-21], 3, future=table[-21:], model="seasonal_naive", **ROLES, **reading),
    )


def test_sums_begin_again_with_a_week_that_is_not_over() -> None:
    """Its readings are too few for a sum, and its covariates are the means of the days that are planned."""
    table = sheet(28 * 7 + 3, 18)
    reading: dict[str, Any] = {"freq": "W", "aggregate": "sum"}
    made = femts.forecast(table[:-18], 3, future=table[-18:], model="seasonal_naive", **ROLES, **reading)
    assert made["date"].tolist() == pd.date_range("2024-07-21", periods=3, freq="W").tolist()


def test_columns_without_a_role() -> None:
    whole = sheet().drop(columns="promo")
    gap = whole.assign(sales=whole["sales"].where(whole.index != whole["sales"].last_valid_index() - 3))
    for each in (whole, gap):
        notes = femts.load_dataset(each).notes
        assert any(note.endswith("if these are known in advance, use future_covariates=['price']") for note in notes)
    rare = sheet().drop(columns="promo")  # a column of events
    rare.loc[rare.index % 30 > 0, "sales"] = np.nan
    for other in (sheet(ahead=0).drop(columns="promo"), rare):
        assert not any("in advance" in note for note in femts.load_dataset(other).notes)


def test_rows_ahead_that_fill_a_piece_of_the_file(trained: femts.Forecaster, tmp_path: Path) -> None:
    sheet(500, 150).to_csv(tmp_path / "sheet.csv", index=False)
    schema = trained.config.schema
    read = read_recent(tmp_path / "sheet.csv", 28, schema, trained.columns, trained.freq, cells=200)
    pd.testing.assert_frame_equal(trained.predict(read), trained.predict(sheet(500, 150)))
    assert len(read) == 28 + 150


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, run = tmp_path / "sheet.csv", str(tmp_path / "run")
    sheet(3000).to_csv(table, index=False)
    roles = "--target sales --future-covariates price,promo".split()
    assert main(["train", "--dataset", str(table), *roles, "--model", "ridge", "--out", run]) == 0
    assert main(["predict", run, str(table), "-o", str(tmp_path / "a.csv"), "--plot", str(tmp_path / "a.png")]) == 0
    assert "note: In the history, the last 10 rows have no 'sales'" in capsys.readouterr().err
    assert main(["predict", run, str(table), "--future", str(table), "-o", str(tmp_path / "b.csv")]) == 0
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    assert pd.read_csv(tmp_path / "a.csv")["date"].tolist() == [str(d.date()) for d in sheet(3000)["date"][-H:]]
    assert main(["predict", run, str(table), "--horizon", "11"]) == 2
    assert "for 10 steps after its last reading, but 11 are forecast; use --horizon 10" in capsys.readouterr().err
