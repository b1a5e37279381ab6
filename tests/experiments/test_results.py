"""Verification of records, and damaged records."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pages import cells_in_this_process
from small_grid import COMMAND, record, small_grid, two_columns

import femts
from femts.cli import main
from femts.errors import RunFailure, UsageError
from femts.experiments import record as record_module
from femts.experiments.cell import Cell
from femts.experiments.record import make_record
from femts.experiments.results import Store, read_record
from femts.experiments.runner import Engine, run_cells
from femts.experiments.verify import SCOPE, verify_record

CELL = Cell("synthetic", "ridge", 96, seq_len=192)


@pytest.fixture(autouse=True, scope="module")
def fewer_columns() -> Iterator[None]:
    with two_columns():
        yield


@pytest.fixture(scope="module")
def trained_record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A record with recursive scores."""
    store = Store(tmp_path_factory.mktemp("genuine"))
    with cells_in_this_process():
        run_cells([CELL], store, Engine(jobs=2, device="cpu"))
    return store.record(CELL) or {}


def changed(content: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A copy with values replaced at dotted paths; `...` deletes, and a function maps the old value."""
    made = copy.deepcopy(content)
    for path, value in changes.items():
        place: Any = made
        *way, last = (
            int(part) if part.isdecimal() and path.startswith("samples") else part for part in path.split(".")
        )
        for key in way:
            place = place[key]
        if value is ...:
            del place[last]
        else:
            place[last] = value(place[last]) if callable(value) else value
    return made


def perturbed(value: float) -> float:
    return value * (1 + 1e-12)


# Each is of the right form, and wrong.
ALTERATIONS: list[dict[str, Any]] = [
    {"test.mse": perturbed},
    {"val.windows": lambda n: n + 1},
    {"rolled.336.test.mae": perturbed},
    {"rolled.720": ...},
    {"steps": 1000},
    {"parameters": 7},
    {"samples.0.forecast": lambda values: [perturbed(values[0]), *values[1:]]},
    {"kernels": {"read": "triton"}},
    {"config.training.lr ": 1.0},
    {"config.model.n_channels": 3},
    {"data.split": lambda split: {**split, "test": [0, split["test"][1]]}},
]
DAMAGED: dict[str, Any] = {
    "test": None,
    "test.mse": "low",
    "test.mae": float("nan"),
    "val.windows": 1.5,
    "rolled": [],
    "rolled.week": {},
    "naive": {"season": 1},
    "cell.settings": {"lr": "1"},
    "cell.own": {"source": "/none"},
    "cell.seed": -1,
    "seconds": ...,
    "config": [],
    "config.seq_len": "192",
    "data.sha256": 7,
    "history": [{}],
    "window_errors.96": [-0.1],
    "samples": [],
    "place.threads": 10**6,
    "commit": "yesterday",
    "novel": 1,
}


def test_verify_is_exact_here_and_tolerant_elsewhere(trained_record: dict[str, Any]) -> None:
    assert sorted(trained_record["rolled"]) == ["192", "336", "720"]
    assert str(verify_record(trained_record, "cpu")).endswith("bit-identical")
    elsewhere = changed(trained_record, {"place.name": "another", "rolled.336.test.mse": lambda mse: mse * 1.01})
    elsewhere["window_errors"]["96"][3] *= 1.1
    elsewhere["val"]["bias"] += 0.01  # near 0, so that no ratio means anything
    verdict = verify_record(elsewhere, "cpu")
    assert verdict.holds and "within 2 %; different now: name" in str(verdict)
    for changes in ALTERATIONS:
        wrong = SCOPE.deviations(changed(trained_record, changes), trained_record, elsewhere=False)
        assert len(wrong) == 1 and wrong[0].startswith(next(iter(changes)))
    older = changed(trained_record, {"window_errors": ..., "naive": ...})
    assert not SCOPE.deviations(older, trained_record, elsewhere=False), "from before these were kept"
    far = changed(elsewhere, {"rolled.336.test.mse": lambda mse: mse * 1.02})
    assert SCOPE.deviations(far, trained_record, elsewhere=True)[0].startswith("rolled.336.test.mse")


@pytest.mark.parametrize("panel", [False, True])
def test_test_split_is_scored_once(panel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = femts.load_dataset("synthetic", panel=panel)
    made = femts.train(data, "naive", 96, seq_len=48, refit=False)
    again = make_record(replace(made, test_errors=None), data)
    monkeypatch.setattr(record_module, "score", lambda *_: pytest.fail("scored again"))
    assert make_record(made, data) == again
    assert again["series_errors" if panel else "window_errors"]["96"]


def test_verify_command_reports_differences(
    trained_record: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(changed(trained_record, {"test.mse": perturbed})))
    assert main(["verify", str(path), "--device", "cpu"]) == 1
    assert "NOT identical on the same hardware and libraries: test.mse" in capsys.readouterr().out


def test_verify_refuses_other_settings_or_data(trained_record: dict[str, Any]) -> None:
    verdict = verify_record(changed(trained_record, {"config.training.lr": 0.5}), "cpu")
    assert verdict.repeated is None and not verdict.holds and "NOT run" in str(verdict)
    with pytest.raises(UsageError, match="data of synthetic do not match the record"):
        verify_record(changed(trained_record, {"data.sha256": "0" * 64}), "cpu")


def test_damaged_record_names_file_and_field(trained_record: dict[str, Any], tmp_path: Path) -> None:
    for path in DAMAGED:
        (tmp_path / "x.json").write_text(json.dumps(changed(trained_record, {path: DAMAGED[path]})))
        with pytest.raises(UsageError, match=rf"Record .*x\.json is damaged: .*{path.rsplit('.', 1)[0]}.*; restore"):
            read_record(tmp_path / "x.json", Cell)


def test_file_that_is_not_a_record_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content, says in [("{", "is not JSON"), ("{}", "is not a record"), ("[1]", "is not a record")]:
        (tmp_path / "x.json").write_text(content)
        assert main(["verify", str(tmp_path / "x.json")]) == 2
        assert says in capsys.readouterr().err
        assert main(["verify", str(tmp_path / "none.json")]) == 2


@pytest.mark.parametrize(
    ("content", "form"),
    [(b"", "text"), (b"[" * 100_000, "csv"), (b"\xff\xfe", "html"), (b'{"format": 1}', "text"), (b"9" * 5000, "md")],
    ids=["empty", "deep", "no text", "no fields", "one number"],
)
def test_table_shows_other_cells_despite_a_damaged_record(
    content: bytes, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, (bad, *others) = Store(tmp_path), small_grid()
    for cell in others:
        store.finish(cell, record(cell, 0.25))
    path = store.record_path(bad)
    path.write_bytes(content)
    assert main([*COMMAND, "--show", "--format", form, "--results", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "0.25" in out and err.count("\n") == 1 and f"{path}" in err
    before = sorted((path, path.read_bytes()) for path in tmp_path.rglob("*.json"))
    assert main([*COMMAND, "--results", str(tmp_path)]) == 2
    assert str(path) in capsys.readouterr().err
    assert before == sorted((path, path.read_bytes()) for path in tmp_path.rglob("*.json"))


def test_misplaced_record_is_detected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, (one, other, *_) = Store(tmp_path), small_grid()
    store.finish(one, record(one, 0.25))
    store.record_path(other).write_bytes(store.record_path(one).read_bytes())
    assert main([*COMMAND, "--show", "--results", str(tmp_path)]) == 1
    assert "belongs to another cell: cell.model is 'naive', not 'dlinear'" in capsys.readouterr().err
    with pytest.raises(RunFailure, match=r"cannot be kept: test\.mse is nan, input should be a finite number"):
        store.finish(one, record(one, float("nan")))
    assert store.record(one)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"reason": 7}', b"\xff"])
def test_damaged_failure_note_is_tolerated(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, cell = Store(tmp_path), small_grid()[0]
    store.fail(cell, "no")
    store.failure_path(cell).write_bytes(content)
    assert main([*COMMAND, "--show", "--results", str(tmp_path)]) == 0
    assert f"its reason cannot be read from {store.failure_path(cell)}" in capsys.readouterr().out
