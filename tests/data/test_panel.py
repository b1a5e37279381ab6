"""Panels: many series, each with its own clock, scale and end, and one model for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.schema import Schema
from femts.data.windows import Preprocess
from femts.errors import GapWarning, UsageError
from femts.forecaster.forecaster import Forecaster
from femts.training.train import train

L, P = 14, 7
QUICK: dict[str, Any] = {"pred_len": P, "seq_len": L, "max_steps": 6, "device": "cpu"}
LENGTHS = {"long": 300, "short": 60, "young": 20, "tiny": 6}


def series(name: str, rows: int, begin: int = 0) -> pd.DataFrame:
    """A weekly wave of its own size and phase, from its own day on."""
    rng = np.random.default_rng(len(name))
    day = np.arange(begin, begin + rows)
    values = 10 ** len(name) * (2 + np.sin(2 * np.pi * day / 7 + len(name)) + 0.1 * rng.normal(size=rows))
    return pd.DataFrame({"unique_id": name, "ds": pd.date_range("2020-01-01", periods=2000)[day], "y": values})


def with_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with `promo`, which lifts each series by its own size, a `price` and a `heat`."""
    rng = np.random.default_rng(3)
    promo = (rng.uniform(size=len(frame)) < 0.3) * 1.0
    size = frame.groupby("unique_id")["y"].transform("mean")
    heat, price = rng.normal(size=(2, len(frame)))
    return frame.assign(y=frame["y"] + promo * size, promo=promo, price=price, heat=heat)


def table() -> pd.DataFrame:
    parts = [series(name, rows, begin=10 * k) for k, (name, rows) in enumerate(LENGTHS.items())]
    return pd.concat(parts, ignore_index=True)


def made(model: str, frame: pd.DataFrame | None = None, **more: Any) -> Forecaster:
    forecaster = train(load_dataset(table() if frame is None else frame, panel=True), model, **(QUICK | more))
    assert isinstance(forecaster, Forecaster)
    return forecaster


ROLES: dict[str, dict[str, Any]] = {
    "none": {},
    "known": {"future": ["promo", "price"], "target": ["y"]},
    "calendar": {"calendar": True},
    "past": {"past": ["heat"]},
    "all": {"future": "promo", "past": "heat", "calendar": True},
    "several": {"target": ["y", "heat"], "future": "promo"},
}


@pytest.mark.parametrize(
    ("model", "roles"),
    [
        *((model, "none") for model in ("fem_sm", "ridge", "dlinear", "seasonal_naive")),
        *(("fem_sm", roles) for roles in ROLES if roles != "none"),
        ("ridge", "known"),
        ("dlinear", "calendar"),
    ],
)
def test_a_panel_of_one_series_is_the_wide_table_of_it(model: str, roles: str) -> None:
    one, reading = with_columns(series("only", 200)), ROLES[roles]
    named = [
        name for each in reading.values() if each is not True for name in ([each] if isinstance(each, str) else each)
    ]
    one = one[["unique_id", "ds", *dict.fromkeys(["y", *named])]].drop(index=[40, 41])
    same = one.drop(columns="unique_id").rename(columns={"ds": "date"})
    history, ahead, wide_history, wide_ahead = one[:-P], one[-P:], same[:-P], same[-P:]
    panel = train(load_dataset(one, **reading, panel=True), model, **QUICK)
    assert isinstance(panel, Forecaster)
    wide = train(femts.load_dataset(same, **reading), model, **QUICK)
    assert panel.metrics.get("known") == wide.metrics.get("known")
    assert ("known" in panel.metrics) == bool(reading.get("future") or reading.get("calendar"))
    for key in ("test", "val"):
        assert panel.metrics[key] == wide.metrics[key]
    for ours, theirs in zip(panel.model.state_dict().values(), wide.model.state_dict().values(), strict=True):
        assert torch.equal(ours, theirs)
    assert panel.intervals is not None and wide.intervals is not None
    np.testing.assert_array_equal(panel.intervals.half_widths, wide.intervals.half_widths)
    known = "future" in reading
    forecast = panel.predict(history, level=[80], future=ahead if known else None)
    expected = wide.predict(wide_history, level=[80], future=wide_ahead if known else None)
    assert list(forecast.columns[2:]) == list(expected.columns[1:])
    for column in forecast.columns[2:]:
        np.testing.assert_array_equal(forecast[column], expected[column])
    assert list(forecast["ds"]) == list(expected["date"])


