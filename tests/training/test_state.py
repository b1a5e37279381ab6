"""Checkpoints."""

import hashlib
import io
import pickle
from pathlib import Path

import pytest
import torch
from run_damage import flipped

from femts.errors import UsageError
from femts.forecaster.run_folder import FORMAT
from femts.training.checkpoint import TrainState

ROW = {"step": 1, "train_loss": 1.0, "val_mse": 1.0, "val_mae": 1.0, "lr": 1e-3, "seconds": 0.5}


class MaliciousPickle:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("boom",)


def test_state_roundtrip(tmp_path: Path) -> None:
    layer = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = TrainState(step=2, progress=0.5, losses=[0.5], model=layer.state_dict(), optimizer=optimizer.state_dict())
    state.best_val, state.validations = {"mse": 0.25}, [ROW]
    state.save(tmp_path / "checkpoints" / "last.ckpt")
    again = TrainState.load(tmp_path / "checkpoints" / "last.ckpt")
    assert (again.step, again.progress, again.losses, again.best_mse) == (2, 0.5, [0.5], 0.25)
    assert again.validations == state.validations
    assert torch.equal(again.model["weight"], layer.weight)
    optimizer.load_state_dict(again.optimizer)


def test_last_weights_are_kept_unless_clearly_worse() -> None:
    for losses, kept, worse_last, worse_best in [
        ((0.9, 0.8), "last", 0, 0),
        ((0.8, 0.815), "last", 0, 1),  # within the margin
        ((0.8, 0.9, 0.81), "last", 0, 2),
        ((0.8, 0.9, 0.82), "best", 2, 2),
        ((0.9, 0.8, 0.9, 0.805, 0.83), "best", 1, 3),
    ]:
        best, rows = losses.index(min(losses)), [{"step": 10.0 * (i + 1), "val_mse": x} for i, x in enumerate(losses)]
        state = TrainState(
            step=10 * len(losses), validations=rows, best_step=10 * (best + 1), best_val={"mse": min(losses)}
        )
        state.average, state.best = {"w": torch.zeros(1)}, {"w": torch.ones(1)}
        assert state.kept("last") == ((state.best, state.best_step) if kept == "best" else (state.average, state.step))
        assert state.kept("best") == (state.best, state.best_step)
        assert (state.worse_for("last"), state.worse_for("best")) == (worse_last, worse_best)
        assert TrainState().best_mse == float("inf")


def test_flipped_bit_in_a_checkpoint_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "last.ckpt"
    TrainState(step=1, model={"w": torch.randn(99)}).save(path)
    content = path.read_bytes()
    head = content.index(b"\n") + 1
    for changed in [*flipped(content, 60), *(flip + content[head:] for flip in flipped(content[:head], 8 * head))]:
        path.write_bytes(changed)
        with pytest.raises(UsageError, match=r"Checkpoint .*last\.ckpt (is damaged and|has format)"):
            TrainState.load(path)


@pytest.mark.parametrize("fault", ["empty", "text", "cut", "executable", "other"])
def test_damaged_checkpoint_is_refused(tmp_path: Path, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "last.ckpt"
    TrainState(step=1).save(path)
    content = path.read_bytes()
    path.write_bytes({"empty": b"", "text": b"hello", "cut": content[: len(content) // 2]}.get(fault, content))
    if fault in ("executable", "other"):  # with a hash that is right
        written = io.BytesIO()
        torch.save({"step": MaliciousPickle()} if fault == "executable" else [1, 2], written)
        digest = hashlib.sha256(written.getvalue()).hexdigest()
        path.write_bytes(f"femts checkpoint {FORMAT} {digest}\n".encode() + written.getvalue())
    with pytest.raises(UsageError, match=r"last\.ckpt is damaged and cannot be resumed"):
        TrainState.load(path)
    assert "boom" not in capsys.readouterr().out
    assert pickle.loads(pickle.dumps(MaliciousPickle())) is None  # the fault was a real one


def test_checkpoint_of_another_format_is_refused(tmp_path: Path) -> None:
    TrainState(step=1).save(tmp_path / "last.ckpt")
    head, _, rest = (tmp_path / "last.ckpt").read_bytes().partition(b"\n")
    (tmp_path / "last.ckpt").write_bytes(head.replace(f" {FORMAT} ".encode(), b" 99 ") + b"\n" + rest)
    with pytest.raises(UsageError, match="has format 99"):
        TrainState.load(tmp_path / "last.ckpt")
