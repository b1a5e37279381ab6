"""The table of the page of pretrained weights."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from femts.models.parts.expert_network import NetworkConfig
from scripts.pretrain.loop import Recipe
from scripts.pretrain.table import main


def test_rows_say_how_a_recipe_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide = Recipe(network=NetworkConfig(width=64), lr=0.5)
    scores = {"real": (0.65432, 0.5), "synthetic": (0.75, 0.6), "real 24": (0.1, 0.1)}
    for name, recipe in {"a": Recipe(), "b": wide, "c": Recipe()}.items():
        report = {"recipe": asdict(recipe), "weights": 649_944, "series": 57600, "cpu_hours": 0.25, "scores": scores}
        lines = [json.dumps({**report, "steps": steps}) for steps in (600, 1200)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    assert main([str(tmp_path)]) == 0
    _, _, base, different, _ = capsys.readouterr().out.splitlines()
    assert base.startswith("| base | ")
    assert different.startswith("| `training.lr=0.5`, `network.width=64` | ")
    assert different.endswith(" | 649,944 | 0.25 | 1,200 | 57,600 | 0.654 | 0.500 | 0.750 | 0.600 |")
    assert main([str(tmp_path / "b.jsonl"), "--every"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
