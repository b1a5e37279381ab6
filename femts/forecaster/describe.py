"""A forecaster in a few lines, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from femts.data.describe import count
from femts.evaluation.intervals import Intervals
from femts.forecaster.run_folder import RunConfig
from femts.models.mean import MeanConfig
from femts.text import shown


def describe(
    config: RunConfig,
    subject: str,
    freq: str | None,
    metrics: Mapping[str, Any],
    intervals: Intervals | None,
) -> str:
    """Lines on what was trained, on what, how well it scores, and which intervals it has."""
    step = "" if freq is None else f" of {freq}"
    lines = [
        f"Forecaster '{config.model}': {count(config.pred_len, 'step')}{step} ahead from "
        f"{count(config.seq_len, 'step')}",
        f"  data: '{shown(config.dataset)}', {subject}",
    ]
    if isinstance(config.model_config, MeanConfig):
        lines.append(f"  mean of: {', '.join(member.model for member in config.model_config.members)}")
    if "final" in metrics:
        first = metrics["scored"]["train"][1]
        on = f"{first} of them" if "series" in metrics["scored"] else f"the first {first}"
        lines.append(f"  learned from: all {count(metrics['final']['rows'], 'row')}; scores are of one on {on}")
    lines += [f"  {part}: {_score(metrics[part])}" for part in ("val", "test") if part in metrics]
    if intervals is None:
        return "\n".join([*lines, "  intervals: none"])
    levels = ", ".join(f"{level:g}" for level in intervals.levels)
    return "\n".join([*lines, f"  intervals: {levels} %, from {intervals.source}"])


def _score(scores: Mapping[str, Any]) -> str:
    return f"mse {scores['mse']:.4f}, mae {scores['mae']:.4f} over {count(scores['windows'], 'window')}, scaled"
