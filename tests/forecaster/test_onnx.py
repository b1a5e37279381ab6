"""Export to ONNX."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import femts
from femts.cli import main
from femts.data.batch import Batch
from femts.data.synthetic import synthetic_frame
from femts.errors import UsageError
from femts.forecaster import onnx as exporting
from femts.forecaster.forecaster import Forecaster
from femts.models.naive import Naive
from femts.training.train import train

pytestmark = pytest.mark.slow

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
ort = pytest.importorskip("onnxruntime")

L, P = 24, 12
TINY = {"model.d_model": 8, "model.n_layers": 1, "model.n_heads": 2}
SETTINGS: dict[str, dict[str, Any]] = {
    "patchtst": {"model.patch_len": 8, "model.stride": 4, "model.n_layers": 1},
    "nhits": {"model.hidden": 8},
    "fem_mamba": TINY,
    "fem_sm_ridge": {**TINY, "model.longest": 2 * P, "model.season": 6},
}


def trained(model: str, seq_len: int = L) -> Forecaster:
    table = synthetic_frame(600)
    table[table.columns[1]] *= 1000.0  # units far from those that the model sees
    table[table.columns[2]] += 500.0
    settings = SETTINGS.get(model, {})
    return train(table, model, pred_len=P, seq_len=seq_len, max_epochs=1, device="cpu", settings=settings)


@pytest.mark.parametrize("model", ["fem_mamba", "fem_sm_ridge", "mean"])
def test_onnxruntime_matches_torch(model: str, tmp_path: Path) -> None:
    # One graph of two networks takes less time than two graphs.
    mean = model == "mean"
    forecaster = femts.mean_of([trained("patchtst"), trained("nhits", L - 8)]) if mean else trained(model)
    file = tmp_path / "m.onnx"
    before = {name: value.clone() for name, value in forecaster.model.state_dict().items()}
    with patch.object(torch.export, "export", wraps=torch.export.export) as traced:
        made = forecaster.export(file)
    assert traced.call_count == 1, "a trace that fails is repeated in another way, which takes as long again"
    assert made.size == file.stat().st_size and made.difference < 2e-5
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    assert all(torch.equal(value, before[name]) for name, value in forecaster.model.state_dict().items())
    session = ort.InferenceSession(file)
    facts = session.get_modelmeta().custom_metadata_map
    assert json.loads(facts["columns"]) == list(forecaster.columns)
    said = (femts.__version__, model, "h", str(L), str(P), forecaster.data["sha256"])
    names = ("femts", "model", "freq", "seq_len", "pred_len", "data_sha256")
    assert tuple(facts[name] for name in names) == said
    raw = synthetic_frame(600).drop(columns="date").to_numpy() * [1000.0, *[1.0] * (len(forecaster.columns) - 1)]
    raw[:, 1] += 500.0
    past = np.lib.stride_tricks.sliding_window_view(raw, L, axis=0)[:7].transpose(0, 2, 1).astype(np.float32)
    past[0, 5:9, 0] = past[1, :3, 1] = np.nan  # gaps, also where nothing came before
    (found,) = session.run(["forecast"], {"history": past})
    assert found.dtype == np.float32 and found.shape == (7, P, len(forecaster.columns))
    scale = forecaster.preprocess.scaler.scale
    np.testing.assert_allclose(found / scale, forecaster.predict_array(past) / scale, rtol=1e-6, atol=2e-5)

    history = synthetic_frame(600).tail(L)  # a target without any value has no forecast
    history[forecaster.columns[0]] = np.nan
    (found,) = session.run(None, {"history": history.drop(columns="date").to_numpy(np.float32)[None]})
    with pytest.warns(femts.GapWarning):
        expected = forecaster.predict(history).drop(columns="date").to_numpy()
    assert np.isnan(found[0, :, 0]).all() and np.isnan(expected[:, 0]).all()
    np.testing.assert_allclose(found[0] / scale, expected / scale, rtol=1e-6, atol=2e-5)


@pytest.fixture(scope="module")
def naive() -> tuple[Forecaster, bytes]:
    """A naive forecaster and its graph."""
    forecaster = trained("naive")
    return forecaster, exporting._graph(forecaster, P)


def multiplied(graph: bytes, factor: float) -> bytes:
    """The graph of `factor` times the forecast."""
    return _changed(graph, factor, onnx.helper.make_node("Mul", ["before", "number"], ["forecast"]))


def filled(graph: bytes) -> bytes:
    """The graph of the forecast with 0 for NaN."""
    missing = onnx.helper.make_node("IsNaN", ["before"], ["missing"])
    return _changed(graph, 0.0, missing, onnx.helper.make_node("Where", ["missing", "number", "before"], ["forecast"]))


def _changed(graph: bytes, number: float, *last: Any) -> bytes:
    """A graph with further operators, which make `forecast` of what it was, `before`, and `number`."""
    model = onnx.load_from_string(graph)
    for node in model.graph.node:
        node.output[:] = ["before" if name == "forecast" else name for name in node.output]
    model.graph.initializer.append(onnx.helper.make_tensor("number", onnx.TensorProto.FLOAT, [], [number]))
    model.graph.node.extend(last)
    return bytes(model.SerializeToString())


def test_export_with_a_longer_horizon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained("naive").save(tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--horizon", "30"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{tmp_path / 'run' / 'model.onnx'}: (B, 24, ") and "to (B, 30, " in out
    past = np.ones((1, L, len(femts.load(tmp_path / "run").columns)), np.float32)
    (found,) = ort.InferenceSession(tmp_path / "run" / "model.onnx").run(None, {"history": past})
    np.testing.assert_allclose(found, np.ones_like(past[:, :1]).repeat(30, axis=1), atol=1e-3)


class UnsupportedModel(Naive):
    """A model with an operator that ONNX lacks."""

    def forward(self, batch: Batch) -> Tensor:
        return super().forward(batch) + torch.linalg.eigvalsh(batch.past.mT @ batch.past).sum()


def test_failed_or_differing_export_is_refused(
    naive: tuple[Forecaster, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    forecaster, graph = naive
    forecaster.save(tmp_path / "run")
    (tmp_path / "m.onnx").write_bytes(b"before")
    command = ["export", str(tmp_path / "run"), "-o", str(tmp_path / "m.onnx")]
    unsupported = replace(forecaster, model=UnsupportedModel(forecaster.config.model_config))
    with pytest.raises(
        UsageError, match=r"^Model 'naive' cannot be exported to ONNX \(.*eigh.*comes with femts can\.$"
    ):
        unsupported.export(tmp_path / "m.onnx")
    with monkeypatch.context() as patch:
        patch.setattr(exporting, "_graph", lambda *_: multiplied(graph, 1.001))
        assert main(command) == 2
        assert "Model 'naive' differs between onnxruntime and torch by " in capsys.readouterr().err
    for missing in ("onnxscript", "onnxruntime"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, missing, None)
            assert main(command) == 2
            err = capsys.readouterr().err
            assert (
                err == f"femts: ONNX needs {missing}, which is not installed; run pip install onnxruntime onnxscript.\n"
            )
    assert main([*command[:2], "-o", str(tmp_path / "none" / "m.onnx")]) == 2
    assert "none does not exist" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(exporting, "_graph", None)  # takes a minute for some models
        with pytest.raises(UsageError, match="none does not exist; create it"):
            forecaster.export(tmp_path / "none" / "m.onnx")
    assert main([*command, "--horizon", "0"]) == 2
    assert (tmp_path / "m.onnx").read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "run"]


def test_values_that_a_forecast_reads_as_outliers_do_not_refuse_a_graph(tmp_path: Path) -> None:
    hours = pd.date_range("2024-01-01", periods=300, freq="h")
    regular = 5 + np.sin(np.arange(300) * np.pi / 12) + 0.05 * np.random.default_rng(0).normal(size=300)
    made = femts.train(pd.DataFrame({"date": hours, "a": regular}), "seasonal_naive", 12, seq_len=48)
    assert made.preprocess.outliers is not None
    assert made.export(tmp_path / "m.onnx").difference < 1e-6


def test_graph_that_fills_missing_forecasts_is_refused(
    naive: tuple[Forecaster, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forecaster, graph = naive
    monkeypatch.setattr(exporting, "_graph", lambda *_: filled(graph))
    with pytest.raises(UsageError, match=r"differs between onnxruntime and torch by inf in scaled units"):
        forecaster.export(tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_transformed_export_is_compared_in_scaled_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = synthetic_frame(600)
    table[table.columns[1:]] = 1e4 * np.exp(table[table.columns[1:]] / 20)
    data = femts.load_dataset(table, transform="boxcox")
    forecaster = train(data, "naive", P, seq_len=L, device="cpu")
    graph = exporting._graph(forecaster, P)
    for factor, fits in ((1 + 2e-6, True), (1 + 1e-3, False)):
        path = tmp_path / f"{fits}.onnx"
        monkeypatch.setattr(exporting, "_graph", lambda *_, factor=factor: multiplied(graph, factor))
        if fits:
            assert 0 < forecaster.export(path).difference < exporting.BOUND
        else:
            with pytest.raises(UsageError, match=r"differs between onnxruntime and torch by \S+e-0[23]"):
                forecaster.export(path)
        assert path.exists() == fits
