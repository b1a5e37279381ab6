"""Lists of forecasting tasks: scores by hand and as published, records, leaderboard, and errors."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from pages import cells_in_this_process

import femts
from femts.analysis.rolling_scores import QUANTILES
from femts.cli import main
from femts.errors import UsageError
from femts.evaluation.scale import SeasonalScale
from femts.experiments.leaderboard import leaderboard, with_published
from femts.experiments.results import read_record
from femts.experiments.task_cell import TaskCell, _Training
from femts.experiments.tasks import Task, read_tasks, resolve_source, score_forecasts
from femts.experiments.verify import verify_record
from femts.training import refit

REAL = Path(os.environ.get("FEMTS_DATA", ""))
LEVELS = np.array(QUANTILES)


def panel(series: int = 3, rows: int = 60) -> pd.DataFrame:
    """Series with a season of 4 and a trend, of different lengths."""
    rng, parts = np.random.default_rng(1), []
    for s in range(series):
        n = rows - 5 * s
        y = 10 + s + 0.1 * np.arange(n) + np.tile([0, 3, 1, -2], n)[:n] + 0.3 * rng.normal(size=n)
        stamps = pd.date_range("2001-01-01", periods=n, freq="QS")
        parts.append(pd.DataFrame({"unique_id": f"s{s}", "ds": stamps, "y": y}))
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A list of two tasks with its data."""
    folder = tmp_path_factory.mktemp("tasks")
    panel().to_csv(folder / "panel.csv", index=False)
    wide = panel(1, 120).drop(columns="unique_id").rename(columns={"ds": "date"})
    wide["date"], wide["z"] = pd.date_range("2001-01-01", periods=120, freq="D"), wide["y"] ** 2
    wide.to_csv(folder / "wide.csv", index=False)
    (folder / "tasks.yaml").write_text(
        "tasks:\n- {name: quarters, data: panel.csv, horizon: 4, windows: 2, season: 4}\n"
        "- {name: days, data: [wide.csv], horizon: 7, windows: 3, season: 4, metric: sql}\n"
    )
    return folder


@pytest.fixture(scope="module")
def scores(folder: Path) -> pd.DataFrame:
    with cells_in_this_process():
        return femts.score_tasks(folder / "tasks.yaml", "ridge", results=folder / "results", jobs=2, device="cpu")


def by_hand(frame: pd.DataFrame, data: pd.DataFrame, task: Task, season: int) -> dict[str, float]:
    """MASE and SQL of a panel with one target, by loops."""
    windows: dict[int, list[tuple[float, float]]] = {}
    for (window, name), own in frame.groupby(["window", "series"]):
        y = data.loc[data["unique_id"] == name, "y"].to_numpy()
        past = y[: len(y) - (task.windows - int(window) + 1) * task.horizon]
        scale = np.abs(past[season:] - past[:-season]).mean()
        actual = own["actual"].to_numpy()
        below = actual[:, None] - np.stack([own[f"q-{100 * q:g}"] for q in QUANTILES], axis=1)
        pinball = 2 * np.maximum(LEVELS * below, (LEVELS - 1) * below).mean(1)
        each = zip(np.abs(actual - own["q-50"]) / scale, pinball / scale, strict=True)
        windows.setdefault(int(window), []).extend(each)
    means = np.mean([np.mean(values, axis=0) for values in windows.values()], axis=0)
    return {"mase": means[0], "sql": means[1]}


def test_scores_of_a_panel_equal_those_by_hand(folder: Path) -> None:
    ((task, _), _) = read_tasks([folder / "tasks.yaml"])
    data = task.load(str(folder / "panel.csv"))
    long = panel()
    rng, rows = np.random.default_rng(2), []
    for window in (1, 2):
        for name, own in long.groupby("unique_id"):
            stop = len(own) - (2 - window) * 4
            actual = own["y"].to_numpy()[stop - 4 : stop]
            quantiles = np.sort(actual[:, None] + rng.normal(size=(4, 9)), axis=1)
            named = {f"q-{100 * q:g}": quantiles[:, k] for k, q in enumerate(QUANTILES)}
            rows.append(pd.DataFrame({"window": window, "series": name, "column": "y", "actual": actual, **named}))
    frame = pd.concat(rows, ignore_index=True)
    made = score_forecasts([frame], [data], task).mean()
    for name, value in by_hand(frame, long, task, 4).items():
        assert made[name] == pytest.approx(value, rel=1e-12)


