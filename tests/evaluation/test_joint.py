"""Joint errors of whole forecast origins, and paths drawn from them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import femts
from femts.evaluation.joint import JointErrors, _disjoint, _filled


def drawn(errors: np.ndarray, disjoint: int, count: int = 4000, series: tuple[int, ...] = (0, 1)) -> np.ndarray:
    """Draws (count, B, S) of `errors` (K, G, S)."""
    joint = JointErrors(errors[..., None].astype(np.float16), disjoint)
    random, numbers = np.random.default_rng(0), torch.tensor(series)
    return np.stack([joint.draw(numbers, errors.shape[2], random)[..., 0] for _ in range(count)])


def test_many_origins_are_repeated_as_a_whole() -> None:
    errors = np.random.default_rng(1).standard_normal((120, 2, 3)).round(1)
    made = drawn(errors, 40, 50)
    whole = {row.astype(np.float16).tobytes() for row in errors}
    assert all(row.astype(np.float16).tobytes() in whole for row in made)


@pytest.mark.parametrize("common", [0.0, 1.0])
def test_few_origins_keep_the_spread_of_sums(common: float) -> None:
    random = np.random.default_rng(2)
    errors = common * random.standard_normal((40, 1, 1)) + (1 - common) * random.standard_normal((40, 2, 3))
    made = drawn(errors, 40)
    of_sums = np.std(made.sum(axis=(1, 2))) / np.sqrt(np.mean(np.square(errors.sum(axis=(1, 2)))))
    assert of_sums == pytest.approx(np.sqrt(40 / 38), rel=0.05)  # Student's t with 40 degrees of freedom
    together = np.corrcoef(made[:, 0, 0], made[:, 1, 2])[0, 1]
    assert together == pytest.approx(common, abs=0.35)


def test_a_bias_of_all_series_is_kept_only_if_it_is_certain() -> None:
    random = np.random.default_rng(3)
    certain = JointErrors((1 + 0.1 * random.standard_normal((50, 4, 3, 1))).astype(np.float16), 20)
    alone = JointErrors(np.ones((1, 4, 3, 1), dtype=np.float16), 1)
    noise = JointErrors(random.standard_normal((50, 1, 1, 1)).astype(np.float16), 20)
    assert certain.bias[0] == pytest.approx(1, abs=0.05)
    assert alone.bias[0] == 0
    assert abs(noise.bias[0]) < 0.1


def test_a_new_series_gets_errors_of_others() -> None:
    errors = np.stack([np.full((120, 3), 1.0), np.full((120, 3), -1.0)], axis=1)
    made = drawn(errors, 40, 200, series=(-1,))
    assert set(np.unique(made)) == {-1.0, 1.0}
    assert 0.3 < (made[:, 0, 0] > 0).mean() < 0.7


def test_missing_errors_are_those_before_or_after() -> None:
    values = np.array([[np.nan, 1, np.nan, 3], [np.nan] * 4], dtype=np.float32)
    np.testing.assert_array_equal(_filled(values, 1)[0], [1, 1, 1, 3])
    np.testing.assert_array_equal(_filled(_filled(values, 1), 0)[1], [1, 1, 1, 3])


@pytest.mark.parametrize(("origins", "steps", "count"), [([1, 2, 3, 4], 2, 2), ([1, 4, 5, 9], 3, 3), ([7], 5, 1)])
def test_number_of_origins_without_overlap(origins: list[int], steps: int, count: int) -> None:
    assert _disjoint(np.array(origins), steps) == count


def test_origins_of_series_that_begin_at_different_times_are_the_same_dates() -> None:
    """Both series jump on the same day, so that their errors are large at the same origins."""
    dates = pd.date_range("2024-01-01", periods=300)
    values = np.random.default_rng(4).standard_normal(300)
    values[dates >= "2024-07-20"] += 30
    frames = [
        pd.DataFrame({"unique_id": name, "ds": dates[first:], "y": values[first:]})
        for name, first in (("a", 0), ("b", 60))
    ]
    data = femts.load_dataset(pd.concat(frames), test_rows=50, val_rows=60)
    made = femts.train(data, "naive", 7, seq_len=14, refit=False)
    assert made.intervals is not None and made.intervals.joint is not None
    one, other = np.abs(made.intervals.joint.relative[..., 0].astype(np.float64)).mean(axis=2).T
    assert np.corrcoef(one, other)[0, 1] > 0.99
