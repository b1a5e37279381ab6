"""Forecasters of panels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_panels import LENGTHS, L, P, panel_forecaster, panel_table

import femts
from femts.errors import UsageError
from femts.forecaster.forecaster import Forecaster

TABLE = panel_table()
TINY = {"model.n_layers": 1, "model.d_model": 16, "model.n_heads": 2}


@pytest.fixture(scope="module")
def fem() -> Forecaster:
    return panel_forecaster("fem_sm", settings=TINY)


@pytest.fixture(scope="module")
def ridge() -> Forecaster:
    return panel_forecaster("ridge")


def wide(name: str) -> pd.DataFrame:
    return TABLE.query("unique_id == @name")[["ds", "y"]].rename(columns={"ds": "date"})


def test_series_view_forecasts_like_the_panel(fem: Forecaster) -> None:
    together = fem.predict(TABLE, level=[80], quantiles=[0.1]).set_index("unique_id")
    for name in ("long", "young"):
        alone = fem.of(name).predict(wide(name), level=[80], quantiles=[0.1])
        assert list(alone["date"]) == list(together.loc[name, "ds"])
        for column in ("y", "y-lo-80", "y-hi-80", "y-q-10"):
            np.testing.assert_allclose(alone[column], together.loc[name, column], rtol=1e-5)


def test_series_view_has_its_own_data_and_scores(ridge: Forecaster) -> None:
    own = ridge.of("long")
    assert own.training_data().rows == LENGTHS["long"] and own.config.dataset == "long"
    raw = own.scores().set_index("units").loc["raw"]
    row = ridge.scores(by="series").set_index("series").loc["long"]
    for column in ("windows", "mse", "mae", "mase", "skill"):
        assert raw[column] == pytest.approx(row[column], rel=1e-5), column


def test_series_view_forecasts_without_data(ridge: Forecaster, tmp_path: Path) -> None:
    ridge.save(tmp_path / "run")
    view = Forecaster.load(tmp_path / "run").of("long")
    pd.testing.assert_frame_equal(view.predict(wide("long")), ridge.of("long").predict(wide("long")))
    with pytest.raises(UsageError, match="was passed as an object"):
        view.evaluate()
    with pytest.raises(UsageError, match=r"Series 'lonk' was not in the training data; did you mean 'long'\?"):
        ridge.of("lonk")


def test_panel_scores_are_window_means(ridge: Forecaster) -> None:
    whole, by_step = ridge.scores(level=[80]), ridge.scores(by="step")
    test = ridge.evaluate()
    assert whole["mse"].item() == pytest.approx(by_step["mse"].mean(), rel=1e-3) and len(by_step) == P  # a gap
    assert whole["windows"].item() == test["windows"] and whole["units"].item() == "scaled"
    assert whole["mae"].item() == pytest.approx(test["mae"])
    assert whole["mase"].item() == pytest.approx(ridge.scores(by="series")["mase"].mean())
    assert ridge.scores(by="channel")["mae"].item() == pytest.approx(test["mae"])


def test_coverage_by_step_and_by_series_agree(ridge: Forecaster) -> None:
    overall, every = ridge.scores(level=[80]), ridge.scores(by="series", level=[80])
    by_series = every.query("series != 'short'")
    table = ridge.coverage(level=[80])
    assert table["coverage"].mean() == pytest.approx(overall["coverage-80"].item(), rel=1e-3)
    assert set(table["units"]) == {"scaled"}
    scale = dict(zip(ridge.series, ridge.preprocess.scaler.scale[:, 0], strict=True))
    for row in by_series.itertuples():
        view = ridge.of(str(row.series))
        assert row[list(by_series).index("coverage-80") + 1] == pytest.approx(
            view.coverage(level=[80])["coverage"].mean()
        )
    widths = [row["width-80"] / scale[row["series"]] for _, row in every.iterrows()]
    assert np.average(widths, weights=every["windows"]) == pytest.approx(table["width"].mean(), rel=1e-2)  # a gap


def test_calibrate_uses_all_series(ridge: Forecaster) -> None:
    fresh = Forecaster(
        ridge.model, ridge.config, ridge.preprocess, ridge.freq, ridge.data, _dataset=ridge.training_data()
    )
    fresh = fresh.calibrate(level=[70])
    made, before = fresh.intervals, ridge.intervals
    assert (
        made is not None
        and before is not None
        and set(made.levels) == {*before.levels, 70}
        and made.windows == before.windows
    )
    np.testing.assert_allclose(made.half_width(80, P), before.half_width(80, P))
    assert fresh.predict(TABLE, level=[70]).filter(like="-lo-70").shape[1] == 1
    with pytest.raises(UsageError, match=f"use pred_len={P} or more"):
        fresh.calibrate(P - 1)
    fresh = fresh.calibrate(9, level=[85])
    assert fresh.intervals is not None and fresh.intervals.levels == tuple(sorted({*before.levels, 70, 85}))
    assert fresh.intervals.steps == 9 and fresh.evaluate(pred_len=9)["windows"] > 0


def test_explanation_per_series(fem: Forecaster, ridge: Forecaster) -> None:
    both = fem.explain(TABLE, ["young", "long"])
    assert list(both["series"].unique()) == ["young", "long"]
    for name in ("long", "young"):
        one = both.query("series == @name").reset_index(drop=True)
        alone = fem.of(name).explain(wide(name))
        pd.testing.assert_frame_equal(one.drop(columns="series"), alone, rtol=1e-4)
    assert fem.explain(TABLE)["series"].nunique() == len(LENGTHS)
    tiny = fem.explain(TABLE, "tiny")
    assert tiny["end"].max() == wide("tiny")["date"].max() and tiny["start"].min() < wide("tiny")["date"].min()
    with pytest.raises(UsageError, match="The history has no series 'lonk'; did you mean 'long'"):
        fem.explain(TABLE, ["lonk"])
    with pytest.raises(UsageError, match="has no attention over past segments"):
        ridge.explain(TABLE)


def test_plot_chooses_large_badly_forecast_and_typical_series() -> None:
    ds = pd.date_range("2024-01-01", periods=60)
    level = {f"s{number}": 100.0 + number for number in range(30)}
    table = pd.concat([pd.DataFrame({"unique_id": name, "ds": ds, "y": y}) for name, y in level.items()])
    run = femts.train(table, "naive", 7, seq_len=14)
    happened = table.assign(y=table["y"].where(table["unique_id"] != "s3", 90.0))
    figure = run.plot(table[table["ds"] < ds[-7]])
    drawn = [panel.get_title(loc="left") for panel in figure.axes]
    assert drawn == ["s29", "s28", "s27", "s26", "s25", "s24", "s23", "s18", "s14", "s9", "s5", "s0"]
    assert "6 largest and 6 typical of 30 series" in [text.get_text() for text in figure.texts]
    figure = run.plot(table[table["ds"] < ds[-7]], actual=happened)
    drawn = [panel.get_title(loc="left") for panel in figure.axes]
    assert drawn[:5] == ["s29", "s28", "s27", "s26", "s3"] and len(drawn) == 12
    said = "4 largest, 4 with the largest relative errors and 4 typical of 30 series"
    assert said in [text.get_text() for text in figure.texts]


def test_plot_has_one_axes_per_series(ridge: Forecaster) -> None:
    figure = ridge.plot(TABLE.iloc[:-3], level=[80], actual=TABLE)
    assert [panel.get_title(loc="left") for panel in figure.axes] == list(LENGTHS)
    ends = TABLE.iloc[:-3].groupby("unique_id")["ds"].max()
    for panel, name in zip(figure.axes, LENGTHS, strict=True):
        drawn = {line.get_label(): line for line in panel.lines}
        assert np.asarray(drawn["history"].get_xdata())[-1] == ends[name]
        assert ("what happened" in drawn) == (name == "tiny")
        assert np.asarray(drawn["forecast"].get_xdata())[0] == ends[name]
    assert [panel.get_title(loc="left") for panel in ridge.plot(TABLE, series=["short"]).axes] == ["short"]
    table = TABLE.query("unique_id == 'long'").assign(other=1.0)[["ds", "y", "other"]]
    table = table.set_axis(["date", "long", "new"], axis=1)
    assert [panel.get_title(loc="left") for panel in ridge.plot(table, level=[80]).axes] == ["long", "new"]
    with pytest.raises(UsageError, match="has no series 'none'"):
        ridge.plot(TABLE, series=["none"])
    with pytest.raises(UsageError, match="What happened has no row at the steps of the forecast"):
        ridge.plot(TABLE, actual=TABLE)


def test_single_series_exports_to_onnx(ridge: Forecaster, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    made = ridge.export(tmp_path / "long.onnx", series="long")
    past = wide("long")["y"].to_numpy()[None, -L:, None].astype(np.float32)
    (forecast,) = onnxruntime.InferenceSession(made.path).run(["forecast"], {"history": past})
    np.testing.assert_allclose(forecast[0, :, 0], ridge.predict(TABLE, series=["long"])["y"], rtol=1e-4)
