"""Speed of batches: both ways give the same windows."""

from __future__ import annotations

import pytest
import torch

from femts.bench import data
from femts.bench.data import DataBench, bench_data, stack_samples
from femts.data.windows import Windows
from femts.errors import UsageError


def test_the_loop_gives_what_the_gather_gives() -> None:
    windows = Windows(torch.randn(60, 3), 10, 5, 4, 57)
    index = torch.tensor([0, 38, 7, 7])
    for mine, theirs in zip(stack_samples(windows, index), windows.gather(index), strict=True):
        assert torch.equal(mine, theirs)


def test_a_row_for_each_shape_and_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "WINDOWS_A_TURN", 256)
    rows = list(bench_data(DataBench(("synthetic", "etth1"), 336, 1), "cpu"))
    assert [(r.dataset, r.channels, r.seq_len, r.pred_len, r.batch_size) for r in rows] == [
        ("synthetic", 6, 2048, 336, 32),
        ("synthetic", 6, 2048, 336, 256),
        ("ETTh1", 7, 2048, 336, 32),
        ("ETTh1", 7, 2048, 336, 256),
    ]
    for row in rows:  # with one turn all of these follow from two times
        assert row.gather_windows_per_s == pytest.approx(row.batch_size / row.gather.seconds)
        assert row.loop_windows_per_s == pytest.approx(row.batch_size / row.loop.seconds)
        assert row.gather.ratio == pytest.approx(row.gather.seconds / row.loop.seconds)
        assert row.loop.ratio == 1.0


def test_mistakes_are_named_before_anything_is_measured() -> None:
    with pytest.raises(UsageError, match="'ETTh11'"):
        bench_data(DataBench(("ETTh1", "ETTh11"), 96, 1), "cpu")
    with pytest.raises(UsageError, match="forecast of 9000"):
        bench_data(DataBench(("ETTh1",), 9000, 1), "cpu")
