"""Pretrained models, compared with their library on tiny random weights."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from small_grid import record
from small_panels import P as WEEK
from small_panels import panel_table
from small_tables import small_table
from tiny_chronos import NINE, SAVE, TWENTY_ONE

import femts
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.experiments.cell import Cell
from femts.experiments.results import Store
from femts.experiments.summary import make_pairs, make_scores, make_table
from femts.experiments.tables import to_csv, to_text
from femts.models.parts.weight_files import check_hash, find_weights
from femts.models.pretrained import Chronos2Config, PretrainedConfig
from femts.models.registry import build_config, build_model, has_seen, model_card
from femts.training.resolve import Lengths
from femts.training.select import plan as planning
from femts.training.select import run as select
from femts.training.select.candidates import Candidate, shortlist
from femts.training.select.rule import Choice
from femts.training.select.trial import CandidateResult

NAMES = ("chronos2", "chronos_bolt")
QUANTILES = {"chronos2": TWENTY_ONE, "chronos_bolt": NINE}
TABLE = small_table()
needs_library = pytest.mark.skipif(
    importlib.util.find_spec("chronos") is None, reason="needs chronos-forecasting: pip install '.[pretrained]'"
)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: save(tmp_path_factory.mktemp(name)) for name, save in SAVE.items()}


def train(data: Any, name: str, folder: Path, steps: int = 12, **more: Any) -> femts.Forecaster:
    settings = {"model.weights": str(folder), **more.pop("settings", {})}
    return femts.train(data, name, steps, settings=settings, device="cpu", **more)


def library(name: str, folder: Path, values: np.ndarray, steps: int) -> np.ndarray:
    """The library's own forecast (C, Q, steps) of `values` (C, L)."""
    from chronos import BaseChronosPipeline

    pipeline: Any = BaseChronosPipeline.from_pretrained(folder, dtype=torch.float32)
    inputs = torch.from_numpy(values).float()
    made = pipeline.predict(inputs[None] if name == "chronos2" else inputs, steps)
    return np.asarray(made[0] if name == "chronos2" else made)


@needs_library
@pytest.mark.parametrize("name", NAMES)
def test_forecasts_match_the_library(name: str, weights: dict[str, Path], tmp_path: Path) -> None:
    table, out = TABLE.assign(heat=1e9 + 100 * TABLE["heat"]), tmp_path / "run"  # whose digits float32 would lose
    made = train(femts.load_dataset(table, min="none"), name, weights[name], out=out)
    forecast = made.predict(table, level=[80])
    values = np.stack([table["load"], 100 * TABLE["heat"]])
    own = library(name, weights[name], values, 12) + np.array([0, 1e9])[:, None, None]
    for column, quantiles in zip(("load", "heat"), np.sort(own, axis=1), strict=True):
        for said, quantile in ((column, 0.5), (f"{column}-lo-80", 0.1), (f"{column}-hi-80", 0.9)):
            expected = quantiles[QUANTILES[name].index(quantile)]
            np.testing.assert_allclose(forecast[said], expected, rtol=1e-4 if column == "load" else 1e-10, atol=1e-3)
    assert made.metrics["steps"] == 0 and made.metrics["parameters"] > 1000
    read = femts.load(out)
    pd.testing.assert_frame_equal(read.predict(table, level=[80]), forecast)
    assert read.evaluate(dataset=table) == made.evaluate()


