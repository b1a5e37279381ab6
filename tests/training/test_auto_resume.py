"""`train(model="auto", resume=True)`: what was asked for goes on, and nothing else; what is there stays."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from femts.data.loading import load_dataset
from femts.errors import UsageError
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import CANDIDATES
from femts.training.choice import run as choice
from femts.training.choice.candidates import Candidate
from femts.training.choice.trial import Tried
from femts.training.stopping import Interrupted
from femts.training.train import train


def months(rows: int = 72) -> pd.DataFrame:
    """A trend and a season of 12 months, above 1."""
    month = np.arange(rows)
    values = 50 + 0.3 * month + 8 * np.sin(2 * np.pi * month / 12) + np.cos(month * month)
    return pd.DataFrame({"date": pd.date_range("2010-01-01", periods=rows, freq="MS"), "y": values})


def chosen(dataset: Any = None, pred_len: int = 12, **how: Any) -> Forecaster:
    """A choice among three models that are quick."""
    return train(months() if dataset is None else dataset, "auto", pred_len, max_steps=5, **how)


def files(folder: Path) -> dict[str, bytes]:
    """All that `folder` holds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module", autouse=True)
def quick() -> Any:
    patch = pytest.MonkeyPatch()
    patch.setattr(choice, "shortlist", lambda *_: tuple(map(Candidate, ("seasonal_naive", "naive", "ridge"))))
    yield
    patch.undo()


def interrupted_at(model: str, run: Path) -> None:
    """A choice that a signal ended before `model` was tried."""

    def stopped(candidate: Candidate, *rest: Any) -> Tried:
        if candidate.model == model:
            raise Interrupted("stopped")
        return try_candidate(candidate, *rest)

    try_candidate = choice.try_candidate
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted, match="goes on with --resume"):
        patch.setattr(choice, "try_candidate", stopped)
        chosen(out=run)


@pytest.fixture(scope="module")
def begun_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("begun") / "run"
    interrupted_at("ridge", run)
    return run


@pytest.fixture
def begun(begun_once: Path, tmp_path: Path) -> Path:
    """A copy of a choice that was interrupted after its second candidate."""
    return Path(shutil.copytree(begun_once, tmp_path / "run"))


OTHERS = [
    ({"dataset": months(60)}, "data 'frame' changed since run .* began; train again in a new folder"),
    ({"pred_len": 6}, "begun with pred_len=12, not 6"),
    ({"seq_len": 24}, "begun with seq_len=auto, not 24"),
    ({"protocol": "lookback96"}, "begun with protocol=seasons, not lookback96"),
    ({"seed": 7}, r"begun with training\.seed=42, not 7"),
    ({"final": True}, "begun with final=False, not True"),
    ({"dataset": load_dataset(months(), calendar=True)}, r"begun with dataset\.roles\.target=None, not \['y'\]"),
    ({"dataset": load_dataset(months(), min=1)}, r"begun with dataset\.domain\.min=None, not 1"),
    ({"dataset": load_dataset(months(), transform="log1p")}, r"begun with dataset\.domain\.transform=None, not log1p"),
]


@pytest.mark.parametrize(("changes", "message"), OTHERS, ids=[message[-30:] for _, message in OTHERS])
def test_another_order_is_refused_at_once_and_nothing_is_lost(
    begun: Path, changes: dict[str, Any], message: str
) -> None:
    before, said = files(begun), list[str]()
    with pytest.raises(UsageError, match=message):
        chosen(out=begun, resume=True, say=said.append, **changes)
    assert files(begun) == before and not said


def test_the_same_order_goes_on_within_another_time(begun: Path) -> None:
    naive = begun / CANDIDATES / "naive" / "0" / "metrics.json"
    before, seen = naive.read_bytes(), list[str]()
    again = chosen(out=begun, resume=True, max_time="5m", say=lambda _: seen.append(naive.read_bytes().hex()))
    assert set(seen) == {before.hex()}
    assert again.metrics["test"] == chosen().metrics["test"]


def test_interrupted_before_anything_was_tried_it_goes_on(tmp_path: Path) -> None:
    interrupted_at("seasonal_naive", tmp_path / "run")
    again = chosen(out=tmp_path / "run", resume=True)
    assert again.metrics["test"] == chosen().metrics["test"]


def test_where_nothing_more_can_be_tried_what_was_there_stays(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(begun)
    monkeypatch.setattr(choice, "try_candidate", lambda candidate, *_: Tried(candidate.model, reason="it is late"))
    with pytest.raises(UsageError, match=r"No model could be tried\. it is late"):
        chosen(out=begun, resume=True)
    assert files(begun) == before


def test_an_order_that_cannot_be_read_is_refused(begun: Path) -> None:
    for content in ("[1]", "{", "7"):
        (begun / CANDIDATES / "order.json").write_text(content)
        before = files(begun)
        with pytest.raises(UsageError, match=r"order\.json was changed and cannot be resumed; train again"):
            chosen(out=begun, resume=True)
        assert files(begun) == before


def test_a_finished_choice_knows_its_order(tmp_path: Path) -> None:
    run = tmp_path / "run"
    made, said = chosen(out=run, final=True), list[str]()
    before = files(run)
    again = chosen(out=run, resume=True, final=True, say=said.append)
    assert said == [f"run {run} is finished; nothing is left to do"]
    assert again.metrics == made.metrics and again.scored is not None
    with pytest.raises(UsageError, match=r"begun with model\.name=auto, not ridge"):
        train(months(), "ridge", 12, out=run, resume=True)
    with pytest.raises(UsageError, match="begun with final=True, not False"):
        chosen(out=run, resume=True)
    with pytest.raises(UsageError, match="data 'frame' changed since"):
        chosen(months(60), out=run, resume=True, final=True)
    assert files(run) == before


def test_a_run_of_a_named_model_is_no_choice(tmp_path: Path) -> None:
    train(months(), "naive", 12, out=tmp_path / "run")
    with pytest.raises(UsageError, match=r"begun with model\.name=naive, not auto"):
        chosen(out=tmp_path / "run", resume=True)
