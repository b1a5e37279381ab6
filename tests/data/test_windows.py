"""Windows of single series and panels."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.data.known import Reads
from femts.data.loading import load_dataset
from femts.data.preprocess import Preprocess
from femts.data.windows import Windows, check_windows, part_windows
from femts.errors import UsageError

SERIES = torch.arange(60.0).reshape(30, 2)
PARTS = ("train", "val", "test")
L, P = 14, 7
LENGTHS = {"long": 300, "short": 60, "young": 20, "tiny": 6}


def spans(start: int, stop: int, seq_len: int, pred_len: int) -> Tensor:
    """Spans of one series with windows in rows `start` to `stop`."""
    return torch.tensor([[start, stop, start, max(0, stop - start - seq_len - pred_len + 1)]])


@given(st.data())
def test_batch_equals_slicing(data: st.DataObject) -> None:
    seq_len, pred_len = data.draw(st.integers(1, 10)), data.draw(st.integers(1, 10))
    start = data.draw(st.integers(0, 30 - seq_len - pred_len))
    stop = data.draw(st.integers(start + seq_len + pred_len, 30))
    windows = Windows(SERIES, seq_len, pred_len, spans(start, stop, seq_len, pred_len))
    assert len(windows) == stop - start - seq_len - pred_len + 1
    index = data.draw(st.lists(st.integers(0, len(windows) - 1), min_size=1, max_size=8))
    batch = windows.batch(torch.tensor(index))
    for number, past, future in zip(index, batch.past, batch.target, strict=True):
        first = start + number
        assert torch.equal(past, SERIES[first : first + seq_len])
        assert torch.equal(future, SERIES[first + seq_len : first + seq_len + pred_len])


@pytest.mark.parametrize("index", [[-1], [19], [0, 19]])
def test_window_index_out_of_range_raises(index: list[int]) -> None:
    windows = Windows(SERIES, 5, 3, spans(0, 26, 5, 3))
    assert len(windows) == 19
    with pytest.raises(IndexError, match="window numbers are 0 to 18"):
        windows.batch(torch.tensor(index))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_batches_are_identical_on_gpu() -> None:
    windows = Windows(SERIES, 5, 3, spans(2, 28, 5, 3))
    for index in windows.subsample(None).split(4):
        batch, on_gpu = windows.batch(index), windows.to("cuda").batch(index.to("cuda"))
        assert on_gpu.past.device.type == "cuda"
        assert torch.equal(batch.past, on_gpu.past.cpu()) and torch.equal(batch.target, on_gpu.target.cpu())


def test_splits_use_training_scale_and_preceding_look_back() -> None:
    data = load_dataset("synthetic")
    preprocess = Preprocess.fit(data)
    rows = torch.from_numpy(preprocess.transform(data.values)).float()
    train = rows[slice(*data.split.train[0])].double()
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(train.std(0, unbiased=False), 1, atol=1e-5)
    shared = part_windows(data, preprocess, "train", 48, 24)
    assert torch.equal(shared.rows, rows)
    for part in PARTS:
        windows = part_windows(data, preprocess, part, 48, 24, shared.resident)
        assert windows.rows is shared.rows
        first, stop = data.split.part(part)[0].tolist()
        first += 48 if part == "train" else 0
        future = windows.batch(torch.tensor([0, len(windows) - 1])).target
        assert torch.equal(future[0], rows[first : first + 24]) and torch.equal(future[1], rows[stop - 24 : stop])


def test_too_long_windows_are_refused_with_the_maximum() -> None:
    for part, seq_len, pred_len, fits, sentence in [
        ("train", 6037, 96, (6036, 96), r"look-back of 6037 .* the 6132 train rows of 'synthetic'; .* fits is 6036"),
        ("train", 6132, 2000, (6131, 2000), r"look-back of 6132 .* the 6132 train rows .* fits is 6131"),
        ("val", 96, 877, (96, 876), r"forecast of 877 steps does not fit the 876 val rows .* fits is 876"),
        ("test", 7009, 96, (7008, 96), r"the 7008 rows before the test rows .* fits is 7008"),
        ("train", 0, 5, None, r"Look-back 0 and forecast 5 must each be at least 1"),
        ("val", 5, -1, None, r"Look-back 5 and forecast -1 must each be at least 1"),
        ("tset", 5, 5, None, r"Unknown split 'tset'; did you mean 'test'"),
    ]:
        data = load_dataset("synthetic")
        preprocess = Preprocess.fit(data)
        with pytest.raises(UsageError, match=sentence):
            check_windows(data, part, seq_len, pred_len)
            part_windows(data, preprocess, part, seq_len, pred_len)
        if fits is not None:
            assert len(part_windows(data, preprocess, part, *fits)) >= 1


def test_too_few_rows_for_a_window_are_refused() -> None:
    with pytest.raises(UsageError, match="A look-back of 25 and a forecast of 6 steps do not fit in 30 rows"):
        Windows(SERIES, 25, 6)


def unequal_series(lengths: dict[str, int] = LENGTHS) -> pd.DataFrame:
    """Daily series of unequal length with a future covariate, a static covariate and a gap."""
    rng, parts = np.random.default_rng(0), []
    for k, (name, rows) in enumerate(lengths.items()):
        values = 10.0**k * (2 + np.sin(np.arange(rows)) + 0.1 * rng.normal(size=rows))
        part = pd.DataFrame({"unique_id": name, "ds": pd.date_range("2020-01-01", periods=rows), "y": values})
        parts.append(part.assign(promo=rng.uniform(size=rows).round(3), region=["north", "south"][k % 2]))
    parts[0].loc[[40, 41], "y"] = np.nan
    return pd.concat(parts, ignore_index=True)


def series_data(lengths: dict[str, int] = LENGTHS) -> Dataset:
    reading: dict[str, Any] = {"future_covariates": "promo", "static_covariates": "region", "calendar": True}
    return load_dataset(unequal_series(lengths), target="y", **reading).for_horizon(P)


def all_windows(windows: Windows) -> Batch:
    return windows.batch(torch.arange(len(windows)))


def rows_of(windows: Windows, data: Dataset) -> np.ndarray:
    """Rows (B, L + P) of all windows in the table."""
    places = [windows.place(number) for number in range(len(windows))]
    begin = [int(windows.spans[series, 0]) + row - L for series, row in places]
    return np.array(begin)[:, None] + np.arange(L + P)


@pytest.mark.parametrize("part", PARTS)
def test_windows_stay_within_series_and_split(part: str) -> None:
    data = series_data()
    windows = part_windows(data, Preprocess.fit(data), part, L, P)
    batch, rows = all_windows(windows), rows_of(windows, data)
    assert batch.series is not None and batch.past_observed is not None and batch.future_observed is not None
    seen = torch.cat([batch.past_observed, batch.future_observed], dim=1)[..., 0].numpy()
    first, stop = data.spans[batch.series].T
    last = data.part(part)[batch.series, 1]
    within = (rows >= first[:, None]) & (rows < np.minimum(stop, last)[:, None])
    assert np.array_equal(seen, within & ~np.isnan(data.values[rows.clip(0, len(data.values) - 1), 0]))
    assert set(batch.series.tolist()) == {k for k, n in enumerate(data.split.windows(part, L, P)[:, 3]) if n}
    assert (batch.past[..., 0].numpy()[rows[:, :L] < first[:, None]] == 0).all(), (
        "the training mean, as `predict` reads"
    )
    start = data.part(part)[batch.series, 0]
    assert (rows[:, L:].max(1) >= start).all() and seen[:, L:].any(1).all(), "each forecasts a row of the part"


@pytest.mark.parametrize("part", PARTS)
def test_batch_values_match_the_table(part: str) -> None:
    data = series_data()
    preprocess = Preprocess.fit(data, reads=Reads(columns=True, calendar=4, effect=False))
    windows = part_windows(data, preprocess, part, L, P)
    batch, rows = all_windows(windows), rows_of(windows, data)
    assert batch.known is not None and batch.static is not None and batch.series is not None
    assert preprocess.known is not None and preprocess.static is not None and data.stamps is not None
    spans = data.spans[batch.series]
    rows = rows.clip(spans[:, :1], spans[:, 1:] - 1)  # beside its series, the nearest row stands for it
    seen_until = data.part(part)[batch.series, 1][:, None]
    known, promo = batch.known.numpy(), data.covariates[:, 0]
    inside = rows < seen_until
    scaled = (promo[rows] - preprocess.known.mean[0]) / preprocess.known.scale[0]
    np.testing.assert_allclose(known[..., 0][inside], scaled[inside], rtol=1e-5, atol=1e-6)
    assert preprocess.known.marks == ("weekday", "monthday", "yearday")
    weekday = 2 * np.pi * data.stamps.day_of_week.to_numpy()[rows] / 7  # type: ignore[attr-defined]
    np.testing.assert_allclose(known[..., 1][inside], np.sin(weekday)[inside], atol=1e-6)
    np.testing.assert_allclose(known[..., 2][inside], np.cos(weekday)[inside], atol=1e-6)
    assert data.static is not None
    regions = data.static["region"].to_numpy()[batch.series]
    assert torch.equal(batch.static.argmax(1) == 1, torch.from_numpy(regions == "south"))
    scaler = preprocess.scaler.take(batch.series.numpy())
    values = scaler.inverse(torch.cat([batch.past, batch.target], dim=1).double().numpy())[..., 0]
    there = inside & ~np.isnan(data.values[rows, 0])
    if batch.past_observed is not None:
        there[:, :L] &= batch.past_observed[..., 0].numpy()
    np.testing.assert_allclose(values[there], data.values[rows, 0][there], rtol=1e-4)


@pytest.mark.parametrize("part", PARTS)
def test_panel_windows_equal_single_series_windows(part: str) -> None:
    data = series_data({"a": 120, "b": 90, "c": 61})
    preprocess = Preprocess.fit(data, reads=Reads(columns=True, effect=False))
    together, after = all_windows(part_windows(data, preprocess, part, L, P)), 0
    for number, name in enumerate(data.series):
        one = data[name]
        alone = all_windows(part_windows(one, preprocess.for_series(one), part, L, P))
        some = together.some(torch.arange(after, after + len(alone.past)))
        assert some.series is not None and some.series.unique().tolist() == [number]
        for each in fields(Batch):
            ours, theirs = getattr(some, each.name), getattr(alone, each.name)
            if each.name in ("series", "number") or (ours is None and theirs is None):
                continue
            theirs = torch.ones_like(ours) if theirs is None else theirs  # no mask where all is there
            assert torch.equal(ours, theirs), each.name
        after += len(alone.past)
    assert after == len(together.past)


def test_subsample_keeps_the_last_window_of_each_series() -> None:
    data = series_data()
    windows = part_windows(data, Preprocess.fit(data), "test", L, P)
    some = windows.subsample(9)
    assert len(some) <= 9 and {*(windows.ends[windows.spans[:, 3] > 0] - 1).tolist()} <= {*some.tolist()}
    assert torch.equal(windows.subsample(None), torch.arange(len(windows)))
