"""`refit=True`."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from model_cases import of_each_class
from small_panels import LENGTHS, L, P, panel_forecaster, panel_table
from small_runs import DATA, essence, signal_at, small_run
from small_tables import small_table

import femts
from femts.data.loading import load_dataset
from femts.data.split_rule import SplitRule
from femts.data.synthetic import synthetic_frame
from femts.errors import AgeWarning, GapWarning, UsageError
from femts.forecaster.calibration import new_intervals
from femts.forecaster.forecaster import Forecaster
from femts.models.registry import model_names
from femts.training.checkpoint import TrainState
from femts.training.refit import refit
from femts.training.stopping import Interrupted
from femts.training.train import train

FRAME, LONG = synthetic_frame(2000), panel_table()
MAKE: dict[str, Callable[..., Forecaster]] = {"wide": small_run, "long": partial(panel_forecaster, "dlinear")}
STEPS = {"wide": 33, "long": 6}  # of the first training of `dlinear`
TINY = {"model.d_model": 16, "model.n_layers": 1, "model.n_heads": 2}

_KILLED = """
import signal, sys
import pytest
from small_panels import panel_forecaster
from small_runs import signal_at, small_run

form, out, call = sys.argv[1:]
signal_at(pytest.MonkeyPatch(), int(call), signal.SIGKILL)
{"wide": small_run, "long": panel_forecaster}[form]("dlinear", out=out, refit=True)
"""


def essence_with_scored(forecaster: Forecaster) -> list[dict[str, Any]]:
    """Everything that equal runs share, of the forecaster and of its scored model."""
    return [essence(forecaster), essence(scored(forecaster))]


def scored(forecaster: Forecaster) -> Forecaster:
    assert forecaster.scored is not None
    return forecaster.scored


@pytest.fixture(scope="module", params=MAKE)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def plain(form: str) -> Forecaster:
    return MAKE[form]()


@pytest.fixture(scope="module")
def refitted(form: str) -> Forecaster:
    return MAKE[form](refit=True)


def test_refit_keeps_the_scores(form: str, refitted: Forecaster, plain: Forecaster) -> None:
    rows, series = (2000, {}) if form == "wide" else (sum(LENGTHS.values()), {"series": len(LENGTHS)})
    assert essence(scored(refitted)) == essence(plain)
    for name in ("val", "test", "kept_step", "steps", "intervals"):
        assert refitted.metrics[name] == plain.metrics[name]
    assert refitted.metrics["scored"] == {"folder": "scored", **plain.data["split"], **series}
    assert refitted.metrics["refit"]["rows"] == rows
    assert refitted.metrics["refit"]["steps"] == plain.metrics["kept_step"]
    assert refitted.data["split"] == {"train": [0, rows], "val": [rows, rows], "test": [rows, rows]}
    of = "the first 1400" if form == "wide" else f"{plain.data['split']['train'][1]} of them"
    assert f"trained on: all {rows} rows; scores are of a model trained on {of}" in repr(refitted)


@pytest.mark.parametrize("model", ["dlinear", "fem_sm_ridge"])
def test_last_rows_affect_only_the_refitted_model(form: str, model: str) -> None:
    table, settings = (FRAME, LONG)[form == "long"], TINY if model.startswith("fem") else {}
    changed = table.copy()
    if form == "wide":
        changed.loc[1700:1900, "s0"] += 30  # of the test part, and in no look-back of the forecast
        made = [small_run(model, data=load_dataset(each), max_epochs=1, refit=True) for each in (table, changed)]
        history, steps = FRAME.tail(60), 600
    else:
        changed.loc[250:290, "y"] *= 3  # of `long`
        made = [panel_forecaster(model, each, refit=True, settings=settings) for each in (table, changed)]
        history, steps = LONG.groupby("unique_id").head(100), P
    one, other = made
    assert essence(scored(one))["weights"] == essence(scored(other))["weights"]
    for name in ("val", "kept_step"):
        assert scored(one).metrics[name] == scored(other).metrics[name]
    with warnings.catch_warnings(action="ignore"):
        final, first = (
            [run.predict(history, steps)[run.targets[0]] for run in runs] for runs in (made, map(scored, made))
        )
    assert not np.allclose(*final)
    np.testing.assert_array_equal(*first)


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("dlinear", {"max_epochs": 8, "settings": {"training.lr": 0.05, "training.warm_up": 0.5}}),
        ("dlinear", {"settings": {"training.schedule": "exponential", "training.hold_epochs": 1}}),
        ("fem_sm", {}),
        ("fem_sm_ridge", {"max_epochs": 2}),
        ("ridge", {}),
    ],
    ids=["chosen before the end", "exponential", "dropout", "closed form and steps", "closed form"],
)
def test_refit_on_the_training_rows_is_bit_identical(model: str, changes: dict[str, Any]) -> None:
    first = small_run(model, **changes)
    again = refit(first, load_dataset(FRAME.iloc[:1400]))
    if changes.get("max_epochs") == 8:
        assert (first.metrics["kept_step"] or 0) < first.metrics["steps"], "nothing was chosen: this run proves nothing"
    assert essence(again)["weights"] == essence(first)["weights"]
    assert again.scored is first and again.preprocess_record()["scaler"] == first.preprocess_record()["scaler"]


LEFT_OUT = ("auto_arima", "stat_ensemble", "chronos2", "chronos_bolt")  # slow ones, and those that need weights


@pytest.mark.parametrize("model", of_each_class(name for name in model_names() if name not in LEFT_OUT))
def test_every_model_refits_and_roundtrips(model: str, tmp_path: Path) -> None:
    own = set(femts.models(model)["setting"])
    few = {**TINY, "model.rounds": 5, "model.rows": 500, "model.windows": 2}
    card = {key: value for key, value in few.items() if key in own or key[6:] in own}
    usual: dict[str, Any] = {"seq_len": 24, "max_steps": 3, "device": "cpu", "refit": True, "settings": card}
    made = train(small_table(), model, 12, **usual, out=tmp_path / "run")
    again = femts.load(tmp_path / "run")
    assert essence_with_scored(again) == essence_with_scored(made)
    again.save(tmp_path / "copy")
    assert essence_with_scored(femts.load(tmp_path / "copy")) == essence_with_scored(made)


def test_refitted_panel_run_roundtrip(tmp_path: Path) -> None:
    LONG.to_csv(tmp_path / "panel.csv", index=False)
    usual: dict[str, Any] = {"seq_len": L, "max_steps": 6, "device": "cpu", "settings": TINY}
    made = train(tmp_path / "panel.csv", "fem_sm", P, **usual, refit=True, out=tmp_path / "run")
    read = femts.load(tmp_path / "run")
    assert essence_with_scored(read) == essence_with_scored(made)
    assert read.training_data().record == read.data and read.evaluate() == made.metrics["test"]
    assert read.until == made.until and read.predict(LONG).equals(made.predict(LONG))


def test_refit_intervals_use_validation_and_test_errors(refitted: Forecaster, form: str) -> None:
    first = scored(refitted)
    assert refitted.intervals is not None and first.intervals is not None
    held_out = first.training_data().held_out()
    held_out = replace(held_out, schema=replace(held_out.schema, split=SplitRule(test_rows=1)))  # as it is
    starts, stops = held_out.split.val.T
    windows = np.where(starts > 0, np.maximum(0, stops - starts - refitted.config.pred_len + 1), 0).sum()
    assert refitted.intervals.windows == windows > first.intervals.windows
    again = new_intervals(first, None, (), held_out)
    assert again.to_bytes() == refitted.intervals.to_bytes()


def test_scores_come_from_the_model_without_test_rows(form: str, plain: Forecaster, tmp_path: Path) -> None:
    run, data = MAKE[form](refit=True), DATA if form == "wide" else load_dataset(LONG, panel=True)
    assert run.evaluate(dataset=data) == plain.metrics["test"]
    assert run.scores(level=[80], dataset=data).equals(plain.scores(level=[80], dataset=data))
    assert run.coverage(dataset=data).equals(plain.coverage(dataset=data))
    assert not femts.audit(run, data).failed
    assert femts.report(run, tmp_path / "page.html", dataset=data).is_file()
    steps, before = run.config.pred_len + 2, run.intervals
    longer = run.calibrate(steps, dataset=data)
    assert run.intervals is before, "a forecaster does not change"
    run = longer
    assert scored(run).intervals is not None and run.intervals is not None and run.intervals.steps == steps
    assert scored(run).intervals.steps == steps  # type: ignore[union-attr]
    assert scored(run).intervals.windows < run.intervals.windows  # type: ignore[union-attr]
    windows = data.for_horizon(run.config.pred_len).split.windows("test", run.config.seq_len, steps)[:, 3].sum()
    assert set(run.scores(pred_len=steps, level=[80], dataset=data)["windows"]) == {windows}


def test_series_view_of_a_refitted_run() -> None:
    run, plain = MAKE["long"](refit=True), MAKE["long"]()
    view = run.of("long")
    assert view.evaluate() == plain.of("long").evaluate()
    history = LONG.query("unique_id == 'long'")[["ds", "y"]].rename(columns={"ds": "date"})
    with warnings.catch_warnings(action="ignore"):
        alone, among = view.predict(history)["y"], run.predict(LONG, series=["long"])["y"]
    np.testing.assert_allclose(alone, among, rtol=1e-5)


def test_refit_with_quantiles_covariates_and_transform(tmp_path: Path) -> None:
    table = small_table(columns=("load", "heat", "open"))
    table[["load", "heat"]] = np.exp(table[["load", "heat"]] / 10)
    data = load_dataset(
        table,
        target=["load"],
        past_covariates=["heat"],
        future_covariates=["open"],
        calendar=True,
        transform="log1p",
        min=0,
    )
    usual: dict[str, Any] = {"seq_len": 24, "max_steps": 4, "device": "cpu", "refit": True}
    settings = {"training.loss": "pinball", **TINY}
    made = train(data, "itransformer", 12, **usual, settings=settings, out=tmp_path / "run")
    again = femts.load(tmp_path / "run")
    future = table.tail(12).assign(date=lambda rows: rows["date"] + pd.Timedelta(hours=12))
    forecast = again.predict(table, level=[80], future=future)
    assert forecast.equals(made.predict(table, level=[80], future=future))
    assert (forecast.drop(columns="date") >= 0).all(axis=None)
    assert again.preprocess.scaler.mean[0, 0] == scored(again).preprocess.scaler.mean[0, 0], "units stay"
    effects = again.preprocess.effects, scored(again).preprocess.effects
    assert effects[0] is not None and effects[1] is not None
    assert effects[0].to_dict() != effects[1].to_dict(), "and effects are those of all rows"


def test_refit_with_static_covariates_and_custom_split(tmp_path: Path) -> None:
    table = LONG.query("unique_id in ['long', 'short']")
    table = table.assign(kind=np.where(table["unique_id"] == "long", "big", "small"), open=table["ds"].dt.day % 3)
    data = load_dataset(
        table, target=["y"], future_covariates=["open"], static_covariates=["kind"], val_rows=P, test_rows=P, panel=True
    )
    usual: dict[str, Any] = {"seq_len": L, "max_steps": 3, "device": "cpu", "settings": TINY, "refit": True}
    made = train(data, "fem_sm", P, **usual, out=tmp_path / "run")
    read = femts.load(tmp_path / "run")
    assert (
        essence_with_scored(read) == essence_with_scored(made)
        and made.intervals is not None
        and made.intervals.windows == 2 * (P + 1)
    )
    one = data["short"]  # of the words of `kind` it has one
    assert femts.backtest(made, one, n_windows=1, step_size=1, refit=True)["forecast"].notna().all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "part"),
    [("wide", 0.5), ("long", 1)],
    ids=["first", "second-before-a-state"],
    scope="module",
)
def test_killed_refit_resumes_bit_identically(
    part: float, form: str, refitted: Forecaster, python: Any, tmp_path: Path
) -> None:
    out, call = tmp_path / "run", int(part * STEPS[form]) + 1
    assert python(_KILLED, form, out, call).returncode == -signal.SIGKILL
    assert (out / "scored" / "metrics.json").is_file() == (part >= 1)
    with pytest.raises(UsageError, match=r"unfinished.*--resume"):
        femts.load(out)
    with pytest.raises(UsageError, match="holds an unfinished run; continue it with resume=True"):
        MAKE[form](out=out, refit=True)
    assert essence_with_scored(MAKE[form](out=out, refit=True, resume=True)) == essence_with_scored(refitted)
    assert essence_with_scored(femts.load(out)) == essence_with_scored(refitted)


@pytest.mark.parametrize("training", [0, 1])
def test_interrupted_refit_resumes_from_the_same_step(
    training: int, form: str, refitted: Forecaster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out, make = tmp_path / "run", partial(MAKE[form], out=tmp_path / "run")
    with monkeypatch.context() as patch:
        signal_at(patch, training * STEPS[form] + 2, signal.SIGINT)
        with pytest.raises(Interrupted, match="continue it with resume=True"):
            make(refit=True)
    assert TrainState.load((out if training else out / "scored") / "checkpoints" / "last.ckpt").step == 2
    with pytest.raises(UsageError, match="started with refit=True, not refit=False"):
        make(resume=True)
    assert essence_with_scored(make(refit=True, resume=True)) == essence_with_scored(refitted)


def test_data_changed_before_refit_are_refused(form: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    make = partial(MAKE[form], out=tmp_path / "run", refit=True)
    with monkeypatch.context() as patch:
        signal_at(patch, STEPS[form] + 1, signal.SIGINT)
        with pytest.raises(Interrupted):
            make()
    (tmp_path / "run" / "checkpoints" / "last.ckpt").unlink()
    assert (tmp_path / "run" / "scored" / "metrics.json").is_file()
    wide, long = FRAME.assign(s0=FRAME["s0"] + 1), LONG.assign(y=LONG["y"] + 1)
    other: dict[str, Any] = {"data": load_dataset(wide)} if form == "wide" else {"table": long}
    with pytest.raises(UsageError, match="changed since run"):
        make(resume=True, **other)


def test_time_limit_is_shared_with_refit() -> None:
    patient = {"training.patience": 100_000}  # a fast machine would stop early
    made = MAKE["long"](max_steps=10**6, time_limit="2s", refit=True, settings=patient)
    assert scored(made).metrics["stopped"] == "max_time" and scored(made).metrics["seconds"] < 1.5
    kept = made.metrics["kept_step"]
    assert kept is not None and kept <= made.metrics["schedule"]["steps"] <= made.metrics["steps"] + 1
    assert 0 < made.metrics["refit"]["steps"] <= kept


def test_old_model_warns() -> None:
    plain, refitted, longer = small_run(), small_run(refit=True), synthetic_frame(2100)
    learned = r"ends 600 steps after the last training row \(2020-03-04 07:00:00\); refit on all rows "
    with pytest.warns(AgeWarning, match=learned):
        plain.predict(FRAME)
    with pytest.warns(AgeWarning, match=r"ends 25 steps after .*; train again on recent rows"):
        refitted.predict(longer.iloc[:2025])
    zoned = FRAME.assign(date=FRAME["date"].dt.tz_localize("UTC"))
    unknown = r"age .* unknown: it ends .*\+00:00, .* in both or in neither"
    with pytest.warns(AgeWarning, match=unknown):
        plain.predict(zoned)
    with warnings.catch_warnings(action="error"):
        refitted.predict(FRAME)
        refitted.predict(longer.iloc[:2024])
        plain.predict(FRAME.iloc[:1400])
        plain.predict(FRAME.iloc[:800])
        femts.backtest(plain, DATA, n_windows=2, step_size=24)


def test_panel_age_is_that_of_the_latest_series() -> None:
    plain, refitted = MAKE["long"](), MAKE["long"](refit=True)
    own = LONG.query("unique_id == 'long'")
    assert refitted.until == str(LONG["ds"].max())
    assert plain.until == str(own["ds"].iloc[plain.of("long").data["split"]["train"][1] - 1])
    with pytest.warns(AgeWarning, match="refit on all rows"):
        plain.predict(LONG)
    later = own.tail(P + 1)
    later = later.assign(ds=later["ds"] + pd.Timedelta(days=P + 1))
    with pytest.warns(AgeWarning, match=rf"ends {P + 1} steps after .*; train again on recent rows"):
        refitted.predict(pd.concat([LONG, later]))
    with warnings.catch_warnings(action="error", category=AgeWarning):
        refitted.predict(LONG.query("unique_id == 'tiny'"))
        femts.backtest(plain, LONG, n_windows=2, step_size=P)


def test_ended_and_short_series_warn() -> None:
    plain = MAKE["long"]()
    with pytest.warns(AgeWarning, match=r"^3 of 4 series ended more than 7 steps before 2020-10-26 .*'short' at 2020"):
        plain.predict(LONG)
    stamps = LONG.groupby("unique_id")["ds"].max()
    together = LONG.assign(ds=LONG["ds"] + LONG["unique_id"].map(stamps.max() - stamps))
    with warnings.catch_warnings(record=True) as told:
        plain.predict(together)
    assert not [each for each in told if "ended" in str(each.message)]
    assert not [each for each in told if "too short" in str(each.message)], "no intervals were asked for"
    new = LONG.query("unique_id == 'long'").assign(unique_id="new")
    short = "series are too short for reliable intervals, the first 'tiny' of 6 rows"
    with pytest.warns(GapWarning, match=f"^1 of 5 {short.replace('are', 'is')}"):
        plain.predict(pd.concat([LONG, new.tail(14)]), level=[80])
    with pytest.warns(GapWarning, match=f"^2 of 5 {short}; intervals are too narrow for series of up to 14 rows"):
        plain.predict(pd.concat([LONG, new.tail(13)]), level=[80])


def test_invalid_refit_is_refused(plain: Forecaster, form: str) -> None:
    with pytest.raises(UsageError, match="Argument 'refit' is"):
        MAKE[form](refit="yes")
    data, other = DATA, load_dataset(LONG, panel=True)
    data, other = (data, other) if form == "wide" else (other, data)
    bare = Forecaster(**{**vars(plain), "metrics": {}})
    with pytest.raises(UsageError, match="has no record of its training steps"):
        refit(bare, data)
    with pytest.raises(UsageError, match=r"'frame' has (series of their own|one series), but this model was"):
        refit(plain, other)
    if form == "wide":
        with pytest.raises(UsageError, match=r"require 73, 49 of them .* at most 23, or provide"):
            femts.backtest(plain, FRAME.iloc[:72], n_windows=1, step_size=1, refit=True)
