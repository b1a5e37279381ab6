"""`final=True` of a panel: every series is learned from to its end, scores stay, and both forecasters are kept."""

from __future__ import annotations

import signal
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from femts.training.state import TrainState
from small_panels import LENGTHS, L, P, panel_forecaster, panel_table
from small_runs import essence, signal_at

import femts
from femts.data.loading import load_dataset
from femts.data.splits import PARTS
from femts.errors import AgeWarning, GapWarning, UsageError
from femts.forecaster.forecaster import Forecaster
from femts.training import refit as again
from femts.training.refit import refit
from femts.training.stopping import Interrupted

TABLE = panel_table()
STEPS = 6
TINY = {"model.n_layers": 1, "model.d_model": 16, "model.n_heads": 2}

_KILLED = """
import signal, sys
import pytest
from small_panels import panel_forecaster
from small_runs import signal_at

signal_at(pytest.MonkeyPatch(), int(sys.argv[2]), signal.SIGKILL)
panel_forecaster("dlinear", out=sys.argv[1], final=True)
"""


def both(forecaster: Any) -> list[dict[str, Any]]:
    assert forecaster.scored is not None
    return [essence(forecaster), essence(forecaster.scored)]


@pytest.fixture(scope="module")
def plain() -> Forecaster:
    return panel_forecaster("dlinear")


@pytest.fixture(scope="module")
def whole() -> Forecaster:
    return panel_forecaster("dlinear", final=True)


def test_scores_are_those_of_a_run_without_it(whole: Forecaster, plain: Forecaster) -> None:
    assert whole.scored is not None
    rows = sum(LENGTHS.values())
    assert essence(whole.scored) == essence(plain)
    for name in ("val", "test", "kept_step", "steps", "intervals"):
        assert whole.metrics[name] == plain.metrics[name]
    assert whole.metrics["scored"] == {"folder": "scored", **plain.data["split"], "series": len(LENGTHS)}
    assert whole.metrics["final"]["rows"] == rows and whole.metrics["final"]["steps"] == plain.metrics["kept_step"]
    assert whole.data["split"] == {"train": [0, rows], "val": [rows, rows], "test": [rows, rows]}
    assert all(data.split.train.tolist() == [[0, LENGTHS[name]]] for name, data in whole.training_data().series.items())
    learned = plain.data["split"]["train"][1]
    assert f"learned from: all {rows} rows; scores are of one on {learned} of them" in repr(whole)


@pytest.mark.parametrize("model", ["dlinear", "ridge", "fem_sm_ridge"])
def test_the_last_rows_change_the_forecast_and_not_what_was_chosen(model: str) -> None:
    changed, settings = TABLE.copy(), TINY if model.startswith("fem") else {}
    late = (changed["unique_id"] == "long") & (changed.groupby("unique_id").cumcount() >= 250)
    changed.loc[late, "y"] *= 3
    one, other = (panel_forecaster(model, each, final=True, settings=settings) for each in (TABLE, changed))
    assert one.scored is not None and other.scored is not None
    assert essence(one.scored)["weights"] == essence(other.scored)["weights"]
    assert one.scored.metrics["val"] == other.scored.metrics["val"]
    history = TABLE.groupby("unique_id").head(100)
    pairs = [[run.predict(history)["y"] for run in runs] for runs in ((one, other), (one.scored, other.scored))]
    assert not np.allclose(*pairs[0])
    np.testing.assert_array_equal(*pairs[1])


def test_intervals_come_from_the_errors_on_validation_and_test_rows(whole: Forecaster) -> None:
    assert whole.scored is not None and whole.intervals is not None
    panel = whole.scored.training_data()
    ends = {name: replace(d.split, val=(d.split.val[0], d.split.test[1])) for name, d in panel.series.items()}
    schema = replace(panel.schema, split=replace(panel.schema.split, val_rows=1, test_rows=1))  # kept as it is
    held_out = replace(panel, series={n: replace(d, split=ends[n]) for n, d in panel.series.items()}, schema=schema)
    windows = sum(max(0, stop - start - P + 1) for start, stop in (split.val for split in ends.values()) if start)
    assert whole.scored.intervals is not None
    assert whole.intervals.windows == windows > whole.scored.intervals.windows
    made = Forecaster(**vars(whole.scored)).calibrate(dataset=held_out)
    assert made.to_bytes() == whole.intervals.to_bytes()


def test_all_scores_are_of_the_scored_one(plain: Forecaster, tmp_path: Path) -> None:
    run = panel_forecaster("dlinear", final=True)
    panel = load_dataset(TABLE, panel=True)
    assert run.evaluate(dataset=panel) == plain.metrics["test"]
    assert run.scores(level=[80], dataset=panel).equals(plain.scores(level=[80]))
    assert run.coverage(dataset=panel).equals(plain.coverage())
    assert not femts.audit(run, panel_for_horizon(panel, P)).failed
    assert femts.report(run, tmp_path / "page.html", dataset=panel).is_file()
    before = run.intervals
    assert run.calibrate(9).steps == 9 and run.intervals is not before
    assert run.scored is not None and run.scored.intervals is not None and run.intervals is not None
    assert run.scored.intervals.steps == 9 and run.scored.intervals.windows < run.intervals.windows
    view = run.of("long")
    assert view.evaluate() == plain.of("long").evaluate()
    history = TABLE.query("unique_id == 'long'")[["ds", "y"]].rename(columns={"ds": "date"})
    np.testing.assert_allclose(view.predict(history)["y"], run.predict(TABLE, series=["long"])["y"], rtol=1e-5)


