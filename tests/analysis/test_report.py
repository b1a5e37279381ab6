"""HTML reports: content, escaping, determinism, and the script in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from packed import unpack
from pages import ROOT
from small_panels import panel_forecaster, panel_table
from small_tables import small_table

import femts
from femts.analysis.report import samples as samples_module
from femts.analysis.report.samples import MOST_VALUES, pack
from femts.cli import main
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.synthetic import synthetic_frame
from femts.errors import UsageError
from femts.forecaster.forecaster import Forecaster
from femts.models.parts import classic_fit
from femts.models.parts.classic_fit import Fit
from femts.training.train import train

L, P = 48, 12
EVIL = "</script><b>x"
TINY = {
    "model.n_layers": 2,
    "model.d_model": 16,
    "model.n_heads": 2,
    "training.batch_size": 400,
    "training.max_epochs": 2,
}
SECTIONS = (
    "forecast scores by-step by-channel intervals test-windows which-inputs-matter what-was-read data "
    "model-and-training record".split()
)


class Parsed(HTMLParser):
    """Ids, references, scripts and text of a page; asserts that every element is closed."""

    VOID = ("meta", "input", "wbr")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.scripts: list[str] = []
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.add(tag)
        self.ids += [named["id"] or ""] if "id" in named else []
        self.references += [value or "" for name, value in attrs if name in ("href", "src", "action", "data", "poster")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)
        elif self.open[-1:] != ["style"]:
            self.text += data


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_dataset(synthetic_frame(900).rename(columns={"s0": EVIL}))


@pytest.fixture(scope="module")
def forecaster(data: Dataset) -> Forecaster:
    return train(data, "fem_sm", P, seq_len=L, device="cpu", settings=TINY)


@pytest.fixture(scope="module")
def ridge() -> Forecaster:
    return panel_forecaster("ridge")


@pytest.fixture(scope="module")
def page(forecaster: Forecaster, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert femts.report(forecaster, path) == path
    return path.read_text()


def numbers(page: str) -> dict[str, Any]:
    return json.loads(Parsed(page).scripts[0])


def cells(page: str, name: str) -> list[list[str]]:
    """Cells of the rows that begin with `name`."""
    rows = re.findall(r"<tr>(.*?)</tr>", page.replace("<wbr>", ""))
    found = [re.findall(r">([^<>]+)<", row) for row in rows]
    return [row for row in found if row and row[0] == name]


def test_page_is_self_contained_html(page: str) -> None:
    found = Parsed(page)
    assert [name for name in found.open if name != "html"] == []
    assert [name for name in found.ids if name in SECTIONS] == SECTIONS
    assert len(found.ids) == len(set(found.ids))
    assert {reference[1:] for reference in found.references} == set(SECTIONS)
    assert {"link", "img", "iframe", "object"}.isdisjoint(found.tags)
    for trace in ("http:", "https:", "url(", "@import", "import("):
        assert trace not in page
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert len(page) < 3e6


def test_names_are_escaped(page: str, data: Dataset) -> None:
    found = Parsed(page)
    assert "b" in found.tags and EVIL in found.text
    assert EVIL not in page
    assert numbers(page)["columns"] == list(data.columns)
    assert len(found.scripts) == 2


def test_reported_scores_match_the_forecaster(page: str, forecaster: Forecaster) -> None:
    test, frame = forecaster.evaluate(), forecaster.scores(level=[80, 95])
    (scaled,) = cells(page, "fem_sm")
    assert scaled[1:3] == [f"{test['mse']:.4f}", f"{test['mae']:.4f}"]
    assert scaled[3:5] == [f"{frame['rmse'][0]:.4f}", f"{frame['mase'][0]:.4f}"]
    raw = forecaster.scores(by="channel").query("units == 'raw'").set_index("channel")["mae"]
    assert cells(page, "s1")[0][1] == f"{raw['s1']:.4g}"
    leads = page[page.index("<dl class=tiles id=errors>") :].partition("</dl>")[0]
    assert re.findall(r"<dd>([\d.]+)", leads) == [f"{raw[name]:.4g}" for name in forecaster.targets[:8]]
    assert f"mean {raw.mean():.4g}" not in page and f">{raw.mean():.4g}<" not in page, "channels of several units"
    assert float(scaled[5].replace("\u2212", "-").rstrip(" %")) == pytest.approx(100 * frame["skill"][0], abs=0.051)
    assert f"{frame['coverage-95'][0]:.1%}".replace("%", " %") in page
    by_step = forecaster.scores(by="step").query("units == 'scaled'")["mse"]
    assert numbers(page)["steps"]["fem_sm"] == pytest.approx(by_step.tolist(), rel=1e-4)
    by_channel = forecaster.scores(by="channel").query("units == 'scaled'").set_index("channel")
    assert cells(page, "s1")[1][1] == f"{by_channel['mse']['s1']:.4f}"


@pytest.mark.parametrize("name", ["naive", "seasonal_naive"])
def test_reported_baselines_match_their_models(page: str, data: Dataset, name: str) -> None:
    test = train(data, name, P, seq_len=L, device="cpu").evaluate()
    assert cells(page, name)[0][1:3] == [f"{test['mse']:.4f}", f"{test['mae']:.4f}"]


def test_reported_windows_match_predict(page: str, forecaster: Forecaster, data: Dataset) -> None:
    samples = numbers(page)["samples"]
    windows, past = samples["windows"], samples["past"]
    assert [windows[0]["row"], windows[-1]["row"]] == [data.split.test[0, 0], data.split.test[0, 1] - P]
    for window in (windows[0], windows[7], windows[-1]):
        row, series, frame = window["row"], unpack(window["series"]), data.frame()
        forecast = forecaster.predict(frame.iloc[row - L : row], level=[80])
        np.testing.assert_allclose(series[:, : past + P].T, data.values[row - past : row + P], atol=1e-3)
        np.testing.assert_allclose(series[:, past + P :].T, forecast[list(data.columns)], atol=1e-3)
        np.testing.assert_allclose(
            unpack(window["bounds"]["80"])[1], pd.concat([forecast["s1-lo-80"], forecast["s1-hi-80"]]), atol=1e-3
        )
        first = pd.Timestamp(window["stamps"]["first"], unit="ms")
        assert first == frame["date"][row - past] and window["stamps"]["step"] == 3_600_000


def test_reported_forecast_matches_predict(page: str, forecaster: Forecaster, data: Dataset) -> None:
    ahead = numbers(page)["ahead"]
    (window,), past = ahead["windows"], ahead["past"]
    forecast, series = forecaster.predict(data.frame(), level=[80]), unpack(window["series"])
    np.testing.assert_allclose(series[:, :past].T, data.values[-past:], atol=1e-3)
    assert np.isnan(series[:, past : past + P]).all() and not ahead["happened"]
    np.testing.assert_allclose(series[:, past + P :].T, forecast[list(data.columns)], atol=1e-3)
    bounds = pd.concat([forecast["s1-lo-80"], forecast["s1-hi-80"]])
    np.testing.assert_allclose(unpack(window["bounds"]["80"])[1], bounds, atol=1e-3)
    first = pd.Timestamp(window["stamps"]["first"], unit="ms")
    assert first + past * pd.Timedelta(hours=1) == forecast["date"][0]
    assert page.index(" id=ahead ") < page.index("Test MSE")


def test_reported_forecast_is_of_the_refitted_model(tmp_path: Path) -> None:
    table = small_table()
    made = train(table, "ridge", 12, seq_len=24, device="cpu", refit=True)
    page = femts.report(made, tmp_path / "page.html", table).read_text()
    (window,), past = numbers(page)["ahead"]["windows"], numbers(page)["ahead"]["past"]
    expected = made.predict(table, level=[80])[list(made.targets)]
    shown, steps = unpack(window["series"])[:, past + 12 :], [row[1] for row in window["series"]]
    np.testing.assert_allclose(shown, expected.T, atol=max(steps))
    assert "by the model refitted on all rows" in page


def test_report_without_future_covariates(tmp_path: Path) -> None:
    table = synthetic_frame(600).iloc[:, :3]
    made = train(load_dataset(table, future_covariates=["s1"]), "ridge", P, seq_len=L, device="cpu")
    page = femts.report(made, tmp_path / "page.html").read_text()
    assert (
        "The forecast after the last row depends on the future covariates s1" in page and numbers(page)["ahead"] is None
    )
    after = pd.DataFrame({"date": pd.date_range(table["date"].iloc[-1], periods=P + 1, freq="h")[1:], "s1": 1.0})
    page = femts.report(made, tmp_path / "page.html", future=after).read_text()
    (window,), expected = numbers(page)["ahead"]["windows"], made.predict(table, future=after)[list(made.targets)]
    tolerance = max(row[1] for row in window["series"])
    np.testing.assert_allclose(unpack(window["series"])[:, -P:], expected.T, atol=tolerance)


def test_report_of_a_planning_sheet_forecasts_its_last_rows(tmp_path: Path) -> None:
    table = synthetic_frame(600).iloc[:, :3]
    sheet = table.assign(s0=table["s0"].where(np.arange(600) < 600 - P))
    made = train(load_dataset(sheet, target="s0", future_covariates=["s1"]), "ridge", P, seq_len=L, device="cpu")
    (window,) = numbers(femts.report(made, tmp_path / "page.html").read_text())["ahead"]["windows"]
    tolerance = max(row[1] for row in window["series"])
    np.testing.assert_allclose(unpack(window["series"])[0, -P:], made.predict(sheet)["s0"], atol=tolerance)


def test_report_draws_series_that_have_a_forecast(tmp_path: Path) -> None:
    table = panel_table()
    ended = (table["unique_id"] == "long") & (table["ds"] > table["ds"][200])
    made = panel_forecaster("ridge", table.assign(y=table["y"].where(~ended)))
    page = femts.report(made, tmp_path / "page.html", made.training_data()).read_text()
    drawn = [window["name"] for window in numbers(page)["ahead"]["windows"]]
    assert "short" in drawn and "long" not in drawn


def test_report_lists_the_models_tried(tmp_path: Path) -> None:
    made = train(small_table(), "ridge", 12, seq_len=24, device="cpu", refit=False)
    tried = [
        {"model": "seasonal_naive", "error": 0.5, "seconds": 0.1, "taken": False},
        {"model": "mstl", "reason": "there is no time", "seconds": 0.0, "taken": False},
        {"model": "ridge", "seq_len": 24, "error": 0.2, "seconds": 1.0, "taken": True},
        {"model": "ridge", "seq_len": 48, "error": 0.3, "seconds": 1.0, "taken": False},
        {"model": "nhits", "error": 0.25, "seconds": 1.0, "taken": True},
    ]
    auto = {"rule": "the lowest error", "metric": "mae", "taken": ["ridge", "nhits"], "weights": [0.75, 0.25]}
    metrics: Any = {**made.metrics, "auto": {**auto, "error": 0.1, "tried": tried}}
    made = replace(made, metrics=metrics)
    page = femts.report(made, tmp_path / "page.html").read_text()
    places = [page.index(f"<section id={name} ") for name in ("forecast", "models-tried", "scores")]
    assert places == sorted(places)
    rows = [
        ("their mean", "0.1000", "20.0 %", "\u2013", "selected"),
        ("ridge (look-back 24)", "0.2000", "40.0 %", "1.0", "selected, weight 0.75"),
        ("nhits", "0.2500", "50.0 %", "1.0", "selected, weight 0.25"),
        ("ridge (look-back 48)", "0.3000", "60.0 %", "1.0", ""),
        ("seasonal_naive", "0.5000", "100.0 %", "0.1", ""),
        ("mstl", "there is no time", "\u2013", "0.0", ""),
    ]
    section = page[page.index("<section id=models-tried") : page.index("<section id=scores")]
    found = [tuple(re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)) for row in section.split("<tr>")[2:]]
    assert [tuple(re.sub("<[^>]*>", "", cell) for cell in row) for row in found] == rows


@pytest.mark.skipif(not find_spec("statsforecast"), reason="needs statsforecast")
def test_report_reuses_classical_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fits, forecast = list[int](), Fit.forecast
    monkeypatch.setattr(classic_fit, "_RECENT", {})

    def counted(self: Fit, values: Any) -> Any:
        fits.append(len(values))
        return forecast(self, values)

    monkeypatch.setattr(Fit, "forecast", counted)
    months = pd.date_range("2012-01-01", periods=140, freq="MS")
    table = pd.DataFrame({"date": months, "y": 50 + 9 * np.sin(np.arange(140) * np.pi / 6)})
    table["y"] += np.random.default_rng(0).normal(size=140)
    made = train(table, "auto_theta", 6, out=tmp_path / "run", device="cpu", refit=True)
    del fits[:]
    femts.report(made, tmp_path / "page.html", table)
    assert len(fits) == 1
    monkeypatch.setattr(classic_fit, "_RECENT", {})
    femts.report(tmp_path / "run", tmp_path / "again.html", table)
    assert len(fits) == 1 + 1 + made.metrics["test"]["windows"]
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "page.html").read_bytes()


def test_reported_explanation_matches_explain(page: str, forecaster: Forecaster, data: Dataset) -> None:
    window = numbers(page)["samples"]["windows"][3]
    why = forecaster.explain(data.frame().iloc[: window["row"]])
    expected = why.pivot_table("weight", "channel", ["start", "token"]).loc[list(data.columns)]
    np.testing.assert_allclose(unpack(window["read"]["weights"]), expected, atol=1e-4)
    starts = [pd.Timestamp(t, unit="ms") for t in window["read"]["stamps"]]
    assert starts[::2] == list(why["start"].drop_duplicates())
    assert starts[1::2] == list(why["end"].drop_duplicates())


def test_report_is_deterministic(
    forecaster: Forecaster, data: Dataset, page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forecaster.save(tmp_path / "run")
    femts.report(tmp_path / "run", tmp_path / "again.html", dataset=data)
    assert (tmp_path / "again.html").read_text() == page
    assert main(["report", str(tmp_path / "run")]) == 2  # the table was in memory
    assert "is not kept in the run" in capsys.readouterr().err
    assert not (tmp_path / "run" / "report.html").exists()


def test_other_data_are_refused(forecaster: Forecaster, ridge: Forecaster, tmp_path: Path) -> None:
    wide = synthetic_frame(901).rename(columns={"s0": EVIL})
    for run, other in ((forecaster, wide), (ridge, panel_table().iloc[3:])):
        with pytest.raises(UsageError, match="is not what this model was trained on; report it on its own data"):
            femts.report(run, tmp_path / "x.html", other)
    assert list(tmp_path.iterdir()) == []


def test_panel_report(ridge: Forecaster, tmp_path: Path) -> None:
    page = femts.report(ridge, tmp_path / "page.html").read_text()
    assert femts.report(ridge, tmp_path / "again.html").read_text() == page
    assert "by-series" in Parsed(page).ids and "by-channel" not in Parsed(page).ids
    scores = ridge.scores(by="series").sort_values("mase", ascending=False)
    assert [cells(page, name)[0][2] for name in scores["series"]] == [f"{each:.4f}" for each in scores["rmsse"]]
    assert f"{ridge.metrics['test']['mse']:.4f}" in page and "each of 4 series" in page
    samples, data = numbers(page)["samples"], ridge.training_data()
    past, steps = samples["past"], samples["horizon"]
    assert [window["name"] for window in samples["windows"]] == list(scores["series"])
    for window in samples["windows"]:
        values, shown, step = data[window["name"]].values[:, 0], unpack(window["series"])[0], window["series"][0][1]
        real = values[-(past + steps) :]
        np.testing.assert_allclose(shown[: past + steps][-len(real) :], real, atol=step)
        expected = ridge.predict(panel_table().query("unique_id == @window['name']").iloc[:-steps])["y"]
        np.testing.assert_allclose(shown[past + steps :], expected, atol=step)
        assert set(window["bounds"]) == {"80", "95"}
    ahead = numbers(page)["ahead"]
    assert [window["name"] for window in ahead["windows"]] == list(scores["series"])
    predicted = ridge.predict(panel_table()).groupby("unique_id")["y"]
    for window in ahead["windows"]:
        shown, step = unpack(window["series"])[0], window["series"][0][1]
        np.testing.assert_allclose(shown[past + steps :], predicted.get_group(window["name"]), atol=step)


def test_report_begins_with_the_verdict(tmp_path: Path) -> None:
    table = synthetic_frame(900)[["date", "s0"]]
    table["s0"] = np.sin(np.arange(900) * np.pi / 12) + np.random.default_rng(0).normal(0, 0.1, 900)
    worse, better = (
        femts.report(femts.train(table, model, 24, seq_len=48), tmp_path / "page.html", table).read_text()
        for model in ("naive", "ridge")
    )
    first = worse.index(
        '<p class="lead bad"><b>Worse than the seasonal naive forecast, which repeats the last 24 steps, the best '
    )
    assert first < worse.index("Mean absolute error in the units of the data") < worse.index("Test MSE")
    assert "<b>Better than the seasonal naive forecast" in better and "lead bad" not in better


@pytest.mark.parametrize(
    ("model", "settings", "said"),
    [
        ("naive", {}, "Split-conformal intervals"),
        ("dlinear", {"training.loss": "pinball"}, "Learned quantiles"),
        pytest.param(
            *("auto_theta", {}, "The model's own intervals"),
            marks=pytest.mark.skipif(not find_spec("statsforecast"), reason="needs statsforecast"),
        ),
    ],
)
def test_report_names_the_interval_method(model: str, settings: dict[str, object], said: str, tmp_path: Path) -> None:
    page = femts.report(panel_forecaster(model, settings=settings), tmp_path / "page.html").read_text()
    openings = ("Split-conformal intervals", "Learned quantiles", "The model's own intervals")
    assert [each for each in openings if each in page] == [said]


def test_pack_roundtrip() -> None:
    rows = np.array([[1.0, np.nan, 3.0, -2.5], [7.0] * 4, [np.nan] * 4, [-9999.0, 20.0, np.inf, 0.0]])
    back = unpack(pack(rows))
    np.testing.assert_allclose(back[:3], rows[:3], atol=5e-5)
    np.testing.assert_allclose(back[3], [-9999, 20, np.nan, 0], atol=0.1)


def test_report_of_many_channels_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = MOST_VALUES // 40  # fewer channels take less time
    monkeypatch.setattr(samples_module, "MOST_VALUES", most)
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(1000, 6)), columns=[f"c{i}" for i in range(6)])
    table.insert(0, "date", pd.date_range("2024-01-01", periods=1000, freq="10min"))
    samples = numbers(femts.report(train(table, "naive", 100, seq_len=300), tmp_path / "page.html").read_text())[
        "samples"
    ]
    assert samples["past"] == 288  # two days
    values = 288 + 200 + 4 * 100  # history, truth and forecast, and two ends of two levels
    assert (samples["channels"], len(samples["windows"])) == (most // (4 * values), 4) == (4, 4)
    assert len(json.dumps(samples)) < 3.3 * most


def test_report_command_writes_into_the_run(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(own / "run", tmp_path / "run")
    assert main(["report", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'run' / 'report.html'}: 0.0")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Model &#39;naive&#39; has no attention over past segments" in page
    assert "There are no learning curves" in page
    femts.load(tmp_path / "run")  # still a run


def with_gaps() -> pd.DataFrame:
    """A column that begins late, one that ends early, and single gaps."""
    frame = synthetic_frame(900)
    frame.loc[:400, "s1"] = np.nan
    frame.loc[740:, "s2"] = np.nan
    frame.loc[::11, "s3"] = np.nan
    return frame


def without_dates() -> pd.DataFrame:
    frame = synthetic_frame(600)
    return frame.assign(date=np.arange(len(frame)) * 5)


def business_days() -> pd.DataFrame:
    frame = synthetic_frame(600)
    return frame.assign(date=pd.bdate_range("2020-01-01", periods=len(frame), tz="Europe/Berlin"))


CASES = {"gaps": with_gaps, "whole numbers": without_dates, "business days": business_days}


@pytest.mark.parametrize("case", [*CASES, "no stamps"])
def test_report_of_gaps_counts_and_business_days(case: str, tmp_path: Path) -> None:
    data = load_dataset(CASES.get(case, synthetic_frame)())
    if case == "no stamps":
        data = replace(data, stamps=None, freq=None, season=1)
    femts.report(train(data, "naive", P, seq_len=L, device="cpu"), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    stamps = numbers(page)["samples"]["windows"][0]["stamps"]
    assert ("first" in stamps) == (case != "business days")
    assert ("no known season" in page) == (case in ("whole numbers", "no stamps"))
    check_in_browser(tmp_path / "report.html")


def test_report_without_baseline_and_intervals(data: Dataset, tmp_path: Path) -> None:
    short = replace(train(data, "naive", P, seq_len=12, device="cpu"), intervals=None)
    femts.report(short, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "seasonal_naive is omitted, because the look-back is shorter than a season of 24 steps (1 day)" in page
    assert cells(page, "naive")[0][5] == "\u2013"
    assert "This run has no intervals for its horizon" in page
    assert numbers(page)["samples"]["levels"] == []


def check_in_browser(path: Path) -> str:
    """The page after its script has run; skipped without a browser."""
    command = [sys.executable, str(ROOT / "tests" / "support" / "browser.py"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if "ImportError" in done.stderr or "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"needs pyside6-webengine and its system libraries: {done.stderr.splitlines()[-1]}")
    assert re.search(r"<html[^>]* data-ready=\"yes\"", done.stdout), done.stdout[:300] + done.stderr[-2000:]
    assert "data-error" not in done.stdout[:300]
    return re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)


HAND = """<script>
const press = (id, key) => document.getElementById(id).dispatchEvent(new KeyboardEvent("keydown", { key }));
document.getElementById("tested-channel").value = 1;
document.getElementById("tested-channel").dispatchEvent(new Event("change"));
document.getElementById("tested-back").click();
document.getElementById("tested-table").parentElement.open = true;
press("tested", "End"); press("steps", "Home"); press("validation", "ArrowRight");
</script>"""


def test_report_script_runs_in_a_browser(page: str, forecaster: Forecaster, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(page + HAND)
    drawn = check_in_browser(tmp_path / "report.html")
    assert drawn.count('class="chart"') == drawn.count("<svg height=") == 5
    assert "NaN" not in "".join(re.findall(r"<svg.*?</svg>", drawn, re.DOTALL))
    assert drawn.count("preserveAspectRatio=") == len(forecaster.columns)  # a strip each
    assert "window 23 of 24" in drawn
    samples = numbers(page)["samples"]
    series = unpack(samples["windows"][22]["series"])[1]
    happened, forecast = (f"{series[samples['past'] + k * P + P - 1]:.4g}" for k in (0, 1))
    read = re.findall(r"<span>(?:actual|forecast) <b>(.*?)</b></span>", drawn)
    assert [float(text.replace("\u2212", "-")) for text in read] == [float(happened), float(forecast)]
    table = drawn[drawn.index('<div id="tested-table">') :]
    assert len(re.findall("<tr>", table[: table.index("</table>")])) == 1 + P
    assert "<span>step <b>1</b></span>" in drawn and "<span>validation <b>1</b></span>" in drawn
