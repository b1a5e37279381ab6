"""Past and future covariates from the table to the forecast."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from packed import unpack
from small_tables import small_table

import femts
from femts.cli import main
from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.errors import GapWarning, UnitsWarning, UsageError

L, P = 24, 12
QUICK: dict[str, Any] = {"seq_len": L, "pred_len": P, "max_epochs": 1, "device": "cpu"}


def table(rows: int = 400) -> pd.DataFrame:
    """`load` jumps with `open`, which is random; `heat` is another wave, `note` text."""
    frame = small_table(rows)
    frame["open"] = (np.random.default_rng(5).uniform(size=rows) < 0.3).astype(float)
    frame["load"] += 3 * frame["open"]
    return frame.assign(note="dry")


@pytest.fixture(scope="module")
def forecaster_with_covariate() -> femts.Forecaster:
    return femts.train(femts.load_dataset(table(), target=["load"], future_covariates=["open"]), "ridge", **QUICK)


def test_future_covariate_improves_the_forecast(forecaster_with_covariate: femts.Forecaster) -> None:
    blind = femts.train(femts.load_dataset(table(), target=["load"]), "ridge", **QUICK)
    assert forecaster_with_covariate.metrics["test"]["mse"] < 0.1 * blind.metrics["test"]["mse"]
    assert forecaster_with_covariate.metrics["known"]["load"] > 0.9
    assert forecaster_with_covariate.targets == forecaster_with_covariate.columns == ("load",)


def test_predict_matches_backtest(forecaster_with_covariate: femts.Forecaster, tmp_path: Path) -> None:
    frame = table()
    forecast = forecaster_with_covariate.predict(frame[:-P], future=frame[-P:])
    assert list(forecast.columns) == ["date", "load"]
    last = femts.backtest(forecaster_with_covariate, frame, n_windows=1, step_size=1)
    np.testing.assert_allclose(forecast["load"], last["forecast"])
    jump = frame["open"][-P:].to_numpy() == 1
    assert forecast["load"][jump].mean() - forecast["load"][~jump].mean() == pytest.approx(3, abs=0.7)
    forecaster_with_covariate.save(tmp_path / "run")
    again = femts.load(tmp_path / "run").predict(frame[:-P], future=frame)  # more rows and columns than needed
    pd.testing.assert_frame_equal(again, forecast)


def test_scenarios(forecaster_with_covariate: femts.Forecaster, tmp_path: Path) -> None:
    frame = table()
    shut, open_ = (frame[-P:].assign(open=value) for value in (0.0, 1.0))
    both = forecaster_with_covariate.predict(frame[:-P], level=[80], future={"shut": shut, "open": open_})
    assert list(both.columns) == ["scenario", "date", "load", "load-lo-80", "load-hi-80"]
    for name, future in (("shut", shut), ("open", open_)):
        rows = both[both["scenario"] == name].drop(columns="scenario").reset_index(drop=True)
        pd.testing.assert_frame_equal(rows, forecaster_with_covariate.predict(frame[:-P], level=[80], future=future))
    figure = forecaster_with_covariate.plot(frame[:-P], level=[80], future={"shut": shut, "open": open_})
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["history", "forecast, shut", "forecast, open", "80 % interval"]
    with pytest.raises(UsageError, match=r"Scenario 'late': The table of future covariates has no 'open' at "):
        forecaster_with_covariate.predict(frame[:-P], future={"shut": shut, "late": open_[3:]})

    forecaster_with_covariate.save(tmp_path / "run")
    frame[:-P].to_csv(tmp_path / "past.csv", index=False)
    shut.to_csv(tmp_path / "shut.csv", index=False)
    open_.to_csv(tmp_path / "open.csv.gz", index=False)
    futures = f"{tmp_path / 'shut.csv'},{tmp_path / 'open.csv.gz'}"
    line = ["predict", tmp_path / "run", tmp_path / "past.csv", "--future", futures, "--level", "80"]
    assert main([*map(str, line), "-o", str(tmp_path / "f.csv"), "--plot", str(tmp_path / "f.png")]) == 0
    written = pd.read_csv(tmp_path / "f.csv", parse_dates=["date"])
    pd.testing.assert_frame_equal(written, both, check_dtype=False)


def test_covariate_without_effect_is_named_in_training_and_with_the_forecast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    noise = np.random.default_rng(0).choice(["blue", "green", "red"], 400)
    frame = small_table(400)[["date", "load"]].assign(colour=noise, never=0.0)
    frame["open"] = table()["open"]
    frame.to_csv(tmp_path / "all.csv", index=False)
    asked: dict[str, Any] = {**QUICK, "target": "load"}

    def notes(model: str, *columns: str) -> list[str]:
        caplog.clear()
        with caplog.at_level("INFO", "femts"):
            made.append(femts.train(frame, model, **asked, future_covariates=list(columns)))
        return [note for note in caplog.messages if "effect" in note]

    made = list[femts.Forecaster]()
    advice = "train a model that reads {0}, such as fem_sm or tide, or leave {0} out"
    assert notes("ridge", "colour") == [
        "the training rows show too little effect of colour, so 'ridge' does not use it, and scenarios of it do not "
        f"differ; {advice.format('it')}"
    ]
    assert notes("tide", "colour") == []
    ahead = {colour: frame[-P:].assign(colour=colour) for colour in ("blue", "red")}
    with pytest.warns(
        femts.ForecastWarning, match="does not depend on colour, .* scenarios of it do not differ; train"
    ):
        both = made[0].predict(frame[:-P], future=ahead)
    np.testing.assert_array_equal(*(both.loc[both["scenario"] == name, "load"] for name in ahead))
    with warnings.catch_warnings(action="error", category=femts.ForecastWarning):
        both = made[1].predict(frame[:-P], future=ahead)
    assert not np.array_equal(*(both.loc[both["scenario"] == name, "load"] for name in ahead))
    frame["load"] += 3 * frame["open"]
    used, unused = notes("ridge", "open", "never")
    assert used == "the linear effect of open is removed before 'ridge' and added back to its forecast"
    assert unused.startswith("the training rows show too little effect of never, so 'ridge' does not use it")
    command = ["train", "--dataset", str(tmp_path / "all.csv"), "--target", "load", "--future-covariates", "colour"]
    lengths = ["--seq-len", str(L), "--horizon", str(P), "--device", "cpu", "--out", str(tmp_path / "run")]
    assert main([*command, "--model", "ridge", *lengths]) == 0
    assert "note: the training rows show too little effect of colour" in capsys.readouterr().err
    pd.read_csv(tmp_path / "all.csv")[:-P].to_csv(tmp_path / "past.csv", index=False)
    assert (
        main(["predict", str(tmp_path / "run"), str(tmp_path / "past.csv"), "--future", str(tmp_path / "all.csv")]) == 0
    )
    assert "note: The forecast does not depend on colour, of which" in capsys.readouterr().err


def test_scenarios_on_a_panel(tmp_path: Path) -> None:
    rows = [table(200).assign(unique_id=name).rename(columns={"date": "ds"}) for name in ("a", "b")]
    panel = pd.concat(rows)[["unique_id", "ds", "load", "open"]]
    fc = femts.train(
        femts.load_dataset(panel, target=["load"], future_covariates=["open"], panel=True), "ridge", **QUICK
    )
    past, last = panel.groupby("unique_id").head(200 - P), panel.groupby("unique_id").tail(P)
    future = {"shut": last.assign(open=0.0), "open": last.assign(open=1.0)}
    made = fc.predict(past, future=future)
    assert list(made.columns) == ["scenario", "unique_id", "ds", "load"] and len(made) == 2 * 2 * P
    assert made.groupby("scenario")["load"].mean()["open"] > made.groupby("scenario")["load"].mean()["shut"] + 1
    assert len(fc.plot(past, future=future).axes) == 2


def test_intervals_scores_and_audit_cover_targets_only(forecaster_with_covariate: femts.Forecaster) -> None:
    frame = table()
    bounds = forecaster_with_covariate.predict(frame[:-P], level=[80], future=frame)
    assert list(bounds.columns) == ["date", "load", "load-lo-80", "load-hi-80"]
    scores = forecaster_with_covariate.scores(by="channel", level=[80])
    assert scores["channel"].unique().tolist() == ["load"]
    assert scores["mse"][0] == pytest.approx(forecaster_with_covariate.metrics["test"]["mse"])
    assert scores["skill"][0] > 0.9
    assert not femts.audit(forecaster_with_covariate).failed


def test_report_covers_targets_only(forecaster_with_covariate: femts.Forecaster, tmp_path: Path) -> None:
    page = femts.report(forecaster_with_covariate, tmp_path / "report.html").read_text()
    assert "Future covariates" in page
    numbers = json.loads(page.split("<script type=application/json id=numbers>")[1].split("</script>")[0])
    assert numbers["columns"] == ["load"]
    _, truth, forecast = np.split(unpack(numbers["samples"]["windows"][-1]["series"])[0], [-2 * P, -P])
    wanted = forecaster_with_covariate.predict(table()[:-P], future=table())["load"]
    np.testing.assert_allclose(forecast, wanted, atol=1e-3)
    np.testing.assert_allclose(truth, table()["load"][-P:], atol=1e-3)


def test_audit_detects_effects_fitted_on_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def peeking(data: Dataset, *given: Any) -> Preprocess:
        return replace(fit(data, *given), effects=fit(data.all_rows(), *given).effects)

    fit = Preprocess.fit
    data = femts.load_dataset(table(), target=["load"], future_covariates=["open"])
    with monkeypatch.context() as patch:
        patch.setattr(Preprocess, "fit", peeking)
        forecaster = femts.train(data, "naive", **QUICK)
    assert [check.name for check in femts.audit(forecaster).failed] == ["scaler"]


@pytest.mark.parametrize("model", ["fem_sm", "itransformer"])
def test_past_covariates_are_read_but_not_scored(model: str) -> None:
    frame = table()
    data = femts.load_dataset(frame, target=["load"], past_covariates=["heat"], future_covariates=["open"])
    small: dict[str, Any] = (
        {} if model == "itransformer" else {"settings": {"model.d_model": 8, "model.n_heads": 2, "model.n_layers": 1}}
    )
    forecaster = femts.train(data, model, **QUICK, **small)
    assert forecaster.columns == ("load", "heat") and forecaster.targets == ("load",)
    forecast = forecaster.predict(frame[:-P], horizon=2 * P - 5, future=pd.concat([frame[-P:], continued(frame)]))
    assert list(forecast.columns) == ["date", "load"] and len(forecast) == 2 * P - 5
    if model == "fem_sm":
        assert forecaster.explain(frame)["channel"].unique().tolist() == ["load", "heat"]
    changed = frame.assign(heat=frame["heat"].to_numpy()[::-1])
    moved = (
        forecaster.predict(changed[:-P], future=frame)["load"] - forecaster.predict(frame[:-P], future=frame)["load"]
    )
    assert moved.abs().max() > 0
    assert not femts.audit(forecaster).failed
    assert (
        femts.backtest_scores(femts.backtest(forecaster, frame, n_windows=2, step_size=5), forecaster)["mse_scaled"]
        .notna()
        .all()
    )


def continued(frame: pd.DataFrame) -> pd.DataFrame:
    """Future rows of the same length."""
    return frame[["date", "open"]].assign(
        date=frame["date"] + (frame["date"].iloc[-1] - frame["date"].iloc[0]) + pd.Timedelta("1h")
    )


def test_calendar_features_improve_the_forecast(tmp_path: Path) -> None:
    frame = small_table(24 * 7 * 6)
    frame["load"] += 3.0 * ((frame["date"].dt.dayofweek == 0) & (frame["date"].dt.hour > 8))
    frame.to_csv(tmp_path / "mine.csv", index=False)
    arguments = f"--dataset {tmp_path / 'mine.csv'} --model ridge --seq-len 48 --horizon 24"
    assert main([*f"train {arguments} --calendar --out {tmp_path / 'run'}".split()]) == 0
    assert main([*f"train {arguments} --out {tmp_path / 'plain'}".split()]) == 0
    dated, plain = (femts.load(tmp_path / name) for name in ("run", "plain"))
    assert dated.evaluate()["mse"] < 0.6 * plain.evaluate()["mse"]
    forecast = dated.predict(frame)
    assert forecast["load"].notna().all()


def test_backtest_refit_keeps_covariates(forecaster_with_covariate: femts.Forecaster) -> None:
    frame = femts.backtest(forecaster_with_covariate, table(), n_windows=2, step_size=10, refit=True)
    assert frame["column"].unique().tolist() == ["load"]
    assert np.square(frame["forecast"] - frame["actual"]).mean() < 0.2


def test_multivariate_long_table_with_covariates(forecaster_with_covariate: femts.Forecaster) -> None:
    frame = table().drop(columns="note")
    long = frame.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})
    forecaster = femts.train(femts.load_dataset(long, target=["load"], future_covariates=["open"]), "ridge", **QUICK)
    assert forecaster.metrics["test"]["mse"] == pytest.approx(forecaster_with_covariate.metrics["test"]["mse"])
    cut = frame["date"].iloc[-P]
    forecast = forecaster.predict(long[long["ds"] < cut], future=long[long["ds"] >= cut])
    assert list(forecast.columns) == ["ds", "unique_id", "y"] and forecast["unique_id"].unique().tolist() == ["load"]
    np.testing.assert_allclose(forecast["y"], forecaster_with_covariate.predict(frame[:-P], future=frame)["load"])


def test_covariates_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = table()
    frame.to_csv("mine.csv", index=False)
    frame[:-P].to_csv("past.csv", index=False)
    frame[["date", "open"]][-P:].to_csv("open.csv", index=False)
    train = "train --dataset mine.csv --target load --future-covariates open --model ridge --horizon 12 --seq-len 24"
    assert main([*train.split(), "--out", "run"]) == 0
    assert "explained by future covariates: load 100 %" in capsys.readouterr().err
    assert main("predict run past.csv --future open.csv -o out.csv --plot out.png".split()) == 0
    assert list(pd.read_csv("out.csv").columns) == ["date", "load"]
    assert main("train --config run/config.yaml --out again".split()) == 0
    assert Path("again/preprocess.json").read_bytes() == Path("run/preprocess.json").read_bytes()
    for command in ("evaluate run", "evaluate run --by channel --level 80", "audit run", "calibrate run --horizon 24"):
        assert main(command.split()) == 0, command


STRAY: dict[str, list[str]] = {
    "a later date": ["2031-05-05"],
    "a half hour": ["2024-01-17 20:30"],
    "a date twice": ["2024-01-18", "2024-01-18"],
    "a half hour before": ["2024-01-02 00:30"],
}


def test_extra_future_rows_are_ignored(forecaster_with_covariate: femts.Forecaster) -> None:
    for stray in STRAY:
        frame = table()
        more = pd.DataFrame({"date": pd.to_datetime(STRAY[stray]), "open": "unknown"})
        future = frame[-P:][["date", "open"]]
        usual = forecaster_with_covariate.predict(frame[:-P], future=future)
        long = pd.concat([future, more.assign(open=0.0)]).rename(columns={"date": "ds", "open": "y"})
        for given in (pd.concat([future, more]), pd.concat([more, future]).astype(str), long.assign(unique_id="open")):
            pd.testing.assert_frame_equal(forecaster_with_covariate.predict(frame[:-P], future=given), usual)


def test_future_covariates_match_by_instant(forecaster_with_covariate: femts.Forecaster) -> None:
    frame, zoned = table(), table().assign(date=table()["date"].dt.tz_localize("UTC"))
    usual = forecaster_with_covariate.predict(frame[:-P], future=frame)
    east = zoned.assign(date=zoned["date"].dt.tz_convert("Asia/Tokyo"))
    np.testing.assert_array_equal(forecaster_with_covariate.predict(zoned[:-P], future=east)["load"], usual["load"])
    with pytest.raises(UsageError, match="covariates has stamps in the time zone UTC, but the history has stamps wi"):
        forecaster_with_covariate.predict(frame[:-P], future=zoned)
    with pytest.raises(
        UsageError, match="The history has stamps in the time zone UTC, but the table of future covariates"
    ):
        forecaster_with_covariate.predict(zoned[:-P], future=frame)


def test_extra_future_rows_are_ignored_on_a_panel() -> None:
    frame = table()[["date", "load", "open"]].rename(columns={"date": "ds", "load": "y"})
    frame = pd.concat([frame.assign(unique_id=name) for name in ("a", "b")], ignore_index=True)
    forecaster = femts.train(femts.load_dataset(frame, target="y", future_covariates="open"), "ridge", **QUICK)
    cut = frame["ds"].iloc[-P]
    history, future = frame[frame["ds"] < cut], frame[frame["ds"] >= cut].drop(columns="y")
    usual = forecaster.predict(history, future=future)
    for stray in STRAY.values():
        more = pd.DataFrame({"ds": pd.to_datetime(stray), "open": "unknown", "unique_id": "a"})
        pd.testing.assert_frame_equal(forecaster.predict(history, future=pd.concat([more, future])), usual)
    east = future.assign(ds=future["ds"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))
    zoned = history.assign(ds=history["ds"].dt.tz_localize("UTC"))
    np.testing.assert_array_equal(forecaster.predict(zoned, future=east)["y"], usual["y"])
    with pytest.raises(
        UsageError, match="future covariates has stamps in the time zone Asia/Tokyo, but the history has"
    ):
        forecaster.predict(history, future=east)


def test_missing_future_covariates_are_refused(forecaster_with_covariate: femts.Forecaster) -> None:
    for future, says in [
        (
            lambda frame: pd.concat([frame, frame[-1:]]),
            r"future covariates \(13 rows for these steps\) repeats 1 date, .* keep one row",
        ),
        (lambda frame: frame[:-P], "has no 'open' at 2024-01-17 04:00:00; give open for the 12 steps"),
        (None, "provide open for the 12 steps from 2024-01-17 04:00:00 to 2024-01-17 15:00:00"),
        (lambda frame: frame[-P:-1], "has no 'open' at 2024-01-17 15:00:00"),
        (lambda frame: frame[-P:][["date", "load"]], "lacks 'open'"),
        (lambda frame: 3, "provide open for the 12 steps"),
    ]:
        frame = table()
        with pytest.raises(UsageError, match=says):
            forecaster_with_covariate.predict(frame[:-P], future=future if future is None else future(frame))


def test_conflicting_column_roles_are_refused() -> None:
    cases: list[tuple[Any, ...]] = [
        ({"target": ["laod"]}, "has no column 'laod' for target; did you mean 'load'"),
        (
            {"target": ["load"], "future_covariates": ["load"]},
            r"Column 'load' is listed in both target=\['load'\] and future_covariates=\['load'\]",
        ),
        (
            {"past_covariates": ["load", "heat"], "future_covariates": ["open", "copy"]},
            "No column of 'frame' is left to forecast",
        ),
        (
            {"target": ["load"], "future_covariates": ["copy"]},
            "Column 'copy' of future_covariates equals the target 'load' in every row",
        ),
    ]
    for roles, says in cases:
        frame = table().drop(columns="note")
        with pytest.raises(UsageError, match=says):
            femts.load_dataset(frame.assign(copy=frame["load"]), **roles)


def test_unsupported_uses_of_covariates_are_refused(forecaster_with_covariate: femts.Forecaster) -> None:
    frame = table()
    with pytest.raises(
        UsageError, match=r"'ridge' forecasts each column from its own past alone, so past_covariates=.'heat'."
    ):
        femts.train(femts.load_dataset(frame, target=["load"], past_covariates=["heat"]), "ridge", **QUICK)
    with pytest.raises(UsageError, match="Calendar features need dates"):
        femts.load_dataset(small_table().assign(date=range(300)), calendar=True)
    with pytest.raises(UsageError, match="takes values alone, but this model also reads covariates or dates"):
        forecaster_with_covariate.predict_array(np.zeros((1, L, 1)))
    with pytest.raises(UsageError, match="loaded without its future covariates; load it with"):
        forecaster_with_covariate.evaluate(dataset=femts.load_dataset(frame, target=["load"]))
    with pytest.raises(UsageError, match="cannot be exported to ONNX"):
        forecaster_with_covariate.export("never.onnx")
    plain = femts.train(femts.load_dataset(frame, target=["load"]), "naive", **QUICK)
    with pytest.raises(UsageError, match="no column was named as one"):
        plain.predict(frame, future=frame)


def test_gaps_in_future_covariates_warn(forecaster_with_covariate: femts.Forecaster) -> None:
    frame = table()
    holed = frame[:-P].copy()
    holed.loc[len(holed) - 3, "open"] = np.nan
    with pytest.warns(GapWarning, match="'open'; the training mean is read instead"):
        forecaster_with_covariate.predict(holed, future=frame)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--target load,", "Columns 'load,' cannot be read; write --target NAME"),
        ("--config calendar.yaml", "Setting 'calendar' takes true or false, not 3"),
    ],
)
def test_invalid_covariate_options_write_nothing(
    options: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table().to_csv("mine.csv", index=False)
    Path("calendar.yaml").write_text("calendar: 3\n")
    assert main(f"train --dataset mine.csv --model naive --horizon 12 --seq-len 24 --out run {options}".split()) == 2
    assert says in capsys.readouterr().err
    assert not Path("run").exists()


@pytest.mark.parametrize(("model", "form"), [("tide", "long"), ("fem_sm", "wide")])
def test_shorter_horizon_is_a_prefix(model: str, form: str) -> None:
    frame = table(200)[["date", "load", "open"]]
    if form == "long":
        frame = frame.rename(columns={"date": "ds", "load": "y"}).assign(unique_id="a")
    data = femts.load_dataset(
        frame, target=["y" if form == "long" else "load"], future_covariates=["open"], calendar=True
    )
    settings = {} if model == "tide" else {"model.d_model": 8, "model.n_layers": 1, "model.n_heads": 2}
    run = femts.train(data, model, P, seq_len=L, max_steps=30, settings=settings)
    past, ahead = frame[: -2 * P], frame[-2 * P :]
    whole = run.predict(past, 2 * P, future=ahead)
    for steps in (1, P - 2, P, P + 3):
        pd.testing.assert_frame_equal(run.predict(past, steps, future=ahead), whole.head(steps))
    value = whole.columns[-1]
    back = femts.backtest(run, frame, n_windows=1, step_size=1, horizon=2 * P)["forecast"]
    assert np.array_equal(back, whole[value])
    first = femts.backtest(run, frame[: len(frame) - P], n_windows=1, step_size=1, horizon=1)["forecast"]
    assert (
        first[0]
        == run.predict(frame[: len(frame) - P - 1], 1, future=frame[len(frame) - P - 1 : len(frame) - P])[value][0]
    )
    with pytest.raises(UsageError, match=f"has no 'open'.*for the {P} steps"):
        run.predict(past, P, future=ahead[: P - 1])


@pytest.mark.filterwarnings("ignore:The history ends:femts.AgeWarning")
def test_shorter_horizon_scores_match_predict() -> None:
    data = femts.load_dataset(table(300), target=["load"], future_covariates=["open"])
    run = femts.train(data, "tide", P, seq_len=L, max_steps=30)
    scores = run.scores(by="step")
    windows = int(scores["windows"].iloc[0])
    few = run.evaluate("test", pred_len=1)
    assert few["windows"] == windows + P - 1
    first = [
        run.predict(data.frame()[:end], 1, future=data.frame()[end : end + P])["load"][0] for end in range(240, 300)
    ]
    errors = (np.array(first) - data.values[240:, 0]) / float(run.preprocess.scaler.scale[0, 0])
    assert few["mse"] == pytest.approx((errors**2).mean(), rel=1e-5)


def test_warnings_point_at_the_caller() -> None:
    run = femts.train(small_table(), "naive", P, seq_len=L)
    with pytest.warns(femts.AgeWarning) as caught:
        run.predict(small_table())
    with pytest.warns(femts.ScaleWarning) as scaled:
        femts.train(small_table().assign(flat=1.0), "naive", P, seq_len=L, target=["load", "flat"])
    assert {each.filename for each in (*caught, *scaled)} == {__file__}


def test_future_covariates_in_another_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    days = np.arange(500)
    warm = 12 - 10 * np.cos(days * 2 * np.pi / 365) + np.sin(days)
    dates = pd.date_range("2024-01-01", periods=500)
    frame = pd.DataFrame({"date": dates, "load": 50 + 3 * warm + days % 7, "warm": warm.round(1), "year": dates.year})
    past, future = frame[:-P], frame[-P:].drop(columns="load")
    hot = future.assign(warm=(32 + 1.8 * future["warm"]).round(1))
    found = r"future 'warm' is 6[\d.]+ to [\d.]+, but was 1 to 2[\d.]+ in training; check its unit"
    roles: dict[str, Any] = {"target": ["load"], "future_covariates": ["warm", "year"]}
    forecaster = femts.train(past, "ridge", pred_len=P, seq_len=L, refit=True, **roles)
    with warnings.catch_warnings(action="error", category=UnitsWarning):
        forecaster.predict(past, future=future)
    with pytest.warns(UnitsWarning, match=found):
        forecaster.predict(past, future=hot)
    with pytest.warns(UnitsWarning, match=found.replace("'warm' is", "'warm' of scenario 'hot' is")) as seen:
        forecaster.predict(past, future={"usual": future, "hot": hot})
    assert sum(each.category is UnitsWarning for each in seen) == 1
    with pytest.warns(UnitsWarning, match=found):
        femts.forecast(past, P, future=hot, model="seasonal_naive", **roles)

    forecaster.save(tmp_path / "run")
    past.to_csv(tmp_path / "past.csv", index=False)
    hot.to_csv(tmp_path / "hot.csv", index=False)
    assert (
        main(
            ["predict", *(str(tmp_path / name) for name in ("run", "past.csv")), "--future", str(tmp_path / "hot.csv")]
        )
        == 0
    )
    assert "note: The future 'warm' is " in capsys.readouterr().err
