"""The committed records."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from femts.data.loading import load_dataset
from femts.experiments.cell import Cell
from femts.experiments.results import Store, read_record

RESULTS = Path(__file__).resolve().parents[2] / "results"
NAMES = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather")


def test_committed_records_match_current_settings() -> None:
    """Nothing is trained."""
    for dataset in NAMES:
        records = {path: read_record(path, Cell) for path in sorted(RESULTS.glob(f"paper*/{dataset}/*.json"))}
        assert records
        for path, record in records.items():
            cell = Cell(**record["cell"])
            assert Store(RESULTS).record_path(cell) == path and Store(RESULTS).damage(cell) is None


@pytest.mark.skipif(not os.environ.get("FEMTS_DATA"), reason="needs the real files; set FEMTS_DATA to their folder")
def test_committed_records_match_current_data() -> None:
    for dataset in NAMES:
        data = load_dataset(dataset)
        for path in RESULTS.glob(f"paper*/{dataset}/*.json"):
            assert read_record(path, Cell)["data"] == data.record
