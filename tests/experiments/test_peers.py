"""Other tools on lists of tasks, with tools that need no environment of their own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pages import cells_in_this_process

from femts.cli import main as femts
from scripts.peers.__main__ import main

NAIVE = """
from scripts.peers.exchange import COLUMNS, KEYS, answer
def forecasts(windows, settings):
    for window in range(1, windows.windows + 1):
        history = windows.history(window, filled=True)
        assert (history["ds"].max() < windows.future(window)["ds"].min()) and windows.future(window).shape[1] == 3
        for name, future in windows.future(window).groupby("unique_id"):
            last = history.loc[history["unique_id"] == name, "y"].to_numpy()[-windows.season:]
            made = future[KEYS].assign(model="prophet")
            made[COLUMNS] = last[[[step % windows.season] * 9 for step in range(len(made))]]
            yield made
answer(forecasts, ["pandas"], note="repeats the season")
"""
FAILING = "raise ValueError('too few rows')"
SHORT = NAIVE.replace("yield made", "yield made[1:]")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A list of one task with its data, and three tools."""
    rows, season = 60, np.tile([0.0, 3.0, 1.0, -2.0], 15)
    noise = np.random.default_rng(1).normal(size=(rows, 2))
    table = pd.DataFrame({"date": pd.date_range("2001-01-01", periods=rows, freq="QS"), "a": season + noise[:, 0]})
    table = table.assign(b=season - noise[:, 1], known=np.arange(rows))
    table.loc[20, "a"] = np.nan
    table.to_csv(tmp_path / "table.csv", index=False)
    reading = "{future_covariates: [known]}"
    (tmp_path / "tasks.yaml").write_text(
        f"tasks:\n- {{name: own, data: table.csv, horizon: 6, windows: 3, season: 4, reading: {reading}}}\n"
    )
    for name, text in (("prophet", NAIVE), ("autogluon", FAILING), ("neuralforecast", SHORT)):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def test_tools_are_scored_and_failures_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists, out, results = folder / "tasks.yaml", folder / "peers", folder / "results"
    tools = [str(folder / f"{name}.py") for name in ("prophet", "autogluon", "neuralforecast")]
    command = ["--tasks", str(lists), "--out", str(out), "--results", str(results)]
    models = ["--models", "seasonal_naive,ridge", "--results", str(results), "--jobs", "1"]
    with cells_in_this_process():
        assert femts(["table", "--tasks", str(lists), *models]) == 0
    assert main([*command, "--tools", *tools]) == 1
    records = {path.stem: json.loads(path.read_text()) for path in out.rglob("*.json")}
    naive = next(results.rglob("seasonal_naive-*.json"))
    expected = json.loads(naive.read_text())["scores"]
    made = records["prophet"]
    assert made["scores"]["prophet"]["mase"] == pytest.approx(expected["mase"])
    assert made["kind"] == {"freq": "QS-JAN", "season": 4, "series": 1, "columns": 2, "covariates": 1, "rows": 60}
    assert made["settings"] == {"note": "repeats the season"} and set(made["versions"]) == {"pandas"}
    assert made["cpu_seconds"] > 0 and made["wall_seconds"] > 0 and made["memory_mib"] > 10
    assert records["autogluon"]["error"] == "ValueError: too few rows" and "scores" not in records["autogluon"]
    assert records["neuralforecast"]["error"] == "6 of 36 forecasts of prophet are missing"
    written = {path: path.stat().st_mtime_ns for path in out.rglob("*.json")}
    assert main([*command, "--tools", *tools]) == 0
    assert written == {path: path.stat().st_mtime_ns for path in out.rglob("*.json")}
    assert "ValueError: too few rows" not in capsys.readouterr().out
    assert main([*command, "--part", "failed", "--show"]) == 0
    assert "| own | AutoGluon | ValueError: too few rows |" in capsys.readouterr().out


def test_a_tool_is_stopped_at_its_limit(folder: Path) -> None:
    (folder / "slow.py").write_text("while True: pass")
    command = [
        "--tasks",
        str(folder / "tasks.yaml"),
        "--out",
        str(folder),
        "--results",
        str(folder),
        "--part",
        "failed",
    ]
    assert main([*command, "--tools", str(folder / "slow.py"), "--limit", "1"]) == 1
    assert json.loads((folder / "own" / "slow.json").read_text())["error"] == "stopped after 1 seconds"
