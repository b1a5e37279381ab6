"""Tasks of selection: what they draw can be answered, tiny cells of each run, and their records say all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Generator

from femts.bench.tasks.base import IGNORED, MEASURES, task_class, task_names
from femts.bench.tasks.cell import TaskCell, make_cells
from femts.bench.tasks.digits import TESTED, images
from femts.bench.tasks.fetch import HEIGHT, Fetch
from femts.bench.tasks.fit import fit
from femts.bench.tasks.fuzzy_recall import FuzzyRecall
from femts.bench.tasks.layer import mixer_layer, mixer_names
from femts.bench.tasks.memorisation import Memorisation
from femts.bench.tasks.next_byte import sources
from femts.bench.tasks.recall import NoisyRecall, Recall
from femts.bench.tasks.selective_copy import SelectiveCopy
from femts.bench.tasks.verify import verify_task
from femts.cli import main
from femts.config.rules import Misfit
from femts.errors import RunFailure, UsageError

TINY = {"steps": 3, "batch": 4, "scored": 8, "width": 16, "heads": 2, "layers": 1}


def drawn(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def test_the_tasks_are_those_of_the_issue() -> None:
    suite = ("recall", "noisy_recall", "fuzzy_recall", "selective_copy", "compression", "memorisation")
    assert task_names() == ("fetch", "maximum", *suite, "next_byte", "digits")
    assert {task_class(name).MEASURE for name in task_names()} == set(MEASURES)


@pytest.mark.parametrize("task", task_names())
def test_a_tiny_cell_of_each_task_has_a_whole_record(task: str, tmp_path: Path) -> None:
    for cell in make_cells([task], ["fem_sm", "gla"], [1], TINY):
        record = json.loads(json.dumps(cell.run(tmp_path, "cpu", None)))
        cell.record_model.model_validate(record)
        cell.check_is_of(record)
        assert record["task"]["steps"] == 3 and len(record["losses"]) == 3
        assert 0 < record["mixer_parameters"] < record["parameters"]
        assert record["place"]["threads"] == 1 and record["place"]["libraries"]["torch"]
        assert (record["data"] is not None) == (task in ("next_byte", "digits"))
        with pytest.raises(Misfit, match="cell is"):
            TaskCell(cell.task, cell.mixer, 2, cell.settings).check_is_of(record)


def test_a_seed_decides_all_and_mixers_see_the_same_samples() -> None:
    (cell,) = make_cells(["recall"], ["fem_gla"], [3], TINY)
    first, again = (fit(cell.sizes(), cell.mixer, 3) for _ in range(2))
    assert (first.score, first.losses) == (again.score, again.losses)
    assert fit(cell.sizes(), cell.mixer, 4).losses != first.losses


def test_every_mixer_has_about_the_same_weights() -> None:
    counts = {name: sum(p.numel() for p in mixer_layer(name, 128, 4).parameters()) for name in mixer_names()}
    assert {"fem_sm", "sm", "fem_gla", "gla", "fem_aft", "mamba"} <= set(counts) and "lintrans" not in counts
    for name in ("sm", "gla", "aft", "mamba", "linear"):
        assert 1 <= counts[f"fem_{name}"] / counts[name] < 1.1  # C comes on top


def test_fetch_asks_for_the_payload_at_the_high_key() -> None:
    x, y = Fetch().draw("train", 5, drawn())
    keys, payload = x.chunk(2, dim=-1)
    assert (keys > HEIGHT / 2).sum(1).eq(1).all()
    assert torch.equal(payload.gather(1, keys.argmax(1, keepdim=True))[:, 0], y)


def test_maximum_asks_for_it() -> None:
    x, y = task_class("maximum")().draw("test", 5, drawn())
    assert torch.equal(x.max(1).values, y)


@pytest.mark.parametrize("task", [Recall(), NoisyRecall()], ids=lambda task: task.NAME)
def test_recall_asks_where_a_key_comes_again_and_nowhere_else(task: Recall) -> None:
    tokens, targets = task.draw("train", 20, drawn())
    values = range(8, 16)
    for sequence, asked in zip(tokens.tolist(), targets.tolist(), strict=True):
        map_: dict[int, int] = {}
        for place in range(0, len(sequence), 2):
            key, value = sequence[place : place + 2]
            assert asked[place] == map_.get(key, IGNORED) and asked[place + 1] == IGNORED
            if key < 8:
                assert value in values and map_.get(key, value) == value
                map_[key] = value
    noise = (tokens >= 16).double().mean().item()
    assert noise == pytest.approx(task.noise, abs=0.05)


def test_fuzzy_recall_asks_for_motifs_that_stood_before() -> None:
    task = FuzzyRecall()
    tokens, targets = task.draw("test", 20, drawn())
    half = task.vocabulary // 2
    for sequence, asked in zip(tokens.tolist(), targets.tolist(), strict=True):
        assert all(target in (IGNORED, following) for target, following in zip(asked, sequence[1:], strict=False))
        first = next(place for place, target in enumerate(asked) if target != IGNORED)
        key = sequence[first - task.longest + 1 : first + 1]
        assert max(key) < half and asked[first] >= half  # the last token of a key, of full length in the test
        places = [n for n in range(len(sequence) - 3) if sequence[n : n + 3] == key]
        assert places[0] < first - 2 and sequence[places[0] + 3] == asked[first]


def test_selective_copy_asks_for_the_scattered_tokens_in_order() -> None:
    task = SelectiveCopy()
    tokens, targets = task.draw("train", 10, drawn())
    for sequence, asked in zip(tokens.tolist(), targets.tolist(), strict=True):
        assert [each for each in sequence if each < 14] == asked[-task.copied :]
        assert sequence[-task.copied - 1] == 15 and set(asked[: -task.copied]) == {IGNORED}


def test_memorisation_has_one_map_for_all() -> None:
    (tokens, targets), (others, other_targets) = (Memorisation().draw("test", 99, drawn(seed)) for seed in (0, 1))
    maps = [
        dict(zip(x[:, ::2].flatten().tolist(), y[:, 1::2].flatten().tolist(), strict=True))
        for x, y in ((tokens, targets), (others, other_targets))
    ]
    assert maps[0] == maps[1] and len(maps[0]) == 128 and set(targets[:, ::2].flatten().tolist()) == {IGNORED}


def test_compression_asks_for_every_token() -> None:
    tokens, targets = task_class("compression")().draw("test", 9, drawn())
    assert torch.equal(tokens[:, :-1], targets[:, :-1]) and set(targets[:, -1].tolist()) == {IGNORED}


def test_what_is_scored_was_not_trained_on() -> None:
    train, test, digest = sources()
    assert len(train) > 5 * len(test) > 0 and len(digest) == 64
    patches, digits, _ = images()
    assert patches.shape == (1797, 16, 4) and len(digits) - TESTED == 1200
    x, _ = task_class("digits")().draw("test", TESTED, drawn())
    trained = {tuple(each) for each in patches[:-TESTED].flatten(1).tolist()}
    assert not any(tuple(each) in trained for each in x.flatten(1).tolist())


def test_settings_are_part_of_a_cell_where_they_change_it() -> None:
    plain = make_cells(["fetch", "selective_copy"], ["sm"], [1], {"channels": "16", "steps": "600"})
    assert [cell.settings for cell in plain] == [{"steps": 600}, {}]  # each task has its own steps
    assert plain[0].path.startswith("fetch-") and plain[1].path == "selective_copy/sm-seed1"
    with pytest.raises(UsageError, match=r"'task.step'; did you mean 'steps'"):
        make_cells(["fetch", "recall"], ["sm"], [1], {"step": "600"})


def test_a_score_that_is_no_number_is_a_failure() -> None:
    (cell,) = make_cells(["maximum"], ["sm"], [1], {**TINY, "rate": 1e30})
    with pytest.raises(RunFailure, match="try a smaller rate"):
        fit(cell.sizes(), "sm", 1)


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    (cell,) = make_cells(["fetch"], ["fem_sm"], [1], TINY)
    return dict(json.loads(json.dumps(cell.run(tmp_path_factory.mktemp("work"), "cpu", None))))


def test_a_record_is_verified_to_the_bit_and_elsewhere_within_a_tolerance(genuine: dict[str, Any]) -> None:
    verdict = verify_task(genuine, "cpu")
    assert verdict.holds and str(verdict).endswith("equal to the bit")
    changed = {**genuine, "score": genuine["score"] + 0.01}
    assert "NOT equal, in the same place: score" in str(verify_task(changed, "cpu"))
    elsewhere = {**changed, "code": "0" * 64, "losses": [1.0, 1.0, 1.0]}
    assert str(verify_task(elsewhere, "cpu")).endswith("within 0.02; different now: the sources")
    assert not verify_task({**elsewhere, "score": genuine["score"] + 0.03}, "cpu").holds


@pytest.mark.parametrize(
    "change",
    [
        {"losses": [1.0, 1.0, 1.0]},
        {"parameters": 7},
        {"mixer_parameters": 7},
        {"recipe": {"optimiser": "SGD"}},
        {"data": "0" * 64},
        {"measure": "bits"},
        {"task": {"steps": 3}},
        {"cell": {"task": "fetch", "mixer": "fem_sm", "seed": 1, "settings": {"steps": 3}}},
        {"cell": {"task": "maximum", "mixer": "fem_sm", "seed": 1, "settings": TINY}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_forged_record_is_not_accepted(genuine: dict[str, Any], change: dict[str, Any]) -> None:
    verdict = verify_task({**genuine, **change}, "cpu")
    assert not verdict.holds and next(iter(change)) in str(verdict)


def test_the_command_verifies_records_of_both_kinds(
    genuine: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(genuine))
    assert main(["verify", str(path), "--device", "cpu"]) == 0
    assert capsys.readouterr().out.startswith(f"{path}: error ")
    path.write_text(json.dumps({**genuine, "format": "tasks 9"}))
    assert main(["verify", str(path)]) == 2
    assert "is no record of format 1 or tasks 1; give a file that 'femts table'" in capsys.readouterr().err
