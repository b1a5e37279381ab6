"""Time, memory and speed that stay comparable on a machine that is busy with other things, too."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import torch
from torch.profiler import ProfilerActivity, profile

_GEMM_SIZE = {"cpu": 1024, "cuda": 8192}


@dataclass(frozen=True)
class Measured:
    """One case over all turns, beside a reference case.

    Attributes:
        seconds: median of the turns.
        spread: interquartile range of the seconds, as a part of their median.
        ratio: median of the turns' ratios, this case over the reference in the same turn.
        ratio_spread: interquartile range of those ratios, as a part of their median.
    """

    seconds: float
    spread: float
    ratio: float
    ratio_spread: float

    @classmethod
    def of(cls, seconds: Sequence[float], reference: Sequence[float]) -> Measured:
        """From the seconds of every turn and those of the reference in the same turns, as many."""
        ratios = [own / other for own, other in zip(seconds, reference, strict=True)]
        return cls(statistics.median(seconds), spread(seconds), statistics.median(ratios), spread(ratios))


def spread(values: Sequence[float]) -> float:
    """Interquartile range over the median; 0 for a single value."""
    return quartile_range(values) / statistics.median(values)


def quartile_range(values: Sequence[float]) -> float:
    """Interquartile range; 0 for a single value."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def take_turns(cases: Mapping[str, Callable[[], object]], repeats: int, device: str) -> dict[str, list[float]]:
    """Seconds of each case in each turn.

    Every case is called once to warm up. Then each turn calls all of them, one after the other, so that a machine that
    changes its speed meanwhile changes it for all, and ratios within a turn stay true.

    Args:
        cases: what to time, by name.
        repeats: turns, at least 1.
        device: `cpu` or `cuda`, whose work is waited for around each call.
    """
    for call in cases.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, call in cases.items():
            seconds[name].append(timed(call, device))
    return seconds


def timed(call: Callable[[], object], device: str) -> float:
    """Seconds of one `call`, with what it left the `device` to do."""
    synchronise(device)
    started = perf_counter()
    call()
    synchronise(device)
    return perf_counter() - started


def synchronise(device: str) -> None:
    """Wait until `device` has done all that it was given; a CPU always has."""
    if device == "cuda":
        torch.cuda.synchronize()


def peak_bytes(call: Callable[[], object], device: str) -> int:
    """Most bytes of tensors that are there at once while `call` runs, beyond those that were there before.

    Exact for a call that frees nothing older than itself (a CPU would not see that). What the
    device's libraries take by themselves is not counted.
    """
    if device == "cuda":
        synchronise(device)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        synchronise(device)
        return torch.cuda.max_memory_allocated() - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or the profiler writes lines of its own to stderr
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        call()
    kineto = record.profiler.kineto_results  # type: ignore[union-attr]
    changes = sorted(
        (event for event in kineto.events() if event.name() == "[memory]"), key=lambda event: event.start_ns()
    )
    now = peak = 0
    for event in changes:
        now += event.nbytes()
        peak = max(peak, now)
    return peak


def gemm_rate(device: str, dtype: torch.dtype) -> float:
    """Measured operations a second (a multiplication and an addition are two) of a large square matrix product."""
    size = _GEMM_SIZE[device]
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    return 2 * size**3 / min(take_turns({"product": lambda: left @ right}, 10, device)["product"])
