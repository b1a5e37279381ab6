"""The numbers among scores, which `pytest.approx` can compare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def numbers_of(scores: Mapping[str, Any]) -> dict[str, float]:
    """Scores that are numbers, by name."""
    return {
        name: value for name, value in scores.items() if isinstance(value, float | int) and not isinstance(value, bool)
    }
