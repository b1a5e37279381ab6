"""Windows as index arithmetic over one resident tensor: a batch is one gather, on a CPU or a GPU alike."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.errors import UsageError
from femts.text import shown


class Windows:
    """Every window of stride 1 over rows [start, stop) of a series: `seq_len` steps of look-back, then `pred_len`.

    Shapes: B windows, L = `seq_len`, P = `pred_len`, C channels. Windows share the series; none is copied before it is
    asked for.

    Args:
        series: (rows, C), scaled, float32.
        seq_len: L, steps.
        pred_len: P, steps.
        start: first row that a look-back may use.
        stop: one past the last row that may be forecast.
        observed: (rows, C) bool, which values are real and no filling; None where all are.
        offsets: (rows, C), what was taken off the scaled values, for it is known; None where nothing was.
        targets: how many of the channels, the first ones, are scored; None for all.

    Raises:
        UsageError: no window fits in these rows.
    """

    def __init__(
        self,
        series: Tensor,
        seq_len: int,
        pred_len: int,
        start: int,
        stop: int,
        observed: Tensor | None = None,
        offsets: Tensor | None = None,
        targets: int | None = None,
    ) -> None:
        if not 0 <= start <= stop <= len(series):
            raise UsageError(f"Rows {start} to {stop} are not within the {len(series)} rows of the series.")
        if seq_len < 1 or pred_len < 1:
            raise UsageError(f"Look-back {seq_len} and forecast {pred_len} must each be at least 1 step.")
        if stop - start < seq_len + pred_len:
            raise UsageError(
                f"A look-back of {seq_len} and a forecast of {pred_len} steps do not fit in {stop - start} rows; "
                f"together they may take {stop - start}."
            )
        self.series, self.seq_len, self.pred_len, self.start, self.stop = series, seq_len, pred_len, start, stop
        self.observed, self.offsets = observed, offsets
        self.targets = series.shape[1] if targets is None else targets
        self._steps = torch.arange(start, start + seq_len + pred_len, device=series.device)

    def __len__(self) -> int:
        return self.stop - self.start - self.seq_len - self.pred_len + 1

    @property
    def disjoint(self) -> int:
        """Number of windows at most of which none overlaps another in what it forecasts."""
        return -(-len(self) // self.pred_len)

    def gather(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Windows number `index` (B,), int64: the look-backs x (B, L, C) and what followed, y (B, P, C).

        Raises:
            IndexError: a number outside [0, len); checked for an index on the CPU, where it costs no synchronisation.
        """
        both = self._cut(self.series, index)
        return both[:, : self.seq_len], both[:, self.seq_len :]

    def seen(self, index: Tensor) -> Tensor | None:
        """Observed mask of the windows `index`, look-backs and what followed (B, L + P, C); None where all values are real."""
        return None if self.observed is None else self._cut(self.observed, index)

    def taken_off(self, index: Tensor) -> Tensor | None:
        """Offsets of the windows `index`, look-backs and what followed (B, L + P, C); None where there are none."""
        return None if self.offsets is None else self._cut(self.offsets, index)

    def _cut(self, values: Tensor, index: Tensor) -> Tensor:
        if index.device.type == "cpu" and len(index) and not 0 <= int(index.min()) <= int(index.max()) < len(self):
            raise IndexError(f"window numbers are 0 to {len(self) - 1}, not {int(index.min())} to {int(index.max())}")
        rows = index.to(values.device, non_blocking=True)[:, None] + self._steps
        return values.index_select(0, rows.flatten()).view(*rows.shape, -1)

    def to(self, device: torch.device | str) -> Windows:
        """The same windows over a copy of the series on `device`."""
        observed, offsets = (None if each is None else each.to(device) for each in (self.observed, self.offsets))
        place = (self.seq_len, self.pred_len, self.start, self.stop)
        return Windows(self.series.to(device), *place, observed, offsets, self.targets)

    def batches(self, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Every window once and in order, `batch_size` at a time; the last batch may be short."""
        for first in range(0, len(self), batch_size):
            yield self.gather(torch.arange(first, min(first + batch_size, len(self)), device=self.series.device))


def part_windows(
    dataset: Dataset, preprocess: Preprocess, part: str, seq_len: int, pred_len: int, like: Windows | None = None
) -> Windows:
    """The windows of one part (`train`, `val`, `test`) of `dataset`.

    Args:
        dataset: the data and its split.
        preprocess: fitted on the training rows.
        part: which rows are forecast; look-backs of `val` and `test` reach into the rows before them.
        seq_len: look-back, steps.
        pred_len: forecast, steps.
        like: windows of another part or length, of the same data and preprocessing, whose values are shared.

    Raises:
        UsageError: unknown part, or a length that does not fit it; the text says which length would.
    """
    start, stop = dataset.split.rows(part, seq_len)
    first = start if part == "train" else start + seq_len
    if min(seq_len, pred_len) >= 1:  # shorter ones are named by Windows itself
        dataset.split.check(dataset.name, part, seq_len, pred_len)
    if like is None:
        where = f"Data set '{shown(dataset.name)}'"
        taken_off = preprocess.offsets(dataset.known, dataset.dates, where)
        scaled = preprocess.transform(dataset.values, taken_off, where)
        series, offsets = torch.from_numpy(scaled).float(), None if taken_off is None else torch.from_numpy(taken_off).float()
        observed = None if dataset.observed is None else torch.from_numpy(dataset.observed)
    else:
        series, observed, offsets = like.series, like.observed, like.offsets
    if observed is not None and not observed[first:stop].any():
        raise UsageError(f"No value of '{dataset.name}' is there in its {part} rows; bring a table without such a gap.")
    return Windows(series, seq_len, pred_len, start, stop, observed, offsets, dataset.targets)
