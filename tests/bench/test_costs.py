"""`python -m scripts.bench`: small runs of each benchmark and their JSON output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from femts.errors import UsageError
from femts.mixers.priors.registry import prior_names
from femts.models.registry import build_config
from scripts.bench import gpu, mixer
from scripts.bench.__main__ import main, run
from scripts.bench.mixer import layer_config
from scripts.bench.operators import operators

MIXER = "mixer --lengths 3 6 --tokens 8 --d-model 16 --n-heads 2 --repeats 1 --device cpu"
TRAIN = "train --seq-len 48 --horizon 24 --channels 3 --batch-size 2 --repeats 1 --device cpu --set model.d_model=16"
SETS = ["alone", "L", "LT", "LTG", "CLTG", "naive"]


def rows(command: str) -> list[dict[str, Any]]:
    return run(command.split())["rows"]


def test_mixer_benchmark_covers_every_case() -> None:
    measured = rows(MIXER)
    assert [(row["prior"], row["length"], row["components"]) for row in measured] == [
        (prior, length, name) for prior in prior_names() for length in (3, 6) for name in SETS
    ]
    for row in measured:
        assert row["batch"] == 8 // row["length"]
        assert min(row["forward"]["seconds"], row["step"]["seconds"], row["peak_bytes"], row["peak_ratio"]) > 0
        if row["components"] == "alone":
            assert (row["forward"]["ratio"], row["step"]["ratio"], row["peak_ratio"]) == (1.0, 1.0, 1.0)


def test_benchmark_layers_match_the_models() -> None:
    for prior, model in {"softmax": "sm", "rnn_softmax": "aft", "mamba": "mamba"}.items():
        for components, name in {"alone": model, "CLTG": f"fem_{model}", "naive": f"fem_{model}"}.items():
            host: Any = build_config(name, seq_len=1024, pred_len=96, n_channels=7, settings={})
            assert layer_config(prior, components, 64, 8) == host.mixer_config()


def test_too_large_naive_form_is_skipped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(mixer, "LARGEST_NAIVE", 0)
    command = f"{MIXER} --priors gla --lengths 4 --components naive"
    assert main([*command.split(), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert set(record) == {"machine", "kernels", "settings", "rows"} and record["settings"]["lengths"] == [4]
    assert [row["step"] is None for row in record["rows"]] == [False, True]
    assert main(command.split()) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:6] == ["gla", "4", "2", "naive", "-", "-"]


def test_only_softmax_stream_state_grows() -> None:
    measured = rows("stream --priors softmax gla --seen 2 9 --d-model 16 --n-heads 2 --repeats 1 --device cpu")
    assert [(row["prior"], row["seen"]) for row in measured] == [(p, n) for p in ("softmax", "gla") for n in (2, 9)]
    assert [row["step"]["ratio"] for row in measured if row["seen"] == 2] == [1.0, 1.0]
    softmax, gla = [row["state_bytes"] for row in measured[:2]], [row["state_bytes"] for row in measured[2:]]
    assert softmax[1] > softmax[0] and gla[0] == gla[1] > 0


def test_train_benchmark_compares_with_the_first_model() -> None:
    record = run(f"{TRAIN} model.n_layers=1 --models sm fem_sm".split())
    alone, mixed = record["rows"]
    assert record["settings"]["settings"] == {"model.d_model": "16", "model.n_layers": "1"}
    assert (alone["model"], mixed["model"], alone["step"]["ratio"]) == ("sm", "fem_sm", 1.0)
    for row in (alone, mixed):
        assert row["windows_per_s"] == pytest.approx(2 / row["step"]["seconds"])
        assert row["peak_bytes"] > 4 * 2 * (48 + 24) * 3, "the batch at least"
        assert row["forecasts_per_s"] > 0 and row["floor_seconds"] > 0 and row["outside"] < 1


def test_replay_benchmark_takes_equal_steps() -> None:
    command = "replay --models dlinear fem_gla --seq-len 24 --horizon 12 --channels 2 --batch-size 2 --repeats 1"
    measured = rows(f"{command} --device cpu --precision 32")
    assert [row["model"] for row in measured] == ["dlinear", "fem_gla"]
    for row in measured:  # a CPU replays nothing, and takes the same steps twice
        assert row["step"]["seconds"] > 0 and row["difference"] == 0.0 and row["replayed"] == 0.0


def test_operations_are_counted_exactly() -> None:
    # dlinear: two maps from 48 to 24 steps for 3 channels of 2 windows; forward and the gradient of the
    # weights, not of the data.
    (row,) = rows(f"{TRAIN.partition(' --set')[0]} --models dlinear")
    assert row["flops"] == 2 * 2 * (2 * 2 * 3 * 48 * 24)
    q, k, v = (torch.randn(2, 3, 10, 8, requires_grad=True) for _ in range(3))
    with FlopCounterMode(display=False) as counter:  # knows the CPU's kernel through scripts.bench.train
        F.scaled_dot_product_attention(q, k, v).sum().backward()
    assert counter.get_total_flops() == (2 + 5) * 2 * 2 * 3 * 10 * 10 * 8  # its way back computes the scores again


def test_data_benchmark() -> None:
    measured = rows("data --seq-len 24 --horizon 12 --batch-sizes 8 32 --repeats 1 --device cpu")
    assert [(row["channels"], row["batch_size"]) for row in measured] == [(7, 8), (7, 32)]
    for row in measured:
        assert row["loader"]["ratio"] == 1.0
        assert row["gather_windows_per_s"] == pytest.approx(row["batch_size"] / row["gather"]["seconds"])


def test_invalid_arguments_are_refused() -> None:
    for command, says in [
        (f"{MIXER} --components CLTG CT", "'CT' has T without L"),
        ("stream --priors gla gal", "Unknown prior 'gal'; did you mean 'gla'"),
        ("train --models sm naive", "'naive' has no weights"),
    ]:
        with pytest.raises(UsageError, match=says):
            run(command.split())
        assert main(command.split()) == 2


@pytest.mark.slow
def test_gpu_targets_run_on_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--out", str(tmp_path), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    for target in (
        "replayed step, dlinear, ms",
        "softmax LTG over alone",
        "peak memory",
        "time a token, mamba",
        "stream, gla",
        "minutes",
    ):
        assert target in printed
    assert "MET" not in printed, "a dry run judges nothing"
    for name, command in gpu.commands(dry=True).items():
        record = json.loads((tmp_path / f"{name}.json").read_text())
        assert record["command"] == f"python -m scripts.bench {command}" and record["rows"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_gpu_targets_need_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--out", str(tmp_path / "out")]) == 2
    assert "no CUDA device" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_operators_are_those_that_compute() -> None:
    x = torch.randn(3, 4, requires_grad=True)

    def step() -> None:
        x.grad = None
        torch.relu(x @ x.T).flatten().sum().backward()

    counts = operators(step)
    assert counts["aten.mm"] == 3 and counts["aten.relu"] == 1 and counts["aten.threshold_backward"] == 1
    assert not {"aten.t", "aten.view", "aten.expand", "aten.detach"} & set(counts)


def test_components_add_operators(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["operators", "--priors", "softmax", "--lengths", "8", "--components", "LTG", "--json"]) == 0
    alone, full = json.loads(capsys.readouterr().out)["rows"]
    assert (alone["components"], full["components"]) == ("alone", "LTG")
    assert alone["step"] < full["step"] and full["step_ratio"] == full["step"] / alone["step"]
