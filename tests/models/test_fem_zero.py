"""Forecasts without training: the pretrained network, the median of its experts, and their file of weights."""

from __future__ import annotations

import copy
import hashlib
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

import femts
from femts.cli import main
from femts.data.batch import Batch
from femts.data.raw import Raw
from femts.errors import UsageError
from femts.models import fem_zero
from femts.models.fem_zero import (
    QUANTILES,
    FemZero,
    FemZeroConfig,
    FemZeroTuned,
    SimpleEnsemble,
    ZeroShot,
    ZeroShotConfig,
    read_weights,
)
from femts.models.parts import experts
from femts.models.parts.expert_network import Network, NetworkConfig
from femts.models.parts.experts import NAMES
from femts.models.parts.zero_shot import aligned, expert_medians, experts_of, network_quantiles, quantiles_of, tokenize
from femts.models.registry import build_config, build_model
from femts.training import zero_shot
from femts.training.data_module import DataModule
from femts.training.evaluate import take_scores

ROWS = 400


def wave(rows: int, seed: int = 0, season: int = 24) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sin(2 * np.pi * np.arange(rows) / season) + 0.1 * rng.standard_normal(rows)


def built(pred_len: int = 30, channels: int = 1, **settings: object) -> FemZero:
    config = build_config("fem_zero", seq_len=300, pred_len=pred_len, n_channels=channels, settings=settings)
    assert isinstance(config, FemZeroConfig)
    return FemZero(config.for_data(24, 300))


@pytest.fixture(scope="module")
def network() -> Network:
    model = built()
    model.read_weights()
    return model.network


def test_quantiles_are_in_the_units_of_the_series_and_in_order(network: Network) -> None:
    plain, large, small = (network_quantiles(network, [f * wave(300) + 7 * f], 24, 168, 30) for f in (1.0, 1e9, 1e-9))
    assert plain.shape == (1, 30, 9) and (np.diff(plain) >= 0).all()
    np.testing.assert_allclose(large / 1e9, plain, atol=1e-4)
    np.testing.assert_allclose(small / 1e-9, plain, atol=1e-4)
    np.testing.assert_allclose(plain[0, :, 4], 7 + np.sin(2 * np.pi * np.arange(300, 330) / 24), atol=0.3)


def test_series_forecast_together_are_those_forecast_alone(network: Network) -> None:
    series = [wave(400), wave(300, 1), wave(2500, 2), wave(30, 3), wave(2100, 4)]
    together = network_quantiles(network, series, 24, 24, 24)
    for i, history in enumerate(series):
        np.testing.assert_allclose(network_quantiles(network, [history], 24, 24, 24)[0], together[i], atol=1e-5)


def test_rows_before_the_first_value_change_nothing(network: Network) -> None:
    padded = np.concatenate([np.full(500, np.nan), wave(90)])
    a, b = (network_quantiles(network, [each], 24, 168, 24) for each in (padded, wave(90)))
    np.testing.assert_array_equal(a, b)


def test_odd_histories_have_finite_forecasts(network: Network) -> None:
    gaps = wave(200)
    gaps[::3] = np.nan
    odd = [gaps, wave(8), np.full(50, 3.1), np.array([1.0]), np.full(20, np.nan), 1e-9 * wave(60)]
    for got in (network_quantiles(network, odd, 24, 24, 192)[..., 4], expert_medians(odd, 24, 24, 192)):
        assert np.isfinite(got[[0, 1, 2, 3, 5]]).all() and np.isnan(got[4]).all()
        np.testing.assert_allclose(got[2], 3.1, rtol=1e-12)
        np.testing.assert_allclose(got[3], 1.0, rtol=1e-12)
        assert np.abs(got[5]).max() < 1e-8


