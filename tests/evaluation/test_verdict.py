"""The verdict on a model compared with the naive forecasts."""

from __future__ import annotations

import re

import pytest

from femts.evaluation.verdict import Judgement, judge

NAN = float("nan")


def judged(
    own: tuple[float, float], baselines: dict[str, tuple[float, float]], season: int = 24, mase: float | None = 0.9
) -> Judgement | None:
    errors = {name: dict(zip(("mse", "mae"), each, strict=True)) for name, each in baselines.items()}
    scores = {"mse": own[0], "mae": own[1], "season": season, "mase": mase, "baselines": errors}
    return judge(scores)


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
    made = judged(own, {"seasonal_naive": naive, "mean": (9.0, 9.0)})
    assert made is not None
    assert made.worse == worse and re.match(words, made.words), made.words


@pytest.mark.parametrize(
    ("baselines", "words"),
    [
        (
            {"seasonal_naive": (2.0, 1.0), "naive": (1.0, 0.5), "drift": (1.5, 0.9)},
            "better than the naive forecast, which repeats the last value, the best of 3 naive forecasts: squared "
            "error 20.0 % lower, absolute error 20.0 % lower, MASE 0.90",
        ),
        (
            {"seasonal_naive": (2.0, 0.5), "drift": (3.0, 2.0), "mean": (0.2, 2.0)},
            "by its squared error worse than the best of 3 naive forecasts: squared error 4.0 times as high as that "
            "of the mean of the look-back, absolute error 20.0 % lower than that of the seasonal naive forecast, "
            "which repeats the last 24 steps, MASE 0.90",
        ),
        ({"naive": (2.0, 1.0), "drift": (NAN, NAN)}, "better than the naive forecast, which repeats the last value: "),
    ],
)
def test_the_best_naive_forecast_is_named(baselines: dict[str, tuple[float, float]], words: str) -> None:
    made = judged((0.8, 0.4), baselines)
    assert made is not None
    assert made.words.startswith(words), made.words
    assert made.worse == words.startswith("by its")


def test_no_verdict_without_values() -> None:
    assert judged((NAN, 0.1), {"naive": (1.0, 1.0)}) is None
    assert judged((0.5, 0.1), {"naive": (NAN, NAN)}) is None
    without = judged((0.5, 0.5), {"naive": (1.0, 1.0)}, season=1, mase=None)
    assert without is not None
    assert without.words.startswith("better than the naive forecast, which repeats the last value: ")
    assert "MASE" not in without.words


def test_a_series_that_rules_the_mean_is_named() -> None:
    scores = {"mse": 109.0, "mae": 1.0, "season": 1, "mase": 2.0, "baselines": {"naive": {"mse": 0.01, "mae": 0.1}}}
    made = judge({**scores, "dominant": {"name": "TRY", "measure": "mse", "error": 0.998, "values": 0.02}})
    assert made is not None and made.words.endswith("(99.8 % of the squared error is that of 'TRY')")
