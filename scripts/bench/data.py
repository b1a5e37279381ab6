"""Speed of batches: one gather over the resident series, compared with PyTorch's data loader over samples."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from femts.data.windows import Windows
from scripts.bench.measure import compare, take_turns

WINDOWS = 1024  # windows per turn


class Samples(Dataset[tuple[Tensor, Tensor]]):
    """The windows of a series one by one: look-back (L, C) and targets (P, C)."""

    def __init__(self, series: Tensor, seq_len: int, pred_len: int) -> None:
        self.series, self.seq_len, self.span = series, seq_len, seq_len + pred_len

    def __len__(self) -> int:
        return len(self.series) - self.span + 1

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        window = self.series[number : number + self.span]
        return window[: self.seq_len], window[self.seq_len :]


def bench_data(options: Namespace) -> Iterator[dict[str, Any]]:
    """Batches of windows from random data: a gather where the series lies, against `DataLoader` and a copy there."""
    seq_len, pred_len, device = options.seq_len, options.pred_len, options.device
    for count, size in product(options.channels, options.batch_sizes):
        series = torch.randn(seq_len + pred_len - 1 + WINDOWS, count)
        resident = Windows(series.to(device), seq_len, pred_len)
        batches = torch.randperm(WINDOWS).split(size)
        loader = DataLoader(Samples(series, seq_len, pred_len), batch_sampler=[batch.tolist() for batch in batches])
        cases = {
            "gather": partial(_gather, resident, [batch.to(device) for batch in batches]),
            "loader": partial(_load, loader, device),
        }
        turns = {
            name: [turn / len(batches) for turn in each]
            for name, each in take_turns(cases, options.repeats, device).items()
        }
        gather, by_loader = (compare(turns[name], turns["loader"]) for name in ("gather", "loader"))
        yield {
            **{"channels": count, "seq_len": seq_len, "pred_len": pred_len, "batch_size": size},
            **{"gather": gather, "loader": by_loader},
            "gather_windows_per_s": size / gather["seconds"],
            "loader_windows_per_s": size / by_loader["seconds"],
        }


def _gather(windows: Windows, batches: Sequence[Tensor]) -> None:
    for batch in batches:
        windows.batch(batch)


def _load(loader: DataLoader[tuple[Tensor, Tensor]], device: str) -> None:
    for x, y in loader:
        x.to(device), y.to(device)
