"""Turns, ratios and peaks: the arithmetic on times that are given, and memory that is known."""

from __future__ import annotations

import pytest
import torch

from femts.bench import measure
from femts.bench.measure import Measured, gemm_rate, peak_bytes, quartile_range, take_turns
from femts.environment import machine

N = 1 << 16  # floats
BYTES = 4 * N


class FakeClock:
    """A clock that only the timed calls move."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, ""

    def __call__(self) -> float:
        return self.now

    def spend(self, name: str, seconds: float) -> None:
        self.calls += name
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(measure, "perf_counter", fake)
    return fake


def test_cases_warm_up_once_and_then_take_turns(clock: FakeClock) -> None:
    cases = {"a": lambda: clock.spend("a", 1.0), "b": lambda: clock.spend("b", 3.0)}
    assert take_turns(cases, 3, "cpu") == {"a": [1.0] * 3, "b": [3.0] * 3}
    assert clock.calls == "ab" + "ababab"


def test_the_warm_up_is_not_counted(clock: FakeClock) -> None:
    assert take_turns({"a": lambda: clock.spend("a", 1.0 if clock.calls else 60.0)}, 2, "cpu") == {"a": [1.0, 1.0]}


def test_ratios_do_not_drift_with_the_machine(clock: FakeClock) -> None:
    """A machine that becomes slower with every turn: the seconds spread, the ratio of a turn's cases does not."""
    slow = lambda: 1.0 + len(clock.calls) // 2  # noqa: E731
    turns = take_turns(
        {"base": lambda: clock.spend("b", 2.0 * slow()), "case": lambda: clock.spend("c", 3.0 * slow())}, 5, "cpu"
    )
    measured = Measured.of(turns["case"], turns["base"])
    assert measured.spread > 0.4
    assert (measured.ratio, measured.ratio_spread) == (1.5, 0.0)


def test_medians_and_quartiles() -> None:
    measured = Measured.of([1.0, 2.0, 4.0, 3.0], [1.0, 1.0, 2.0, 3.0])
    assert measured.seconds == 2.5
    assert measured.spread == pytest.approx((3.25 - 1.75) / 2.5)
    assert measured.ratio == 1.5
    assert measured.ratio_spread == pytest.approx((2.0 - 1.0) / 1.5)
    assert Measured.of([2.0], [4.0]) == Measured(2.0, 0.0, 0.5, 0.0)
    assert quartile_range([5.0]) == 0.0


def test_turns_that_do_not_pair_are_an_error() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Measured.of([1.0, 2.0], [1.0])


def test_peak_of_known_allocations_is_exact() -> None:
    def call() -> None:
        first = torch.empty(N)
        second = torch.empty(N)
        del first
        third = torch.empty(N)  # the peak is two at once, though three are made
        assert second.shape == third.shape

    assert peak_bytes(call, "cpu") == 2 * BYTES


def test_peak_is_beyond_what_was_there_before() -> None:
    kept = torch.ones(4 * N)
    assert peak_bytes(lambda: kept.neg_(), "cpu") == 0
    assert peak_bytes(lambda: kept.neg(), "cpu") == 4 * BYTES


def test_peak_counts_what_the_backward_pass_needs() -> None:
    x = torch.randn(N, requires_grad=True)
    assert peak_bytes(lambda: torch.autograd.grad(x.exp().exp(), x, torch.ones(())[None].expand(N)), "cpu") >= 3 * BYTES
    with torch.no_grad():
        assert peak_bytes(lambda: x.exp().exp_(), "cpu") == BYTES


def test_the_profiler_keeps_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    peak_bytes(lambda: torch.empty(N), "cpu")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rate_of_a_product_in_seconds(clock: FakeClock, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype) -> None:
    monkeypatch.setattr(measure, "_GEMM_SIZE", {"cpu": 8})
    times = iter([9.0, 4.0, 2.0, *[5.0] * 8])  # the first warms up, the third is the best

    def product(self: torch.Tensor, other: torch.Tensor) -> None:
        assert self.shape == other.shape == (8, 8) and self.dtype == dtype
        clock.spend("p", next(times))

    monkeypatch.setattr(torch.Tensor, "__matmul__", product)
    assert gemm_rate("cpu", dtype) == 2 * 8**3 / 2.0


def test_the_rate_of_this_machine_is_within_reason() -> None:
    assert 1e8 < gemm_rate("cpu", torch.float32) < 1e14


def test_machine_says_what_decides_the_numbers() -> None:
    facts = machine("cpu")
    assert set(facts) == {"device", "name", "threads", "torch", "femts"}
    assert facts["threads"] == torch.get_num_threads()
    assert facts["name"]
