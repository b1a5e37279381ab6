from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from femts.data.splits import PARTS, Split, ett_split, ratio_split
from femts.errors import UsageError


@pytest.mark.parametrize(("rows_per_hour", "bounds"), [(1, (8640, 11520, 14400)), (4, (34560, 46080, 57600))])
def test_ett_split_is_twelve_four_and_four_months(rows_per_hour: int, bounds: tuple[int, int, int]) -> None:
    train, val, test = bounds
    assert ett_split(rows_per_hour) == Split((0, train), (train, val), (val, test))


@pytest.mark.parametrize(("rows", "sizes"), [(52696, (36887, 5270, 10539)), (52560, (36792, 5256, 10512))])
def test_ratio_split_has_the_published_sizes(rows: int, sizes: tuple[int, int, int]) -> None:
    split = ratio_split(rows)
    assert tuple(stop - start for start, stop in (split.train, split.val, split.test)) == sizes


@given(st.integers(0, 200_000))
def test_ratio_split_covers_every_row_once(rows: int) -> None:
    split = ratio_split(rows)
    assert split.train[0] == 0 and split.test[1] == rows
    assert split.train[1] == split.val[0] <= split.val[1] == split.test[0]


def test_look_back_reaches_before_val_and_test_only() -> None:
    split = ratio_split(1000)
    assert split.rows("train", 50) == (0, 700)
    assert split.rows("val", 50) == (650, 800)
    assert split.rows("test", 50) == (750, 1000)


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 40), st.sampled_from(PARTS))
def test_window_count_equals_counting_them(rows: int, seq_len: int, pred_len: int, part: str) -> None:
    split = ratio_split(rows)
    first, stop = {"train": split.train, "val": split.val, "test": split.test}[part]
    from_row = seq_len if part == "train" else max(first, seq_len)
    stop += split.overhang(part, pred_len)
    counted = sum(1 for target in range(from_row, stop - pred_len + 1)) if part == "train" or first >= seq_len else 0
    assert split.windows(part, seq_len, pred_len) == counted


def test_unknown_part_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"Unknown part 'tests'; did you mean 'test'"):
        ratio_split(100).rows("tests", 5)
