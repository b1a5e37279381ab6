"""Numbers and spans of a report, as people read them."""

from __future__ import annotations

import pytest

from femts.analysis.report.numbers import raw, span


@pytest.mark.parametrize(
    ("steps", "freq", "text"),
    [(96, "h", "4 days"), (1790, "D", "4.9 years"), (4096, "W", "78.5 years"), (365, "D", "365 days"),
     (1, "h", "1 hour"), (12, "MS", "1 year"), (30, "MS", "30 months"), (100, "MS", "8.33 years"), (8, "QS", "2 years"),
     (1, "MS", "1 month")],
)  # fmt: skip
def test_spans_read_well(steps: int, freq: str, text: str) -> None:
    assert span(steps, freq) == text


def test_large_numbers_read_well() -> None:
    assert [raw(value) for value in (3.14159, 12345.6, 2.5e9)] == ["3.142", "12,346", "2,500,000,000"]
