"""Records of this repository: each is of a cell as it would be made today."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from femts.data.loading import load_dataset
from femts.experiments import verify
from femts.experiments.grid import Cell
from femts.experiments.newer_settings import with_newer_settings

RESULTS = Path(__file__).resolve().parents[2] / "results"


@pytest.mark.skipif(not os.environ.get("FEMTS_DATA"), reason="needs the real files; set FEMTS_DATA to their folder")
@pytest.mark.parametrize("dataset", ["ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather"])
def test_no_record_is_of_another_recipe(dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configuration, data and size of the model are compared; nothing is trained."""
    data = load_dataset(dataset)
    monkeypatch.setattr(Cell, "load", lambda *_: data)
    record: dict[str, Any] = {}
    monkeypatch.setattr(verify, "_run_again", lambda *_: {**record, "config": with_newer_settings(record["config"])})
    stale = []
    for path in sorted(RESULTS.glob(f"paper*/{dataset}/*.json")):
        record = json.loads(path.read_bytes())
        verdict = verify.verify_record(record)
        stale += [] if verdict.holds else [f"{path.relative_to(RESULTS)}: {verdict}"]
    assert record and stale == []
