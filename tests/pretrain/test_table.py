"""The table of the page of pretrained weights."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from scripts.pretrain.loop import Recipe
from scripts.pretrain.network import NetworkConfig
from scripts.pretrain.table import main


def test_rows_say_how_a_recipe_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = Recipe(network=NetworkConfig(width=64), lr=0.5)
    report = {"recipe": asdict(recipe), "steps": 1200, "series": 57600, "cpu_hours": 0.25}
    scores = {"real": (0.65432, 0.5), "synthetic": (0.75, 0.6), "real 24": (0.1, 0.1)}
    lines = [json.dumps({**report, "steps": steps, "scores": scores}) for steps in (600, 1200)]
    (tmp_path / "wide.jsonl").write_text("\n".join(lines) + "\n")
    assert main([str(tmp_path)]) == 0
    _, _, *rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("| `network.width=64`, `lr=0.5` | ")
    assert rows[0].endswith(" | 0.25 | 1,200 | 57,600 | 0.654 | 0.500 | 0.750 | 0.600 |") and len(rows) == 1
    assert main([str(tmp_path / "wide.jsonl"), "--every"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