@pytest.mark.parametrize("model", ["fem_sm", "ridge", "dlinear", "naive"])
def test_each_forecast_begins_where_its_series_ends(model: str) -> None:
    forecaster = made(model)
    forecast = forecaster.predict(table())
    assert list(forecast["unique_id"].unique()) == list(LENGTHS) and len(forecast) == P * len(LENGTHS)
    ends = table().groupby("unique_id")["ds"].max()
    for name, rows in forecast.groupby("unique_id"):
        assert list(rows["ds"]) == list(pd.date_range(ends[name], periods=P + 1)[1:])
        assert np.isfinite(rows["y"]).all()
        assert 0.5 < rows["y"].mean() / 10 ** len(str(name)) < 4, "in its own units"


def test_a_forecast_does_not_depend_on_the_other_series() -> None:
    forecaster = made("fem_sm")
    together = forecaster.predict(table()).set_index("unique_id")
    for name in LENGTHS:
        alone = forecaster.predict(table().query("unique_id == @name"))
        np.testing.assert_allclose(alone["y"], together.loc[name, "y"], rtol=1e-5)


def test_a_new_series_is_scaled_by_its_own_rows() -> None:
    forecaster = made("naive")
    new = series("stranger", 30)
    with pytest.warns(GapWarning, match="1 of 1 series are new, the first 'stranger'; each is scaled by its own rows"):
        forecast = forecaster.predict(new)
    np.testing.assert_allclose(forecast["y"], new["y"].iloc[-1], rtol=1e-6)


def test_windows_stay_within_their_series_and_their_part() -> None:
    panel = panel_for_horizon(load_dataset(table(), panel=True), P)
    preprocess = Preprocess.fit(panel)
    for part in ("train", "val", "test"):
        windows = part_windows(panel, preprocess, part, L, P)
        index = torch.arange(len(windows))
        seen, (x, y) = windows.seen(index), windows.gather(index)
        assert seen is not None
        for number in index.tolist():
            name = windows.names[int(windows.series_of(index[number : number + 1]))]
            data, one = panel[name], preprocess.series[name]
            scaled = one.transform(data.values)[:, 0]
            values, mask = torch.cat([x[number], y[number]])[:, 0], seen[number, :, 0]
            real = values[mask].numpy()
            assert len(real), "each window has a value"
            first = int(np.argmin(np.abs(scaled - real[0])))
            np.testing.assert_allclose(real, scaled[first : first + len(real)], rtol=1e-5, atol=1e-6)
            low, high = getattr(data.split, part)
            assert mask[L:].any() and first + len(real) <= high, "nothing beyond the part is seen"
            assert first + int(mask[:L].sum()) >= low
    counts = {part: len(part_windows(panel, preprocess, part, L, P)) for part in ("train", "val", "test")}
    assert counts["test"] == sum(max(0, d.split.test[1] - d.split.test[0] - P + 1) for d in panel.series.values())


def test_later_rows_do_not_reach_the_weights() -> None:
    other = table()
    later = other.groupby("unique_id").cumcount() >= other.groupby("unique_id")["y"].transform("size") - P
    enough = other["unique_id"].isin(["long", "short", "young"])
    other.loc[later & enough, "y"] = 1e9
    for model in ("ridge", "dlinear", "fem_sm"):
        weights = [
            made(model, each, settings={"training.keep": "last"}).model.state_dict() for each in (table(), other)
        ]
        for one, two in zip(weights[0].values(), weights[1].values(), strict=True):
            assert torch.equal(one, two), model


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "panel.csv"
    table().to_csv(path, index=False)
    forecaster = train(load_dataset(path, panel=True), "dlinear", out=tmp_path / "run", **QUICK)
    again = Forecaster.load(tmp_path / "run")
    pd.testing.assert_frame_equal(again.predict(table(), level=[80]), forecaster.predict(table(), level=[80]))
    assert again.evaluate() == {key: forecaster.metrics["test"][key] for key in ("mse", "mae", "windows")}
    assert again.training_data().series.keys() == LENGTHS.keys()
    assert not femts.audit(tmp_path / "run").failed


