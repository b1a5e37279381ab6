"""Audit and report of a panel: leaks are found, and the page holds the best and the worst series."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from femts.analysis.report.panel import MOST_SERIES, SECTIONS
from packed import unpack
from small_panels import panel_forecaster, panel_table

import femts
from femts.data.loading import load_dataset
from femts.data.scaler import Scaler
from femts.data.windows import Preprocess
from femts.errors import UsageError
from femts.forecaster.forecaster import Forecaster

TABLE = panel_table()


@pytest.fixture(scope="module")
def ridge() -> Forecaster:
    return panel_forecaster("ridge")


def result(forecaster: Forecaster) -> dict[str, bool | None]:
    return {check.name: check.passed for check in femts.audit(forecaster).checks}


@pytest.mark.parametrize("model", ["ridge", "dlinear", "seasonal_naive"])
def test_a_sound_run_passes(model: str) -> None:
    audit = femts.audit(panel_forecaster(model))
    assert not audit.failed
    assert {check.name: check.passed for check in audit.checks} == {
        "future rows": True,
        "scaler": True,
        "closed-form weights": True if model == "ridge" else None,
        "order and batch size": True,
        "every window": True,
        "other channels": None,
        "stored score": True,
    }
    assert {score.units for score in audit.scores} == {"scaled"}


def test_a_domain_is_audited_as_it_is_forecast() -> None:
    table = TABLE.assign(y=TABLE["y"].where(TABLE["unique_id"] != "long", 0.0))
    bounded = femts.train(load_dataset(table, min=1e-3, panel=True), "dlinear", 7, seq_len=14, max_steps=2)
    assert not femts.audit(bounded).failed


def test_a_scale_of_later_rows_is_found(ridge: Forecaster) -> None:
    leaky = copy.copy(ridge)
    series = dict(ridge.preprocess.series)
    values = ridge.training_data().series["long"].values
    series["long"] = replace(series["long"], scaler=Scaler(values.mean(0), values.std(0)))
    leaky.preprocess = Preprocess(ridge.columns, series)
    assert result(leaky)["scaler"] is False


def test_other_weights_and_lost_windows_are_found(ridge: Forecaster) -> None:
    leaky = copy.deepcopy(ridge)
    for weight in (*leaky.model.parameters(), *leaky.model.buffers()):
        weight.data += 1.0
    leaky.metrics = {**ridge.metrics, "test": {**ridge.metrics["test"], "windows": 3}}
    found = result(leaky)
    assert (found["closed-form weights"], found["stored score"], found["every window"]) == (False, False, False)


def test_other_data_are_no_subject(ridge: Forecaster, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Dataset 'frame' is not what this model was trained on; audit it on its own"):
        femts.audit(ridge, TABLE.iloc[3:])
    with pytest.raises(UsageError, match="report it on its own data"):
        femts.report(ridge, tmp_path / "page.html", TABLE.iloc[3:])


def test_the_page_has_scores_series_and_samples(ridge: Forecaster, tmp_path: Path) -> None:
    first = femts.report(ridge, tmp_path / "page.html").read_text()
    assert femts.report(ridge, tmp_path / "again.html").read_text() == first
    for place in SECTIONS.values():
        assert f"<section id={place} " in first
    scores = ridge.scores().set_index("series")
    for name, row in scores.iterrows():
        assert f">{name}</th>" in first and f"{row['rmsse']:.4f}" in first
    assert f"{ridge.metrics['test']['mse']:.4f}" in first and "each of 4 series" in first


def test_samples_are_the_last_test_windows_the_worst_first(ridge: Forecaster, monkeypatch: pytest.MonkeyPatch) -> None:
    from femts.analysis.report import panel

    kept = {}
    monkeypatch.setattr(panel, "shared", lambda f, c, b, samples: kept.update(samples) or {})
    monkeypatch.setattr(panel, "render", lambda page, **values: "")
    panel.panel_page(ridge, ridge.training_data())
    ranked = ridge.scores().sort_values("mase", ascending=False)["series"]
    assert [window["name"] for window in kept["windows"]] == list(ranked[:MOST_SERIES])
    for window in kept["windows"]:
        values = ridge.training_data().series[window["name"]].values[:, 0]
        shown = unpack(window["series"])[0]
        past, steps = kept["past"], kept["horizon"]
        happened = shown[: past + steps]
        real = values[-(past + steps) :]
        step = window["series"][0][1]
        np.testing.assert_allclose(happened[-len(real) :], real, atol=step)
        expected = ridge.predict(TABLE.query("unique_id == @window['name']").iloc[:-steps])["y"]
        np.testing.assert_allclose(shown[past + steps :], expected, atol=step)
        assert set(window["bounds"]) == {"80", "95"}


def test_no_series_is_said_to_be_worse_than_a_season_that_the_look_back_does_not_hold(
    ridge: Forecaster, tmp_path: Path
) -> None:
    said = "Series better than the season before"
    assert said in femts.report(ridge, tmp_path / "season.html").read_text()
    short = panel_forecaster("ridge", seq_len=4)
    assert said not in femts.report(short, tmp_path / "short.html").read_text()