@pytest.mark.parametrize("model", ["ridge", "dlinear"])
def test_a_panel_of_one_series_is_the_wide_table_of_it(model: str) -> None:
    one = TABLE.query("unique_id == 'long'").reset_index(drop=True)
    wide = one[["ds", "y"]].rename(columns={"ds": "date"})
    panel = panel_forecaster(model, one, final=True)
    single = femts.train(wide, model, P, seq_len=L, max_steps=STEPS, device="cpu", final=True)
    assert both(panel) == both(single)
    assert panel.until == single.until == str(one["ds"].iloc[-1])
    np.testing.assert_array_equal(panel.predict(one)["y"], single.predict(wide)["y"])


def test_both_are_kept_and_found_again(tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "panel.csv", index=False)
    usual: dict[str, Any] = {"seq_len": L, "max_steps": STEPS, "device": "cpu", "settings": TINY}
    made = femts.train(tmp_path / "panel.csv", "fem_sm", P, **usual, final=True, out=tmp_path / "run")
    read = femts.load(tmp_path / "run")
    assert both(read) == both(made)
    assert read.training_data().record == read.data and read.evaluate() == made.metrics["test"]
    assert read.until == made.until and read.predict(TABLE).equals(made.predict(TABLE))
    read.save(tmp_path / "copy")
    assert both(femts.load(tmp_path / "copy")) == both(made)


