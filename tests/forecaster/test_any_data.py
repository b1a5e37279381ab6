"""Data as a path, a frame or a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import femts
from femts import Forecaster, UsageError

NAMES = {"time": "when"}


@pytest.fixture(scope="module")
def own_names() -> pd.DataFrame:
    table = small_table().rename(columns={"date": "when"})
    table.loc[5, "load"] = -9999.0
    return table


@pytest.fixture(scope="module")
def forecaster(own_names: pd.DataFrame) -> Forecaster:
    return femts.train(femts.load_dataset(own_names, columns=NAMES, na=-9999), "ridge", 12, seq_len=24)


def test_path_frame_and_dataset_score_equally(forecaster: Forecaster, own_names: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "moved.csv"
    own_names.to_csv(path, index=False)
    data = femts.load_dataset(own_names, columns=NAMES, na=-9999)
    usual = forecaster.evaluate()
    for dataset in (own_names, path, str(path), data):
        assert forecaster.evaluate(dataset=dataset) == usual
        assert forecaster.scores(dataset=dataset).equals(forecaster.scores())
        assert forecaster.coverage(level=[80], dataset=dataset).equals(forecaster.coverage(level=[80]))
        cutoffs: dict[str, Any] = {"n_windows": 2, "step_size": 12}
        assert femts.backtest(forecaster, dataset, **cutoffs).equals(femts.backtest(forecaster, data, **cutoffs))
    assert not femts.audit(forecaster, own_names).failed
    assert femts.report(forecaster, tmp_path / "page.html", own_names).is_file()
    intervals = forecaster.calibrate(dataset=own_names).intervals
    assert intervals is not None and intervals.steps == 12
    with pytest.raises(femts.UsageError, match="has different columns from the training data"):
        forecaster.evaluate(dataset=own_names.rename(columns={"heat": "cold"}))


def test_frame_keeps_user_column_names(forecaster: Forecaster, own_names: pd.DataFrame) -> None:
    frame = forecaster.training_data().frame()
    assert list(frame.columns) == ["when", "load", "heat"]
    for table in (frame, forecaster.training_data()):
        pd.testing.assert_frame_equal(forecaster.predict(table), forecaster.predict(own_names))
    long = own_names.melt("when", var_name="shop", value_name="sales")[["shop", "when", "sales"]]
    data = femts.load_dataset(long, columns={"time": "when", "series": "shop", "value": "sales"}, na=-9999)
    trained = femts.train(data, "ridge", 12, seq_len=24)
    pd.testing.assert_frame_equal(trained.predict(data), trained.predict(data.frame()))
    assert list(trained.predict(data.frame()).columns) == ["shop", "when", "sales"]
    assert list(trained.predict(own_names).columns) == ["when", "load", "heat"]


def test_plot_returns_a_figure(forecaster: Forecaster, own_names: pd.DataFrame, tmp_path: Path) -> None:
    past, future = own_names.iloc[:-12], own_names.tail(12)
    figure = forecaster.plot(past, level=[80], actual=future, columns=["heat"])
    assert isinstance(figure, plt.Figure) and [panel.get_title(loc="left") for panel in figure.axes] == ["heat"]
    assert figure._repr_png_().startswith(b"\x89PNG")
    figure.savefig(tmp_path / "forecast.svg")
    drawn = {line.get_label(): line for line in figure.axes[0].get_lines()}
    happened = np.asarray(drawn["what happened"].get_ydata())
    assert np.allclose(happened[1:], future["heat"])
    assert {"history", "forecast"} <= drawn.keys()
    assert forecaster.plot(past, actual=future[["when", "heat"]].head(1), columns=["heat"]).axes  # a part of it
    with pytest.raises(UsageError, match="What happened lacks 'load'"):
        forecaster.plot(past, actual=future[["when", "heat"]])
    long = small_table().melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})
    other = femts.train(femts.load_dataset(long[["unique_id", "ds", "y"]]), "naive", 12, seq_len=24)
    assert len(other.plot(long[["unique_id", "ds", "y"]]).axes) == 2


def test_plot_does_not_depend_on_the_form_of_the_tables(forecaster: Forecaster, own_names: pd.DataFrame) -> None:
    def lines(past: Any, actual: Any) -> list[np.ndarray]:
        axes = forecaster.plot(past, actual=actual).axes
        drawn = [np.asarray(line.get_xydata()) for panel in axes for line in panel.lines]
        return [line for line in drawn if len(line) > 2]

    table = own_names.copy()
    table.loc[len(table) - 20, "load"] = -9999.0
    past, future = table.iloc[:-12], table.tail(12)
    plain = lines(past, future)
    assert [len(line) for line in plain] == [48, 13, 13] * 2
    assert np.isnan(plain[0][-8, 1]) and np.isfinite(plain[0][-7:, 1]).all()
    for turn in (
        lambda frame: frame[::-1],
        lambda frame: frame.set_index("when"),
        lambda frame: frame.set_index("when").rename_axis(None),
        lambda frame: frame.assign(when=frame["when"].dt.strftime("%d.%m.%Y %H:%M")),
        lambda frame: pytest.importorskip("polars").from_pandas(frame),
    ):
        for other, line in zip(lines(turn(past), turn(future)), plain, strict=True):
            np.testing.assert_array_equal(other, line)
    for other, line in zip(lines(femts.load_dataset(past, columns=NAMES, na=-9999), table), plain, strict=True):
        np.testing.assert_array_equal(other, line)
    with pytest.raises(UsageError, match="What happened has no row at the steps of the forecast"):
        forecaster.plot(past, actual=past)
    with pytest.raises(UsageError, match="What happened is a str; give a DataFrame"):
        forecaster.plot(past, actual="rain")  # type: ignore[arg-type]
