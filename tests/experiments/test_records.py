"""Records that were forged or damaged: verify accepts none, and a table shows the others."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_grid import COMMAND, record, small_grid

from femts.cli import main
from femts.errors import RunFailure, UsageError
from femts.experiments import verify
from femts.experiments.grid import Cell
from femts.experiments.local import Resources, run_local
from femts.experiments.store import Store, read_record
from femts.experiments.verify import verify_record

CELL = Cell("synthetic", "ridge", 96, seq_len=192)


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The record of a model that is rolled out."""
    store = Store(tmp_path_factory.mktemp("genuine"))
    run_local([CELL], store, Resources(1, 1, "cpu"), None, print)
    return store.record(CELL) or {}


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Put `value`, or what it makes of the old one, at a dotted place; `...` takes the old one away."""

    def change(content: Any) -> None:
        *way, last = path.split(".")
        for key in way:
            content = content[int(key) if isinstance(content, list) else key]
        last = int(last) if isinstance(content, list) else last  # type: ignore[assignment]
        if value is ...:
            del content[last]
        else:
            content[last] = value(content[last]) if callable(value) else value

    return change


def nearly(value: float) -> float:
    return value * (1 + 1e-12) + 1e-15


# Each is of the right form, and wrong: only making the cell again tells.
FORGED: dict[str, Any] = {
    "test.mse": nearly,
    "test.mae": nearly,
    "test.windows": lambda n: n - 1,
    "val.mse": nearly,
    "val.mae": nearly,
    "val.windows": lambda n: n + 1,
    "rolled.192.test.mse": nearly,
    "rolled.192.val.mse": nearly,
    "rolled.336.test.mae": nearly,
    "rolled.720.test.windows": lambda n: n + 1,
    "rolled.720": ...,
    "rolled.1000": {"val": {"mse": 0.1, "mae": 0.1, "windows": 9}, "test": {"mse": 0.1, "mae": 0.1, "windows": 9}},
    "rolled": {},
    "kept_step": 5,
    "steps": 1000,
    "stopped": "max_steps",
    "parameters": 7,
    "history": [{"step": 1, "train_loss": 0.1, "val_mse": 0.1, "val_mae": 0.1, "lr": 0.1, "seconds": 0.1}],
    "window_errors.96.3": nearly,
    "window_errors.192": ...,
    "samples.0.row": lambda n: n + 1,
    "samples.0.forecast.3": nearly,
    "samples.1.truth.0": nearly,
    "samples.1": ...,
    "kernels": {"read": "triton"},
    "config.training.lr": 0.5,
    "config.training.max_steps": 7,
    "config.training.loss": "pinball",
    "config.training.eval_batch_size": 64,
    "config.training.lr ": 1.0,
    "config.model.season": 1,
    "config.model.n_channels": 3,
    "config.model.d_model": 10**9,
    "config.dataset.na": [0.0],
    "config.dataset.source": "ETTh1",
    "config.dataset.roles": {"calendar": True},
    "data.split.test": [0, 100],
}
# And each of these has two places that must say the same.
OTHERS: dict[str, dict[str, Any]] = {
    "model": {"cell.model": "dlinear", "config.model.name": "dlinear"},
    "its name alone": {"cell.model": "dlinear"},
    "its name in the configuration": {"config.model.name": "fem_sm"},
    "seed": {"cell.seed": 1, "config.training.seed": 1},
    "a setting": {"cell.settings": {"training.lr": "0.5"}},
    "a budget": {"cell.settings": {"training.max_time": "1s"}, "config.training.max_time": "1s"},
    "look-back": {"cell.seq_len": 96, "config.seq_len": 96, "config.model.seq_len": 96},
    "data": {"cell.dataset": "synthetik", "config.dataset.name": "synthetik"},
    "hash": {"data.sha256": "0" * 64},
    "one of two horizons": {"cell.pred_len": 48},
}
# What cannot be a record at all, by the field that is named.
DAMAGED: dict[str, Any] = {
    "test": None,
    "test.mse": "low",
    "test.mae": float("nan"),
    "val.mse": float("inf"),
    "val.windows": 1.5,
    "rolled": [],
    "rolled.192": {},
    "rolled.week": {},
    "cell.settings": {"lr": "1"},
    "cell.own": {"source": "/none"},
    "cell.seed": -1,
    "cell.pred_len": 10**9,
    "seconds": ...,
    "config": [],
    "config.seq_len": "192",
    "config.training": 7,
    "data.sha256": 7,
    "history": [{}],
    "window_errors": [],
    "window_errors.96": [-0.1],
    "window_errors.week": [0.1],
    "window_errors.192": [0.1] * 201,
    "samples": [],
    "samples.0.forecast": [None],
    "samples.0.channel": "\ud800",
    "parameters": -1,
    "place.threads": 10**6,
    "place.libraries": {},
    "commit": "yesterday",
    "format": True,
    "novel": 1,
}


@pytest.mark.parametrize("changes", [*({k: v} for k, v in FORGED.items()), *OTHERS.values()], ids=[*FORGED, *OTHERS])
def test_verify_accepts_no_forged_record(
    genuine: dict[str, Any],
    changes: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(verify, "_run_again", lambda *_: genuine)  # it is made again below, once
    forged = copy.deepcopy(genuine)
    for path, value in changes.items():
        _set(path, value)(forged)
    (tmp_path / "x.json").write_text(json.dumps(forged))
    status = main(["verify", str(tmp_path / "x.json"), "--device", "cpu"])
    out, err = capsys.readouterr()
    assert status in (1, 2) and "equal to the bit" not in out
    assert (err if status == 2 else out).count("\n") == 1
    path = next(iter(changes))
    if path in FORGED and status == 1:
        assert path.rsplit(".", 1)[0] in out


def test_verify_makes_everything_again_and_finds_it_equal(genuine: dict[str, Any]) -> None:
    assert sorted(genuine["rolled"]) == ["192", "336", "720"]
    verdict = verify_record(genuine, "cpu")
    assert verdict.holds and str(verdict).endswith("equal to the bit")
    elsewhere = copy.deepcopy(genuine)
    elsewhere["place"]["name"] = "another"
    elsewhere["rolled"]["336"]["test"]["mse"] *= 1.01
    elsewhere["window_errors"]["96"][3] *= 1.1
    assert verify_record(elsewhere, "cpu").holds
    elsewhere["rolled"]["336"]["test"]["mse"] *= 1.02
    assert "NOT within 2 %: rolled.336.test.mse" in str(verify_record(elsewhere, "cpu"))


def test_a_record_of_before_errors_by_window_is_verified(
    genuine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "_run_again", lambda *_: genuine)
    older = {key: value for key, value in genuine.items() if key != "window_errors"}
    assert str(verify_record(older, "cpu")).endswith("equal to the bit")


def test_a_record_of_before_a_setting_is_verified_where_the_setting_stands_at_its_default(
    genuine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "_run_again", lambda *_: genuine)
    older = copy.deepcopy(genuine)
    del older["config"]["model"]["season"], older["config"]["training"]["keep"]  # as the cell has it, and by default
    assert "config.model.season" in str(verify_record(older, "cpu"))
    older["config"]["model"]["season"] = genuine["config"]["model"]["season"]
    assert str(verify_record(older, "cpu")).endswith("equal to the bit")


@pytest.mark.parametrize("path", DAMAGED)
def test_a_damaged_record_is_told_by_file_and_field(genuine: dict[str, Any], path: str, tmp_path: Path) -> None:
    damaged = copy.deepcopy(genuine)
    _set(path, DAMAGED[path])(damaged)
    (tmp_path / "x.json").write_text(json.dumps(damaged))
    with pytest.raises(UsageError, match=rf"Record .*x\.json is damaged: .*{path.rsplit('.', 1)[0]}.*; bring back"):
        read_record(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("content", "form"),
    [(b"", "text"), (b"[" * 100_000, "csv"), (b"\xff\xfe", "html"), (b'{"format": 1}', "text"), (b"9" * 5000, "md")],
    ids=["empty", "deep", "no text", "no fields", "one number"],
)
def test_a_table_shows_the_cells_beside_a_damaged_record(
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


def test_a_record_in_the_place_of_another_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, (one, other, *_) = Store(tmp_path), small_grid()
    store.finish(one, record(one, 0.25))
    store.record_path(other).write_bytes(store.record_path(one).read_bytes())
    assert main([*COMMAND, "--show", "--results", str(tmp_path)]) == 1
    assert "is of another cell: cell.model is 'naive', not 'dlinear'" in capsys.readouterr().err
    with pytest.raises(RunFailure, match=r"cannot be kept: test\.mse is nan, not a finite number"):
        store.finish(one, record(one, float("nan")))
    assert store.record(one)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"reason": 7}', b"[" * 100_000, b"\xff", b'{"reason": "\\ud800"}']
)
def test_a_damaged_note_of_a_crash_hides_its_reason_alone(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, cell = Store(tmp_path), small_grid()[0]
    store.fail(cell, "no")
    store.failure_path(cell).write_bytes(content)
    assert main([*COMMAND, "--show", "--results", str(tmp_path)]) == 0
    assert f"its reason cannot be read from {store.failure_path(cell)}" in capsys.readouterr().out