def test_seasonal_errors_stay_within_their_series() -> None:
    data = femts.load_dataset(panel(), season=4)
    stops = data.lengths[:, None] - np.array([8, 4])
    made = SeasonalScale.before(data, stops, 4).absolute
    for s, (first, _) in enumerate(data.spans):
        for w in range(2):
            y = data.values[first : first + stops[s, w], 0]
            assert made[s, w, 0] == pytest.approx(np.abs(y[4:] - y[:-4]).mean(), rel=1e-12)
    short = np.full((3, 1), 4)
    assert np.isnan(SeasonalScale.before(data, short, 4, or_step=False).absolute).all(), "no change within one season"


def run(task: Task, folder: Path, root: str | None = None) -> dict[str, Any]:
    """The record of the seasonal naive forecast, in this process."""
    sources = tuple(resolve_source(each, folder, root) for each in task.data)
    hashes = tuple(task.load(source, root).fingerprint() for source in sources)
    return TaskCell(task, "seasonal_naive", sha256=hashes, sources=sources).run(None, "cpu", root)


@pytest.mark.skipif(not (REAL / "ETTh1.csv").is_file(), reason="needs the real ETT and Weather files in FEMTS_DATA")
@pytest.mark.parametrize(("name", "published"), [("ETT_1W", 2.6201), ("jena_weather_1H", 0.7399)])
def test_seasonal_naive_has_its_published_mase(name: str, published: float) -> None:
    (task,) = [task for task, _ in read_tasks([Path("configs/tasks/fev.yaml")]) if task.name == name]
    assert round(run(task, Path(), str(REAL))["scores"]["mase"], 4) == published


def test_reference_reads_no_covariates(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=120, freq="D")
    heat = np.random.default_rng(0).normal(size=120)
    load = np.tile([5.0, 1, 2, 3, 4, 6, 7], 18)[:120] + 3 * heat
    pd.DataFrame({"date": days, "load": load, "heat": heat}).to_csv(tmp_path / "heat.csv", index=False)
    (tmp_path / "tasks.yaml").write_text(
        "tasks:\n- {name: heat, data: heat.csv, horizon: 7, windows: 2, season: 7, "
        "reading: {target: load, future_covariates: heat, calendar: true}}\n"
    )
    with cells_in_this_process():
        made = femts.score_tasks(tmp_path / "tasks.yaml", "ridge", results=tmp_path / "results", device="cpu")
    scores = made.set_index("model")["mase"]
    errors = [np.abs(load[at : at + 7] - load[at - 7 : at]).mean() for at in (106, 113)]
    scales = [np.abs(load[7:at] - load[: at - 7]).mean() for at in (106, 113)]
    assert scores["seasonal_naive"] == pytest.approx(np.mean(np.divide(errors, scales)))
    assert scores["ridge"] < 0.5 * scores["seasonal_naive"]


def test_records_hold_the_task_and_verify(folder: Path, scores: pd.DataFrame) -> None:
    (path,) = (folder / "results" / "tasks").glob("days-*/ridge-seed42.json")
    record = read_record(path, TaskCell)
    assert record["cell"]["task"] == {
        **{"name": "days", "data": ["wide.csv"], "horizon": 7, "windows": 3, "season": 4, "metric": "sql"}
    }
    assert len(record["windows"]) == 3 and record["trained"][0]["rows"] == 120 - 21
    assert scores.set_index(["task", "model"]).loc[("days", "ridge"), "mase"] == record["scores"]["mase"]
    verdict = verify_record(record, "cpu", str(folder))
    assert verdict.holds and not verdict.differences and verdict.measure == "SQL"
    record["scores"]["sql"] += 1e-9
    assert not verify_record(record, "cpu", str(folder)).holds


def test_finished_runs_are_not_repeated(folder: Path, scores: pd.DataFrame) -> None:
    again = femts.score_tasks(folder / "tasks.yaml", ["ridge"], results=folder / "results", train=False)
    pd.testing.assert_frame_equal(again, scores)
    assert set(scores["model"]) == {"ridge", "seasonal_naive"}, "the baseline is always run"