@needs_library
@pytest.mark.parametrize("name", NAMES)
def test_quantiles_are_sorted_per_window_step_and_column(name: str, weights: dict[str, Path]) -> None:
    made = train(TABLE, name, weights[name])
    model, levels = made.model, made.model.levels
    assert model.quantiles == QUANTILES[name] and made.intervals is not None and made.intervals.own
    assert levels == ((20, 40, 60, 80) if name == "chronos_bolt" else (10, 20, 30, 40, 50, 60, 70, 80, 90, 98))
    past = torch.randn(5, 40, 2, dtype=torch.float64)
    past[0, :30], past[1, :, 1], past[2, 10:20] = torch.nan, torch.nan, torch.nan
    count = len(model.quantiles)
    with torch.no_grad():
        assert model(Batch(past)).shape == (5, 12 * count, 2)
        forecasts = model.forecasts(Batch(past), 30)
    assert forecasts.points.shape == (5, 30, 2) and forecasts.quantiles is not None
    assert forecasts.points.isfinite().all() and (forecasts.points[1, :, 1] == 0).all()
    assert (forecasts.quantiles.diff(dim=2) >= 0).all()
    assert torch.equal(forecasts.points, forecasts.quantiles[:, :, count // 2])
    for window in range(5):
        alone = model.forecasts(Batch(past[window : window + 1]), 12).points
        torch.testing.assert_close(alone, forecasts.points[window : window + 1, :12], rtol=1e-4, atol=1e-4)
    with pytest.raises(UsageError, match=f"intervals for levels up to {levels[-1]:g}, not for 99"):
        made.predict(TABLE, level=[99])


@needs_library
def test_chronos2_reads_covariates_and_calendar(weights: dict[str, Path]) -> None:
    table = small_table(columns=("load", "heat", "open"))
    data = femts.load_dataset(table, target="load", past_covariates="heat", future_covariates="open", calendar=True)
    made = train(data, "chronos2", weights["chronos2"])
    assert made.config.model_config.n_known == 1 + 8 and made.preprocess.effects is None  # type: ignore[attr-defined]
    dates = pd.date_range(table["date"].iloc[-1], periods=13, freq="h")[1:]
    plan = pd.DataFrame({"date": dates, "open": np.linspace(0, 1, 12)})

    def load(history: pd.DataFrame, future: pd.DataFrame) -> np.ndarray:
        return made.predict(history, future=future)["load"].to_numpy()

    usual = load(table, plan)
    assert not np.allclose(usual, load(table.assign(heat=table["heat"][::-1].to_numpy()), plan))
    assert not np.allclose(usual, load(table, plan.assign(open=plan["open"][::-1].to_numpy())))
    later = [each + pd.Timedelta(hours=5) for each in (table["date"], plan["date"])]
    assert not np.allclose(usual, load(table.assign(date=later[0]), plan.assign(date=later[1])))
    assert np.array_equal(usual, load(table, plan))


@needs_library
def test_chronos2_covariates_match_the_library(weights: dict[str, Path]) -> None:
    from chronos import Chronos2Pipeline

    made = train(femts.load_dataset(TABLE, target="load", future_covariates="heat"), "chronos2", weights["chronos2"])
    dates = pd.date_range(TABLE["date"].iloc[-1], periods=13, freq="h")[1:]
    forecast = made.predict(TABLE, future=pd.DataFrame({"date": dates, "heat": np.arange(12.0)}))
    inputs = {
        "target": TABLE["load"].to_numpy(),
        "past_covariates": {"heat": TABLE["heat"].to_numpy()},
        "future_covariates": {"heat": np.arange(12.0)},
    }
    pipeline: Any = Chronos2Pipeline.from_pretrained(weights["chronos2"], dtype=torch.float32)
    own = np.sort(np.asarray(pipeline.predict([inputs], 12)[0][0]), axis=0)[10]
    np.testing.assert_allclose(forecast["load"], own, rtol=1e-3, atol=1e-3)


@needs_library
def test_unsupported_covariates_are_regressed_or_refused(weights: dict[str, Path], tmp_path: Path) -> None:
    made = train(
        femts.load_dataset(TABLE, target="load", future_covariates="heat"), "chronos_bolt", weights["chronos_bolt"]
    )
    assert made.preprocess.effects is not None
    past = femts.load_dataset(TABLE, target="load", past_covariates="heat")
    with pytest.raises(UsageError, match=r"forecasts each column from its own past alone, so past_covariates=.'heat'."):
        train(past, "chronos_bolt", weights["chronos_bolt"], out=tmp_path / "run")
    panel = panel_table().assign(size=1.0)
    panel.loc[panel["unique_id"] == "long", "size"] = 2.0
    for name in NAMES:
        with pytest.raises(UsageError, match=rf"^Model '{name}' does not support static covariates"):
            train(
                femts.load_dataset(panel, panel=True, static_covariates="size"),
                name,
                weights[name],
                WEEK,
                out=tmp_path / "run",
            )
    assert not (tmp_path / "run").exists()


@needs_library
def test_constant_column_does_not_affect_chronos2(weights: dict[str, Path]) -> None:
    """This is why static covariates are refused."""
    from chronos import Chronos2Pipeline

    pipeline: Any = Chronos2Pipeline.from_pretrained(weights["chronos2"], dtype=torch.float32)
    made = []
    for value in (1.0, 7.0):
        beside = {"past_covariates": {"size": np.full(300, value)}, "future_covariates": {"size": np.full(12, value)}}
        made.append(pipeline.predict([{"target": TABLE["load"].to_numpy(), **beside}], 12)[0])
    assert torch.equal(*made)


@needs_library
@pytest.mark.parametrize("name", NAMES)
def test_panel_forecasts_match_the_library(name: str, weights: dict[str, Path]) -> None:
    table = panel_table()
    made = train(femts.load_dataset(table, panel=True), name, weights[name], WEEK, refit=True)
    forecast = made.predict(table, level=[80])
    assert forecast.groupby("unique_id").size().to_dict() == dict.fromkeys(table["unique_id"].unique(), WEEK)
    for series in ("long", "young"):
        values = table.loc[table["unique_id"] == series, "y"].to_numpy()
        own = np.sort(library(name, weights[name], values[None], WEEK)[0], axis=0)
        said = forecast.loc[forecast["unique_id"] == series, "y"]
        expected = np.maximum(own[QUANTILES[name].index(0.5)], 0)  # where the training values bound it
        np.testing.assert_allclose(said, expected, rtol=1e-3, atol=1e-3 * np.abs(values).max())


@needs_library
@pytest.mark.parametrize("name", NAMES)
def test_longer_horizon_uses_the_library_with_a_note(name: str, weights: dict[str, Path]) -> None:
    steps = 40
    with pytest.warns(UserWarning, match=rf"^{name} forecasts (16|32) steps at once and continues"):
        made = train(femts.load_dataset(TABLE, min="none"), name, weights[name], steps)
    with pytest.warns(UserWarning, match="at once"):
        forecast = made.predict(TABLE)["load"]
    own = np.sort(library(name, weights[name], TABLE[["load", "heat"]].to_numpy().T, steps)[0], axis=0)
    np.testing.assert_allclose(forecast, own[QUANTILES[name].index(0.5)], rtol=1e-3, atol=1e-3)


@needs_library
def test_run_records_the_weights_hash_only(weights: dict[str, Path], tmp_path: Path) -> None:
    source = weights["chronos2"]
    made = train(TABLE, "chronos2", source, out=tmp_path / "run", refit=True)
    said = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["model"]
    files = ["config.json", "model.safetensors"]
    lines = "".join(f"{hashlib.sha256((source / each).read_bytes()).hexdigest()}  {each}\n" for each in files)
    assert said["sha256"] == hashlib.sha256(lines.encode()).hexdigest() and said["weights"] == str(source)
    assert "Electricity" in said["trained_on"] and said["quantiles"] == list(TWENTY_ONE)
    assert (tmp_path / "run" / "model.safetensors").stat().st_size < 200 and made.scored is not None
    assert femts.load(tmp_path / "run").evaluate(dataset=TABLE) == made.evaluate()


@needs_library
def test_changed_or_missing_weights_are_refused(weights: dict[str, Path], tmp_path: Path) -> None:
    folder, run = tmp_path / "weights", tmp_path / "run"
    shutil.copytree(weights["chronos2"], folder)
    pinned = {"model.sha256": check_hash(folder)}
    train(TABLE, "chronos2", folder, out=run, settings=pinned)
    SAVE["chronos2"](folder, seed=1)
    for attempt in (lambda: femts.load(run), lambda: train(TABLE, "chronos2", folder, settings=pinned)):
        with pytest.raises(UsageError, match=r"^Weights in .* have the hash \w{12}, not \w{12} as requested") as error:
            attempt()
        assert "\n" not in str(error.value)
    shutil.rmtree(folder)
    with pytest.raises(UsageError, match=r"^The weights folder .* does not exist; restore it"):
        femts.load(run)


@needs_library
def test_invalid_weights_are_refused(weights: dict[str, Path], tmp_path: Path) -> None:
    def refused(match: str, folder: Path | None, **settings: Any) -> None:
        given = {f"model.{key}": value for key, value in settings.items()}
        if folder is not None:
            given["model.weights"] = str(folder)
        with pytest.raises(UsageError, match=match) as error:
            femts.train(TABLE, "chronos2", 12, settings=given, device="cpu", out=tmp_path / "run")
        assert "\n" not in str(error.value) and not (tmp_path / "run" / "config.yaml").exists()

    refused(r"needs weights, which femts never downloads by default; .*settings=.'model\.weights': FOLDER", None)
    refused("The weights folder 'nowhere' does not exist", Path("nowhere"))
    refused("belong to ChronosBoltModelForForecasting, but 'chronos2' needs Chronos2Model", weights["chronos_bolt"])
    refused("holds no weights of Chronos-2 or Chronos-Bolt", tmp_path)
    refused("'model.revision' applies to names on the hub", weights["chronos2"], revision="main")
    refused("'model.quantiles' is determined by the weights", weights["chronos2"], quantiles=[0.1, 0.5, 0.9])
    for name, content, match in (
        ("other", None, r"has no \*\.safetensors"),
        ("broken", b"nothing", "cannot be read"),
    ):
        shutil.copytree(weights["chronos2"], tmp_path / name)
        file = tmp_path / name / "model.safetensors"
        file.unlink() if content is None else file.write_bytes(content)
        refused(match, tmp_path / name)
    shutil.copytree(weights["chronos2"], tmp_path / "wider")
    config = tmp_path / "wider" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "num_layers": 2}))
    refused("do not match their config.json", tmp_path / "wider")


