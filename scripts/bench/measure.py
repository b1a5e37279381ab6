"""Time, memory and speed that remain comparable on a busy machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

_GEMM_SIZE = {"cpu": 1024, "cuda": 8192}


def compare(seconds: Sequence[float], reference: Sequence[float]) -> dict[str, float]:
    """Median of `seconds`, and of their ratios to the `reference` in the same turns.

    Each `spread` is the interquartile range relative to the median.
    """
    ratios = [own / other for own, other in zip(seconds, reference, strict=True)]
    (low, median, high), (low_ratio, ratio, high_ratio) = (
        np.percentile(each, [25, 50, 75]) for each in (seconds, ratios)
    )
    return {
        "seconds": float(median),
        "spread": float((high - low) / median),
        "ratio": float(ratio),
        "ratio_spread": float((high_ratio - low_ratio) / ratio),
    }


def take_turns(cases: Mapping[str, Callable[[], object]], repeats: int, device: str) -> dict[str, list[float]]:
    """Seconds of each case in each of `repeats` turns.

    Every case is called once to warm up. Then each turn calls all of them, one after the other, so that a machine that
    changes its speed meanwhile changes it for all, and ratios within a turn stay true.
    """
    for call in cases.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(repeats):
        for name, call in cases.items():
            seconds[name].append(timed(call, device))
    return seconds


def timed(call: Callable[[], object], device: str) -> float:
    """Seconds of one `call`, with what it left the `device` (`cpu` or `cuda`) to do."""
    _synchronise(device)
    started = perf_counter()
    call()
    _synchronise(device)
    return perf_counter() - started


def _synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def peak_bytes(call: Callable[[], object], device: str) -> int:
    """Most bytes of tensors that are there at once while `call` runs, beyond those that were there before.

    Exact for a call that frees nothing older than itself (a CPU would not see that). What the
    device's libraries take by themselves is not counted.
    """
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or the profiler writes lines of its own to stderr
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        call()
    kineto = record.profiler.kineto_results  # type: ignore[union-attr]
    changes = sorted((event for event in kineto.events() if event.name() == "[memory]"), key=lambda e: e.start_ns())
    return int(max(np.cumsum([event.nbytes() for event in changes], dtype=np.int64), default=0))


def gemm_rate(device: str, dtype: torch.dtype) -> float:
    """Measured operations a second (a multiplication and an addition are two) of a large square matrix product."""
    size = _GEMM_SIZE[device]
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    return 2 * size**3 / min(take_turns({"product": lambda: left @ right}, 10, device)["product"])
