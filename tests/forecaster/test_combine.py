"""A mean of forecasters is one of them: it forecasts, is scored, saved, trained again and taken apart."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_means import CLASSICS, MIXED, small_members
from small_panels import panel_table
from small_tables import small_table

import femts
from femts.errors import UsageError
from femts.training.refit import refit

TABLE = small_table(160)


def forecasts(members: Any, *arguments: Any, **more: Any) -> np.ndarray:
    """Mean of the members' forecasts, in numpy."""
    made = [one.predict(*arguments, **more) for one in members]
    return np.mean([table.select_dtypes("number").to_numpy() for table in made], axis=0)


def check_mean(made: Any, members: Any, *arguments: Any, **more: Any) -> None:
    numbers = made.predict(*arguments, **more).select_dtypes("number").to_numpy()
    np.testing.assert_allclose(numbers, forecasts(members, *arguments, **more), rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def data() -> Any:
    return femts.load_dataset(TABLE)


@pytest.fixture(scope="module")
def members(data: Any) -> list[Any]:
    return small_members(data)


@pytest.fixture(scope="module")
def made(members: list[Any]) -> femts.Forecaster:
    mean: femts.Forecaster = femts.mean_of(members)
    mean.calibrate()
    return mean


def test_its_forecast_is_the_mean_of_theirs(made: femts.Forecaster, members: list[Any]) -> None:
    for steps in (None, 1, 20):
        check_mean(made, members, TABLE, steps)
    assert made.config.seq_len == max(one.config.seq_len for one in members)
    assert made.config.model == "mean" and "mean of: " + ", ".join(MIXED) in repr(made)
    gaps = TABLE.copy()
    gaps.loc[gaps.index[-9:-6], "load"] = np.nan
    with pytest.warns(femts.GapWarning):
        check_mean(made, members, gaps)
    raw = sum(one.config.reads_raw for one in members)
    assert made.config.reads_raw == made.preprocess.reads_raw == bool(raw)
    with pytest.raises(UsageError, match="The history has 9 rows, but this model looks back 16"):
        made.predict(TABLE[:9])
    if CLASSICS:  # they read as many rows as there are
        check_mean(made, members, TABLE[-40:])


def test_it_is_scored_like_any_other(made: femts.Forecaster, data: Any) -> None:
    scores = made.evaluate()
    assert scores["mse"] == pytest.approx(made.scores().query("units == 'scaled'")["mse"].item())
    assert scores["windows"] == (3 if CLASSICS else 27)
    assert set(made.coverage()["level"]) == {80.0, 95.0}
    assert made.intervals is not None and made.intervals.windows == (3 if CLASSICS else 11)
    wide = made.predict(TABLE, level=[80])
    assert (wide["load-lo-80"] < wide["load"]).all() and (wide["load"] < wide["load-hi-80"]).all()
    assert not femts.audit(made, data).failed
    frame = femts.backtest(made, TABLE, femts.Cutoffs(windows=2, step=6))
    np.testing.assert_allclose(
        frame[frame["cutoff"] == frame["cutoff"].max()]["forecast"].to_numpy().reshape(-1, 2),
        forecasts(made.members, TABLE[:-6]),
        rtol=1e-6,
    )


def test_members_are_what_they_were(made: femts.Forecaster, members: list[Any]) -> None:
    assert len(made.members) == len(members) and made.members[0].members == ()
    for member, one in zip(made.members, members, strict=True):
        assert member.config == one.config and member.metrics == one.metrics
        assert member.preprocess.reads_raw == one.preprocess.reads_raw
        assert member.evaluate() == one.metrics["test"] or one.metrics["test"]["windows"] == 3
        pd.testing.assert_frame_equal(member.predict(TABLE), one.predict(TABLE), check_exact=True)
    with pytest.raises(UsageError, match=r"Model 'mean' is the mean of .*; explain one of its members"):
        made.explain(TABLE)
    assert len(made.members[-1].explain(TABLE))


def test_trained_on_all_rows_it_is_the_mean_of_members_that_were(
    made: femts.Forecaster, members: list[Any], data: Any, tmp_path: Path
) -> None:
    again, each = refit(made, data), [refit(one, data) for one in members]
    check_mean(again, each, TABLE)
    assert again.scored is made and again.intervals is made.intervals
    assert [one.config for one in again.members] == [one.config for one in each]
    again.save(tmp_path / "run")
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(TABLE), again.predict(TABLE), check_exact=True)
    assert loaded.scored is not None and loaded.metrics["final"]["rows"] == len(TABLE)
    assert [one.scored.config for one in loaded.members if one.scored] == [one.config for one in members]
    check_mean(refit(loaded, data), each, TABLE)
    joined = femts.mean_of(each)
    assert joined.scored is not None
    check_mean(joined.scored, members, TABLE)
    joined.save(tmp_path / "joined")
    pd.testing.assert_frame_equal(femts.load(tmp_path / "joined").predict(TABLE), joined.predict(TABLE))
    frame = femts.backtest(made, TABLE, femts.Cutoffs(windows=1, step=6), refit=True)
    past = femts.load_dataset(TABLE[:-6])
    expected = forecasts([refit(one, past) for one in members], TABLE[:-6])
    np.testing.assert_allclose(frame["forecast"].to_numpy().reshape(-1, 2), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("static", [False, True])
def test_a_panel(static: bool, tmp_path: Path) -> None:
    table = panel_table()
    if static:
        table = table.assign(kind=table["unique_id"].str.len())
    panel = femts.load_dataset(table, static=["kind"] if static else [], panel=True)
    names = ("fem_sm", "fem_sm_ridge") if static else MIXED
    members = small_members(panel, names, 7)
    made = femts.mean_of(members)
    check_mean(made, members, table)
    check_mean(made, members, table, 12, series=["tiny", "long"])
    made.calibrate(dataset=panel)
    made.save(tmp_path / "run")
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(table, level=[80]), made.predict(table, level=[80]), check_exact=True)
    assert loaded.evaluate(dataset=panel) == made.evaluate() and len(made.scores(level=[80])) and len(made.coverage())
    assert not femts.audit(made, panel).failed
    assert [one.config for one in loaded.members] == [one.config for one in members]
    again, each = refit(made, panel), [refit(one, panel) for one in members]
    check_mean(again, each, table)
    assert len(femts.backtest(made, panel, femts.Cutoffs(windows=2, step=7)))
    if not static:
        single = table[table["unique_id"] == "long"].rename(columns={"ds": "date"})[["date", "y"]]
        assert isinstance(loaded, femts.Forecaster)
        alone = loaded.of("long")
        np.testing.assert_allclose(alone.predict(single)["y"], forecasts(alone.members, single)[:, 0], rtol=1e-6)


