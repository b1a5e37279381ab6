"""Cells of a table over a panel: recorded, verified, and made anew when the file changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.experiments.verify import verify_record

LENGTHS = {"north": 60, "south": 48, "young": 9}


def panel() -> pd.DataFrame:
    parts = []
    for name, rows in LENGTHS.items():
        values = len(name) + np.sin(np.arange(rows)) + 0.1 * np.random.default_rng(rows).normal(size=rows)
        stamps = pd.date_range("2020-01-01", periods=rows, freq="MS")
        parts.append(pd.DataFrame({"unique_id": name, "ds": stamps, "y": values}))
    return pd.concat(parts)


def test_a_table_over_a_panel_is_recorded_and_verifies(tmp_path: Path) -> None:
    panel().to_csv(tmp_path / "shops.csv", index=False)
    scores = femts.table(
        tmp_path / "shops.csv", ["naive", "ridge"], 6, seq_lens=12, results=tmp_path / "results", device="cpu"
    )
    assert len(scores) == 2 and np.isfinite(scores["mse"]).all()
    windows = femts.train(tmp_path / "shops.csv", "naive", 6, seq_len=12, device="cpu").scores()["windows"]
    for path in (tmp_path / "results").rglob("*seed*.json"):
        record = json.loads(path.read_text())
        assert record["cell"]["own"]["panel"] is True
        errors = np.array(record["series_errors"]["6"], dtype=np.float64)
        scaled = ~np.isnan(errors)  # a series of constant training rows has no scale to err in
        assert record["test"]["mse"] == pytest.approx(np.average(errors[scaled], weights=windows[scaled]), rel=1e-4)
        assert {sample["series"] for sample in record["samples"]} <= LENGTHS.keys()
        assert verify_record(record, "cpu").holds, str(verify_record(record, "cpu"))
        for sample in record["samples"]:
            values = panel().query("unique_id == @sample['series']")["y"].to_numpy()
            np.testing.assert_allclose(values[sample["row"] :][: len(sample["truth"])], sample["truth"], rtol=1e-4)
