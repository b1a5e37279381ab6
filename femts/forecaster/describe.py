"""A forecaster in a few lines, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from femts.data.describe import count, names
from femts.forecaster.parts import Parts
from femts.text import shown


def describe(forecaster: Parts, metrics: Mapping[str, Any]) -> str:
    """Lines on what was trained, on what, how well it scores, and which intervals it has."""
    config, targets = forecaster.config, forecaster.targets
    step = "" if forecaster.freq is None else f" of {forecaster.freq}"
    lines = [
        f"Forecaster '{config.model}': {count(config.pred_len, 'step')}{step} ahead from "
        f"{count(config.seq_len, 'step')}",
        f"  data: '{shown(config.dataset)}', {count(len(targets), 'column')} to forecast: {names(targets)}",
    ]
    lines += [f"  {part}: {_score(metrics[part])}" for part in ("val", "test") if part in metrics]
    intervals = forecaster.intervals
    if intervals is None:
        return "\n".join([*lines, "  intervals: none"])
    levels = ", ".join(f"{level:g}" for level in intervals.levels)
    return "\n".join([*lines, f"  intervals: {levels} %, from {intervals.source}"])


def _score(scores: Mapping[str, Any]) -> str:
    return f"mse {scores['mse']:.4f}, mae {scores['mae']:.4f} over {count(scores['windows'], 'window')}, scaled"