def test_scores_of_each_series_are_in_its_units() -> None:
    forecaster = made("naive")
    scores = forecaster.scores().set_index("series")
    panel = forecaster.training_data()
    for name, row in scores.iterrows():
        data = panel[str(name)]
        low, high = data.split.test
        errors = [data.values[o : o + P, 0] - data.values[o - 1, 0] for o in range(low, high - P + 1)]
        assert row["windows"] == len(errors)
        assert row["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-4)
        train_values = data.train_values[:, 0]
        if len(train_values) > 7:
            assert row["mase"] == pytest.approx(
                row["mae"] / np.abs(train_values[7:] - train_values[:-7]).mean(), rel=1e-4
            )
    assert (scores["mase"].dropna() > 0).all() and "tiny" not in scores.index


def test_a_wide_table_is_a_panel_of_its_columns() -> None:
    wide = pd.DataFrame({"date": pd.date_range("2020-01-01", periods=200), "a": np.sin(np.arange(200.0)), "b": 5.0})
    panel = load_dataset(wide, panel=True)
    assert list(panel.series) == ["a", "b"] and panel.columns == ("y",)
    np.testing.assert_array_equal(panel["a"].values[:, 0], wide["a"])


@pytest.mark.parametrize(
    ("frame", "reading", "says"),
    [
        (pd.concat([table(), table().head(1)]), {}, "Series 'long' of The frame repeats 1 date"),
        (
            table().assign(more=1.0),
            {},
            "has the further column 'more'; name it for --past, --future or --static, or leave",
        ),
        (table().assign(ds=range(386)), {"calendar": True}, "Calendar features need dates"),
        (table(), {"target": ["z"]}, "The frame has no column 'z' for --target; choose from y."),
        (table(), {"static": ["z"]}, "The frame has no column 'z' for --static"),
        (table(), {"past": ["y"]}, "Column 'y' is named for --target and for --past"),
        (table().assign(more=table()["y"]), {"future": "more"}, "Column 'more' of --future equals 'y' in every row"),
        (table().assign(more=1.0).drop(columns="ds"), {"past": "more"}, "has no column 'ds', so it is no long table"),
        (
            table().assign(more=np.arange(386) > 350),
            {"static": "more"},
            "Static column 'more' of series 'short' changes, from 0 to 1; give it one value",
        ),
        (table().assign(more=np.inf), {"static": "more"}, "Static column 'more' of series 'long' is infinite"),
        (table().assign(unique_id=[*[None] * 3, *["a"] * 383]), {}, "has no name in 'unique_id' at data row 1"),
        (table().head(0), {}, "has no rows"),
        (table().assign(y="much"), {}, "has the text 'much' in column 'y'"),
        (3, {}, "The data are a int"),
    ],
)
def test_a_panel_that_cannot_be_is_refused(frame: Any, reading: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_dataset(frame, **reading, panel=True)


def test_a_long_table_is_a_panel_and_a_wide_one_is_not(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "panel.csv", index=False)
    said: list[str] = []
    assert isinstance(train(tmp_path / "panel.csv", "naive", **QUICK, say=said.append), Forecaster)
    assert "the table is long, so one model learns from each series by itself; --multivariate joins them" in said
    joined = load_dataset(tmp_path / "panel.csv", schema=Schema.of(panel=False))
    assert isinstance(joined, Dataset)
    assert joined.columns == tuple(LENGTHS)
    with pytest.raises(UsageError, match=r"A data set is one series of columns, and no panel; load it by femts\.load_"):
        femts.load_dataset(tmp_path / "panel.csv", panel=True)


def test_the_default_look_back_is_that_of_a_series_of_middle_length() -> None:
    parts = [series(f"s{k}", rows) for k, rows in enumerate((2000, 60, 61, 62, 63))]
    assert made("naive", pd.concat(parts), seq_len=None).config.seq_len <= 42


def test_stamps_that_mostly_repeat_are_told_of_their_series() -> None:
    twice = pd.concat([table(), table()])
    with pytest.raises(UsageError, match="Series 'long' of The frame repeats 300 dates, the first"):
        load_dataset(twice, panel=True)


def test_no_series_is_long_enough() -> None:
    with pytest.raises(UsageError, match="No series of 'frame' has a window of 7 steps in its val part"):
        made("naive", series("tiny", 6))


def test_gaps_are_filled_as_in_a_wide_table() -> None:
    holed = table().drop(index=[50, 51, 120])
    forecaster = made("dlinear", holed)
    assert "1 of them with gaps" in load_dataset(holed, panel=True).notes[-1]
    assert np.isfinite(forecaster.predict(holed)["y"]).all()