@pytest.mark.parametrize("season", [1, 7, 12, 24, 52, 96, 288, 1440])
@pytest.mark.parametrize("horizon", [1, 400, 2000])
def test_any_season_and_horizon(season: int, horizon: int) -> None:
    config = build_config(
        "fem_zero", seq_len=2048, pred_len=horizon, n_channels=1, settings={"season": season, "further": 7 * season}
    )
    model = FemZero(config.for_data(season, 2048))  # type: ignore[arg-type]
    past = torch.from_numpy(5 + wave(2048, season=season))[None, :, None]
    got = model.rolled_out(Batch(past), horizon)
    assert got.shape == (1, horizon, len(QUANTILES), 1) and bool(got.isfinite().all())
    assert bool((got.diff(dim=2) >= 0).all())
    if 1 < season <= 512:
        expected = 5 + np.sin(2 * np.pi * np.arange(2048, 2048 + horizon) / season)
        assert np.abs(got[0, :, QUANTILES.index(0.5), 0].numpy() - expected).mean() < 0.25


def test_intervals_do_not_narrow_with_the_horizon() -> None:
    rng = np.random.default_rng(0)
    walk = torch.from_numpy(rng.standard_normal(2048).cumsum())[None, :, None]
    model = built(800)
    got = model.rolled_out(Batch(walk), 800)[0, :, :, 0]
    width = got[:, QUANTILES.index(0.9)] - got[:, QUANTILES.index(0.1)]
    assert float(width[700:].mean()) > float(width[96:192].mean()) > float(width[:24].mean())


def test_a_shorter_forecast_is_the_beginning_of_one_of_the_usual_horizon() -> None:
    model, past = built(48), Batch(torch.from_numpy(wave(300))[None, :, None])
    torch.testing.assert_close(model.rolled_out(past, 10), model.rolled_out(past, 48)[:, :10], rtol=0, atol=0)


def test_each_column_and_window_is_forecast_alone() -> None:
    model = built(24, 2)
    past = torch.from_numpy(np.stack([[wave(300), 3 * wave(300, 1)], [wave(300, 2), wave(300, 3)]])).transpose(1, 2)
    whole = model.rolled_out(Batch(past), 24)
    for window in range(2):
        for column in range(2):
            one = model.rolled_out(Batch(past[window : window + 1, :, column : column + 1]), 24)
            torch.testing.assert_close(whole[window, :, :, column], one[0, :, :, 0], rtol=0, atol=1e-5)


def test_the_ensemble_is_the_median_of_the_experts() -> None:
    history = wave(300)
    config = ZeroShotConfig(300, 24, 1, further=(168,)).for_data(24, 300)
    got = SimpleEnsemble(config).rolled_out(Batch(torch.from_numpy(history)[None, :, None]), 24)[0, :, 0]
    batch, units = aligned([history], 24, 168, 512, 24)
    experts = experts_of(batch, [512], 512).experts
    assert experts.shape == (1, 24, 1, len(NAMES))
    expected = np.median(experts[0, :, 0].double().numpy(), axis=1) * units.scale.item() + units.location.item()
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)


def test_packaged_weights_are_those_of_this_version() -> None:
    weights = read_weights()
    assert hashlib.sha256(fem_zero.PACKAGED.read_bytes()).hexdigest() == weights.sha256 == fem_zero.SHA256
    assert fem_zero.PACKAGED.stat().st_size < 2_000_000
    assert weights.card["progress"]["series"] > 1_000_000 and weights.card["scores"]["real"][0] < 0.65


SMALL = NetworkConfig(patch=4, width=32, layers=1, heads=2)


def write_small(path: Path) -> dict[str, Any]:
    """Write random weights of a small network, and return their card."""
    card = {"recipe": {"network": vars(SMALL)}, "progress": {}, "scores": {}, "experts": NAMES}
    torch.manual_seed(0)
    save_file(Network(SMALL).half().state_dict(), path, {"card": json.dumps(card)})
    return card


