"""The verdict on a model beside the seasonal naive forecast, in words."""

from __future__ import annotations

from femts.evaluation.verdict import judge


def test_verdict_names_the_worse_error() -> None:
    for own, naive, worse, words in [
        (
            (0.5, 0.4),
            (1.0, 0.5),
            False,
            "better than the seasonal naive forecast, which repeats the last 24 steps: "
            "squared error 50.0 % lower, absolute error 20.0 % lower, MASE 0.90",
        ),
        (
            (1.2, 0.6),
            (1.0, 0.5),
            True,
            "worse than the seasonal naive forecast, which repeats the last 24 steps: "
            "squared error 20.0 % higher, absolute error 20.0 % higher, MASE 0.90",
        ),
        (
            (0.9, 0.6),
            (1.0, 0.5),
            True,
            "by its absolute error worse than the seasonal naive forecast, which "
            "repeats the last 24 steps: squared error 10.0 % lower, absolute error 20.0 % higher, MASE 0.90",
        ),
        (
            (5.0, 0.5),
            (1.0, 0.5),
            True,
            "worse than the seasonal naive forecast, which repeats the last 24 steps: "
            "squared error 5.0 times as high, absolute error the same, MASE 0.90",
        ),
        (
            (1.0, 0.5),
            (1.0, 0.5),
            False,
            "as good as the seasonal naive forecast, which repeats the last 24 steps: "
            "squared error the same, absolute error the same, MASE 0.90",
        ),
        (
            (0.1, 0.2),
            (0.0, 0.0),
            True,
            "worse than the seasonal naive forecast, which repeats the last 24 steps, which has no error here",
        ),
        (
            (0.0, 0.0),
            (0.0, 0.0),
            False,
            "as good as the seasonal naive forecast, which repeats the last 24 steps, which has no error here",
        ),
    ]:
        scores = dict(zip(("mse", "mae"), own, strict=True))
        judged = judge(scores, {"season": 24, "mase": 0.9, **dict(zip(("mse", "mae"), naive, strict=True))})
        assert judged is not None
        assert (judged.worse, judged.words) == (worse, words)


def test_no_verdict_without_values() -> None:
    assert judge({"mse": float("nan"), "mae": 0.1}, {"season": 1, "mase": None, "mse": 1.0, "mae": 1.0}) is None
    without = judge({"mse": 0.5, "mae": 0.5}, {"season": 1, "mase": None, "mse": 1.0, "mae": 1.0})
    assert without is not None
    assert without.words.startswith("better than the naive forecast, which repeats the last value: ")
    assert "MASE" not in without.words
