"""Pictures of the pages: the data drawn are those of femts and of the records; no pixel is compared."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / f"{name}.py"))


@pytest.fixture(scope="module")
def free_energy() -> dict[str, Any]:
    return script("free_energy_picture")


def test_posteriors_are_the_prior_tilted_by_each_channel(free_energy: dict[str, Any]) -> None:
    reading = free_energy["computed"]()
    assert float(reading.prior.sum()) == pytest.approx(1)
    for beta, posterior in reading.posteriors.items():
        tilted = reading.prior[:, None] * (beta * reading.values).exp()
        torch.testing.assert_close(posterior, tilted / tilted.sum(0))


def test_the_read_rises_from_the_mean_to_the_maximum(free_energy: dict[str, Any]) -> None:
    reading = free_energy["computed"]()
    mean, most = reading.prior @ reading.values, reading.values.amax(0)
    assert (reading.reads.diff(dim=0) > 0).all()
    assert ((reading.reads[0] - mean).abs() < 0.02).all() and ((most - reading.reads[-1]).abs() < 0.06).all()
    assert ((mean < reading.reads) & (reading.reads < most)).all()
    for beta, read in reading.marked.items():
        torch.testing.assert_close(read, (reading.prior @ (beta * reading.values).exp()).log() / beta)


def test_the_picture_of_the_free_energy_is_of_these_numbers(free_energy: dict[str, Any]) -> None:
    drawn = free_energy["plain"](free_energy["computed"]())
    assert script("picture_theme")["stale"](free_energy["PICTURE"], drawn) == [], "run scripts/free_energy_picture.py"


def test_a_picture_says_of_which_data_it_was_drawn(tmp_path: Path) -> None:
    theme = script("picture_theme")
    path, drawn = tmp_path / "pictures" / "empty", {"a": [0.1 + 0.2, 1]}
    assert theme["stale"](path, drawn) == ["empty-light.png", "empty-dark.png"]
    theme["write_both"](path, lambda _: theme["figure_of"](2, 1), drawn)
    assert theme["stale"](path, {"a": [0.3, 1]}) == [] and len(theme["stale"](path, {"a": [0.3001, 1]})) == 2
