"""Streams: every prior but softmax carries a state that does not grow, and each row says after how many tokens."""

from __future__ import annotations

import pytest

from femts.bench.stream import StreamBench, bench_stream
from femts.errors import UsageError
from femts.training.device import Place

CPU = Place("cpu", "32", 1)


def test_rows_and_states() -> None:
    rows = list(bench_stream(StreamBench(("softmax", "gla"), (2, 9), 16, 2, 2), CPU))
    assert [(row.prior, row.seen) for row in rows] == [("softmax", 2), ("softmax", 9), ("gla", 2), ("gla", 9)]
    assert all(row.step.seconds > 0 for row in rows)
    assert [row.step.ratio for row in rows if row.seen == 2] == [1.0, 1.0]
    softmax, gla = [row.state_bytes for row in rows[:2]], [row.state_bytes for row in rows[2:]]
    assert gla[0] == gla[1] > 0
    assert softmax[1] > softmax[0]


def test_unknown_prior_is_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match=r"Unknown prior 'glaa'.*gla"):
        StreamBench(("glaa",), (1,), 16, 2, 1)
