"""One file holds the state of training; it is read without executing anything."""

import hashlib
import io
import pickle
from pathlib import Path

import pytest
import torch

from femts.errors import UsageError
from femts.forecaster.run_folder import FORMAT
from femts.training.state import TrainState

ROW = {"step": 1, "train_loss": 1.0, "val_mse": 1.0, "val_mae": 1.0, "lr": 1e-3, "seconds": 0.5}


def _write(path: Path, content: object, number: int = FORMAT) -> None:
    """A checkpoint with a hash that is right, whatever is in it."""
    written = io.BytesIO()
    torch.save(content, written)
    digest = hashlib.sha256(written.getvalue()).hexdigest()
    path.write_bytes(f"femts checkpoint {number} {digest}\n".encode() + written.getvalue())


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("boom",)


def test_what_was_saved_is_read_back(tmp_path: Path) -> None:
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


def rows(*losses: float) -> list[dict[str, float]]:
    return [{"step": 10.0 * (i + 1), "val_mse": loss} for i, loss in enumerate(losses)]


@pytest.mark.parametrize(
    ("losses", "kept", "worse_last", "worse_best"),
    [
        ((0.9, 0.8), "last", 0, 0),
        ((0.8, 0.815), "last", 0, 1),  # within the margin
        ((0.8, 0.9, 0.81), "last", 0, 2),
        ((0.8, 0.9, 0.82), "best", 2, 2),
        ((0.9, 0.8, 0.9, 0.805, 0.83), "best", 1, 3),
    ],
)
def test_the_last_weights_are_kept_unless_they_are_clearly_worse(
    losses: tuple[float, ...], kept: str, worse_last: int, worse_best: int
) -> None:
    best = losses.index(min(losses))
    state = TrainState(
        step=10 * len(losses), validations=rows(*losses), best_step=10 * (best + 1), best_val={"mse": min(losses)}
    )
    state.average, state.best = {"w": torch.zeros(1)}, {"w": torch.ones(1)}
    assert state.kept("last") == ((state.best, state.best_step) if kept == "best" else (state.average, state.step))
    assert state.kept("best") == (state.best, state.best_step)
    assert (state.worse_for("last"), state.worse_for("best")) == (worse_last, worse_best)


def test_nothing_validated_is_worse_than_anything() -> None:
    assert TrainState().best_mse == float("inf")


@pytest.mark.parametrize("fault", ["empty", "text", "cut", "executable", "other"])
def test_a_damaged_checkpoint_is_refused_in_one_sentence(
    tmp_path: Path, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "last.ckpt"
    TrainState(step=1).save(path)
    content = path.read_bytes()
    path.write_bytes({"empty": b"", "text": b"hello", "cut": content[: len(content) // 2]}.get(fault, content))
    if fault == "executable":
        _write(path, {"step": _Bomb()})
    if fault == "other":
        _write(path, [1, 2])
    with pytest.raises(UsageError, match=r"last\.ckpt is damaged and cannot be resumed"):
        TrainState.load(path)
    assert "boom" not in capsys.readouterr().out
    assert pickle.loads(pickle.dumps(_Bomb())) is None  # the fault was a real one


def test_another_format_is_named(tmp_path: Path) -> None:
    _write(tmp_path / "last.ckpt", {}, 99)
    with pytest.raises(UsageError, match="has format 99"):
        TrainState.load(tmp_path / "last.ckpt")
