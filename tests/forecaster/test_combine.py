"""Means of forecasters."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_means import CLASSICS, MIXED, small_members
from small_panels import panel_table
from small_tables import small_table

import femts
from femts.cli import main
from femts.errors import UsageError
from femts.evaluation.constants import FADING, SHARE
from femts.training.refit import refit

TABLE = small_table(160)


def forecasts(members: Any, *arguments: Any, **more: Any) -> np.ndarray:
    """Mean of the members' forecasts."""
    made = [one.predict(*arguments, **more) for one in members]
    return np.mean([table.select_dtypes("number").to_numpy() for table in made], axis=0)


def check_mean(made: Any, members: Any, *arguments: Any, **more: Any) -> None:
    numbers = made.predict(*arguments, **more).select_dtypes("number").to_numpy()
    np.testing.assert_allclose(numbers, forecasts(members, *arguments, **more), rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mean") / "past.csv"
    TABLE.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def data(past: Path) -> Any:
    return femts.load_dataset(past)


@pytest.fixture(scope="module")
def members(data: Any) -> list[Any]:
    return small_members(data)


@pytest.fixture(scope="module")
def made(members: list[Any]) -> femts.Forecaster:
    mean: femts.Forecaster = femts.mean_of(members)
    return mean.calibrate()


@pytest.fixture(scope="module")
def run(made: femts.Forecaster, past: Path) -> Path:
    made.save(past.parent / "run")
    return past.parent / "run"


def test_forecast_is_the_mean_of_members(made: femts.Forecaster, members: list[Any]) -> None:
    for steps in (None, 1, 20):
        check_mean(made, members, TABLE, steps)
    assert made.config.seq_len == max(one.config.seq_len for one in members)
    assert made.config.model == "mean" and "mean of: " + ", ".join(MIXED) in repr(made)
    gaps = TABLE.copy()
    gaps.loc[gaps.index[-9:-6], "load"] = np.nan
    with pytest.warns(femts.GapWarning):
        check_mean(made, members, gaps)
    with pytest.warns(femts.GapWarning, match="The history has 9 rows, but this model looks back 16"):
        check_mean(made, members, TABLE[:9])
    if CLASSICS:  # they read as many rows as there are
        check_mean(made, members, TABLE[-40:])


def test_weights_per_member_and_target(members: list[Any], data: Any, tmp_path: Path) -> None:
    weights = np.arange(2.0 * len(members)).reshape(-1, 2)
    made = femts.mean_of(members, weights)
    each = np.stack([one.predict(TABLE)[["load", "heat"]].to_numpy() for one in members])
    shares = weights / weights.sum(0)
    np.testing.assert_allclose(made.predict(TABLE)[["load", "heat"]], np.einsum("mpt,mt->pt", each, shares), rtol=1e-5)
    made.save(tmp_path / "run")
    pd.testing.assert_frame_equal(femts.load(tmp_path / "run").predict(TABLE), made.predict(TABLE), check_exact=True)
    again = refit(made, data)
    assert again.config.model_config == made.config.model_config
    one_each = femts.mean_of(members, [2.0] * len(members)).predict(TABLE)
    pd.testing.assert_frame_equal(one_each, femts.mean_of(members).predict(TABLE), rtol=1e-6)


def test_invalid_weights_are_refused(members: list[Any]) -> None:
    cases: list[Any] = [[1.0], [[1.0, -1.0]], "much", [float("nan")], [0.0]]
    for weights in cases:
        wrong = weights if isinstance(weights, str) else weights * (len(members) if len(weights) == 1 else 1)
        wrong = [1.0] * (len(members) + 1) if weights == [1.0] else wrong
        with pytest.raises(UsageError, match=r"The weights of \d+ forecasters of 2 targets are"):
            femts.mean_of(members, wrong)


def test_mean_scores_intervals_and_backtest(made: femts.Forecaster, data: Any) -> None:
    scores = made.evaluate()
    assert scores["mse"] == pytest.approx(made.scores().query("units == 'scaled'")["mse"].item())
    assert scores["windows"] == (3 if CLASSICS else 27)
    assert set(made.coverage()["level"]) == {80.0, 95.0}
    assert made.intervals is not None and made.intervals.windows == (3 if CLASSICS else 11)
    wide = made.predict(TABLE, level=[80])
    assert (wide["load-lo-80"] < wide["load"]).all() and (wide["load"] < wide["load-hi-80"]).all()
    assert not femts.audit(made, data).failed
    frame = femts.backtest(made, TABLE, n_windows=2, step_size=6)
    last = frame[frame["cutoff"] == frame["cutoff"].max()]["forecast"].to_numpy().reshape(-1, 2)
    np.testing.assert_allclose(last, forecasts(made.members, TABLE[:-6]), rtol=1e-6)


def test_members_are_unchanged(made: femts.Forecaster, members: list[Any]) -> None:
    assert len(made.members) == len(members) and made.members[0].members == ()
    for member, one in zip(made.members, members, strict=True):
        assert member.config == one.config and member.metrics == one.metrics
        assert member.evaluate() == one.metrics["test"] or one.metrics["test"]["windows"] == 3
        pd.testing.assert_frame_equal(member.predict(TABLE), one.predict(TABLE), check_exact=True)
    with pytest.raises(UsageError, match=r"Model 'mean' is the mean of .*; explain one of its members"):
        made.explain(TABLE)
    assert len(made.members[-1].explain(TABLE))


def test_mean_roundtrip_is_bit_identical(made: femts.Forecaster, run: Path, tmp_path: Path) -> None:
    loaded = femts.load(run)
    for steps, level in ((9, None), (None, [80])):
        one, other = (each.predict(TABLE, steps, level=level) for each in (loaded, made))
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert loaded.config == made.config and loaded.metrics == made.metrics
    for place, member in enumerate(loaded.members):
        assert member.config == made.members[place].config
        member.save(tmp_path / str(place))
        again = femts.load(tmp_path / str(place))
        pd.testing.assert_frame_equal(again.predict(TABLE), member.predict(TABLE), check_exact=True)


def test_refit_refits_every_member(made: femts.Forecaster, members: list[Any], data: Any, tmp_path: Path) -> None:
    again, each = refit(made, data), [refit(one, data) for one in members]
    check_mean(again, each, TABLE)
    assert again.scored is made and again.intervals is made.intervals
    assert [one.config for one in again.members] == [one.config for one in each]
    again.save(tmp_path / "run")
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(TABLE), again.predict(TABLE), check_exact=True)
    assert loaded.scored is not None and loaded.metrics["refit"]["rows"] == len(TABLE)
    assert [one.scored.config for one in loaded.members if one.scored] == [one.config for one in members]
    check_mean(refit(loaded, data), each, TABLE)
    joined = femts.mean_of(each)
    assert joined.scored is not None
    check_mean(joined.scored, members, TABLE)
    joined.save(tmp_path / "joined")
    pd.testing.assert_frame_equal(femts.load(tmp_path / "joined").predict(TABLE), joined.predict(TABLE))
    frame = femts.backtest(made, TABLE, n_windows=1, step_size=6, refit=True)
    past = femts.load_dataset(TABLE[:-6])
    expected = forecasts([refit(one, past) for one in members], TABLE[:-6])
    np.testing.assert_allclose(frame["forecast"].to_numpy().reshape(-1, 2), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("static", [False, True])
def test_mean_of_panel_models(static: bool, tmp_path: Path) -> None:
    table = panel_table()
    if static:
        table = table.assign(kind=table["unique_id"].str.len())
    data = femts.load_dataset(table, static_covariates=["kind"] if static else [], panel=True)
    members = small_members(data, ("fem_sm", "fem_sm_ridge") if static else MIXED, 7)
    made = femts.mean_of(members)
    check_mean(made, members, table)
    check_mean(made, members, table, 12, series=["tiny", "long"])
    made = made.calibrate(dataset=data)
    made.save(tmp_path / "run")
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(table, level=[80]), made.predict(table, level=[80]), check_exact=True)
    assert loaded.evaluate(dataset=data) == made.evaluate() and len(made.scores(level=[80])) and len(made.coverage())
    assert not femts.audit(made, data).failed
    assert [one.config for one in loaded.members] == [one.config for one in members]
    check_mean(refit(made, data), [refit(one, data) for one in members], table)
    assert len(femts.backtest(made, data, n_windows=2, step_size=7))
    if not static:
        single = table[table["unique_id"] == "long"].rename(columns={"ds": "date"})[["date", "y"]]
        alone = loaded.of("long")
        np.testing.assert_allclose(alone.predict(single)["y"], forecasts(alone.members, single)[:, 0], rtol=1e-6)


