"""Windows as index arithmetic over one resident tensor: a batch is one gather, on a CPU or a GPU alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.dataset import Dataset
from femts.data.scaler import Scaler
from femts.errors import UsageError
from femts.text import shown

MOST_DEVIATIONS = 1e15  # sums of squares of such values are still within float32


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
        effects: (rows, C), what was taken off the scaled values, for it is known; None where nothing was.
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
        effects: Tensor | None = None,
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
        self.observed, self.effects = observed, effects
        self.targets = series.shape[1] if targets is None else targets
        self._steps = torch.arange(start, start + seq_len + pred_len, device=series.device)

    def __len__(self) -> int:
        return self.stop - self.start - self.seq_len - self.pred_len + 1

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

    def effect(self, index: Tensor) -> Tensor | None:
        """Effects taken off the windows `index`, look-backs and what followed (B, L + P, C); None where nothing was."""
        return None if self.effects is None else self._cut(self.effects, index)

    def _cut(self, values: Tensor, index: Tensor) -> Tensor:
        if index.device.type == "cpu" and len(index) and not 0 <= int(index.min()) <= int(index.max()) < len(self):
            raise IndexError(f"window numbers are 0 to {len(self) - 1}, not {int(index.min())} to {int(index.max())}")
        rows = index.to(values.device, non_blocking=True)[:, None] + self._steps
        return values.index_select(0, rows.flatten()).view(*rows.shape, -1)

    def to(self, device: torch.device | str) -> Windows:
        """The same windows over a copy of the series on `device`."""
        observed, effects = (None if each is None else each.to(device) for each in (self.observed, self.effects))
        place = (self.seq_len, self.pred_len, self.start, self.stop)
        return Windows(self.series.to(device), *place, observed, effects, self.targets)

    def batches(self, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Every window once and in order, `batch_size` at a time; the last batch may be short."""
        for first in range(0, len(self), batch_size):
            yield self.gather(torch.arange(first, min(first + batch_size, len(self)), device=self.series.device))


def scaled_series(dataset: Dataset, scaler: Scaler) -> Tensor:
    """The whole of `dataset` in scaled units, known effects taken off, gaps filled: (rows, C), float32."""
    return _without(known_effects(dataset, scaler), dataset, scaler)


def _without(known: NDArray[np.float64] | None, dataset: Dataset, scaler: Scaler) -> Tensor:
    """As `scaled_series`, from what `known_effects` gave."""
    scaled = scaler.transform(dataset.values)
    scaled = scaled if known is None else scaled - known
    return single(scaled, dataset.columns, f"Data set '{shown(dataset.name)}'")


def single(scaled: NDArray[np.float64], columns: Sequence[str], where: str) -> Tensor:
    """Scaled values (..., rows, C) as models read them, gaps filled, in float32.

    Raises:
        UsageError: a value so far off that its square would leave float32; the text names its column and its row.
    """
    far = np.abs(scaled) > MOST_DEVIATIONS
    if far.any():
        *_, row, column = np.argwhere(far)[0]
        raise UsageError(
            f"{where} has, in column '{shown(columns[column])}' at data row {row + 1}, a value more than {MOST_DEVIATIONS:g} "
            "deviations from the mean of the training rows, too far for single precision; correct it, or leave it empty."
        )
    return torch.from_numpy(fill_gaps(scaled)).float()


def known_effects(dataset: Dataset, scaler: Scaler) -> NDArray[np.float64] | None:
    """Effects: the part of the scaled values that is known before they are there, (rows, C); None where nothing is."""
    if scaler.effects is None:
        return None
    if dataset.known is None:
        raise UsageError(
            f"Data set '{dataset.name}' was loaded without its known columns; load it with the roles of the training."
        )
    return scaler.effects.of(dataset.known, dataset.dates)


def fill_gaps(scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scaled values (..., rows, C), gaps filled: by the last value before them, or by the training mean, 0, at the start."""
    missing = np.isnan(scaled)
    if not missing.any():
        return scaled
    rows = np.arange(scaled.shape[-2])[:, None]
    last = np.maximum.accumulate(np.where(missing, -1, rows), axis=-2)
    return np.where(last < 0, 0.0, np.take_along_axis(scaled, np.maximum(last, 0), axis=-2))


def part_windows(
    dataset: Dataset, scaler: Scaler, part: str, seq_len: int, pred_len: int, like: Windows | None = None
) -> Windows:
    """The windows of one part (`train`, `val`, `test`) of `dataset`.

    Args:
        dataset: the data and its split.
        scaler: fitted on the training rows.
        part: which rows are forecast; look-backs of `val` and `test` reach into the rows before them.
        seq_len: look-back, steps.
        pred_len: forecast, steps.
        like: windows of another part or length, of the same data and scaler, whose values are shared.

    Raises:
        UsageError: unknown part, or a length that does not fit it; the text says which length would.
    """
    start, stop = dataset.split.rows(part, seq_len)
    first = start if part == "train" else start + seq_len
    if min(seq_len, pred_len) >= 1:  # shorter ones are named by Windows itself
        dataset.split.check(dataset.name, part, seq_len, pred_len)
    if like is None:
        known = known_effects(dataset, scaler)
        effects = None if known is None else torch.from_numpy(known).float()
        series = _without(known, dataset, scaler)
        observed = None if dataset.observed is None else torch.from_numpy(dataset.observed)
    else:
        series, observed, effects = like.series, like.observed, like.effects
    if observed is not None and not observed[first:stop].any():
        raise UsageError(f"No value of '{dataset.name}' is there in its {part} rows; bring a table without such a gap.")
    return Windows(series, seq_len, pred_len, start, stop, observed, effects, dataset.targets)