def test_refitting_trains_before_each_window(folder: Path) -> None:
    task = Task(name="quarters", data=("panel.csv",), horizon=4, windows=2, season=4)
    with patch.object(_Training, "_train", autospec=True, side_effect=_Training._train) as trained:
        once = run(task, folder)
        again = run(task.model_copy(update={"refit": True}), folder)
    assert [len(call.args[1].values) for call in trained.call_args_list] == [165 - 24, 165 - 24, 165 - 12]
    assert again["scores"]["mase"] == pytest.approx(once["scores"]["mase"], 1e-6), "naive forecasts learn nothing"


@pytest.mark.parametrize(
    ("model", "settings"),
    [("ridge", {}), ("boost", {"model.rounds": 10, "model.rows": 2000}), ("fem_sm", {"training.max_steps": 3})],
)
@pytest.mark.filterwarnings("ignore::femts.AccuracyWarning")
def test_training_scores_no_more_windows_than_intervals_need(model: str, settings: dict[str, Any]) -> None:
    values = np.sin(np.arange(900) * np.pi / 12) + 0.2 * np.random.default_rng(0).normal(size=900)
    frame = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=900, freq="h"), "y": values})
    data = femts.load_dataset(frame)
    cell = TaskCell(Task(name="hours", data=("hours.csv",), horizon=6, season=24), model, settings=settings)
    with patch.multiple(refit, HELD_OUT=6 * 50, FEWEST_HELD_OUT=0):
        made = _Training(cell, data, None, "cpu")._train(data, None)
        whole = femts.train(data, model, 6, refit=True, device="cpu", settings={"training.loss": "mae", **settings})
    assert made.metrics["test"]["windows"] == 50 < whole.metrics["test"]["windows"]
    forecasts = (each.predict(frame, level=[80]) for each in (made, whole))
    pd.testing.assert_frame_equal(*forecasts, check_exact=True)


def test_aggregated_data_have_whole_periods(folder: Path) -> None:
    task = Task(name="weeks", data=("wide.csv",), horizon=2, season=1, aggregate="W")
    data = task.load(str(folder / "wide.csv"))
    raw = pd.read_csv(folder / "wide.csv", parse_dates=["date"]).set_index("date")
    weeks = raw.resample("W").mean()[raw.resample("W").size() == 7]
    np.testing.assert_allclose(data.values, weeks.to_numpy(), rtol=1e-12)
    assert data.freq == "W-SUN" and data.stamps is not None and (data.stamps == weeks.index).all()


@pytest.mark.parametrize(
    ("first", "step", "periods"), [("2016-02-01", "MS", 70), ("2016-02-10", "ME", 69), ("2016-02-01", "YS", 5)]
)
def test_periods_of_any_length_are_kept(tmp_path: Path, first: str, step: str, periods: int) -> None:
    dates = pd.date_range(first, "2021-12-30" if step == "YS" else "2021-11-30")
    pd.DataFrame({"date": dates, "y": np.arange(len(dates)) % 7}).to_csv(tmp_path / "days.csv", index=False)
    task = Task(name="months", data=("days.csv",), horizon=1, season=1, aggregate=step)
    data = task.load(str(tmp_path / "days.csv"))
    assert data.rows == periods - (step == "YS"), "the first and the last year are incomplete"


def test_skill_and_win_rate_by_hand() -> None:
    table = pd.DataFrame(
        [(t, m, "mase", 1, e, e, e, e, 1.0, 1.0, None, False)
         for t, errors in {"a": (1.0, 0.5, 0.8), "b": (2.0, 2.0, 1.0)}.items()
         for m, e in zip(("seasonal_naive", "one", "two"), errors, strict=True)],
        columns=["task", "model", "metric", "seeds", "mase", "sql", "wape", "wql", "train_seconds", "cpu_seconds",
                 "failed", "seen"],
    )  # fmt: skip
    made = leaderboard(table).set_index("model")
    assert made.loc["one", "mase_skill"] == pytest.approx(1 - np.sqrt(0.5 * 1.0))
    assert made.loc["two", "mase_skill"] == pytest.approx(1 - np.sqrt(0.8 * 0.5))
    assert made["win_rate"].to_dict() == pytest.approx({"one": 0.625, "two": 0.75, "seasonal_naive": 0.125})
    assert (made["mase_low"] <= made["mase_skill"]).all() and (made["mase_skill"] <= made["mase_high"]).all()
    missing = table.assign(mase=table["mase"].where((table["model"] != "one") | (table["task"] != "a")))
    assert leaderboard(missing).set_index("model").loc["one", "mase_skill"] == 0, "a failure counts as the baseline"
    with pytest.raises(UsageError, match="No task has a score of seasonal_naive"):
        leaderboard(table[table["model"] != "seasonal_naive"])


