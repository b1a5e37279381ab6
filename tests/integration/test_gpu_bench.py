"""`scripts/gpu_bench`: the dry run goes all the way, and without a GPU the real one is refused."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "gpu_bench"


@pytest.fixture
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("gpu_bench", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_bench", loader))  # type: ignore[arg-type]
    loader.exec_module(module)
    return module


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_without_cuda_it_is_refused_and_writes_nothing(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["gpu_bench", "--out", str(tmp_path / "out")])
    assert script.main() == 2
    assert "no CUDA device" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_dry_run_measures_everything_that_has_a_target(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["gpu_bench", "--out", str(tmp_path), "--dry-run"])
    monkeypatch.setattr(script, "MODELS", "dlinear")
    for name, command in script.SMALL.items():
        monkeypatch.setitem(script.SMALL, name, command.replace("fem_sm,fem_gla,fem_aft,fem_mamba,dlinear", "dlinear"))
    assert script.main() == 0
    printed = capsys.readouterr().out
    for target in (
        "softmax LTG over alone",
        "gla CLTG over alone",
        "peak memory",
        "time a token, mamba",
        "stream, gla",
        "minutes",
    ):
        assert target in printed
    assert "MET" not in printed, "a dry run judges nothing"
    for name, command in script.SMALL.items():
        record = json.loads((tmp_path / f"{name}.json").read_text())
        assert record["command"].startswith(f"femts bench {command}") and record["rows"]


def test_projection_counts_the_steps_of_the_recipe_and_every_window_once(script: ModuleType) -> None:
    row = {
        "dataset": "ETTh1",
        "seq_len": 1024,
        "pred_len": 96,
        "windows_per_s": 100.0,
        "scoring_windows_per_s": 500.0,
        "outside": 0.5,
    }
    val, test = 2880 - 96 + 1, 2785
    expected = 1000 * 32 / 100 / 0.5 + (8 * 512 + val + test) / 500
    assert script.run_seconds(row) == pytest.approx(expected)
