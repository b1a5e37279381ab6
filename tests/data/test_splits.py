"""Published and proportional splits, and their windows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import femts
from femts.data.splits import PARTS, Split, ett_split, ratio_split, usual_split


def test_ett_split() -> None:
    for rows_per_hour, bounds in [(1, (8640, 11520, 14400)), (4, (34560, 46080, 57600))]:
        train, val, test = bounds
        assert ett_split(rows_per_hour) == Split.of((0, train), (train, val), (val, test))


def test_ratio_split_sizes() -> None:
    for rows, sizes in [(52696, (36887, 5270, 10539)), (52560, (36792, 5256, 10512))]:
        assert tuple(np.diff(ratio_split(rows).rows[0]).flatten().tolist()) == sizes


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=5))
def test_split_covers_every_row_once(rows: list[int]) -> None:
    for split in (ratio_split(np.array(rows)), usual_split(np.array(rows), 12)):
        assert split.train[:, 0].tolist() == [0] * len(rows) and split.test[:, 1].tolist() == rows
        assert np.array_equal(split.train[:, 1], split.val[:, 0]) and np.array_equal(split.val[:, 1], split.test[:, 0])
        assert (split.rows[..., 0] <= split.rows[..., 1]).all()


def test_short_series_keep_whole_horizons() -> None:
    rows = np.arange(28, 260)
    split = usual_split(rows, 12)
    for part in PARTS:
        assert (split.windows(part, 3, 12)[:, 3] >= 1).all()
    long = rows >= 240
    assert np.array_equal(split.rows[long], ratio_split(rows).rows[long])


@pytest.mark.parametrize(
    ("rows", "steps", "season", "parts"),
    [
        (24, 12, 12, (14, 5, 5)),  # a season and a row to train on
        (36, 12, 12, (18, 9, 9)),  # half of the rows, although two whole horizons would leave 12
        (37, 12, 12, (13, 12, 12)),  # whole horizons
        (36, 12, 1, (12, 12, 12)),
        (23, 12, 12, (13, 5, 5)),  # less than two seasons
        (14, 12, 12, (12, 1, 1)),  # a season, without a row to train on
        (13, 12, 12, (11, 1, 1)),
        (12, 12, 12, (6, 3, 3)),
        (12, 4, 4, (6, 3, 3)),
        (104, 26, 52, (54, 25, 25)),
        (30, 14, 7, (16, 7, 7)),
        (10, 12, 12, (6, 2, 2)),
        (5, 3, 1, (3, 1, 1)),
        (4, 9, 1, (2, 1, 1)),
        (3, 3, 1, (3, 0, 0)),
    ],
)
def test_split_of_tables_too_short_for_whole_horizons(
    rows: int, steps: int, season: int, parts: tuple[int, int, int]
) -> None:
    split = usual_split(np.array([rows]), steps, season)
    assert tuple(np.diff(split.rows[0]).flatten().tolist()) == parts
    short = parts[2] < steps
    assert split.short(steps) == short
    for part, size in zip(PARTS[1:], parts[1:], strict=True):
        assert split.windows(part, 1, steps)[0, 3] == (size if short else 1)


def test_short_series_beside_longer_ones_are_split_as_before() -> None:
    split = usual_split(np.array([24, 60, 10]), 12, 12)
    assert split.rows.tolist() == [
        [[0, 12], [12, 12], [12, 24]],
        [[0, 36], [36, 48], [48, 60]],
        [[0, 10]] + [[10, 10]] * 2,
    ]
    assert not split.short(12) and split.windows("val", 3, 12)[:, 3].tolist() == [0, 1, 0]
    alone = usual_split(np.array([24, 10]), 12, 12)
    assert alone.short(12) and alone.windows("test", 3, 12)[:, 3].tolist() == [5, 2]


@example(70, 45, 8, "train")
@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 40), st.sampled_from(PARTS))
def test_windows_forecast_only_their_split(rows: int, seq_len: int, pred_len: int, part: str) -> None:
    split = ratio_split(rows)
    (start, stop), overhang = split.part(part)[0], int(split.overhang(part, pred_len)[0])
    if part == "train":
        # Otherwise, the look-back begins before the series, and each row but the first is forecast.
        young = stop <= seq_len or seq_len > stop + overhang - pred_len
        targets = range(1, stop) if young else range(seq_len, stop + overhang - pred_len + 1)
    else:
        short = split.test[0, 1] - split.test[0, 0] < pred_len and rows < 4 * pred_len + 2
        targets = range(start, stop if short else stop - pred_len + 1) if start else range(0)
    first, last, begin, count = split.windows(part, seq_len, pred_len)[0].tolist()
    assert (first, last, count) == (0, stop, len(targets))
    if targets:
        assert begin + seq_len == targets[0]


def test_whole_horizons_are_kept_rather_than_the_only_season() -> None:
    """Series of more than a season and less than two, which are long enough for three splits."""
    split = usual_split(np.array([67, 80]), 13, 52)
    assert all((part[:, 1] - part[:, 0] >= 13).all() for part in (split.val, split.test))
    short = usual_split(np.array([18]), 12, 12)  # too short in any case, so the season is kept
    assert int(short.train[0, 1] - short.train[0, 0]) >= 13


def test_a_forecast_without_training_from_a_look_back_that_nearly_fills_the_training_rows() -> None:
    """Between 2048 and 2048 + P training rows, no whole window of a look-back of 2048 fits into them."""
    table = pd.DataFrame({"date": pd.date_range("2024", periods=2950, freq="h"), "y": np.arange(2950) % 24.0})
    made = femts.forecast(table, 24)
    np.testing.assert_allclose(made["y"], (2950 + np.arange(24)) % 24, atol=0.5)
