"""A damaged or forged checkpoint is told in one sentence, and never resumed from."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from run_damage import checkpoint_with, flipped
from small_runs import small_run

from femts.errors import UsageError
from femts.training.loop import Trainer
from femts.training.state import TrainState
from femts.training.stopping import Interrupted

SETTINGS = {"training.batch_size": 125}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A run that was interrupted after a validation."""
    from small_runs import signal_at

    with monkeypatch.context() as patch:
        signal_at(patch, 13, signal.SIGINT)
        with pytest.raises(Interrupted):
            small_run(out=tmp_path / "run", settings=SETTINGS)
    return tmp_path / "run"


def test_no_changed_bit_of_a_checkpoint_is_silent(begun: Path) -> None:
    path = begun / "checkpoints" / "last.ckpt"
    content = path.read_bytes()
    head = content.index(b"\n") + 1
    for changed in [*flipped(content, 60), *(flip + content[head:] for flip in flipped(content[:head], 8 * head))]:
        path.write_bytes(changed)
        with pytest.raises(UsageError, match=r"Checkpoint .*last\.ckpt (is damaged and|has format)"):
            TrainState.load(path)


def _of(name: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda state: {**state, name: value(state[name]) if callable(value) else value}


def _tensors(change: Callable[[torch.Tensor], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda tensors: {name: change(value) for name, value in tensors.items()}


def _optimizer(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda saved: {**saved, "state": {place: change(dict(state)) for place, state in saved["state"].items()}}


def _group(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda saved: {**saved, "param_groups": [{**group, **changes} for group in saved["param_groups"]]}


NO_MAPPINGS: tuple[Any, ...] = (None, [], 7)
NO_SCORES: tuple[Any, ...] = ([], {"mse": "low"})
FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{
        f"{part} {kind}": _of(part, _tensors(change))
        for part in ("model", "average", "best")
        for kind, change in {
            "not a number": lambda x: x * float("nan"),
            "short": lambda x: x[:-1],
            "double": torch.Tensor.double,
            "no tensor": torch.Tensor.tolist,
        }.items()
    },
    **{
        f"{part} {value!r}": _of(part, value)
        for part in ("model", "average", "best", "optimizer")
        for value in NO_MAPPINGS
    },
    "another name": _of("model", lambda tensors: {f"{name}.x": value for name, value in tensors.items()}),
    "no moments": _of("optimizer", lambda saved: {**saved, "state": {}}),
    "moments that are short": _of("optimizer", _optimizer(lambda state: {**state, "exp_avg": state["exp_avg"][:-1]})),
    "moments that are no numbers": _of(
        "optimizer", _optimizer(lambda state: {**state, "exp_avg_sq": state["exp_avg_sq"] * float("nan")})
    ),
    "no groups": _of("optimizer", lambda saved: {**saved, "param_groups": []}),
    "another decay": _of("optimizer", _group(weight_decay=0.5)),
    "betas of text": _of("optimizer", _group(betas="ab")),
    **{f"step {value}": _of("step", value) for value in (-1, 1.5, "two", None)},
    **{f"progress {value}": _of("progress", value) for value in (-1.0, 2.0, float("nan"), "half")},
    **{f"validations {value}": _of("validations", value) for value in (None, [7], [{"step": 1}])},
    **{f"best_val {value}": _of("best_val", value) for value in NO_SCORES},
    **{f"losses {value}": _of("losses", value) for value in (None, ["x"], [float("inf")])},
    **{f"stopped {value}": _of("stopped", value) for value in ("tired", 7)},
    "best_step": _of("best_step", "one"),
    "seconds": _of("seconds", -1.0),
    "a field more": lambda state: {**state, "novel": 1},
    "a field less": lambda state: {name: value for name, value in state.items() if name != "windows"},
    "a list": lambda state: [state],
}


def test_a_forged_checkpoint_is_told_though_its_hash_is_right(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = begun / "checkpoints" / "last.ckpt"
    content, before = path.read_bytes(), sorted(begun.rglob("*"))
    monkeypatch.setattr(Trainer, "step", lambda _: pytest.fail("training went on"))
    for told, change in FORGED.items():
        path.write_bytes(content)
        checkpoint_with(path, change)
        with pytest.raises(UsageError, match=r"last\.ckpt is damaged"):
            pytest.fail(told) if small_run(out=begun, settings=SETTINGS, resume=True) else None
    assert sorted(begun.rglob("*")) == before


@pytest.mark.parametrize("name", ["config.yaml", "preprocess.json"])
def test_a_changed_bit_beside_a_checkpoint_is_told_or_without_effect(begun: Path, name: str) -> None:
    """Both are made again from what the user gives, so they can only be refused."""
    from femts.training.resume import find_state

    with pytest.MonkeyPatch.context() as patch:
        called = Mock(return_value=pytest.skip.Exception)
        patch.setattr("femts.training.sitting.find_state", called)
        with pytest.raises(Exception):  # noqa: B017 (only what it was called with counts)
            small_run(out=begun, settings=SETTINGS, resume=True)
    config, preprocess, out, resume, model = called.call_args_list[0].args
    wanted, path = find_state(config, preprocess, out, resume, model), begun / name
    for changed in flipped(path.read_bytes(), 60):
        path.write_bytes(changed)
        try:
            state = find_state(config, preprocess, out, resume, model)
        except UsageError as error:
            assert "\n" not in str(error) and str(begun) in str(error)
        else:
            assert state.step == wanted.step and state.validations == wanted.validations