def test_weights_of_ones_own(tmp_path: Path) -> None:
    own, config = tmp_path / "own.safetensors", SMALL
    card = write_small(own)
    model = built(weights=str(own))
    assert model.config.network == config and model.config.sha256 == hashlib.sha256(own.read_bytes()).hexdigest()
    assert model.rolled_out(Batch(torch.from_numpy(wave(300))[None, :, None]), 5).isfinite().all()
    with pytest.raises(femts.UsageError, match=r"have the hash \w{12}, not 0000; restore the file, or leave"):
        built(weights=str(own), sha256="0000")
    shapes: dict[str, torch.Tensor] = {"head.bias": torch.zeros(320)}
    for tensors, changed in ((shapes, card), ({}, card | {"experts": NAMES[::-1]})):
        save_file(Network(config).half().state_dict() | tensors, own, {"card": json.dumps(changed)})
        with pytest.raises(femts.UsageError, match=r"own\.safetensors are of another version of fem_zero"):
            built(weights=str(own))


def test_weights_of_another_version_are_named() -> None:
    with pytest.raises(femts.UsageError, match=r"not 0000; install the version of femts that has these"):
        built(sha256="0000")


@pytest.mark.parametrize("content", [b"", b"no weights", b"\x08\0\0\0\0\0\0\0{}      "])
def test_a_file_without_weights_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad.safetensors"
    file.write_bytes(content)
    with pytest.raises(femts.UsageError, match=r"bad\.safetensors holds no weights of fem_zero; give a file"):
        built(weights=str(file))


def test_missing_weights_are_refused() -> None:
    with pytest.raises(femts.UsageError, match=r"absent\.safetensors cannot be read \(No such file"):
        built(weights="absent.safetensors")
    with pytest.raises(femts.UsageError, match=r"'model\.network' is determined by the weights"):
        FemZeroConfig(300, 30, 1, network=NetworkConfig()).for_data(24, 300)


