"""Speed of batches: one gather over the resident series against samples stacked one by one."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from femts.bench.measure import Measured, take_turns
from femts.data.catalog import card
from femts.data.protocols import default_look_back
from femts.data.windows import Windows

BATCH_SIZES = (32, 256)
WINDOWS_A_TURN = 1024


@dataclass(frozen=True)
class DataBench:
    """Settings of the benchmark: random series of the shape of `datasets`, windows of the `paper` protocol.

    Attributes:
        datasets: names of the catalogue; no file is read.
        pred_len: steps of forecast P.
        repeats: turns, at least 1.
    """

    datasets: tuple[str, ...]
    pred_len: int
    repeats: int


@dataclass(frozen=True)
class DataRow:
    """One data set and batch size.

    Attributes:
        dataset, channels, seq_len, pred_len, batch_size: what was measured.
        gather: `Windows.gather`, seconds of a batch, against the loop.
        loop: the loop, seconds of a batch, against itself.
        gather_windows_per_s, loop_windows_per_s: the same as speeds.
    """

    dataset: str
    channels: int
    seq_len: int
    pred_len: int
    batch_size: int
    gather: Measured
    loop: Measured
    gather_windows_per_s: float
    loop_windows_per_s: float


def stack_samples(windows: Windows, index: Tensor) -> tuple[Tensor, Tensor]:
    """Make what `windows.gather(index)` gives, the way a data loader does: sample by sample, then stacked."""
    series, seq_len, span = windows.series, windows.seq_len, windows.seq_len + windows.pred_len
    samples = []
    for number in index.tolist():
        first = windows.start + number
        samples.append((series[first : first + seq_len], series[first + seq_len : first + span]))
    x, y = zip(*samples, strict=True)
    return torch.stack(x), torch.stack(y)


def bench_data(bench: DataBench, device: str) -> Iterator[DataRow]:
    """The rows of `bench`, each as soon as it is measured.

    Args:
        bench: what to measure.
        device: `cpu` or `cuda`, where batches are wanted; the gather has its series there, the loop's samples come
            from the CPU.

    Raises:
        UsageError: an unknown data set, or a horizon that its training rows do not hold; nothing was measured then.
    """
    plans = [(entry.name, _train_windows(entry.name, bench.pred_len)) for entry in map(card, bench.datasets)]
    return (_bench_batch(name, windows, size, bench.repeats, device) for name, windows in plans for size in BATCH_SIZES)


def _train_windows(name: str, pred_len: int) -> Windows:
    entry = card(name)
    start, stop = entry.split.train
    seq_len = default_look_back("paper", pred_len, stop - start).steps
    return Windows(torch.randn(entry.rows, entry.channels), seq_len, pred_len, start, stop)


def _bench_batch(name: str, windows: Windows, batch_size: int, repeats: int, device: str) -> DataRow:
    resident = windows.to(device)
    batches = torch.randint(len(windows), (WINDOWS_A_TURN,)).split(batch_size)
    resident_batches = [batch.to(device) for batch in batches]

    def gather() -> None:
        for batch in resident_batches:
            resident.gather(batch)

    def loop() -> None:
        for batch in batches:
            for part in stack_samples(windows, batch):
                part.to(device)

    seconds = take_turns({"gather": gather, "loop": loop}, repeats, device)
    a_batch = {case: [turn / len(batches) for turn in turns] for case, turns in seconds.items()}
    speed = {case: WINDOWS_A_TURN / statistics.median(turns) for case, turns in seconds.items()}
    return DataRow(
        dataset=name,
        channels=windows.series.shape[1],
        seq_len=windows.seq_len,
        pred_len=windows.pred_len,
        batch_size=batch_size,
        gather=Measured.of(a_batch["gather"], a_batch["loop"]),
        loop=Measured.of(a_batch["loop"], a_batch["loop"]),
        gather_windows_per_s=speed["gather"],
        loop_windows_per_s=speed["loop"],
    )
