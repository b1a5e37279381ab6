"""Forecasts of series without history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import femts
from femts.cli import main
from femts.errors import GapWarning, UsageError

LEVEL = {"north": 10.0, "south": 100.0}


def shops(count: int = 12, rows: int = 120) -> pd.DataFrame:
    """Shops whose sales depend on their region and, by a factor of 1.5, on promotions."""
    random, frames = np.random.default_rng(0), []
    for number in range(count):
        region, promo = ["north", "south"][number % 2], (random.uniform(size=rows) < 0.3) * 1.0
        own = LEVEL[region] * random.uniform(0.8, 1.2)
        frames.append(
            pd.DataFrame(
                {
                    "shop": f"shop {number}",
                    "date": pd.date_range("2024-01-01", periods=rows),
                    "region": region,
                    "promo": promo,
                    "sales": own * (1 + 0.5 * promo + 0.02 * random.standard_normal(rows)),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def ahead(names: list[str], promo: float) -> pd.DataFrame:
    """The future covariates of shops."""
    dates = pd.date_range("2024-04-30", periods=7)
    return pd.concat([pd.DataFrame({"shop": name, "date": dates, "promo": promo}) for name in names])


@pytest.fixture(scope="module")
def fc() -> femts.Forecaster:
    data = femts.load_dataset(shops(), target="sales", static_covariates=["region"], future_covariates=["promo"])
    return femts.train(data, "boost", 7, seq_len=14, settings={"model.rounds": 60})


NEW = pd.DataFrame({"shop": ["new"], "region": ["north"]})
KNOWN = [f"shop {number}" for number in range(12)]


@pytest.mark.parametrize(("promo", "factor"), [(0.0, 1.0), (1.0, 1.5)])
@pytest.mark.parametrize("region", LEVEL)
def test_forecast_is_that_of_the_region_with_covariates_of_its_own(
    fc: femts.Forecaster, region: str, promo: float, factor: float
) -> None:
    future = pd.concat([ahead(KNOWN, 0.0), ahead(["new"], promo)])
    with pytest.warns(GapWarning, match="No history is known of new; the forecast is that of the most similar series"):
        made = fc.predict(shops(), level=[80], future=future, new=NEW.assign(region=region))
    of_new = made[made["shop"] == "new"].reset_index(drop=True)
    assert of_new["date"].tolist() == list(pd.date_range("2024-04-30", periods=7))
    np.testing.assert_allclose(of_new["sales"], LEVEL[region] * factor, rtol=0.2)
    width = of_new["sales-hi-80"] - of_new["sales-lo-80"]
    assert (width > 0.2 * LEVEL[region]).all()  # as wide as the levels of shops differ
    known = fc.predict(shops(), level=[80], future=ahead(KNOWN, 0.0))
    pd.testing.assert_frame_equal(made[made["shop"] != "new"], known)


def test_names_alone_are_like_any_series(fc: femts.Forecaster) -> None:
    with pytest.warns(GapWarning, match="No history is known of a, b"):
        made = fc.predict(shops(), level=[80], future=ahead([*KNOWN, "a", "b"], 0.0), new=["a", "b"])
    one = made[made["shop"] == "a"]
    assert (one["sales-lo-80"] < 15).all()
    assert (one["sales-hi-80"] > 80).all()


def test_parts_of_a_name_say_which_series_are_alike() -> None:
    table = shops().drop(columns=["promo", "region"])
    table["place"] = np.where(table["sales"] < 40, "small", "large")
    table["number"] = table.pop("shop")
    fc = femts.train(
        femts.load_dataset(table, columns={"series": "place+number"}, target="sales"), "ridge", 7, seq_len=14
    )
    for new in (["small / shop 99"], pd.DataFrame({"place": ["small"], "number": ["shop 99"]})):
        with pytest.warns(GapWarning, match="No history is known of small / shop 99; the forecast is that of the most"):
            made = fc.predict(table, new=new)
        name = made.columns[0]
        assert made.loc[made[name] == "small / shop 99", "sales"].max() < 20


def test_an_unknown_region_is_like_any_series(fc: femts.Forecaster) -> None:
    with pytest.warns(GapWarning, match="No history is known of new; the forecast is that of all series"):
        fc.predict(shops(), future=ahead([*KNOWN, "new"], 0.0), new=NEW.assign(region="west"))


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (["shop 1"], "Series 'shop 1' has a history, so it is not new"),
        (pd.DataFrame({"name": ["new"]}), "The table of new series has no column 'shop'"),
        (["unlisted"], "no 'promo' of series 'unlisted'"),
        ([], "Argument 'new' is empty"),
        (5, "Argument 'new' is '5'"),
    ],
)
def test_new_series_that_cannot_be_forecast(fc: femts.Forecaster, new: Any, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        fc.predict(shops(), future=ahead(KNOWN, 0.0), new=new)
    assert says in str(raised.value)


def test_a_single_table_has_no_new_series() -> None:
    table = small_table(160)
    with pytest.raises(UsageError, match="trained on a single table, so there are no new series; omit new"):
        femts.train(table, "naive", 12, seq_len=24).predict(table, new=["a"])


def test_command(fc: femts.Forecaster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"shops": shops(), "ahead": ahead([*KNOWN, "new"], 0.0), "new": NEW}
    for name, table in files.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    fc.save(tmp_path / "run")
    line = f"predict {tmp_path}/run {tmp_path}/shops.csv --future {tmp_path}/ahead.csv --new"
    for number, new in enumerate((f"{tmp_path}/new.csv", "new")):
        assert main([*line.split(), new, "-o", f"{tmp_path}/out{number}.csv"]) == 0
    assert "note: No history is known of new" in capsys.readouterr().err
    assert pd.read_csv(tmp_path / "out0.csv")["sales"].tail(7).max() < 15
    assert main([*line.split(), "shop 1"]) == 2
    assert "Series 'shop 1' has a history, so it is not new; leave it out of --new." in capsys.readouterr().err


def test_outliers_are_treated_as_asked() -> None:
    table = shops().drop(columns=["promo", "region"])
    fc = femts.train(femts.load_dataset(table, target="sales"), "naive", 7, seq_len=14, refit=True)
    last = table.groupby("shop").cumcount(ascending=False) == 0
    table.loc[last & table["shop"].isin(KNOWN[:8]), "sales"] = 5000.0
    highest = {}
    for outliers in ("missing", "keep"):
        with pytest.warns(GapWarning):
            made = fc.predict(table, new=["new"], outliers=outliers)
        highest[outliers] = made.loc[made["shop"] == "new", "sales"].max()
    assert highest["missing"] < 200 < highest["keep"]
