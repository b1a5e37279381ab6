from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from femts.data.loading import load_dataset
from femts.data.preprocess import Preprocess
from femts.data.windows import Windows, part_windows
from femts.errors import UsageError

SERIES = torch.arange(60.0).reshape(30, 2)


def naive(series: Tensor, seq_len: int, pred_len: int, start: int, stop: int) -> tuple[Tensor, Tensor]:
    """Every window by slicing, one at a time."""
    firsts = range(start, stop - seq_len - pred_len + 1)
    x = [series[i : i + seq_len] for i in firsts]
    y = [series[i + seq_len : i + seq_len + pred_len] for i in firsts]
    return torch.stack(x), torch.stack(y)


@given(st.data())
def test_one_gather_equals_slicing(data: st.DataObject) -> None:
    seq_len, pred_len = data.draw(st.integers(1, 10)), data.draw(st.integers(1, 10))
    start = data.draw(st.integers(0, 30 - seq_len - pred_len))
    stop = data.draw(st.integers(start + seq_len + pred_len, 30))
    windows = Windows(SERIES, seq_len, pred_len, start, stop)
    wanted_x, wanted_y = naive(SERIES, seq_len, pred_len, start, stop)
    index = torch.tensor(data.draw(st.lists(st.integers(0, len(windows) - 1), min_size=1, max_size=8)))
    x, y = windows.gather(index)
    assert len(windows) == len(wanted_x)
    assert torch.equal(x, wanted_x[index]) and torch.equal(y, wanted_y[index])


@pytest.mark.parametrize("index", [[-1], [19], [0, 19]])
def test_a_window_of_another_part_is_out_of_reach(index: list[int]) -> None:
    windows = Windows(SERIES, 5, 3, 0, 26)
    assert len(windows) == 19
    with pytest.raises(IndexError, match="window numbers are 0 to 18"):
        windows.gather(torch.tensor(index))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_same_batches_on_a_gpu() -> None:
    windows = Windows(SERIES, 5, 3, 2, 28)
    for index in windows.spread(None).split(4):
        (x, y), (gpu_x, gpu_y) = windows.gather(index), windows.to("cuda").gather(index.to("cuda"))
        assert gpu_x.device.type == "cuda" and torch.equal(x, gpu_x.cpu()) and torch.equal(y, gpu_y.cpu())


def test_parts_are_scaled_by_training_rows_and_reach_back_for_their_look_back() -> None:
    data = load_dataset("synthetic")
    preprocess = Preprocess.fit(data)
    series = torch.from_numpy(preprocess.transform(data.values)).float()
    assert series.dtype == torch.float32 and series.shape == data.values.shape
    train = series[slice(*data.split.train)].double()
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(train.std(0, unbiased=False), 1, atol=1e-5)
    shared = part_windows(data, preprocess, "train", 48, 24)
    assert torch.equal(shared.series, series)
    for part in ("train", "val", "test"):
        windows = part_windows(data, preprocess, part, 48, 24, like=shared)
        assert windows.series is shared.series
        first, stop = {"train": data.split.train, "val": data.split.val, "test": data.split.test}[part]
        first += 48 if part == "train" else 0
        _, y = windows.gather(torch.tensor([0, len(windows) - 1]))
        assert torch.equal(y[0], series[first : first + 24]) and torch.equal(y[1], series[stop - 24 : stop])
        assert len(windows) == data.split.windows(part, 48, 24)


@pytest.mark.parametrize(
    ("part", "seq_len", "pred_len", "sentence"),
    [
        ("train", 6037, 96, r"look-back of 6037 .* the 6132 train rows of 'synthetic'; .* fits is 6036"),
        (
            "train",
            6132,
            2000,
            r"look-back of 6132 .* the 6132 train rows .* fits is 6131",
        ),  # forecasts may end beyond them
        ("val", 96, 877, r"forecast of 877 steps does not fit the 876 val rows .* fits is 876"),
        ("test", 7009, 96, r"the 7008 rows before the test rows .* fits is 7008"),
        ("train", 0, 5, r"Look-back 0 and forecast 5 must each be at least 1"),
        ("val", 5, -1, r"Look-back 5 and forecast -1 must each be at least 1"),
        ("tset", 5, 5, r"Unknown part 'tset'; did you mean 'test'"),
    ],
)
def test_lengths_that_do_not_fit_are_refused_with_the_largest_that_does(
    part: str, seq_len: int, pred_len: int, sentence: str
) -> None:
    data = load_dataset("synthetic")
    with pytest.raises(UsageError, match=sentence):
        part_windows(data, Preprocess.fit(data), part, seq_len, pred_len)


@pytest.mark.parametrize(
    ("part", "seq_len", "pred_len"),
    [("train", 6036, 96), ("train", 6131, 2000), ("val", 96, 876), ("test", 7008, 96)],
)
def test_the_largest_that_fits_does_fit(part: str, seq_len: int, pred_len: int) -> None:
    data = load_dataset("synthetic")
    assert len(part_windows(data, Preprocess.fit(data), part, seq_len, pred_len)) >= 1


@pytest.mark.parametrize(("start", "stop"), [(-1, 20), (0, 31), (20, 10), (0, 7)])
def test_rows_outside_the_series_are_refused(start: int, stop: int) -> None:
    with pytest.raises(UsageError):
        Windows(SERIES, 5, 3, start, stop)