@pytest.mark.parametrize("models", [("fem_sm", "fem_gla"), ("naive", "ridge", "nhits", "fem_sm")])
def test_mean_with_covariates(models: tuple[str, ...], tmp_path: Path) -> None:
    table = small_table(160, ("load", "heat", "open"))
    past = [] if "ridge" in models else ["heat"]
    table = table if past else table.drop(columns="heat")
    data = femts.load_dataset(table, target=["load"], past_covariates=past, future_covariates=["open"])
    members = small_members(data, models)
    made, ahead = femts.mean_of(members), small_table(170, ("load", "heat", "open"))[["date", "open"]]
    check_mean(made, members, table, future=ahead)
    made.save(tmp_path / "run")
    check_mean(femts.load(tmp_path / "run"), members, table, future=ahead)
    check_mean(refit(made, data), [refit(one, data) for one in members], table, future=ahead)
    assert not femts.audit(made, data).failed
    assert made.targets == ("load",) and made.columns == ("load", *past)


def test_incompatible_members_are_refused(data: Any, members: list[Any], made: femts.Forecaster) -> None:
    def other(table: pd.DataFrame, model: str = "naive", steps: int = 6, **reading: Any) -> Any:
        return small_members(femts.load_dataset(table, **reading), (model,), steps)[0]

    *_, ridge, fem = members
    scaler, stepped = copy.deepcopy(ridge.preprocess.scaler), replace(fem, freq="D")
    scaler.mean[0, 0] += 1
    scaled = replace(ridge, preprocess=replace(ridge.preprocess, scaler=scaler))
    quantiles = small_members(data, ("dlinear",), settings={"training.loss": "pinball"})[0]
    cases: list[tuple[Any, str]] = [
        ([ridge], r"needs at least two forecasters, not 1"),
        (ridge, r"The forecasters is a Forecaster; give several"),
        ([ridge, "run"], r"One of the forecasters is 'run'; give several"),
        ([ridge, other(panel_table(), steps=7, panel=True)], r"'ridge' and 'naive' differ in their "),
        ([ridge, other(TABLE.rename(columns={"load": "x"}))], "columns"),
        ([ridge, other(TABLE[:-1])], "training data or split"),
        ([ridge, other(TABLE, na=[-1])], "data schema"),
        ([ridge, other(TABLE, steps=5)], "horizon|split"),
        ([ridge, stepped], "step"),
        ([fem, scaled], "scaling"),
        ([fem, refit(ridge, data)], "training data or split|training rows"),
        ([fem, quantiles], r"'dlinear' learned quantiles, which cannot be averaged"),
        ([fem, made], r"'mean' is a mean itself and cannot be a member of another; pass its members"),
    ]
    for given, text in cases:
        with pytest.raises(UsageError, match=text) as refused:
            femts.mean_of(given)
        assert "\n" not in str(refused.value) and str(refused.value).endswith(".")