def table(rows: int = ROWS) -> pd.DataFrame:
    stamps = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame({"date": stamps, "a": 5 + wave(rows), "b": 50 + 9 * wave(rows, 1)})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `table`, refitted."""
    out = tmp_path_factory.mktemp("zero") / "run"
    femts.train(table(), "fem_zero", 24, refit=True, out=out)
    return out


def test_a_run_holds_its_weights(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = femts.load(run)
    expected = made.predict(table(), level=[80, 95])
    monkeypatch.setattr(fem_zero, "PACKAGED", tmp_path / "gone")  # as with another version
    pd.testing.assert_frame_equal(femts.load(run).predict(table(), level=[80, 95]), expected)
    assert made.metrics["test"]["skill"] > 0.3


def test_a_forecast_without_training_is_that_of_a_run(run: Path) -> None:
    got = femts.forecast(table(), 24, level=[80])
    assert got.columns.tolist() == ["date", *(f"{c}{end}" for c in "ab" for end in ("", "-lo-80", "-hi-80"))]
    pd.testing.assert_frame_equal(got, femts.load(run).predict(table(), level=[80]))
    np.testing.assert_allclose(got["a"], 5 + np.sin(2 * np.pi * np.arange(ROWS, ROWS + 24) / 24), atol=0.3)
    assert femts.forecast(table(), 5, level=None, model="simple_ensemble").columns.tolist() == ["date", "a", "b"]


def test_covariates_panels_and_gaps() -> None:
    days = pd.date_range("2024-01-01", periods=400, freq="D")
    promo = np.arange(414) % 9 == 0
    frame = pd.DataFrame({"date": days, "y": 5 + wave(400, season=7) + 3 * promo[:400], "promo": 1.0 * promo[:400]})
    ahead = pd.DataFrame({"date": days[-1] + pd.to_timedelta(np.arange(1, 15), "D"), "promo": 1.0 * promo[400:]})
    got = femts.forecast(frame, 14, future_covariates=["promo"], future=ahead)
    expected = 5 + np.sin(2 * np.pi * np.arange(400, 414) / 7) + 3 * promo[400:]
    np.testing.assert_allclose(got["y"], expected, atol=0.5)

    long = pd.concat(
        [pd.DataFrame({"unique_id": f"s{n}", "ds": days[-n:], "y": 5 + wave(n, n, 7)}) for n in (9, 30, 100, 400)]
    )
    long.loc[long.index % 3 == 1, "y"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = femts.forecast(long, 14)
    assert len(got) == 4 * 14 and got["y"].notna().all()


def test_models_that_need_training_are_refused() -> None:
    assert len(femts.forecast(table(), 24, model="seasonal_naive")) == 24
    with pytest.raises(femts.UsageError, match="Model 'dlinear' needs training; use femts train"):
        femts.forecast(table(), 24, model="dlinear")


def test_worse_than_a_naive_forecast_is_said() -> None:
    exact = np.tile([3.0, 1.0, 4.0, 1.5], 12)
    frame = pd.DataFrame({"date": pd.date_range("2010-01-01", periods=48, freq="QS"), "a": exact})
    with pytest.warns(
        femts.AccuracyWarning, match=r"'fem_zero' is worse than the seasonal.*no error here; train a model on"
    ):
        femts.forecast(frame, 8)


def test_the_card_of_the_weights_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "fem_zero"]) == 0
    said = capsys.readouterr().out
    assert f"sha256 {fem_zero.SHA256}" in said and "m4_hourly.csv.gz (366 series)" in said


def test_the_command_writes_table_and_picture(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out, plot = (tmp_path / name for name in ("in.csv", "out.csv", "out.png"))
    table().to_csv(file, index=False)
    assert main(["forecast", str(file), "--horizon", "24", "-o", str(out), "--plot", str(plot)]) == 0
    said = capsys.readouterr()
    assert "on the last rows, 'fem_zero' is better than" in said.err and "24 steps of 2 columns" in said.out
    expected = femts.load(run).predict(table(), level=[80])
    pd.testing.assert_frame_equal(pd.read_csv(out, parse_dates=["date"]), expected, check_dtype=False)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert main(["forecast", str(file), "--horizon", "24", "--level", "none", "--model", "seasonal_naive"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "date,a,b"


def test_mistakes_are_found_before_the_scores_are_computed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scored = list[object]()
    monkeypatch.setattr(zero_shot, "score_overall", lambda *given: scored.append(given))
    file, lacking = tmp_path / "in.csv", tmp_path / "ahead.csv"
    table().to_csv(file, index=False)
    assert main(["forecast", str(file), "--future", str(lacking)]) == 2
    assert "ahead.csv" in capsys.readouterr().err
    assert main(["forecast", str(file), "--series", "a"]) == 2
    with pytest.raises(UsageError, match="no column was named as one; name them, as future_covariates=NAME"):
        femts.forecast(table(), 24, future=table())
    assert not scored


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--horizon", "0"], "Horizon '0' is not a number of steps"),
        (["--model", "fem_sm"], "Model 'fem_sm' needs training"),
        (["--model", "fem_zero_tuned"], "Model 'fem_zero_tuned' needs training"),
        (["--level", "high"], "Level 'high' is not a number"),
        (["--plot", "out.docx"], "docx"),
        (["--series", "a", "--model", "seasonal_naive"], "series"),
        (["--future", "absent.csv", "--model", "seasonal_naive"], "absent.csv"),
    ],
)
def test_mistakes_write_nothing(
    given: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table().to_csv("in.csv", index=False)
    assert main(["forecast", "in.csv", "-o", "out.csv", *given]) == 2
    assert said in capsys.readouterr().err and [each.name for each in tmp_path.iterdir()] == ["in.csv"]


def test_the_weights_of_the_experts_explain_a_forecast(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "in.csv"
    table().to_csv(file, index=False)
    got = femts.load(run).explain(table())
    assert got.columns.tolist() == ["channel", "step", "expert", "weight"]
    assert got["expert"].unique().tolist() == list(NAMES) and len(got) == 2 * 24 * len(NAMES)
    np.testing.assert_allclose(got.groupby(["channel", "step"])["weight"].sum(), 1, rtol=1e-6)
    # A repeated shape is best continued by forecasts that know the season.
    shares = got.groupby("expert")["weight"].mean()
    assert shares["last value"] < 0.05 < shares["autoregression"]

    assert main(["explain", str(run), str(file), "-o", str(tmp_path / "why.csv")]) == 0
    assert "13 closed-form forecasts, most of all" in capsys.readouterr().out
    assert main(["explain", str(run), str(file), "--plot", str(tmp_path / "why.png")]) == 2
    assert "The weights of 'fem_zero' are a table; remove --plot" in capsys.readouterr().err


def test_the_forecast_is_the_weighted_mean_of_the_experts_and_an_offset(network: Network) -> None:
    batch, _ = aligned([wave(300), wave(300, 1)], 24, 168, 512, 32)
    with torch.no_grad():
        tokens = tokenize(network, batch)
        out, weights = network.outputs(tokens)[:, -1], network.expert_weights(tokens)
        mean = (weights * tokens.experts[:, -1]).sum(-1, keepdim=True)
        torch.testing.assert_close(network(tokens)[:, -1], mean + out[..., len(NAMES) :])
        torch.testing.assert_close(network(tokens, last=True), network(tokens)[:, -1:])


def test_new_series_of_a_panel_and_a_backtest() -> None:
    days = pd.date_range("2024-01-01", periods=120, freq="D")
    frames = [pd.DataFrame({"unique_id": f"s{n}", "ds": days, "y": 50 * n + 5 * wave(120, n, 7)}) for n in (1, 2, 3)]
    made = femts.train(pd.concat(frames[:2]), "fem_zero", 14, refit=True)
    got = made.predict(frames[2])
    np.testing.assert_allclose(got["y"], 150 + 5 * np.sin(2 * np.pi * np.arange(120, 134) / 7), atol=2)
    past = femts.backtest(made, pd.concat(frames[:2]), n_windows=2)
    assert len(past) == 2 * 2 * 14 and float((past["forecast"] - past["actual"]).abs().mean()) < 1.5


def test_forms_for_graphs_equal_those_of_torch(network: Network) -> None:
    gaps = wave(300, 1)
    gaps[::4] = np.nan
    batch, units = aligned([wave(300), gaps, wave(200, 2)], 24, 168, 512, 32)
    double = copy.deepcopy(network).double()
    batch = replace(batch, x=batch.x.double())
    with torch.no_grad():
        expected = quantiles_of(double, batch, units)
        with patch("torch.compiler.is_exporting", lambda: True):
            got = quantiles_of(double, batch, units)
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["fem_zero", "simple_ensemble"])
@pytest.mark.parametrize("steps", [5, 24, 30])
def test_forecasts_for_graphs_equal_those_of_the_model(name: str, steps: int) -> None:
    config = build_config(name, seq_len=300, pred_len=24, n_channels=2, settings={})
    model = build_model(name, config.for_data(24, 300))
    assert isinstance(model, ZeroShot)
    model.read_weights()
    past = torch.from_numpy(np.stack([wave(300), 7 + 3 * wave(300, 1)])).T[None]
    past[0, 40:44, 0] = torch.nan
    with torch.no_grad(), patch("torch.compiler.is_exporting", lambda: True):
        got = model.graph_forecast(past, steps)
    expected = model.point(model.rolled_out(Batch(past), steps))
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-4)


@pytest.mark.slow
def test_a_graph_gives_the_forecasts_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    days = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=90, freq="D"), "y": 9 + wave(90, 0, 7)})
    # The time is that of operators, of which a small network, fewer seasons and regressions have fewer of each kind.
    for name, fewer in {"LEAD_GROUPS": (0,), "SEASONS": 2, "SECOND_SEASONS": 2}.items():
        monkeypatch.setattr(experts, name, fewer)
    write_small(tmp_path / "small.safetensors")
    settings = {"model.season": 1, "model.weights": str(tmp_path / "small.safetensors")}
    made = femts.train(days, "fem_zero", 4, seq_len=60, refit=True, settings=settings)
    exported = made.export(tmp_path / "zero.onnx")
    assert exported.difference < 1e-5
    days.loc[[5, 40, 41], "y"] = np.nan
    history = days["y"].to_numpy(dtype=np.float32)[None, -made.config.seq_len :, None]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(tmp_path / "zero.onnx", options)
    (got,) = session.run(["forecast"], {"history": history})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = made.predict(days)["y"]
    np.testing.assert_allclose(got[0, :, 0], expected, atol=1e-4)


def test_missing_readings_are_said_to_be_left_out() -> None:
    frame = table()
    frame.loc[[ROWS - 50, ROWS - 49], "a"] = np.nan
    with pytest.warns(
        femts.GapWarning, match=f"lacks 2 of {2 * ROWS} values, the first in column 'a'; they are left out"
    ):
        femts.forecast(frame, 24)


def test_training_further_on_a_table_learns_what_is_its_own(tmp_path: Path) -> None:
    # Each value is the one 5 steps before or its negative, by turns: no season and no expert has that.
    rows = 900
    y = np.random.default_rng(0).standard_normal(rows)
    for t in range(5, rows):
        y[t] = y[t - 5] * (-1) ** (t // 5 % 3 == 0) + 0.05 * y[t]
    table = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=rows, freq="h"), "y": y})
    limits: dict[str, Any] = {
        "seq_len": 128,
        "device": "cpu",
        "settings": {"training.max_steps": 30, "training.lr": 1e-3},
    }
    tuned = femts.train(table, "fem_zero_tuned", 12, out=tmp_path / "run", **limits)
    plain = femts.train(table, "fem_zero", 12, seq_len=128, device="cpu")
    assert tuned.metrics["test"]["mae"] < 0.9 * plain.metrics["test"]["mae"]
    forecast = tuned.predict(table, level=[80])
    pd.testing.assert_frame_equal(femts.load(tmp_path / "run").predict(table, level=[80]), forecast)
    assert (forecast["y-lo-80"] < forecast["y"]).all()
    # It is validated by its quantiles, which a mean with it does not have.
    both = femts.mean_of([tuned.scored or tuned, plain.scored or plain])
    data = tuned.training_data()
    made = take_scores(both, DataModule.of(data, both.config).windows, data, "cpu")
    assert "pinball" not in made.scores["val"] and made.scores["test"]["mae"] > 0


def test_pretrained_weights_are_kept_where_training_makes_them_worse() -> None:
    # What the training rows teach, that nothing can be forecast, is wrong later.
    y = np.concatenate([np.random.default_rng(0).standard_normal(280), wave(120)])
    table = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=400, freq="h"), "y": y})
    harmful: dict[str, Any] = {"training.max_steps": 16, "training.lr": 0.01, "training.div_factor": 1e4}
    made = femts.train(table, "fem_zero_tuned", 12, seq_len=96, device="cpu", settings=harmful, refit=True)
    assert made.metrics["kept_step"] == 1 and made.metrics["refit"]["steps"] == 1
    plain = femts.train(table, "fem_zero", 12, seq_len=96, device="cpu")
    assert made.metrics["test"]["mae"] == pytest.approx(plain.metrics["test"]["mae"], rel=0.01)


def test_missing_targets_and_beginnings_do_not_count_in_the_loss() -> None:
    config = build_config("fem_zero_tuned", seq_len=64, pred_len=12, n_channels=1, settings={"season": 1, "windows": 8})
    model = FemZeroTuned(config)  # type: ignore[arg-type]
    model.prepare(torch.zeros(1, 1))
    past, future = torch.tensor(wave(76)).view(1, 76, 1).split([64, 12], 1)
    past = torch.cat([torch.full((1, 20, 1), torch.nan, dtype=torch.float64), past[:, 20:]], 1)
    seen = torch.ones(1, 12, 1, dtype=torch.bool)
    seen[:, 5:] = False
    raw = Raw(past * 3 + 1, torch.ones(1, 1, 1), torch.full((1, 1, 1), 3.0))

    def loss(future: torch.Tensor) -> torch.Tensor:
        return model.loss(Batch(past.nan_to_num().float(), future=future, future_observed=seen, raw=raw))

    torch.testing.assert_close(loss(future), loss(future.where(seen, 99.0)), rtol=0, atol=0)
    assert loss(future) != loss(future + 1)
    loss(future).backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in model.network.blocks.parameters())