def test_columns_of_the_past_and_known_ones() -> None:
    table = small_table(160, ("load", "heat", "open"))
    data = femts.load_dataset(table, target=["load"], past=["heat"], future=["open"])
    members = small_members(data, ("fem_sm", "fem_sm_ridge"))
    made, ahead = femts.mean_of(members), small_table(170, ("load", "heat", "open"))[["date", "open"]]
    check_mean(made, members, table, future=ahead)
    assert made.targets == ("load",) and made.columns == ("load", "heat")


def test_a_mean_of_linear_models_is_exported(data: Any, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    members = small_members(data, ("ridge", "dlinear"))
    made = femts.mean_of(members)
    for steps in (None, 14):
        exported = made.export(tmp_path / "mean.onnx", steps)
        assert exported.difference < 1e-4
    past = TABLE[["load", "heat"]].to_numpy(np.float32)[None, -16:]
    (graph,) = onnxruntime.InferenceSession(tmp_path / "mean.onnx").run(None, {"history": past})
    np.testing.assert_allclose(graph[0], forecasts(members, TABLE, 14), rtol=1e-3, atol=1e-3)


@pytest.mark.skipif(not CLASSICS, reason="needs statsforecast")
def test_one_with_a_classic_is_not_exported(made: femts.Forecaster, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'mean', by its members 'auto_theta', 'mstl', is fitted to each look-back"):
        made.export(tmp_path / "mean.onnx")
    assert not (tmp_path / "mean.onnx").exists()


def with_changed(one: Any, **changes: Any) -> Any:
    other = copy.copy(one)
    for name, value in changes.items():
        setattr(other, name, value)
    return other


def test_what_has_no_mean_is_one_sentence(data: Any, members: list[Any], made: femts.Forecaster) -> None:
    *_, ridge, fem = members
    panel = small_members(femts.load_dataset(panel_table(), panel=True), ("naive",), 7)[0]
    scaler = copy.deepcopy(ridge.preprocess.scaler)
    scaler.mean[0, 0] += 1
    scaled = with_changed(ridge, preprocess=replace(ridge.preprocess, scaler=scaler))
    quantiles = small_members(data, ("dlinear",), settings={"training.loss": "pinball"})[0]
    cases: list[tuple[Any, str]] = [
        ([ridge], r"of two forecasters or more, not of 1"),
        ([], r"of two forecasters or more, not of 0"),
        (ridge, r"The forecasters is a Forecaster; give several"),
        ([ridge, "run"], r"One of the forecasters is 'run'; give several"),
        ([ridge, panel], r"'ridge' and 'naive' differ in their "),
        ([ridge, small_members(femts.load_dataset(TABLE.rename(columns={"load": "x"})), ("naive",))[0]], "columns"),
        ([ridge, small_members(femts.load_dataset(TABLE[:-1]), ("naive",))[0]], "training data or split"),
        ([ridge, small_members(femts.load_dataset(TABLE, na=[-1]), ("naive",))[0]], "way of reading the data"),
        ([ridge, small_members(data, ("naive",), 5)[0]], "horizon|split"),
        ([ridge, with_changed(fem, freq="D")], "step"),
        ([fem, scaled], "scaling"),
        ([fem, refit(ridge, data)], "training data or split|rows to learn from"),
        ([fem, quantiles], r"'dlinear' learned quantiles, of which there is no mean"),
        ([fem, made], r"'mean' is a mean itself, and no member of another; give its members"),
    ]
    for given, text in cases:
        with pytest.raises(UsageError, match=text) as refused:
            femts.mean_of(given)
        assert "\n" not in str(refused.value) and str(refused.value).endswith(".")