def test_commands_accept_a_mean(run: Path, past: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    why, line = tmp_path / "why.csv", f"explain {run} {past}"
    for words in (
        f"evaluate {run} --dataset {past}",
        f"predict {run} {past} -o {tmp_path}/next.csv --level 80 --plot {tmp_path}/next.png",
        f"calibrate {run} --dataset {past}",
        f"audit {run}",
        f"report {run} --out {tmp_path}/page.html",
        f"backtest {run} {past} --n-windows 2 --step-size 6 --refit -o {tmp_path}/back.csv",
    ):
        assert main(words.split()) == 0, capsys.readouterr().err
    assert "<dt>Member fem_sm</dt>" in (tmp_path / "page.html").read_text()
    capsys.readouterr()
    assert main(f"{line} -o {why} --plot {tmp_path}/why.png".split()) == 0
    said = capsys.readouterr()
    assert f"'fem_sm', one of the ensemble members: {', '.join(MIXED)}" in said.out + said.err
    rows = why.read_text()
    assert main(f"{line} -o {why} --member fem_sm".split()) == 0
    assert why.read_text() == rows
    for name, text in (
        ("ridge", "'ridge' has no attention over past segments"),
        ("fem_smm", "no member 'fem_smm'; did you mean"),
    ):
        capsys.readouterr()
        assert main(f"{line} --member {name}".split()) == 2
        assert text in capsys.readouterr().err


def test_mean_without_an_explainable_member_is_refused(
    data: Any, past: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    members = small_members(data, ("ridge", "naive"))
    femts.mean_of(members).save(tmp_path / "run")
    members[0].save(tmp_path / "ridge")
    assert main(["explain", str(tmp_path / "run"), str(past)]) == 2
    assert "None of the ensemble members ridge, naive has attention over past segments" in capsys.readouterr().err
    assert main(["explain", str(tmp_path / "ridge"), str(past), "--member", "ridge"]) == 2
    assert "Model 'ridge' is not an ensemble and has no members; remove --member ridge." in capsys.readouterr().err


def test_intervals_are_averaged_with_those_of_members_that_forecast_quantiles(tmp_path: Path) -> None:
    table = small_table(400)
    ridge, zero = (femts.train(table, model, 12, seq_len=48, refit=True) for model in ("ridge", "fem_zero"))
    mean = femts.mean_of([ridge, zero]).calibrate(dataset=table)
    assert mean.intervals is not None
    assert mean.intervals.of_members is not None
    bounds = mean.predict(table, level=[80])
    around = replace(mean, intervals=replace(mean.intervals, of_members=None)).predict(table, level=[80])
    columns = [name for name in bounds if "-lo-" in name or "-hi-" in name]
    assert not np.allclose(bounds[columns], around[columns])
    mean.save(tmp_path / "run")
    pd.testing.assert_frame_equal(femts.load(tmp_path / "run").predict(table, level=[80]), bounds)


def test_with_few_windows_intervals_are_mostly_those_of_members() -> None:
    table = small_table(120)
    ridge, zero = (femts.train(table, model, 6, seq_len=24, refit=False) for model in ("ridge", "fem_zero"))
    mean = femts.mean_of([ridge, zero], [1.0, 0.0]).calibrate(dataset=table)
    intervals = mean.intervals
    assert intervals is not None and intervals.few and intervals.of_members is not None
    share = intervals.share
    assert share == SHARE * intervals.disjoint / (intervals.disjoint + FADING)
    levels = [80, 95, 99, 99.9]
    made = mean.predict(table, level=levels)
    around = replace(mean, intervals=replace(intervals, of_members=None)).predict(table, level=levels)
    points, alone = ridge.predict(table), zero.predict(table, level=levels[:3])
    for name in points.select_dtypes("number").columns:
        np.testing.assert_allclose(made[name], points[name], rtol=1e-6)
        own = {level: (alone[f"{name}-hi-{level}"] - alone[name]).to_numpy() for level in levels[:3]}
        # Beyond the outermost quantiles, distances go on linearly in the quantiles of the normal distribution.
        z = [NormalDist().inv_cdf(0.5 + level / 200) for level in levels]
        own[99.9] = own[99] + (own[99] - own[95]) * (z[3] - z[2]) / (z[2] - z[1])
        for level in levels:
            ours, both = (each[f"{name}-hi-{level}"] - made[name] for each in (around, made))
            np.testing.assert_allclose(both, share * ours + (1 - share) * own[level], rtol=1e-4)
