"""Selection of the look-back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from logged import logged

import femts
from femts.data import windows
from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.data.protocols import default_look_back
from femts.data.resident import ScaledSeries
from femts.errors import UsageError
from femts.training import data_module
from femts.training.resolve import Lengths, look_back
from femts.training.select import run
from femts.training.select.candidates import Candidate, ridges


def walk(rows: int = 160, freq: str = "MS") -> pd.DataFrame:
    """A random walk."""
    values = np.random.default_rng(3).normal(size=rows).cumsum()
    return pd.DataFrame({"date": pd.date_range("2000-01-01", periods=rows, freq=freq), "y": values})


def test_shorter_look_back_is_selected_on_validation() -> None:
    data = femts.load_dataset(walk())
    with logged() as notes:
        made = femts.train(data, "ridge", 6)
    usual = default_look_back("seasons", 6, data.typical_rows, 12).steps
    assert made.config.seq_len < usual
    assert (
        f"look-back {made.config.seq_len} for 6 steps ahead, which had the lowest validation error; change it with "
        "seq_len" in notes
    )
    given = femts.train(data, "ridge", 6, seq_len=made.config.seq_len)
    pd.testing.assert_frame_equal(made.predict(walk()), given.predict(walk()))
    assert femts.train(data, "ridge", 6, protocol="seasons").config.seq_len == usual
    assert femts.train(data, "dlinear", 6, max_steps=2).config.seq_len == usual, "it takes steps of training"


def test_look_backs_share_one_preprocessing(monkeypatch: pytest.MonkeyPatch) -> None:
    fit, fitted = Preprocess.fit, list[Dataset]()

    def counted(data: Dataset, *given: Any) -> Preprocess:
        fitted.append(data)
        return fit(data, *given)

    scale, scaled = windows.resident, list[Dataset]()

    def counted_scaling(data: Dataset, preprocess: Preprocess) -> ScaledSeries:
        scaled.append(data)
        return scale(data, preprocess)

    monkeypatch.setattr(Preprocess, "fit", counted)
    for module in (data_module, windows):
        monkeypatch.setattr(module, "resident", counted_scaling)
    panel = pd.concat([walk().assign(unique_id=name).rename(columns={"date": "ds"}) for name in "ab"])
    femts.train(panel, "ridge", 6, refit=False)
    assert len(fitted) == 2, "for the candidates, and for the training"
    assert scaled == fitted and len({len(each.values) for each in fitted}) == 2


def test_test_rows_do_not_affect_the_look_back() -> None:
    other = walk().assign(y=lambda f: np.where(f.index < 128, f["y"], np.sin(f.index) * 50))
    taken = [femts.train(femts.load_dataset(t, min="none"), "ridge", 6).config.seq_len for t in (walk(), other)]
    assert taken[0] == taken[1]


def test_auto_tries_several_look_backs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "shortlist", lambda data, lengths, *_: (Candidate("naive"), *ridges(data, lengths)))
    with logged() as notes:
        made = femts.train(walk(), "auto", 6)
    rows = [each for each in made.metrics["auto"]["tried"] if each["model"] == "ridge"]
    alone = femts.train(walk(), "ridge", 6)
    assert len(rows) > 1 and min(rows, key=lambda each: each["error"])["seq_len"] == alone.config.seq_len
    assert any(f"ridge (look-back {alone.config.seq_len}): " in each for each in notes)


def test_catalogue_data_keep_the_protocol_look_back() -> None:
    assert look_back(femts.load_dataset("synthetic"), "ridge", Lengths(24, None, None)).steps == 1024


def test_nhits_reads_three_horizons_or_a_week() -> None:
    for freq, rows, horizon, steps in [("30min", 5000, 48, 336), ("h", 5000, 168, 504), ("D", 900, 28, 84)]:
        assert look_back(femts.load_dataset(walk(rows, freq)), "nhits", Lengths(horizon, None, None)).steps == steps


def test_series_without_validation_rows_are_refused() -> None:
    panel = pd.DataFrame({"unique_id": "a", "ds": pd.date_range("2024-01-01", periods=2), "y": [1.0, 2.0]})
    with pytest.raises(UsageError, match="provide at least 4 rows"):
        femts.train(panel, "ridge", 3, seq_len=8, freq="D", panel=True)
