"""Checks and updates with rows that came after training."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.analysis.check import FEWEST, _Windows
from femts.analysis.update import Update
from femts.cli import main
from femts.errors import NoNewRows, UsageError

P, TRAINED, ROWS = 24, 1200, 1200 + 8 * 24


def waves(rows: int = ROWS, seed: int = 0, noise: float = 0.3) -> pd.DataFrame:
    hour, rng = np.arange(rows), np.random.default_rng(seed)
    values = {name: np.sin(2 * np.pi * hour / P + k) + noise * rng.normal(size=rows) for k, name in enumerate("ab")}
    return pd.DataFrame({"date": pd.date_range("2024-01-01", periods=rows, freq="h"), **values})


@pytest.fixture(scope="module")
def run() -> femts.Forecaster:
    return femts.train(waves()[:TRAINED], "ridge", P, seq_len=48, refit=True)


def altered(change: Callable[[np.ndarray], None]) -> pd.DataFrame:
    frame = waves()
    values = frame["a"].to_numpy().copy()
    change(values)
    return frame.assign(a=values)


def spike(values: np.ndarray) -> None:
    values[-5] += 6


def jump(values: np.ndarray) -> None:
    values[-P:] += 2


def dead(values: np.ndarray) -> None:
    values[-P // 2 :] = values[-P // 2]


def lost(values: np.ndarray) -> None:
    values[-P:] = np.nan


def shifted(values: np.ndarray) -> None:
    values[-P:] = values[-P - 12 : -12]


def noisy(values: np.ndarray) -> None:
    values[TRAINED:] += np.random.default_rng(1).normal(size=ROWS - TRAINED)


def test_rows_like_those_before_are_good(run: femts.Forecaster) -> None:
    made = femts.check(run, waves())
    assert made.ok and str(made).startswith("good: 8 windows from 2024-02-20 to 2024-02-27 23:00:00, compared with 1")
    assert made.summary["new_rows"] == ROWS - TRAINED and made.summary["naive"] == "seasonal_naive"
    assert 0.7 < made.summary["coverage"] <= 1
    windows = made.windows
    assert windows["new"].sum() == 8 and windows["new"].to_numpy()[-8:].all()
    frame = femts.backtest(run, waves(), n_windows=8)
    frame["error"] = (frame["forecast"] - frame["actual"]).abs()
    ratio = windows["mase"].to_numpy()[-8:] / frame.groupby("cutoff")["error"].mean().to_numpy()
    assert ratio.std() < 0.02 * ratio.mean(), "MASE is the error in units of the seasonal changes of each column"


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        (spike, "reading", "'a' was 5.639 at 2024-02-27 19:00:00, 8.0 times as far"),
        (jump, "bias", "forecasts of 'a' were 2.0"),
        (jump, "error", "the mean absolute error of 'a' was 2.0"),
        (dead, "constant", "'a' has been -0.0423861 for 12 readings"),
        (lost, "missing", "'a' has no value from 2024-02-27 on"),
        (shifted, "error", "the mean absolute error of 'a' was 1."),
        (noisy, "coverage", "80 % intervals cover"),
    ],
)
def test_changes_give_an_alarm(
    run: femts.Forecaster, change: Callable[[np.ndarray], None], kind: str, says: str
) -> None:
    made = femts.check(run, altered(change))
    found = made.findings[made.findings["alarm"] & (made.findings["kind"] == kind)]
    assert not made.ok and len(found) and says in found["text"].iloc[0], made.findings["text"].tolist()
    assert found["remedy"].ne("").all() and set(made.findings.loc[made.findings["alarm"], "column"]) <= {"a", ""}
    assert str(made).startswith("alarm: ")


def test_a_better_naive_forecast_gives_an_alarm(run: femts.Forecaster) -> None:
    frame = waves(TRAINED + 30 * P)
    slow = np.sin(2 * np.pi * np.arange(TRAINED, len(frame)) / (10 * P))
    frame.loc[TRAINED:, ["a", "b"]] = slow[:, None] + np.random.default_rng(1).normal(size=(30 * P, 2)) / 50
    made = femts.check(run, frame).findings.set_index("kind")
    assert made.loc["naive", "alarm"].all()
    assert "the drift forecast was better in the 30 new windows: MASE 0." in made.loc[["naive"], "text"].str.cat()


def test_a_reading_far_outside_is_named_with_its_time(run: femts.Forecaster) -> None:
    row = femts.check(run, altered(spike)).findings.iloc[0]
    assert (row["kind"], row["at"]) == ("reading", "2024-02-27 19:00:00")


@pytest.mark.parametrize(("before", "alarm"), [(1, True), (2, False)])
def test_readings_that_two_nights_had_are_usual(run: femts.Forecaster, before: int, alarm: bool) -> None:
    def spikes(values: np.ndarray) -> None:
        values[[-5 - 3 * P * night for night in range(before + 1)]] += 6

    found = femts.check(run, altered(spikes)).findings.query("kind == 'reading'")
    assert found["alarm"].any() == alarm


def panel(frame: pd.DataFrame, names: str) -> pd.DataFrame:
    parts = [frame[["date"]].assign(series=name, y=frame["a"] + k) for k, name in enumerate(names)]
    return pd.concat(parts, ignore_index=True)[["series", "date", "y"]]


def test_a_panel_names_its_series() -> None:
    made = femts.train(panel(waves(), "xyz").groupby("series").head(TRAINED), "ridge", P, seq_len=48, refit=True)
    assert femts.check(made, panel(waves(), "xyz")).ok
    parts = [panel(waves(), "x"), panel(altered(jump), "y")]
    later = femts.check(made, pd.concat(parts))
    assert {"bias", "missing"} <= set(later.findings.loc[later.findings["alarm"], "kind"])
    by_kind = later.findings.set_index("kind")["text"]
    assert "1 of 3 series of the training is absent: z" in by_kind["missing"] and "'y' of 'y'" in by_kind["bias"]
    ended = pd.concat([panel(waves(), "xy"), panel(waves()[: -2 * P], "z")])
    assert "'y' of 'z' has no value" in femts.check(made, ended).findings["text"].iloc[0]


def test_heavy_tails_of_many_series_give_no_alarms() -> None:
    rng, names = np.random.default_rng(0), [f"s{number}" for number in range(300)]

    def changed(errors: np.ndarray) -> list[str]:
        rows: Any = SimpleNamespace(series=names, columns=("y",))
        sizes, means = np.abs(errors).mean(-1)[..., None], errors.mean(-1)[..., None]
        none, far = np.full((1, 1), np.nan), pd.DataFrame()
        return [found[1] for found in _Windows(rows, [], ["now"], sizes, means, none, {}, none, far, 0.0).changes()]

    nights = [rng.standard_t(3, (45, 300, 24)) for _ in range(20)]
    assert sum(bool(changed(each)) for each in nights) <= 1, "by the t distribution alone, seven would have one"
    for each in nights:
        each[-1, 7] += 8
    assert sum("s7" in changed(each) for each in nights) >= 19


def test_a_shorter_horizon_and_few_rows(run: femts.Forecaster) -> None:
    assert femts.check(run, waves()[: TRAINED + 7]).summary["new"] == 1
    alone = femts.check(run, waves()[TRAINED - 60 : TRAINED + P])
    assert alone.summary["earlier"] < FEWEST and "nan" not in str(alone)
    assert "too few windows before to tell whether errors have changed" in str(alone)
    made = femts.check(run, waves()[: TRAINED + 3 * P], horizon=12)
    assert made.summary["new"] == 6 and made.summary["earlier"] >= FEWEST
    for new in (1, 7):
        short = femts.check(run, waves()[: TRAINED + new], horizon=24)
        assert short.ok and (short.summary["steps"], short.summary["new"]) == (new, 1)
        steps = "1 step" if new == 1 else "7 steps"
        assert f"note: fewer than 24 rows are new, so windows have {steps} instead" in str(short)
    spiked = waves()[: TRAINED + 1].copy()
    spiked.loc[TRAINED, "a"] += 50
    assert femts.check(run, spiked, horizon=24).findings.iloc[0]["kind"] == "reading"
    with pytest.raises(NoNewRows, match=r"^The frame has no row after those used .*; provide later rows\.$"):
        femts.check(run, waves()[:TRAINED])
    with pytest.raises(UsageError, match=r"^A check requires a whole number of at least 1 for horizon, not 0\.$"):
        femts.check(run, waves(), horizon=0)


def test_check_command(run: femts.Forecaster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run.save(tmp_path / "run")
    for name, frame, status in (("good", waves(), 0), ("bad", altered(jump), 3)):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        assert main(["check", str(tmp_path / "run"), str(tmp_path / f"{name}.csv")]) == status
        assert capsys.readouterr().out.startswith({0: "good: ", 3: "alarm: "}[status])
        main(["check", str(tmp_path / "run"), str(tmp_path / f"{name}.csv"), "--horizon", "12", "--json"])
        said: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert (
            said["ok"] == (status == 0) and len(said["windows"]) == said["earlier"] + said["new"] and said["new"] == 16
        )
    waves()[:TRAINED].to_csv(tmp_path / "old.csv", index=False)
    for command, says in (("check", "unchecked: File "), ("update", "is unchanged\n")):
        assert main([command, str(tmp_path / "run"), str(tmp_path / "old.csv")]) == 4
        out = capsys.readouterr().out
        assert says in out and "old.csv has no row after those used for training and validation" in out
    assert main(["check", str(tmp_path / "run"), str(tmp_path / "old.csv"), "--json"]) == 4
    assert json.loads(capsys.readouterr().out)["new_rows"] == 0


def test_update_trains_on_all_rows(run: femts.Forecaster, tmp_path: Path) -> None:
    later = altered(lambda values: np.add(values, np.where(np.arange(ROWS) >= TRAINED, 1.5, 0.0), out=values))
    made = femts.update(run, later)
    assert made.rows == (ROWS - TRAINED, ROWS) and made.windows == 3 and made.better and made.after < made.before
    again = femts.train(later, "ridge", P, seq_len=48, refit=True)
    assert made.forecaster.until == again.until == str(later["date"].iloc[-1])
    assert made.forecaster.intervals is not None and run.intervals is not None
    assert made.forecaster.intervals.windows == run.intervals.windows + ROWS - TRAINED
    assert made.forecaster.config.model_config == run.config.model_config
    made.forecaster.save(tmp_path / "run")
    loaded = femts.load(tmp_path / "run")
    pd.testing.assert_frame_equal(loaded.predict(later, level=[80]), made.forecaster.predict(later, level=[80]))
    with pytest.raises(UsageError, match="has no row after those used"):
        femts.update(loaded, later)
    assert femts.check(loaded, pd.concat([later, waves(ROWS + P)[-P:]])).summary["new_rows"] == P


def test_update_command_replaces_the_run(
    run: femts.Forecaster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run.save(tmp_path / "run")

    def update(frame: pd.DataFrame, *options: str) -> str:
        frame.to_csv(tmp_path / "later.csv", index=False)
        assert main(["update", str(tmp_path / "run"), str(tmp_path / "later.csv"), *options]) == 0
        return capsys.readouterr().out

    before = (tmp_path / "run/metrics.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Update, "better", False)
        out = update(waves(), "--if-better")
    assert "does not lower the error on the newest 3 windows" in out and "is unchanged" in out
    assert (tmp_path / "run/metrics.json").read_bytes() == before
    out = update(waves()[: TRAINED + 24], "--if-better")  # no new row is before the only window of new rows
    assert "these are too few to compare on" in out and "is unchanged" in out
    out = update(waves()[: TRAINED + 5])
    assert "these are too few to compare on" in out and "is unchanged" not in out
    assert femts.load(tmp_path / "run").until == str(waves()["date"][TRAINED + 4])
    assert main(["update", str(tmp_path / "nothing"), str(tmp_path / "later.csv")]) == 2
    assert not (tmp_path / "nothing").exists()
