"""Where a backtest cuts, and its sums."""

import numpy as np
import pandas as pd
import pytest

from femts.analysis.backtest import Cutoffs, cutoff_rows, scores, together
from femts.errors import UsageError


def test_cutoffs_lie_a_step_apart_and_the_last_forecast_ends_with_the_data() -> None:
    assert cutoff_rows(100, Cutoffs(3, 10), 12, needed=60, where="It") == [68, 78, 88]
    assert cutoff_rows(100, Cutoffs(1, 1), 40, needed=60, where="It") == [60]
    assert cutoff_rows(100, Cutoffs(None, 2), 10, needed=60, where="It") == [82, 84, 86, 88, 90]
    assert cutoff_rows(23, Cutoffs(None, 7), 7, needed=12, where="It") == [16]


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((100, 0, 1, 1), "windows, not 0"),
        ((100, 1, 2.5, 1), "step, not 2.5"),
        ((100, 1, 1, True), "horizon, not True"),
        ((100, 5, 10, 12), "It has 100 rows, but 5 windows 10 rows apart .* take 112, .* at most 3 windows"),
        ((100, 5, 40, 12), "at most one window or"),
        ((70, 1, 1, 12), "bring more rows"),
        ((70, None, 1, 12), "bring more rows"),
    ],
)
def test_what_does_not_fit_is_refused(numbers: tuple[int, int | None, int, int], message: str) -> None:
    rows, windows, step, horizon = numbers
    with pytest.raises(UsageError, match=message):
        cutoff_rows(rows, Cutoffs(windows, step), horizon, needed=60, where="It")


def test_scores_are_means_in_both_units() -> None:
    frame = pd.DataFrame(
        {
            "cutoff": [7, 7, 9, 9],
            "column": ["a", "b", "a", "b"],
            "forecast": [1.0, 10.0, 3.0, 0.0],
            "seasonal_naive": [0.0, 0.0, 0.0, 0.0],
            "actual": [0.0, 0.0, 0.0, 20.0],
        }
    )
    found = scores(frame, {"a": 1.0, "b": 10.0})
    assert list(found["cutoff"]) == [7, 7, 9, 9, "all", "all"]
    assert list(found["model"]) == ["forecast", "seasonal_naive"] * 3
    ours = found[found["model"] == "forecast"].set_index("cutoff")
    assert list(ours["mse_raw"]) == [50.5, 204.5, 127.5]
    assert list(ours["mae_raw"]) == [5.5, 11.5, 8.5]
    assert list(ours["mse_scaled"]) == [1.0, 6.5, 3.75]
    assert list(ours["mae_scaled"]) == [1.0, 2.5, 1.75]


def test_both_models_are_scored_where_both_have_a_forecast() -> None:
    frame = pd.DataFrame(
        {
            "cutoff": [7, 7, 9, 9, 9],
            "column": ["a", "b", "a", "b", "b"],
            "forecast": [1.0, 2.0, 3.0, np.nan, np.nan],
            "seasonal_naive": [0.0, np.nan, 5.0, 100.0, 100.0],
            "actual": [0.0, 0.0, 0.0, 20.0, np.nan],
        }
    )
    table = scores(frame, None).set_index(["model", "cutoff"])["mae_raw"]
    assert list(table["forecast"]) == [1.0, 3.0, 2.0] and list(table["seasonal_naive"]) == [0.0, 5.0, 2.5]
    said = list[str]()
    pd.testing.assert_frame_equal(together([frame[:2], frame[2:]], said.append), frame)
    assert len(said) == 1 and said[0].startswith("1 of 4 values have no forecast")
    together([frame[:2]], said.append)
    assert len(said) == 1
