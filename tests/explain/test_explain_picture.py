"""The picture of an explanation where all segments are read alike."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
from small_tables import small_table

from femts.explain.picture import plot_explanation

SEGMENTS = 4


def table(weights: np.ndarray) -> pd.DataFrame:
    """An explanation of one channel by the `weights` of its eight tokens."""
    hours = small_table(60)["date"].tail(8 * SEGMENTS).to_numpy()
    start, end = (np.repeat(hours[first::8], 2) for first in (0, 7))
    tokens = SEGMENTS * ["context", "main"]
    numbers = {"hidden_temperature": 1.0, "effective_segments": 3.9, "prior_segments": 4.0}
    frame = pd.DataFrame({"channel": "load", "layer": 1, "token": tokens, "start": start, "end": end})
    return frame.assign(weight=weights, prior=0.125, **numbers)


def colours(text: str) -> set[str]:
    """Fills of the cells of the strip, which have its fine grey border."""
    return set(re.findall(r"fill: (#[0-9a-f]{6}); stroke: #d5dade", text))


def test_shares_near_even_are_drawn_as_even(tmp_path: Path) -> None:
    noise = 0.125 * (1 + 0.04 * np.array([1, -1, 1, -1, 0, 0, 0.5, -0.5]))
    even = plot_explanation(small_table(60), table(noise), tmp_path / "even.svg").read_text()
    chosen = plot_explanation(
        small_table(60), table(np.array([0.3, 0.05, 0.1, 0.1, 0.15, 0.1, 0.1, 0.1])), tmp_path / "chosen.svg"
    ).read_text()
    (white,) = colours(even)
    assert min(bytes.fromhex(white[1:])) >= 0xFE
    assert len(colours(chosen)) > 3


def test_the_hidden_temperature_has_a_plain_word(tmp_path: Path) -> None:
    text = plot_explanation(small_table(60), table(np.full(8, 0.125)), tmp_path / "p.svg").read_text()
    assert "<!-- sharpness (hidden -->" in text
