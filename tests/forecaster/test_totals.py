"""Sample paths, and totals over periods and groups of series."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import femts
from femts.cli import main
from femts.errors import GapWarning, UsageError

KEYS = ["shop", "date"]


def shops(common: float = 0.5, count: int = 6, rows: int = 260) -> pd.DataFrame:
    """Sales of shops in two regions, whose errors have a common part."""
    random = np.random.default_rng(0)
    shared, frames = random.standard_normal(rows), []
    for number in range(count):
        own = random.standard_normal(rows)
        frames.append(
            pd.DataFrame(
                {
                    "shop": f"shop {number}",
                    "date": pd.date_range("2024-01-03", periods=rows),
                    "region": ["north", "south"][number % 2],
                    "sales": 20 + np.sqrt(common) * shared + np.sqrt(1 - common) * own,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def trained(table: pd.DataFrame, **more: Any) -> femts.Forecaster:
    return femts.train(femts.load_dataset(table, target="sales"), "ridge", 10, seq_len=28, refit=True, **more)


@pytest.fixture(scope="module")
def fc() -> femts.Forecaster:
    return trained(shops())


def test_paths_have_the_form_of_a_forecast(fc: femts.Forecaster) -> None:
    paths, forecast = fc.sample(shops(), 3), fc.predict(shops())
    assert list(paths.columns) == ["sample", *KEYS, "sales"]
    for number in range(3):
        of_one = paths[paths["sample"] == number].reset_index(drop=True)
        pd.testing.assert_frame_equal(of_one[KEYS], forecast[KEYS])
    pd.testing.assert_frame_equal(paths, fc.sample(shops(), 3))
    assert not np.allclose(paths["sales"], fc.sample(shops(), 3, seed=1)["sales"])


def test_single_values_of_paths_have_the_intervals_of_the_forecast(fc: femts.Forecaster) -> None:
    ends = fc.sample(shops(), 500).groupby(KEYS)["sales"].quantile([0.1, 0.9]).unstack()
    bounds = fc.predict(shops(), level=[80]).set_index(KEYS)
    width = bounds["sales-hi-80"] - bounds["sales-lo-80"]
    assert ((ends[0.9] - ends[0.1]) / width).mean() == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("how", ["sum", "mean", "max", "min"])
def test_totals_are_those_of_the_paths(fc: femts.Forecaster, how: str) -> None:
    paths = fc.sample(shops(), 40)
    paths["region"] = paths["shop"].map(dict(shops()[["shop", "region"]].to_numpy()))
    added = paths.groupby(["sample", "region", "date"])["sales"].sum().reset_index()
    added["date"] = added["date"].dt.to_period("W").dt.start_time
    every = added.groupby(["sample", "region", "date"])["sales"].agg(how)
    expected = every.groupby(["region", "date"]).agg(["mean", lambda x: x.quantile(0.1), lambda x: x.quantile(0.9)])
    made = fc.totals(shops(), over="week", by="region", how=how, n=40)  # type: ignore[arg-type]
    assert list(made.columns) == ["region", "date", "steps", "sales", "sales-lo-80", "sales-hi-80"]
    np.testing.assert_allclose(made.iloc[:, 3:], expected.reindex(made.set_index(["region", "date"]).index))
    assert made["steps"].tolist() == [4, 6] * 2


def test_all_steps_of_each_series_and_of_all(fc: femts.Forecaster) -> None:
    each, together = fc.totals(shops()), fc.totals(shops(), by="all")
    assert each["shop"].tolist() == [f"shop {number}" for number in range(6)]
    assert each["steps"].eq(10).all()
    assert next(iter(together.columns)) == "date"
    assert together.loc[0, "date"] == pd.Timestamp("2024-09-19") == each.loc[0, "date"]
    assert together["sales"].sum() == pytest.approx(each["sales"].sum())


def test_difference_to_the_sum_of_the_forecasts_is_noted(
    fc: femts.Forecaster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings(action="error", category=femts.ForecastWarning):
        unbiased = fc.totals(shops(), over="total")
    forecast = fc.predict(shops()).groupby("shop", sort=False)["sales"].sum()
    assert (abs(unbiased["sales"].to_numpy() / forecast - 1) < 0.02).all()
    skewed = shops()
    skewed["sales"] = np.exp(0.8 * (skewed["sales"] - 20))  # whose median is far below the mean
    data = femts.load_dataset(skewed, target="sales", transform="log1p")
    biased = femts.train(data, "ridge", 10, seq_len=28, refit=True)
    for how in ("sum", "mean"):
        with pytest.warns(femts.ForecastWarning, match=r"^Totals are means of sample paths, .* bias") as told:
            totals = biased.totals(skewed, by="all", how=how)
        (said,) = [str(each.message) for each in told if each.category is femts.ForecastWarning]
        added = biased.predict(skewed).groupby("date")["sales"].sum().agg(how)
        assert f"by up to {100 * (totals['sales'][0] / added - 1):.2g} % from" in said
    with warnings.catch_warnings(action="error", category=femts.ForecastWarning):
        biased.totals(skewed, by="all", how="max")
    biased.save(tmp_path / "run")
    skewed.to_csv(tmp_path / "shops.csv", index=False)
    capsys.readouterr()
    assert main(["totals", str(tmp_path / "run"), str(tmp_path / "shops.csv"), "--by", "all"]) == 0
    assert capsys.readouterr().err.count("note: Totals are means of sample paths") == 1


def test_errors_in_common_make_a_total_uncertain() -> None:
    """Widths of the total of 16 shops over that of one: about 4 for independent errors, 16 for common ones."""
    ratios = []
    for common in (0.0, 1.0):
        table = shops(common, 16)
        one, every = (trained(table).totals(table, over="step", by=by, n=300) for by in (None, "all"))
        width = [(each["sales-hi-80"] - each["sales-lo-80"]).mean() for each in (one, every)]
        ratios.append(width[1] / width[0])
    assert 3 < ratios[0] < 6.5
    assert ratios[1] == pytest.approx(16, rel=0.1)


def test_a_saved_run_and_one_of_its_series_draw_the_same(fc: femts.Forecaster, tmp_path: Path) -> None:
    fc.save(tmp_path / "run")
    again = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(again.totals(shops(), n=20), fc.totals(shops(), n=20))
    assert again.intervals is not None and again.intervals.joint is not None
    assert again.intervals.of("shop 1").joint.relative.shape[1] == 1  # type: ignore[union-attr]


def test_paths_stay_within_the_domain() -> None:
    table = shops()
    table["sales"] = (table["sales"] - 20).clip(lower=0)
    assert (trained(table).sample(table, 50)["sales"] >= 0).all()


def test_totals_of_the_columns_of_a_table() -> None:
    table = small_table(160)
    made = femts.train(table, "naive", 12, seq_len=24).totals(table, over="day", how="max", n=20)
    assert {"date", "steps"} < set(made.columns)
    targets = [name for name in table.columns if name != "date"]
    assert all((made[f"{name}-lo-80"] <= made[f"{name}-hi-80"]).all() for name in targets)


def test_columns_of_a_wide_table_are_not_added_up_silently() -> None:
    table = small_table(160)
    with pytest.raises(UsageError, match="omit by, or make each column a series with panel=True") as error:
        femts.train(table, "naive", 12, seq_len=24).totals(table, by="all", n=20)
    assert error.value.remedy == {"by": None}
    fc = femts.train(femts.load_dataset(table, panel=True), "naive", 12, seq_len=24)
    assert len(fc.totals(table, by="all", n=20)) == 1


def test_steps_beyond_those_of_training_after_calibration(fc: femts.Forecaster) -> None:
    with pytest.raises(UsageError, match=r"calibrated for 10 steps, not for 14.*`femts calibrate RUN --horizon 14`"):
        fc.totals(shops(), horizon=14)
    longer = fc.calibrate(14, dataset=femts.load_dataset(shops(), target="sales"))
    assert longer.totals(shops(), horizon=14, n=5)["steps"].eq(14).all()


def test_periods_shorter_than_a_step() -> None:
    dates = pd.date_range("2015-01-01", periods=120, freq="MS")
    table = pd.DataFrame({"date": dates, "y": np.arange(120.0) % 12})
    fc = femts.train(table, "naive", 12, seq_len=24)
    with pytest.raises(UsageError, match="A week is shorter than a step of this table; use over='month'"):
        fc.totals(table, over="week")
    assert len(fc.totals(table, over="month", n=5)) == 12


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"over": "weeks"}, "Unknown period 'weeks'; did you mean 'week'?"),
        ({"how": "avg"}, "Unknown aggregate 'avg'; choose from sum, mean, max, min."),
        ({"by": "regio"}, "The history has no column 'regio' to group series by; did you mean 'region'?"),
        ({"by": "sales"}, "The history has no column 'sales' to group series by"),
        ({"n": 0}, "n"),
        ({"level": [120]}, "Level 120 is not a percentage"),
        ({"future": {"a": shops()}}, "one scenario at a time"),
        ({"new": ["shop 1"]}, "Series 'shop 1' has a history, so it is not new"),
    ],
)
def test_arguments_that_cannot_be_used(fc: femts.Forecaster, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as raised:
        fc.totals(shops(), **arguments)
    assert says in str(raised.value)


def test_a_column_that_changes_within_a_series_is_no_group(fc: femts.Forecaster) -> None:
    table = shops()
    table.loc[5, "region"] = "south"
    with pytest.raises(UsageError, match="'region' of series 'shop 0' changes"):
        fc.totals(table, by="region")


def test_command(fc: femts.Forecaster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shops().to_csv(tmp_path / "shops.csv", index=False)
    fc.save(tmp_path / "run")
    line = f"totals {tmp_path / 'run'} {tmp_path / 'shops.csv'} --over week --by region --level 80,95"
    assert main([*line.split(), "-o", str(tmp_path / "out.csv")]) == 0
    assert "out.csv: 4 rows" in capsys.readouterr().out
    made = pd.read_csv(tmp_path / "out.csv", parse_dates=["date"])
    expected = fc.totals(shops(), "week", "region", level=[80, 95])
    pd.testing.assert_frame_equal(made, expected, check_dtype=False)
    assert main([*line.split(), "--how", "avg"]) == 2
    assert "Unknown aggregate 'avg'" in capsys.readouterr().err


def test_groups_are_parts_of_names(fc: femts.Forecaster) -> None:
    table = shops().rename(columns={"shop": "number"}).drop(columns="region")
    table["place"] = np.where(table["number"] < "shop 3", "here", "there")
    data = femts.load_dataset(table, columns={"series": "place+number"}, target="sales")
    made = femts.train(data, "naive", 10, seq_len=28).totals(table, by="place", n=5)
    assert made["place"].tolist() == ["here", "there"]
    assert made["sales"].sum() == pytest.approx(fc.totals(shops(), by="all", n=5)["sales"].iloc[0], rel=0.2)


def test_a_series_that_has_ended_has_no_total(fc: femts.Forecaster) -> None:
    table = shops()
    table.loc[(table["shop"] == "shop 0") & (table["date"] > "2024-07-01"), "sales"] = np.nan
    each = fc.totals(table, n=5).set_index("shop")["sales"]
    assert each.isna().sum() == 1
    assert np.isnan(each["shop 0"])
    assert fc.totals(table, by="all", n=5)["sales"].iloc[0] == pytest.approx(each.sum())


def test_totals_cover_the_steps_of_all_series_of_a_group(fc: femts.Forecaster) -> None:
    table = shops()
    dates = pd.date_range(table["date"].max() + pd.Timedelta(days=1), periods=10)
    late = table[(table["shop"] != "shop 1") | (table["date"] <= dates[0] - pd.Timedelta(days=5))]
    with pytest.warns(GapWarning, match="'shop 1' ends before other series of its group"):
        steps = fc.totals(late, over="step", by="region", n=50)
    assert list(steps.loc[steps["region"] == "north", "date"]) == list(dates)
    assert list(steps.loc[steps["region"] == "south", "date"]) == list(dates[:6])
    paths = fc.sample(late, 50).merge(late[["shop", "region"]].drop_duplicates())
    south = paths[(paths["region"] == "south") & paths["date"].isin(dates[:6])]
    by_hand = south.groupby(["sample", "date"])["sales"].sum().groupby("date").mean()
    np.testing.assert_allclose(steps.loc[steps["region"] == "south", "sales"], by_hand, rtol=1e-6)
    with pytest.warns(GapWarning):
        assert list(fc.totals(late, by="all", n=50)["steps"]) == [6]
    with pytest.raises(UsageError, match="'shop 1' ends before other series of its group, so no step is forecast"):
        fc.totals(late, by="all", horizon=3, n=50)


def opened(count: int, region: str = "north") -> pd.DataFrame:
    """Rows for `--new` of shops that have not opened."""
    return pd.DataFrame({"shop": [f"new {number}" for number in range(count)], "region": region})


def levels(seed: int, count: int, rows: int = 120) -> pd.DataFrame:
    """Sales of shops that differ by constants, around 100 in the north and 1000 in the south, with errors in common."""
    random = np.random.default_rng(seed)
    shared, frames = random.standard_normal(rows), []
    for number in range(count):
        region = ["north", "south"][number % 2]
        own = {"north": 100, "south": 1000}[region] + 30 * random.standard_normal()
        sales = own + 2 * shared + random.standard_normal(rows)
        dates = pd.date_range("2024-01-01", periods=rows)
        frames.append(pd.DataFrame({"shop": f"shop {number}", "date": dates, "region": region, "sales": sales}))
    return pd.concat(frames, ignore_index=True)


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_paths_of_known_series_are_the_same_with_new_ones(fc: femts.Forecaster) -> None:
    alone, together = fc.sample(shops(), 20), fc.sample(shops(), 20, new=opened(2))
    known = together[~together["shop"].str.startswith("new")].reset_index(drop=True)
    pd.testing.assert_frame_equal(known, alone)
    of_new = together[together["shop"] == "new 1"]
    assert of_new["date"].tolist() == alone.loc[alone["shop"] == "shop 1", "date"].tolist()
    assert len(fc.totals(shops(), n=5, new=["a", "b"])) == 8


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_errors_in_common_are_those_of_new_series() -> None:
    """With all errors in common, a path of a new series moves with those of the others."""
    table = shops(common=1.0)
    paths = (
        trained(table).sample(table, 200, new=["new"]).pivot(index=["sample", "date"], columns="shop", values="sales")
    )
    assert np.corrcoef(paths["new"], paths["shop 1"])[0, 1] > 0.95


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_a_total_with_new_series_is_as_uncertain_as_their_levels() -> None:
    """The mean of four new shops differs from that of the eight known ones by the means of both."""
    table = levels(0, 16)
    fc = femts.train(femts.load_dataset(table, target="sales"), "naive", 7, seq_len=14)
    paths = fc.sample(table[table["region"] == "north"], 400, horizon=1, new=opened(4))
    of_new = paths[paths["shop"].str.startswith("new")].groupby("sample")["sales"].mean()
    known = table[table["region"] == "north"].groupby("shop")["sales"].mean()
    assert of_new.median() == pytest.approx(known.mean(), rel=0.05)
    low, high = of_new.quantile([0.1, 0.9])
    assert (high - low) / (2 * 1.28 * known.std()) == pytest.approx(np.sqrt(1 / 4 + 1 / 8), rel=0.25)
    made = fc.totals(table, by="region", new=opened(4)).set_index("region")
    assert made.loc["north", "sales"] == pytest.approx(12 * 7 * known.mean(), rel=0.03)
    pd.testing.assert_series_equal(made.loc["south"], fc.totals(table, by="region").set_index("region").loc["south"])


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_totals_of_new_series_are_covered() -> None:
    fc, inside = femts.train(femts.load_dataset(levels(0, 14), target="sales"), "naive", 7, seq_len=14), []
    for seed in range(1, 21):
        table = levels(seed, 14)
        north = table["region"] == "north"
        hidden = table["shop"].isin(["shop 0", "shop 2"])
        before = table["date"] < "2024-04-23"
        history, actual = table[before & ~hidden], table[~before & north].groupby("shop").head(7)
        new = pd.DataFrame({"shop": ["shop 0", "shop 2"], "region": "north"})
        made = fc.totals(history[history["region"] == "north"], by="all", n=100, new=new).iloc[0]
        inside.append(made["sales-lo-80"] < actual["sales"].sum() < made["sales-hi-80"])
    assert 13 <= sum(inside) <= 19


@pytest.mark.filterwarnings("ignore::femts.errors.GapWarning")
def test_groups_of_new_series(fc: femts.Forecaster) -> None:
    made = fc.totals(shops(), by="region", n=5, new=opened(1, "west"))
    assert made["region"].tolist() == ["north", "south", "west"]
    with pytest.raises(UsageError, match="The table of new series has no column 'region' to group them by; add it"):
        fc.totals(shops(), by="region", new=["new"])
    table = shops().rename(columns={"shop": "number"}).drop(columns="region")
    table["place"] = (table["number"] < "shop 3") + 1
    data = femts.load_dataset(table, columns={"series": "place+number"}, target="sales")
    of_parts = femts.train(data, "naive", 10, seq_len=28)
    made = of_parts.totals(table, by="place", n=5, new=["2 / shop 9"])
    assert made["place"].tolist() == [2, 1]
    alone = of_parts.totals(table, by="place", n=5)
    assert made["sales"].to_numpy() / alone["sales"].to_numpy() == pytest.approx([4 / 3, 1], rel=0.05)


def test_command_with_new_series(fc: femts.Forecaster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shops().to_csv(tmp_path / "shops.csv", index=False)
    opened(2).to_csv(tmp_path / "new.csv", index=False)
    fc.save(tmp_path / "run")
    line = f"totals {tmp_path / 'run'} {tmp_path / 'shops.csv'} --by region --new {tmp_path / 'new.csv'}"
    assert main([*line.split(), "-o", str(tmp_path / "out.csv")]) == 0
    assert "No history is known of new 0, new 1" in capsys.readouterr().err
    with pytest.warns(GapWarning, match="No history is known of new 0, new 1"):
        expected = fc.totals(shops(), by="region", new=opened(2))
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "out.csv", parse_dates=["date"]), expected, check_dtype=False)