@pytest.mark.slow
@pytest.mark.parametrize("call", [3, STEPS + 3], ids=["first", "second"])
def test_killed_in_either_training_and_resumed(call: int, whole: Forecaster, python: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert python(_KILLED, out, call).returncode == -signal.SIGKILL
    assert (out / "scored" / "metrics.json").is_file() == (call > STEPS)
    with pytest.raises(UsageError, match=r"unfinished.*--resume"):
        femts.load(out)
    assert both(panel_forecaster("dlinear", out=out, final=True, resume=True)) == both(whole)
    assert both(femts.load(out)) == both(whole)


@pytest.mark.parametrize("call", [2, STEPS + 2])
def test_interrupted_and_resumed(call: int, whole: Forecaster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        signal_at(patch, call, signal.SIGINT)
        with pytest.raises(Interrupted, match="continue it with --resume"):
            panel_forecaster("dlinear", out=out, final=True)
    assert TrainState.load((out / "scored" if call < STEPS else out) / "checkpoints" / "last.ckpt").step == 2
    if call > STEPS:
        other = TABLE.assign(y=TABLE["y"] + 1)
        with pytest.raises(UsageError, match="changed since run"):
            panel_forecaster("dlinear", other, out=out, final=True, resume=True)
    assert both(panel_forecaster("dlinear", out=out, final=True, resume=True)) == both(whole)


def test_time_is_shared_by_both_trainings() -> None:
    made = panel_forecaster("dlinear", max_steps=10**6, max_time="6s", final=True)
    assert made.scored is not None and made.scored.metrics["stopped"] == "max_time"
    assert made.scored.metrics["seconds"] < 5
    assert 0 < made.metrics["final"]["steps"] <= made.metrics["kept_step"]


def test_the_age_of_what_was_learned_is_said(whole: Forecaster, plain: Forecaster) -> None:
    last = TABLE["ds"].max()
    assert whole.until == str(last)
    learned = plain.of("long").data["split"]["train"][1]
    assert plain.until == str(TABLE.query("unique_id == 'long'")["ds"].iloc[learned - 1])
    with pytest.warns(AgeWarning, match="train with --final"):
        plain.predict(TABLE)
    later = TABLE.query("unique_id == 'long'").tail(P + 1)
    later = later.assign(ds=later["ds"] + pd.Timedelta(days=P + 1))
    with pytest.warns(AgeWarning, match=rf"ends {P + 1} steps after .*; train again on the rows since"):
        whole.predict(pd.concat([TABLE, later]))
    with warnings.catch_warnings(action="error", category=AgeWarning):
        whole.predict(TABLE.query("unique_id == 'tiny'"))
        femts.backtest(plain, TABLE, femts.Cutoffs(windows=2, step=P))


def test_a_series_that_has_stopped_is_named(plain: Forecaster) -> None:
    with pytest.warns(AgeWarning, match=r"^3 of 4 series ended more than 7 steps before 2020-10-26 .*'short' at 2020"):
        plain.predict(TABLE)
    stamps = TABLE.groupby("unique_id")["ds"].max()
    together = TABLE.assign(ds=TABLE["ds"] + TABLE["unique_id"].map(stamps.max() - stamps))
    with warnings.catch_warnings(record=True) as told:
        plain.predict(together)
    assert not [each for each in told if "ended" in str(each.message)]


def test_a_series_too_short_for_its_intervals_is_named(plain: Forecaster) -> None:
    new = TABLE.query("unique_id == 'long'").assign(unique_id="new")
    with pytest.warns(
        GapWarning, match="^1 of 5 series are too short for intervals that hold, the first 'tiny' of 6 rows"
    ):
        plain.predict(pd.concat([TABLE, new.tail(14)]), level=[80])
    with pytest.warns(GapWarning, match="^2 of 5 series .* read them as too narrow up to 14 rows"):
        plain.predict(pd.concat([TABLE, new.tail(13)]), level=[80])
    with warnings.catch_warnings(record=True) as told:
        plain.predict(TABLE)
    assert not [each for each in told if "too short" in str(each.message)], "no intervals were asked for"


def test_static_columns_known_ones_and_own_splits_go_through(tmp_path: Path) -> None:
    table = TABLE.query("unique_id in ['long', 'short']")
    table = table.assign(kind=np.where(table["unique_id"] == "long", "big", "small"), open=table["ds"].dt.day % 3)
    panel = load_dataset(table, target=["y"], future=["open"], static=["kind"], val_rows=P, test_rows=P, panel=True)
    usual: dict[str, Any] = {"seq_len": L, "max_steps": 3, "device": "cpu", "settings": TINY, "final": True}
    made = femts.train(panel, "fem_sm", P, **usual, out=tmp_path / "run")
    read = femts.load(tmp_path / "run")
    assert both(read) == both(made) and made.intervals is not None and made.intervals.windows == 2 * (P + 1)
    few = femts.Cutoffs(windows=1, step=1)
    some = panel.with_series({"short": panel["short"]})  # of the words of `kind` it has one
    assert femts.backtest(made, some, few, refit=True)["forecast"].notna().all()


def test_a_backtest_trains_once_a_cutoff_on_the_rows_before_it(
    plain: Forecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, said = list[tuple[dict[str, int], Forecaster]](), list[str]()

    def watched(forecaster: Forecaster, data: Any) -> Forecaster:
        made = refit(forecaster, data)
        seen.append(({name: one.rows for name, one in data.series.items()}, made))
        return made

    monkeypatch.setattr(again, "refit", watched)
    frame = femts.backtest(plain, TABLE, femts.Cutoffs(windows=2, step=7), refit=True, say=said.append)
    rows = [{name: many - after for name, many in LENGTHS.items() if many - after >= 7} for after in (14, 7)]
    assert [each for each, _ in seen] == rows and "tiny" not in rows[1]
    assert "are left out at cutoffs" in said[0] and "2 trainings and their forecasts took" in said[-1]
    assert said[1].startswith(f"trained on the {sum(rows[0].values())} rows of 3 series before cutoff 1 in ")
    assert not any("flatter" in text for text in said)
    for number, (_, made) in enumerate(seen, start=1):
        assert made.scored is plain and made.metrics["final"]["steps"] == plain.metrics["kept_step"]
        before = pd.concat([TABLE.query("unique_id == @name").head(many) for name, many in rows[number - 1].items()])
        np.testing.assert_allclose(made.predict(before)["y"], frame.query("window == @number")["forecast"], rtol=1e-5)
    changed = TABLE.copy()
    changed.loc[changed.groupby("unique_id").cumcount(ascending=False) < P, "y"] = 1e6
    other = femts.backtest(plain, changed, femts.Cutoffs(windows=1, step=7), refit=True)
    np.testing.assert_array_equal(other["forecast"], frame.query("window == 2")["forecast"])


def test_a_refit_on_all_rows_is_the_final_fit(whole: Forecaster, plain: Forecaster) -> None:
    made = refit(plain, load_dataset(TABLE, panel=True))
    assert essence(made)["weights"] == essence(whole)["weights"] and made.data == whole.data
    said = list[str]()
    femts.backtest(whole, whole.training_data(), femts.Cutoffs(windows=1, step=1), say=said.append)
    assert "forecasts of 3 series are of rows" in said[-1] and "refit, or take the run that was scored" in said[-1]


def test_what_cannot_be_is_refused_in_a_sentence(plain: Forecaster) -> None:
    bare = Forecaster(**{**vars(plain), "metrics": {}})
    with pytest.raises(UsageError, match="does not say by which steps it was trained"):
        refit(bare, load_dataset(TABLE, panel=True))
    wide = femts.load_dataset(TABLE.query("unique_id == 'long'")[["ds", "y"]].rename(columns={"ds": "date"}))
    with pytest.raises(UsageError, match="'frame' is a single table, and this model was trained on a panel; pass one"):
        refit(plain, wide)
    assert set(plain.data["split"]) == set(PARTS)
