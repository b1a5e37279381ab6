"""What `femts bench` prints."""

from __future__ import annotations

import json

import pytest
import torch

from femts.cli import main
from femts.data.catalog import CATALOG

MIXER = (
    "bench mixer --priors gla,softmax --lengths 3 --tokens 6 --d-model 16 --n-heads 2 --repeats 1 --device cpu".split()
)
SETS = "--datasets synthetic --models dlinear,lintrans --pred-len 336"
TRAIN = f"bench train {SETS} --batch-size 2 --repeats 1 --device cpu".split()


def run(capfd: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(args) == 0
    out, err = capfd.readouterr()  # of the file descriptors: torch writes there by itself
    assert err == ""
    return out


def test_mixer_prints_a_table_for_each_prior(capfd: pytest.CaptureFixture[str]) -> None:
    first, *tables, last = run(capfd, *MIXER, "--threads", "1").split("\n\n")
    assert last == "kernels: read torch, scan torch\n"
    assert f"(cpu, 32), threads 1, torch {torch.__version__}, femts " in first
    assert [table.splitlines()[1].split()[0] for table in tables] == ["gla", "softmax"]
    for table in tables:
        head, *lines = table.splitlines()
        assert head.split()[:4] == ["prior", "T", "batch", "case"]
        assert [line.split()[3] for line in lines] == ["alone", "L", "LT", "LTG", "CLTG", "naive"]
        assert len({len(line.split()) for line in lines}) == 1


def test_mixer_json_says_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    record = json.loads(run(capfd, *MIXER, "--json", "--components", "CLTG"))
    assert set(record) == {"machine", "kernels", "settings", "rows"}
    assert record["machine"]["device"] == "cpu" and record["machine"]["precision"] == "32"
    assert record["settings"]["lengths"] == [3]
    assert [(row["prior"], row["case"]) for row in record["rows"]] == [
        (prior, case) for prior in ("gla", "softmax") for case in ("alone", "CLTG")
    ]
    for row in record["rows"]:
        assert row["batch"] == 2
        assert min(row["forward"]["seconds"], row["step"]["seconds"], row["peak_bytes"], row["peak_ratio"]) > 0


def test_what_was_left_out_is_a_dash_or_null(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("femts.bench.mixer.LARGEST_NAIVE", 0)
    lines = run(capfd, *MIXER, "--components", "naive").splitlines()
    assert lines[-3].split() == ["softmax", "3", "2", "naive", *["-"] * 10]
    assert json.loads(run(capfd, *MIXER, "--components", "naive", "--json"))["rows"][-1]["step"] is None


def test_train_prints_a_row_for_each_model(capfd: pytest.CaptureFixture[str]) -> None:
    small = ["--set", "model.d_model=16"]
    assert main([*TRAIN, *small]) == 2  # dlinear has no such setting, and settings are everybody's
    assert "'model.d_model'" in capfd.readouterr().err
    lines = run(capfd, *TRAIN).splitlines()
    assert [line.split()[:4] for line in lines[3:]] == [["synthetic", "6", "2048", m] for m in ("dlinear", "lintrans")]
    record = json.loads(run(capfd, *TRAIN, "--models", "lintrans", "--json", *small, "--set", "model.n_layers=1"))
    assert record["settings"]["settings"] == {"d_model": "16", "n_layers": "1"}
    (row,) = record["rows"]
    assert (
        min(row[name] for name in ("windows_per_s", "flops", "floor_seconds", "scoring_windows_per_s", "peak_bytes"))
        > 0
    )


def test_data_prints_one_table_for_all_data_sets(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("femts.bench.data.WINDOWS_A_TURN", 32)
    lines = run(capfd, "bench", "data", "--repeats", "1", "--device", "cpu").splitlines()
    assert [line.split()[0] for line in lines[3:]] == [name for name in CATALOG for _ in range(2)]
    record = json.loads(
        run(capfd, "bench", "data", "--datasets", "Solar", "--repeats", "1", "--device", "cpu", "--json")
    )
    assert [(row["channels"], row["batch_size"]) for row in record["rows"]] == [(137, 32), (137, 256)]


def test_threads_are_put_back(capfd: pytest.CaptureFixture[str]) -> None:
    before = torch.get_num_threads()
    record = json.loads(run(capfd, *MIXER, "--components", "alone", "--json", "--threads", str(before + 1)))
    assert record["machine"]["threads"] == before + 1
    assert torch.get_num_threads() == before
