"""A damaged checkpoint is told in one sentence, and never resumed from."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from run_damage import flipped
from small_runs import signal_at, small_run

from femts.errors import UsageError
from femts.training import sitting
from femts.training.state import TrainState
from femts.training.stopping import Interrupted

SETTINGS = {"training.batch_size": 125}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A run that was interrupted after a validation."""
    with monkeypatch.context() as patch:
        signal_at(patch, 13, signal.SIGINT)
        with pytest.raises(Interrupted):
            small_run(out=tmp_path / "run", settings=SETTINGS)
    return tmp_path / "run"


def test_flipped_bit_of_a_checkpoint_is_found(begun: Path) -> None:
    path = begun / "checkpoints" / "last.ckpt"
    content = path.read_bytes()
    head = content.index(b"\n") + 1
    for changed in [*flipped(content, 60), *(flip + content[head:] for flip in flipped(content[:head], 8 * head))]:
        path.write_bytes(changed)
        with pytest.raises(UsageError, match=r"Checkpoint .*last\.ckpt (is damaged and|has format)"):
            TrainState.load(path)


@pytest.mark.parametrize("name", ["config.yaml", "preprocess.json"])
def test_flipped_bit_beside_a_checkpoint_is_found_or_without_effect(
    begun: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are made again from what the user gives, so they can only be refused."""
    find_state, found = sitting.find_state, list[TrainState]()

    def stopped(*arguments: Any) -> TrainState:
        found.append(find_state(*arguments))
        raise Interrupted("found")

    monkeypatch.setattr(sitting, "find_state", stopped)
    path, wanted = begun / name, TrainState.load(begun / "checkpoints" / "last.ckpt")
    for changed in flipped(path.read_bytes(), 40):
        path.write_bytes(changed)
        with pytest.raises((UsageError, Interrupted)) as caught:
            small_run(out=begun, settings=SETTINGS, resume=True)
        assert caught.type is Interrupted or ("\n" not in str(caught.value) and str(begun) in str(caught.value))
    assert all((each.step, each.validations) == (wanted.step, wanted.validations) for each in found)
