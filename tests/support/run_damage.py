"""Single bits of files changed, and all that a run folder says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import femts
from femts.forecaster.forecaster import Forecaster

FILES = ("config.yaml", "preprocess.json", "model.safetensors", "intervals.safetensors", "metrics.json", "metrics.csv")


def flipped(content: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """`content` with one bit flipped, at `count` random places."""
    for place in random.Random(seed).sample(range(8 * len(content)), min(count, 8 * len(content))):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        yield bytes(changed)


def all_of(forecaster: Forecaster) -> dict[str, Any]:
    """Comparable state of a forecaster and of its scored model."""
    return {
        "config": forecaster.config,
        "preprocess": forecaster.preprocess_record(),
        "weights": {name: value.tolist() for name, value in forecaster.model.state_dict().items()},
        "metrics": forecaster.metrics,
        "history": forecaster.validations,
        "intervals": None if forecaster.intervals is None else forecaster.intervals.to_bytes(),
        "scored": None if forecaster.scored is None else all_of(forecaster.scored),
    }


def loaded(folder: Path) -> dict[str, Any]:
    return all_of(femts.load(folder))