def test_published_scores_stand_beside_ours() -> None:
    ours = pd.DataFrame([("ETT_1H", "ridge", "mase", 1, 1.1, 0.9, 0.2, 0.2, 1.0, 1.0, None, False)],
        columns=["task", "model", "metric", "seeds", "mase", "sql", "wape", "wql", "train_seconds", "cpu_seconds",
                 "failed", "seen"])  # fmt: skip
    made = with_published(ours).set_index("model")
    assert made.loc["Chronos-2", ["mase", "sql"]].tolist() == [1.126, 0.883]
    assert leaderboard(made.reset_index())["model"].iloc[0] == "ridge"
    with pytest.raises(UsageError, match="No scores are published"):
        with_published(ours.assign(task="mine"))


def test_command_prints_tables(folder: Path, scores: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["table", "--tasks", str(folder / "tasks.yaml"), "--models", "ridge", "--show"]
    command += ["--results", str(folder / "results")]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "MASE skill" in text and "quarters" in text and "days" in text
    assert main([*command, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [float(row["mase"]) for row in rows] == pytest.approx(scores["mase"].tolist())
    assert main([*command, "--format", "md"]) == 0
    assert capsys.readouterr().out.startswith("| model | MASE skill |")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("tasks: []", "is not a list of tasks"),
        ("- name: a", "is not a list of tasks"),
        ("tasks: [{name: a, data: panel.csv}]", "Task 1 'a' of {path} is invalid: horizon is missing"),
        ("tasks: [{name: a/b, data: panel.csv, horizon: 3}]", "Task 1 'a/b' of {path} is invalid: name is"),
        ("tasks: [{name: a, data: panel.csv, horizon: 0}]", "horizon is 0, input should be greater than or equal to 1"),
        ("tasks: [{name: a, data: panel.csv, horizon: 3, metrik: mase}]", "metrik is 'mase', extra inputs"),
        ("tasks: [{name: a, data: panel.csv, horizon: 3, reading: {tarrget: y}}]", "Unknown argument 'tarrget'"),
        ("tasks: [{name: a, data: panel.csv, horizon: 3, time_limit: soon}]", "'soon'"),
        ("tasks: [{name: a, data: gone.csv, horizon: 3}]", "File gone.csv is not in"),
        ("tasks: [{name: a, data: panel.csv, horizon: 30}]", "the longest series of"),
        ("tasks: [{name: a, data: panel.csv, horizon: 3, aggregate: often}]", "'often', which is not a pandas"),
        (
            "tasks: [{name: a, data: panel.csv, horizon: 3}, {name: A, data: panel.csv, horizon: 3}]",
            "Several tasks are named",
        ),
    ],
)
def test_invalid_lists_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    path = folder / "bad.yaml"
    path.write_text(content)
    assert main(["table", "--tasks", str(path), "--models", "ridge", "--results", str(tmp_path / "results")]) == 2
    error = capsys.readouterr().err
    assert message.format(path=path) in error and error.count("\n") == 1 and not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--horizons", "96"], "remove the option '--horizons'"),
        (["--datasets", "ETTh2"], "remove the option '--datasets'"),
        (["--target", "y"], "remove the option about reading data"),
        (["--format", "html"], "does not support tasks"),
        (["--models", "ridges"], "Unknown model 'ridges'"),
        (["--set", "training.max_time=5s"], "Setting 'training.max_time' cannot be set for a cell"),
    ],
)
def test_options_of_data_sets_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    command = ["table", "--tasks", str(folder / "tasks.yaml"), "--results", str(tmp_path / "results"), *options]
    assert main(command) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "results").exists()


def test_choice_within_a_time_limit_cannot_be_verified(folder: Path) -> None:
    task = Task(name="days", data=("wide.csv",), horizon=7, time_limit="10s")
    with pytest.raises(UsageError, match="depends on its time limit of 10s"):
        TaskCell(task, "auto", sources=(str(folder / "wide.csv"),)).check_data({}, None)
