"""Synthetic selection tasks, small trainings and their records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pages import ROOT
from torch import Generator

from femts.errors import RunFailure
from scripts.bench.selection import TASKS, Fetch, fit
from scripts.bench.selection.__main__ import main
from scripts.bench.selection.channels import HEIGHT, Maximum
from scripts.bench.selection.networks import mixer_layer
from scripts.bench.selection.records import make_cells, verify
from scripts.bench.selection.suite import Compression, FuzzyRecall, Memorisation, NoisyRecall, Recall, SelectiveCopy
from scripts.bench.selection.task import IGNORED, SCALES
from scripts.bench.selection.text_and_images import TESTED, Digits, images, sources

TINY: dict[str, Any] = {"steps": 3, "batch": 4, "scored": 8, "width": 16, "heads": 2, "layers": 1}
SIZES = [f"{name}={value}" for name, value in TINY.items()]
SMALL = ["--mixers", "fem_sm", "sm", "--seeds", "1", "--jobs", "1", "--set", *SIZES]


def test_fetch_task_targets() -> None:
    x, y = Fetch().draw("train", 5, Generator())
    keys, payload = x.chunk(2, dim=-1)
    assert (keys > HEIGHT / 2).sum(1).eq(1).all()
    assert torch.equal(payload.gather(1, keys.argmax(1, keepdim=True))[:, 0], y)


def test_maximum_task_targets() -> None:
    x, y = Maximum().draw("test", 5, Generator())
    assert torch.equal(x.max(1).values, y)


@pytest.mark.parametrize("task", [Recall(), NoisyRecall()], ids=lambda task: task.name)
def test_recall_task_targets(task: Recall) -> None:
    tokens, targets = task.draw("train", 20, Generator())
    for sequence, asked in zip(tokens.tolist(), targets.tolist(), strict=True):
        known: dict[int, int] = {}
        for place in range(0, len(sequence), 2):
            key, value = sequence[place : place + 2]
            assert asked[place] == known.get(key, IGNORED) and asked[place + 1] == IGNORED
            if key < 8:
                assert 8 <= value < 16 and known.get(key, value) == value
                known[key] = value
    assert (tokens >= 16).double().mean().item() == pytest.approx(task.noise, abs=0.05)


def test_fuzzy_recall_task_targets() -> None:
    task = FuzzyRecall()
    tokens, targets = task.draw("test", 20, Generator())
    for sequence, asked in zip(tokens.tolist(), targets.tolist(), strict=True):
        assert all(target in (IGNORED, following) for target, following in zip(asked, sequence[1:], strict=False))
        first = next(place for place, target in enumerate(asked) if target != IGNORED)
        key = sequence[first - task.longest + 1 : first + 1]
        assert max(key) < task.vocabulary // 2 <= asked[first]  # the last token of a key, of full length in the test
        places = [n for n in range(len(sequence) - 3) if sequence[n : n + 3] == key]
        assert places[0] < first - 2 and sequence[places[0] + 3] == asked[first]


def test_selective_copy_task_targets() -> None:
    tokens, targets = SelectiveCopy(copied=8).draw("train", 10, Generator())
    for sequence, asked in zip(tokens.tolist(), targets.tolist(), strict=True):
        assert [each for each in sequence if each < 14] == asked[-8:]
        assert sequence[-9] == 15 and set(asked[:-8]) == {IGNORED}


def test_memorisation_task_targets() -> None:
    maps = []
    for seed in (0, 1):
        x, y = Memorisation().draw("test", 99, Generator().manual_seed(seed))
        maps.append(dict(zip(x[:, ::2].flatten().tolist(), y[:, 1::2].flatten().tolist(), strict=True)))
        assert set(y[:, ::2].flatten().tolist()) == {IGNORED}
    assert maps[0] == maps[1] and len(maps[0]) == 128


def test_compression_task_targets() -> None:
    x, y = Compression().draw("test", 9, Generator())
    assert torch.equal(x[:, :-1], y[:, :-1]) and set(y[:, -1].tolist()) == {IGNORED}


def test_test_samples_differ_from_training() -> None:
    train, test, _ = sources()
    assert len(train) > 5 * len(test) > 0
    patches, _, _ = images()
    x, _ = Digits().draw("test", TESTED, Generator())
    trained = {tuple(each) for each in patches[:-TESTED].flatten(1).tolist()}
    assert len(trained) > 1000 and not any(tuple(each) in trained for each in x.flatten(1).tolist())


def test_mixers_have_equal_weight_budgets() -> None:
    for name in ("sm", "gla", "aft", "mamba", "linear"):
        mixed, alone = (sum(p.numel() for p in mixer_layer(n, 128, 4).parameters()) for n in (f"fem_{name}", name))
        assert 1 <= mixed / alone < 1.1  # C comes on top


@pytest.mark.parametrize("name", TASKS)
def test_tiny_training_writes_a_record(name: str) -> None:
    for cell in make_cells([name], ["fem_sm", "gla"], [1], {key: str(value) for key, value in TINY.items()}):
        record = json.loads(json.dumps(cell.run("cpu")))
        assert record["task"]["steps"] == len(record["losses"]) == 3
        assert 0 < record["mixer_parameters"] < record["parameters"]
        assert record["measure"] in SCALES and (record["data"] is not None) == (name in ("next_byte", "digits"))


def test_mixer_solves_fetch_and_its_prior_does_not() -> None:
    task = Fetch(length=8, channels=8, width=32, steps=300, scored=256)
    assert fit(task, "fem_sm", 1)["score"] < 0.2 < fit(task, "sm", 1)["score"]


def test_nonfinite_loss_is_a_run_failure() -> None:
    with pytest.raises(RunFailure, match="lower the rate"):
        fit(Maximum(**{**TINY, "rate": 1e30}), "sm", 1)


def test_finished_trainings_are_not_rerun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--out", str(tmp_path), *SMALL]
    assert main(["--tasks", "fetch", *command]) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert len(before) == 2
    assert main(["--tasks", "fetch", "recall", *command]) == 0
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())
    capsys.readouterr()
    assert main(["--tasks", "fetch", "recall", "--show", *command, "--seeds", "1", "2"]) == 0
    scores, costs = capsys.readouterr().out.split("\n\n")
    assert scores.startswith("| task | measure | seeds | fem_sm | sm |\n| --- |") and scores.count("1 of 2 seeds") == 4
    assert [line.split()[1] for line in costs.splitlines()[2:]] == ["fetch", "recall"]
    assert main(["--verify", *map(str, before)]) == 0
    assert capsys.readouterr().out.count("equal to the bit") == 2


def test_committed_record_verifies() -> None:
    record = json.loads((ROOT / "results" / "selection" / "memorisation" / "sm-seed1.json").read_text())
    holds, words = verify(record)
    assert holds, words


def test_altered_record_does_not_verify() -> None:
    (cell,) = make_cells(["fetch"], ["fem_gla"], [1], {key: str(value) for key, value in TINY.items()})
    record = json.loads(json.dumps(cell.run("cpu")))
    assert verify(record)[1].endswith("equal to the bit")
    assert not verify({**record, "losses": [1.0, 1.0, 1.0]})[0]
    elsewhere = {**record, "commit": "0" * 40, "losses": [1.0, 1.0, 1.0]}
    assert verify({**elsewhere, "score": record["score"] + 0.01})[1].endswith("other than recorded: commit")
    assert not verify({**elsewhere, "score": record["score"] + 0.03})[0]
    assert not verify({**elsewhere, "parameters": 7})[0]
    assert "NOT run, for this femts has another data" in verify({**record, "data": "0" * 64})[1]


def test_models_without_a_mixer_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mixers", "ridge", "--out", str(tmp_path / "new")]) == 2
    assert "'ridge' is no mixer" in capsys.readouterr().err and not list(tmp_path.iterdir())
