"""Explanations of mixer forecasts and their plots."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from small_runs import small_run
from small_tables import small_table

from femts.cli import main
from femts.config.training import TrainingConfig
from femts.data.batch import Batch
from femts.data.preprocess import Preprocess
from femts.data.scaler import Scaler
from femts.data.synthetic import synthetic_frame
from femts.errors import UsageError
from femts.explain.picture import plot_explanation
from femts.explain.posterior import explained, explanation
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import RunConfig
from femts.models.registry import build_config, build_model

L, P, N = 22, 4, 6  # the oldest of the segments is 2 steps short
COLUMNS = ("load", "heat")


def make(
    name: str = "fem_sm", freq: str | None = "h", columns: tuple[str, ...] = COLUMNS, **settings: Any
) -> Forecaster:
    """A small forecaster with random weights."""
    torch.manual_seed(0)
    small = {"d_model": 16, "n_heads": 2, "n_layers": 2} if "fem" in name or name == "sm" else {}
    if "ridge" in name:
        small |= {"season": 4, "longest": 2 * P}
    config = build_config(name, seq_len=L, pred_len=P, n_channels=len(columns), settings=small | settings)
    model = build_model(name, config)
    model.prepare(torch.randn(200, len(columns)))
    with torch.no_grad():
        for weights in model.parameters():
            weights.add_(0.3 * torch.randn_like(weights))
    run = RunConfig("small", None, name, config, "paper", TrainingConfig())
    preprocess = Preprocess(columns, ("",), Scaler.even(len(columns)))
    return Forecaster(model=model.eval(), config=run, preprocess=preprocess, freq=freq, data={})


def mixer(forecaster: Forecaster) -> Any:
    """The mixer of the first block."""
    model: Any = forecaster.model
    return model.blocks[0].mixer


@pytest.fixture
def history() -> pd.DataFrame:
    return small_table(60)


@pytest.mark.parametrize("name", ["fem_sm", "fem_mamba", "fem_aft"])
def test_weights_are_distributions(name: str, history: pd.DataFrame) -> None:
    frame = make(name).explain(history)
    assert list(frame.columns[:7]) == ["channel", "layer", "token", "start", "end", "weight", "prior"]
    assert len(frame) == len(COLUMNS) * 2 * N * 2
    assert (frame[["weight", "prior"]] >= 0).all(axis=None)
    sums = frame.groupby(["channel", "layer"])[["weight", "prior"]].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
    assert frame[["effective_segments", "prior_segments"]].min(axis=None) >= 1 - 1e-6
    assert frame[["effective_segments", "prior_segments"]].max(axis=None) <= N + 1e-6
    assert (frame["hidden_temperature"] > 0).all()
    assert not np.allclose(frame["weight"], frame["prior"], atol=1e-3), "values tilt the prior"


@pytest.mark.parametrize(
    ("name", "components"), [("fem_sm", "CLTG"), ("fem_gla", "CLTG"), ("fem_aft", "CLTG"), ("fem_sm", "L")]
)
def test_posterior_matches_loops_in_float64(name: str, components: str) -> None:
    """Equations 5 and 10 and proposition G.2, with explicit loops."""
    model: Any = make(name, components=components).model.double()
    x = torch.randn(1, L, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    inputs: list[torch.Tensor] = []
    for block in model.blocks:
        block.mixer_norm.register_forward_hook(lambda _module, _args, out: inputs.append(out))
    frame = explanation(model, Batch(x), COLUMNS, pd.RangeIndex(L))
    for number, block in enumerate(model.blocks, start=1):
        hand = _by_hand(block.mixer, inputs[number - 1])
        for channel, (weight, prior, temperature, segments) in zip(COLUMNS, hand, strict=True):
            rows = frame[(frame["channel"] == channel) & (frame["layer"] == number)]
            np.testing.assert_allclose(rows["weight"], weight, atol=1e-9)
            np.testing.assert_allclose(rows["prior"], prior, atol=1e-9)
            np.testing.assert_allclose(rows["hidden_temperature"], temperature, rtol=1e-6)
            np.testing.assert_allclose(rows["effective_segments"], segments, rtol=1e-8)


def _by_hand(layer: Any, tokens: torch.Tensor) -> list[tuple[Any, ...]]:
    with torch.no_grad():
        parts, p_all = layer._project(tokens, None), layer.weights(tokens)
        betas = torch.log1p(torch.exp(layer.beta_raw + 1.8)).flatten().numpy()
        columns = layer.out_proj.weight.numpy()
    found = []
    for c in range(len(tokens)):
        total, weight, prior, temperature, entropy = 0.0, 0.0, 0.0, 0.0, 0.0
        gates = np.ones(len(betas))
        if "g" in parts:
            gates = np.log1p(np.exp(parts["g"][c, -1].numpy())) + layer.config.eps
            gates = gates / np.sqrt((gates**2).mean())
        for j, beta_max in enumerate(betas):
            head = j // (len(betas) // layer.config.heads)
            p = (p_all[c, -1, :, j] if layer.config.prior_type == "rnn_softmax" else p_all[c, head, -1]).numpy()
            v = parts["v"][c, :, j].numpy()
            lam = 1 / (1 + math.exp(-parts["lam"][c, -1, j].item())) if "lam" in parts else 1.0
            target = (1 - lam) * p @ v + lam * _free_energy(p, v, beta_max)
            low, high = 0.0, beta_max
            for _ in range(80):
                middle = (low + high) / 2
                low, high = (middle, high) if _free_energy(p, v, middle) < target else (low, middle)
            q = p * np.exp(high * v)
            q /= q.sum()
            reach = gates[j] * np.sqrt((columns[:, j] ** 2).sum())
            of_segment = q[0::2] + q[1::2]
            total, weight, prior = total + reach, weight + reach * q, prior + reach * p
            temperature, entropy = temperature + reach * high, entropy - reach * (of_segment * np.log(of_segment)).sum()
        found.append((weight / total, prior / total, temperature / total, math.exp(entropy / total)))
    return found


def _free_energy(p: np.ndarray, v: np.ndarray, beta: float) -> float:
    return float(np.log((p * np.exp(beta * v)).sum()) / beta)


def planted(components: str = "L", beta: float = 8.0) -> Forecaster:
    """One layer with uniform keys whose values are segment means, so the highest segment wins."""
    forecaster = make(freq=None, n_layers=1, components=components)
    model: Any = forecaster.model
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "norm" not in name:
                weights.zero_()
        model.main_in.weight[0], model.main_in.bias[1] = 1 / P, 1.0
        model.context_in.bias[1] = 1.0
        layer = model.blocks[0].mixer
        layer.in_proj.weight[: layer.widths.fem_dim, 0] = 1.0  # v
        layer.out_proj.weight.fill_(1.0)
        layer.beta_raw.fill_(math.log(math.expm1(beta)) - 1.8)
        for name, module in model.named_modules():
            if "norm" in name:
                module.weight.fill_(1.0)
    return forecaster


def pulses() -> pd.DataFrame:
    """Zeros except for one segment of each channel."""
    values = np.zeros((40, 2))
    values[40 - 5 * P : 40 - 4 * P, 0] = values[40 - 3 * P : 40 - 2 * P, 1] = 10.0
    return pd.DataFrame(values, columns=list(COLUMNS))


def test_planted_segment_is_selected() -> None:
    frame = planted().explain(pulses())
    for channel, start in (("load", 20), ("heat", 28)):
        rows = frame[frame["channel"] == channel]
        best = rows.loc[rows["weight"].idxmax()]
        assert (best["token"], best["start"], best["end"]) == ("main", start, start + P - 1)
        assert best["weight"] > 0.99
        assert best["effective_segments"] == pytest.approx(1.0, abs=0.05)
        assert best["prior_segments"] == pytest.approx(N, rel=1e-5)
        assert best["hidden_temperature"] == pytest.approx(8.0, rel=1e-5)
    np.testing.assert_allclose(frame["prior"], 1 / (2 * N), rtol=1e-5)


def test_closed_inner_gate_gives_the_prior() -> None:
    forecaster = planted("LT")
    layer = mixer(forecaster)
    with torch.no_grad():
        layer.in_proj.bias[layer.widths.fem_dim : 2 * layer.widths.fem_dim] = -1e4
    frame = forecaster.explain(pulses())
    assert (frame["hidden_temperature"] == 0).all()
    np.testing.assert_allclose(frame["weight"], frame["prior"], rtol=1e-5)


def test_disconnected_components_are_ignored() -> None:
    forecaster = planted()
    layer = mixer(forecaster)
    half = layer.widths.fem_dim // 2
    with torch.no_grad():
        layer.in_proj.weight[half : 2 * half, 0] = -1.0
    mixed = forecaster.explain(pulses())["weight"].max()
    assert mixed < 0.6
    with torch.no_grad():
        layer.out_proj.weight[:, half:] = 0.0
    assert forecaster.explain(pulses())["weight"].max() > 0.99


@pytest.mark.parametrize("patch_len", [None, 3])
def test_segments_tile_the_look_back(history: pd.DataFrame, patch_len: int | None) -> None:
    forecaster = make(patch_len=patch_len)
    before = history.copy(deep=True)
    frame = forecaster.explain(history)
    pd.testing.assert_frame_equal(history, before)
    one = frame[(frame["channel"] == "heat") & (frame["layer"] == 2) & (frame["token"] == "main")]
    stamps = history["date"].tail(L).to_numpy()
    ends = np.arange(L - 1, -1, -(patch_len or P))[::-1]
    np.testing.assert_array_equal(one["end"], stamps[ends])
    np.testing.assert_array_equal(one["start"], stamps[[0, *(ends[:-1] + 1)]])
    spoilt = history.copy()
    spoilt.loc[: len(history) - L - 1, "load"] = np.nan
    pd.testing.assert_frame_equal(forecaster.explain(spoilt), frame)
    pd.testing.assert_frame_equal(forecaster.explain(history[["heat", "date", "load"]]), frame)
    assert not mixer(forecaster)._forward_pre_hooks


def test_selected_queries_match_all_and_are_causal() -> None:
    layer = mixer(make()).double()
    x = torch.randn(2, 7, 16, dtype=torch.float64)
    later = x.clone()
    later[:, 4:] += 5.0
    one, every = layer.selection(x, queries=slice(3, 4)), layer.selection(x)
    for some, all_ in zip(one, every, strict=True):
        torch.testing.assert_close(some, all_[:, 3:4], rtol=0, atol=0)
    assert (one.posterior[:, :, 4:] == 0).all()
    torch.testing.assert_close(
        layer.selection(later, queries=slice(3, 4)).posterior, one.posterior, rtol=1e-9, atol=1e-12
    )


def test_chunked_channels_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = make().model
    x = torch.randn(1, L, 2)
    whole = explained(model, Batch(x))
    monkeypatch.setattr("femts.explain.posterior.MOST_CELLS", 1)
    for one, other in zip(whole, explained(model, Batch(x)), strict=True):
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_steps_are_counted_without_dates(history: pd.DataFrame) -> None:
    forecaster, values = make(freq=None), history.drop(columns="date")
    frame = forecaster.explain(values)
    assert frame["end"].max() + 1 == forecaster.predict(values)["step"].iloc[0] == 60
    assert frame["start"].min() == 60 - L


def test_models_without_a_posterior_are_refused(history: pd.DataFrame) -> None:
    cases: list[tuple[Any, ...]] = [
        ("dlinear", {}, r"Model 'dlinear' .* such as fem_sm, or "),
        ("naive", {}, r"Model 'naive' .* such as fem_sm, or "),
        ("patchtst", {}, r"Model 'patchtst' .* such as fem_sm, or "),
        ("ridge", {}, r"Model 'ridge' .* such as fem_sm, or "),
        ("sm", {}, r"Model 'sm' with the components '' .*\(L\).* such as fem_sm\."),
        ("lintrans", {}, r"Model 'lintrans' with the components '' .*\(L\)"),
        ("fem_sm", {"components": "CG"}, r"Model 'fem_sm' with the components 'CG' .*\(L\)"),
    ]
    for name, settings, says in cases:
        with pytest.raises(UsageError, match=says) as caught:
            make(name, **settings).explain(history.tail(L - 1))
        assert "\n" not in str(caught.value)


def test_explain_command_writes_table_and_plot(
    tmp_path: Path, history: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    forecaster = make("fem_gla")
    forecaster.save(tmp_path / "run")
    history.to_csv(tmp_path / "past.csv", index=False)
    arguments = ["explain", str(tmp_path / "run"), str(tmp_path / "past.csv")]
    assert main([*arguments, "-o", str(tmp_path / "why.csv"), "--plot", str(tmp_path / "why.png")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'why.csv'}: {N} segments of 2 columns in 2 layers\n"
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    read = pd.read_csv(tmp_path / "why.csv", parse_dates=["start", "end"])
    pd.testing.assert_frame_equal(read, forecaster.explain(history), check_dtype=False, rtol=1e-5)
    assert main(arguments) == 0
    assert capsys.readouterr().out == (tmp_path / "why.csv").read_text()


def test_plot_shows_channels_and_omissions(tmp_path: Path) -> None:
    columns = tuple(f"cost ${i}" for i in range(14))
    history = small_table(60, columns)
    frame = make(columns=columns).explain(history)
    text = plot_explanation(history, frame, tmp_path / "all.svg").read_text()
    assert "<!-- cost $11 -->" in text and "<!-- cost $12 -->" not in text
    assert "next 4 steps (2 more columns not drawn)" in text and "mean of 2 layers" in text
    low, high = history["cost $3"].tail(L).min(), history["cost $3"].tail(L).max()
    assert f"<!-- {low:.3g} to {high:.3g} -->" in text
    one = plot_explanation(history, frame[frame["layer"] == 2], tmp_path / "one.svg", columns=["cost $13"]).read_text()
    assert "<!-- cost $13 -->" in one and "<!-- cost $11 -->" not in one and "(layer 2)" in one
    with pytest.raises(UsageError, match=r"'cost'"):
        plot_explanation(history, frame, tmp_path / "none.png", columns=["cost"])


def even_explanation(weights: list[float]) -> pd.DataFrame:
    """An explanation with the given weights of eight tokens."""
    hours = small_table(60)["date"].tail(32).to_numpy()
    start, end = (np.repeat(hours[first::8], 2) for first in (0, 7))
    frame = pd.DataFrame({"channel": "load", "layer": 1, "token": 4 * ["context", "main"], "start": start, "end": end})
    return frame.assign(weight=weights, prior=0.125, hidden_temperature=1.0, effective_segments=3.9, prior_segments=4.0)


def test_plot_of_constant_or_empty_column(tmp_path: Path) -> None:
    for value, said in ((7.0, "always 7"), (np.nan, "no value")):
        history = small_table(60).assign(load=value)
        text = plot_explanation(history, even_explanation([0.125] * 8), tmp_path / "p.svg").read_text()
        assert f"<!-- {said} -->" in text and "nan" not in text


def test_explain_is_thread_safe() -> None:
    forecaster, frame = small_run("fem_sm", max_epochs=1), synthetic_frame(200)
    pasts = [frame, frame.iloc[:-20]] * 2
    alone, all_started = [forecaster.explain(past) for past in pasts], threading.Barrier(4)

    def work(number: int) -> list[pd.DataFrame]:
        all_started.wait()
        say = forecaster.explain if number < 3 else forecaster.predict
        return [say(pasts[number]) for _ in range(10)]

    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(work, range(4)))
    for number in range(3):
        for table in tables[number]:
            pd.testing.assert_frame_equal(table, alone[number])