@needs_library
def test_hub_weights_come_from_the_cache(
    weights: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)  # as without a network
    with pytest.raises(
        UsageError, match=r"^Weights 'some/tiny' are neither a folder nor in the local cache .*'model\.download': True"
    ):
        train(TABLE, "chronos2", Path("some/tiny"))
    with pytest.raises(UsageError, match=r"^Weights 'some/tiny' could not be downloaded from the Hugging Face hub"):
        train(TABLE, "chronos2", Path("some/tiny"), settings={"model.download": True})
    cached, commit = tmp_path / "models--some--tiny", "0123456789" * 4
    shutil.copytree(weights["chronos2"], cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    made = train(TABLE, "chronos2", Path("some/tiny"), out=tmp_path / "run")
    config: Any = made.config.model_config
    assert (config.weights, config.revision) == ("some/tiny", commit)
    (cached / "refs" / "main").write_text("9" * 40)  # the run keeps its commit
    pd.testing.assert_frame_equal(femts.load(tmp_path / "run").predict(TABLE), made.predict(TABLE))


@needs_library
def test_network_is_used_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked = []

    def snapshot_download(name: str, **how: Any) -> str:
        asked.append(how["local_files_only"])
        raise FileNotFoundError(name)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    for download in (False, True):
        with pytest.raises(UsageError, match="some/tiny"):
            find_weights("some/tiny", download=download)
    assert asked == [True, False]


@needs_library
def test_pretrained_model_in_a_mean(weights: dict[str, Path], tmp_path: Path) -> None:
    data = femts.load_dataset(TABLE)
    members = [train(data, "chronos_bolt", weights["chronos_bolt"]), femts.train(data, "ridge", 12, device="cpu")]
    made = femts.mean_of(members)
    made.save(tmp_path / "run")
    parts = [each.predict(TABLE)["load"] for each in members]
    np.testing.assert_allclose(made.predict(TABLE)["load"], np.mean(parts, axis=0), rtol=1e-4, atol=1e-6)
    pd.testing.assert_frame_equal(femts.load(tmp_path / "run").predict(TABLE), made.predict(TABLE))
    assert made.config.model_config.has_seen("Solar") and not made.config.model_config.has_seen("ETTh1")


@needs_library
@pytest.mark.parametrize("name", NAMES)
def test_auto_tries_pretrained_weights(
    name: str, weights: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alone(tried: Sequence[CandidateResult]) -> Choice:
        return Choice((tried[-1],), (1.0,), tried[-1].error, "the last one")

    def two(*given: Any) -> tuple[Candidate, ...]:
        return tuple(each for each in shortlist(*given) if each.model in ("seasonal_naive", name))

    monkeypatch.setattr(select, "shortlist", two)
    monkeypatch.setattr(select, "best_mean", alone)
    dates, prices = pd.date_range("2024-01-01", periods=len(TABLE), freq="h"), np.sin(np.arange(len(TABLE)))
    data = femts.load_dataset(TABLE.assign(date=dates, price=prices), future_covariates=["price"], calendar=True)
    out = tmp_path / "run"
    how: dict[str, Any] = {"settings": {"model.weights": str(weights[name])}, "device": "cpu"}
    made = femts.train(data, "auto", 12, out=out, **how)
    assert made.config.model == name
    assert [each["model"] for each in made.metrics["auto"]["tried"]] == ["seasonal_naive", name]
    ahead = data.frame().iloc[-12:]
    ahead = ahead.assign(date=ahead["date"] + pd.Timedelta(hours=12))[["date", "price"]]
    expected = train(data, name, weights[name]).predict(data.frame(), future=ahead, level=[80])
    pd.testing.assert_frame_equal(made.predict(data.frame(), future=ahead, level=[80]), expected)
    pd.testing.assert_frame_equal(femts.load(out).predict(data.frame(), future=ahead, level=[80]), expected)
    assert femts.train(data, "auto", 12, out=out, resume=True, **how).metrics == made.metrics
    with pytest.raises(UsageError, match="model"):
        femts.train(data, "auto", 12, out=out, resume=True, device="cpu")


@needs_library
def test_auto_averages_pretrained_weights_with_others(
    weights: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def both(tried: Sequence[CandidateResult]) -> Choice:
        members = tuple(each for each in tried if each.model in ("ridge", "chronos2"))[-2:]
        return Choice(members, (0.25, 0.75), 0.1, "two of them")

    monkeypatch.setattr(select, "best_mean", both)
    monkeypatch.setattr(planning, "work_of_forecast", lambda each, *_: 0.0 if each.model == "chronos2" else 1e9)
    panel, settings = panel_table(), {"model.weights": str(weights["chronos2"])}
    made = femts.train(panel, "auto", WEEK, settings=settings, out=tmp_path / "run", device="cpu", max_steps=2)
    assert [each.config.model for each in made.members] == ["ridge", "chronos2"]
    pd.testing.assert_frame_equal(femts.load(tmp_path / "run").predict(panel), made.predict(panel))


@needs_library
def test_auto_skips_weights_trained_on_the_dataset(weights: dict[str, Path], tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "shops.csv", index=False)
    data = femts.load_dataset(tmp_path / "shops.csv").for_horizon(12)
    for known, reason in ((["Shops"], "its weights were trained on shops"), (["ETTh1"], "")):
        settings = {"weights": str(weights["chronos2"]), "trained_on": known}
        (made,) = (each for each in shortlist(data, Lengths(12), settings) if each.model == "chronos2")
        assert made.reason == reason


@needs_library
def test_auto_refuses_invalid_weights(weights: dict[str, Path], tmp_path: Path) -> None:
    given = {"model.weights": str(weights["chronos2"])}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text(
        json.dumps({"architectures": ["Other"], "chronos_config": {"quantiles": [0.5]}})
    )
    for settings, message in (
        ({"model.weights": str(tmp_path / "none")}, "does not exist"),
        ({"model.weights": str(tmp_path / "other")}, "belong to Other; provide those of Chronos-2 or Chronos-Bolt"),
        ({**given, "model.sha256": "0" * 64}, "have the hash"),
        ({**given, "model.ridge": 1}, "Unknown setting 'model.ridge'"),
    ):
        with pytest.raises(UsageError, match=message):
            femts.train(TABLE, "auto", 12, settings=settings, out=tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_missing_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "chronos" else find(name, *rest)
    )
    for name in NAMES:
        with pytest.raises(
            UsageError, match=r"needs chronos, which is not installed; run pip install 'femts\[pretrained\]'"
        ):
            femts.train(TABLE, name, 12)
        model = build_model(name, build_config(name, seq_len=8, pred_len=4, n_channels=1, settings={}))
        with pytest.raises(UsageError, match="needs chronos, which is not installed"):  # as a run is loaded
            model.read_weights()


def test_pretraining_datasets_are_known() -> None:
    for name, dataset, seen in [
        ("chronos_bolt", "Solar", True),
        ("chronos_bolt", "electricity", True),
        ("chronos_bolt", "m4_hourly", True),
        ("chronos_bolt", "ETTh1", False),
        ("chronos_bolt", "Weather", False),
        ("chronos_bolt", "pems_bay", False),
        ("chronos2", "pems_bay", True),
        ("chronos2", "ETTm2", False),
        ("ridge", "Solar", False),
    ]:
        settings = {} if name == "ridge" else {"weights": "any"}
        assert build_config(name, seq_len=8, pred_len=4, n_channels=1, settings=settings).has_seen(dataset) == seen
        assert has_seen({"name": name, "seq_len": 8, "pred_len": 4, "n_channels": 1, **settings}, dataset) == seen


def test_trained_on_setting() -> None:
    shape = {"seq_len": 8, "pred_len": 4, "n_channels": 1}
    own = build_config("chronos2", **shape, settings={"trained_on": "shops, ETTh1"})
    assert own.has_seen("ETTh1") and own.has_seen("shops") and not own.has_seen("Solar")
    for nothing in ("()", ()):
        assert not build_config("chronos2", **shape, settings={"trained_on": nothing}).has_seen("Solar")
    assert model_card("chronos2").model_class.Config is Chronos2Config
    assert issubclass(Chronos2Config, PretrainedConfig)


@needs_library
def test_tables_mark_pretraining_data(tmp_path: Path) -> None:
    store, cells = Store(tmp_path), []
    for dataset in ("Solar", "ETTh1"):
        for model, mse in (("chronos2", 0.1), ("naive", 0.3), ("dlinear", 0.2)):
            cells.append(Cell(dataset, model, 96, seed=1))
            store.finish(cells[-1], record(cells[-1], mse))
    scores = make_scores(cells, store)
    table = make_table(scores)
    text = to_text(table)
    assert "0.100 (seen)" in text and "0.100*" in text, "the lowest of ETTh1, and none of Solar"
    assert "0.200*" in text, "the lowest of those that have not seen Solar"
    assert (
        "seen: chronos2 was pretrained on Solar, so its scores there do not reflect performance on unseen data" in text
    )
    assert "pretrained on ETTh1" not in text
    seen = [line.rsplit(",", 1)[1] for line in to_csv(table).splitlines()]
    assert seen == ["seen", "True", "False", "False", "False", "False", "False"]
    pairs = make_pairs([("chronos2", "dlinear")], scores)
    assert pairs["seen"].tolist() == [("chronos2",), ()]
    assert to_text(pairs).count("seen: chronos2 was pretrained on Solar") == 1


@needs_library
def test_training_on_pretraining_data_is_noted(
    weights: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from femts.cli import main

    for name, seen in (("electricity.csv", True), ("mine.csv", False)):
        TABLE.to_csv(tmp_path / name, index=False)
        command = ["train", "--dataset", str(tmp_path / name), "--model", "chronos_bolt", "--horizon", "12"]
        out = str(tmp_path / f"run-{name}")
        assert (
            main([*command, "--device", "cpu", "--set", f"model.weights={weights['chronos_bolt']}", "--out", out]) == 0
        )
        said = "".join(capsys.readouterr())
        assert ("'chronos_bolt' was pretrained on 'electricity'" in " ".join(said.split())) == seen
        made = femts.report(femts.load(out), tmp_path / f"{name}.html")
        assert ("Pretrained on" in made.read_text()) == seen
