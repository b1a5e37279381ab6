"""The verdict on a model compared with the seasonal naive forecast."""

from __future__ import annotations

import re

import pytest

from femts.evaluation.verdict import judge


@pytest.mark.parametrize(
    ("own", "naive", "worse", "words"),
    [
        ((0.5, 0.4), (1.0, 0.5), False, "better than .* 50.0 % lower, .* 20.0 % lower, MASE 0.90"),
        ((1.2, 0.6), (1.0, 0.5), True, "worse than .* 20.0 % higher, .* 20.0 % higher, MASE 0.90"),
        ((0.9, 0.6), (1.0, 0.5), True, "by its absolute error worse than .* 10.0 % lower, .* 20.0 % higher"),
        ((5.0, 0.5), (1.0, 0.5), True, "worse than .* 5.0 times as high, absolute error the same"),
        ((1.0, 0.5), (1.0, 0.5), False, "as good as .* the same, .* the same"),
        ((0.1, 0.2), (0.0, 0.0), True, "worse than .* which has no error here"),
        ((0.0, 0.0), (0.0, 0.0), False, "as good as .* which has no error here"),
    ],
)
def test_verdict_names_the_worse_error(
    own: tuple[float, float], naive: tuple[float, float], worse: bool, words: str
) -> None:
    scores = {"mse": own[0], "mae": own[1]}
    judged = judge(scores, {"season": 24, "mase": 0.9, "mse": naive[0], "mae": naive[1]})
    assert judged is not None and judged.worse == worse
    assert re.match(words, judged.words)


def test_no_verdict_without_values() -> None:
    assert judge({"mse": float("nan"), "mae": 0.1}, {"season": 1, "mase": None, "mse": 1.0, "mae": 1.0}) is None
    without = judge({"mse": 0.5, "mae": 0.5}, {"season": 1, "mase": None, "mse": 1.0, "mae": 1.0})
    assert without is not None
    assert without.words.startswith("better than the naive forecast, which repeats the last value: ")
    assert "MASE" not in without.words
