"""Interleaved timing, ratios and peak memory."""

from __future__ import annotations

import pytest
import torch

from scripts.bench import measure
from scripts.bench.measure import compare, peak_bytes, take_turns

FLOATS = 1 << 16
BYTES = 4 * FLOATS


class FakeClock:
    """A clock that is advanced by the timed calls only."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, ""

    def __call__(self) -> float:
        return self.now

    def spend(self, name: str, seconds: float) -> None:
        self.calls += name
        self.now += seconds


def test_cases_are_interleaved(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr(measure, "perf_counter", clock)

    def slower() -> float:  # with every turn
        return 1.0 + len(clock.calls) // 2

    cases = {"b": lambda: clock.spend("b", 2.0 * slower()), "c": lambda: clock.spend("c", 3.0 * slower())}
    turns = take_turns(cases, 3, "cpu")
    assert clock.calls == "bc" + "bcbcbc"
    assert turns == {"b": [4.0, 6.0, 8.0], "c": [6.0, 9.0, 12.0]}, "the warm-up is not counted"
    compared = compare(turns["c"], turns["b"])
    assert compared["spread"] > 0.3 and (compared["ratio"], compared["ratio_spread"]) == (1.5, 0.0)


def test_comparison_has_medians_and_quartiles() -> None:
    compared = compare([1.0, 2.0, 4.0, 3.0], [1.0, 1.0, 2.0, 3.0])
    assert compared == pytest.approx({"seconds": 2.5, "spread": 1.5 / 2.5, "ratio": 1.5, "ratio_spread": 1 / 1.5})
    with pytest.raises(ValueError, match="shorter"):
        compare([1.0, 2.0], [1.0])


def test_peak_of_known_allocations_is_exact(capfd: pytest.CaptureFixture[str]) -> None:
    def call() -> None:
        first = torch.empty(FLOATS)
        second = torch.empty(FLOATS)
        del first
        third = torch.empty(FLOATS)  # the peak is two at once, though three are made
        assert second.shape == third.shape

    kept = torch.ones(4 * FLOATS)
    assert peak_bytes(call, "cpu") == 2 * BYTES
    assert peak_bytes(lambda: kept.neg_(), "cpu") == 0
    assert peak_bytes(lambda: kept.neg(), "cpu") == 4 * BYTES
    assert capfd.readouterr() == ("", ""), "the profiler keeps quiet"
