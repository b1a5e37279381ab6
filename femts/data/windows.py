"""Windows as index arithmetic over one resident tensor: a batch is one gather, on a CPU or a GPU alike."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from femts.data.dataset import Dataset
from femts.data.frequency import phases
from femts.data.limits import Limits
from femts.data.preprocess import Preprocess
from femts.data.raw import Raw, raw_rows
from femts.data.resident import Context, ScaledSeries, SeriesFacts
from femts.data.spans import span, spread
from femts.data.static import with_static
from femts.errors import UsageError
from femts.text import shown

FAR = 10.0  # deviations from the mean of the training rows


class Windows:
    """Every window of stride 1 over rows [start, stop) of a series: `seq_len` steps of look-back, then `pred_len`.

    Shapes: B windows, L = `seq_len`, P = `pred_len`, C channels. Windows share the series; none is copied before it is
    asked for.

    Args:
        series: what they are cut out of; a tensor (N, C) stands for values that all are real.
        seq_len: L, steps.
        pred_len: P, steps.
        start: first row that a look-back may use.
        stop: one past the last row that may be forecast.
        overhang: steps by which forecasts may end after `stop`; they count as missing there.

    Raises:
        UsageError: no window fits in these rows.
    """

    def __init__(
        self, series: ScaledSeries | Tensor, seq_len: int, pred_len: int, start: int, stop: int, overhang: int = 0
    ) -> None:
        self.resident = series if isinstance(series, ScaledSeries) else ScaledSeries(series)
        self.series = self.resident.values
        self.targets = self.series.shape[1] if self.resident.targets is None else self.resident.targets
        if not 0 <= start <= stop <= len(self.series):
            raise UsageError(f"Rows {start} to {stop} are not within the {len(self.series)} rows of the series.")
        if seq_len < 1 or pred_len < 1:
            raise UsageError(f"Look-back {seq_len} and forecast {pred_len} must each be at least 1 step.")
        if stop + overhang - start < seq_len + pred_len:
            raise UsageError(
                f"A look-back of {seq_len} and a forecast of {pred_len} steps do not fit in {stop - start} rows; "
                f"together they may take {stop - start}."
            )
        self.seq_len, self.pred_len, self.start, self.stop, self.overhang = seq_len, pred_len, start, stop, overhang
        self._steps = torch.arange(start, start + seq_len + pred_len, device=self.series.device)
        self.counted = self.resident.counted

    @property
    def masked(self) -> bool:
        """True where some values are not real, so that `seen` has a mask."""
        return self.resident.observed is not None or self.overhang > 0

    def __len__(self) -> int:
        return self.stop + self.overhang - self.start - self.seq_len - self.pred_len + 1

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
        """Observed mask of the windows `index`, look-backs and what followed (B, L + P, C); None
        where all values are real."""
        if not self.masked:
            return None
        observed = self.resident.observed
        seen = torch.ones_like(self.series[:1], dtype=torch.bool) if observed is None else self._cut(observed, index)
        if not self.overhang:
            return seen
        rows = index.to(self.series.device)[:, None] + self._steps
        return (rows < self.stop)[..., None] & seen

    def scored(self, index: Tensor) -> Tensor | None:
        """Mask of what is scored of the windows `index` (B, P, T), T targets: the values that follow, of targets with a
        value in the look-back, for `predict` has no forecast of others; None where all are."""
        seen = self.seen(index)
        if seen is None:
            return None
        before, after = seen[..., : self.targets].split([self.seq_len, self.pred_len], dim=1)
        return after & before.any(1, keepdim=True)

    def counts(self, index: Tensor) -> Tensor | None:
        """Mask of the targets of the windows `index` that mean errors over several targets or series are made of,
        (B or 1, 1, T); None for all.

        Others have no scale of their own (`Scaler.own`), so what they err in it would decide the mean.
        """
        return None if self.counted is None else self.counted[:, None]

    def within_scale(self) -> Windows:
        """The same windows, for a choice by their mean error, which the targets of a series do not count for either of
        which most values to be forecast are more than `FAR` deviations from the training rows; where none is left,
        they do."""
        values, observed = self.series[:, : self.targets], self.resident.observed
        far = values.abs() > FAR
        if not far.any():
            return self
        seen = torch.ones_like(far) if observed is None else observed[:, : self.targets]
        ends = [torch.nn.functional.pad(each.cumsum(0), (0, 0, 1, 0)) for each in (far & seen, seen)]
        first, stop = self._forecast_rows()
        beyond, whole = (each[stop] - each[first] for each in ends)
        near = 2 * beyond <= whole
        there = whole > 0 if self.counted is None else (whole > 0) & self.counted
        if near.all() or not (near & there).any():
            return self
        windows = copy.copy(self)
        windows.counted = near if self.counted is None else near & self.counted
        return windows

    def _forecast_rows(self) -> tuple[Tensor, Tensor]:
        """First row that is forecast and one past the last one, of each series, (S,)."""
        ends = torch.tensor([[self.start + self.seq_len], [self.stop]], device=self.series.device)
        return ends[0].clamp(max=self.stop), ends[1]

    def taken_off(self, index: Tensor) -> Tensor | None:
        """Offsets of the windows `index`, look-backs and what followed (B, L + P, C); None where there are none."""
        return None if self.resident.offsets is None else self._cut(self.resident.offsets, index)

    def limits(self, index: Tensor) -> Limits | None:
        """Limits of the forecasts of the windows `index`, offsets put back; None where there are none."""
        return self.resident.limits

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the series that windows are of."""
        return ("",) if self.resident.facts is None else self.resident.facts.names

    def series_of(self, index: Tensor) -> Tensor:
        """Number of the series that each window of `index` (B,) is of."""
        return torch.zeros_like(index)

    def context(self, index: Tensor) -> Context:
        """Context of the forecasts of the windows `index`, on the CPU."""
        series, facts = self.series_of(index).cpu(), self.resident.facts
        rows, within = self._rows_and_nearest(index)
        recent = self._recent(within[:, self.seq_len - self.recent_steps : self.seq_len])
        if facts is None:
            return Context(series, torch.zeros_like(recent), recent)
        location = facts.location[series][:, None]
        if facts.phase is None:
            return Context(series, location, recent)
        rows, within = (each[:, self.seq_len :].cpu() for each in (rows, within))
        return Context(series, location, recent, (facts.phase[within] + rows - within) % facts.season)

    @property
    def recent_steps(self) -> int:
        """Steps before a forecast whose mean is the recent level: a season, or where there is none, a horizon."""
        season = 1 if self.resident.facts is None else self.resident.facts.season
        return min(self.seq_len, season if season > 1 else self.pred_len)

    def _recent(self, rows: Tensor) -> Tensor:
        """Mean (B, 1, T) float64 of the targets in `rows` (B, n), effects put back, on the CPU."""
        values, offsets = self.series[rows][..., : self.targets], self.resident.offsets
        values = values if offsets is None else values + offsets[rows][..., : self.targets]
        return values.cpu().double().mean(1, keepdim=True)

    def _rows_and_nearest(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of the windows `index` (B, L + P), and for each the nearest within their series."""
        rows = index.to(self.series.device)[:, None] + self._steps
        return rows, rows.clamp(max=self.stop - 1)

    def raw(self, index: Tensor) -> Raw:
        """Look-backs (B, L, C) of the windows `index` before scaling; those of a series without
        such rows are its values."""
        if self.resident.raw is None:
            values = self.gather(index)[0].cpu().double()
            return Raw(values, torch.zeros_like(values[:, :1]), torch.ones_like(values[:, :1]))
        values, mean, scale = self.resident.raw
        rows, inside = self._raw_rows(index)
        last = rows[:, -1:]
        return Raw(values[rows].where(inside[..., None], torch.nan), mean[last], scale[last])

    def _raw_rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of the look-backs (B, L), and which of them there are."""
        rows = (index.to(self.series.device)[:, None] + self._steps[: self.seq_len]).cpu()
        return rows, torch.ones_like(rows, dtype=torch.bool)

    def spread(self, most: int | None) -> Tensor:
        """Numbers of all windows, or of `most` at even distances, the first and the last among them."""
        return spread(len(self), most)

    def _cut(self, values: Tensor, index: Tensor) -> Tensor:
        if index.device.type == "cpu" and len(index) and not 0 <= int(index.min()) <= int(index.max()) < len(self):
            raise IndexError(f"window numbers are 0 to {len(self) - 1}, not {int(index.min())} to {int(index.max())}")
        rows = index.to(values.device, non_blocking=True)[:, None] + self._steps
        rows = rows.clamp(max=self.stop - 1) if self.overhang else rows
        return values.index_select(0, rows.flatten()).view(*rows.shape, -1)

    def to(self, device: torch.device | str) -> Windows:
        """The same windows over a copy of the series on `device`."""
        resident = self.resident.to(device)
        moved = Windows(resident, self.seq_len, self.pred_len, self.start, self.stop, self.overhang)
        moved.counted = None if self.counted is None else self.counted.to(device)
        return moved


class PanelWindows(Windows):
    """Windows of the series of a panel, one after the other, over one resident tensor that holds them all.

    Args:
        series: all rows of all series.
        seq_len, pred_len: L and P, steps.
        spans: for each series, the four numbers of its `Span`: int64 (S, 4).
        names: of the series.
        static: E inputs that stay the same for each series, (S, E); `gather` puts them after the
            channels of a look-back. None where there are none.
    """

    def __init__(
        self,
        series: ScaledSeries,
        seq_len: int,
        pred_len: int,
        spans: Tensor,
        names: Sequence[str],
        static: Tensor | None = None,
    ) -> None:
        if seq_len < 1 or pred_len < 1:
            raise UsageError(f"Look-back {seq_len} and forecast {pred_len} must each be at least 1 step.")
        super().__init__(series, 1, 1, 0, len(series.values))
        self.seq_len, self.pred_len, self.spans, self._names = seq_len, pred_len, spans, tuple(names)
        self.static = static
        self.ends = spans[:, 3].cumsum(0)
        first, stop, begin, count = spans.unbind(1)
        within = (begin >= first) & (begin + count - 1 + seq_len + pred_len <= stop)
        self._complete = series.observed is None and bool((within | (count == 0)).all())
        self._steps = torch.arange(seq_len + pred_len, device=self.series.device)
        if self.counted is not None and not self.counted[count > 0].any():
            self.counted = None  # none that counts has a window here

    def __len__(self) -> int:
        return int(self.ends[-1])

    @property
    def disjoint(self) -> int:
        """As `Windows.disjoint`, the sum over the series."""
        return int((-(-self.spans[:, 3] // self.pred_len)).sum())

    def gather(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """As `Windows.gather`; static inputs follow the channels of the look-backs, (B, L, C + E)."""
        x, y = super().gather(index)
        return x if self.static is None else with_static(x, self.static[self.series_of(index)]), y

    @property
    def names(self) -> tuple[str, ...]:
        """As `Windows.names`."""
        return self._names

    def series_of(self, index: Tensor) -> Tensor:
        """As `Windows.series_of`."""
        return torch.searchsorted(self.ends, index.to(self.ends.device).contiguous(), right=True)

    def counts(self, index: Tensor) -> Tensor | None:
        """As `Windows.counts`, those of the series that each window is of."""
        return None if self.counted is None else self.counted[self.series_of(index)][:, None]

    def _forecast_rows(self) -> tuple[Tensor, Tensor]:
        first, stop, begin, count = self.spans.unbind(1)
        after = torch.minimum(begin + self.seq_len + count - 1 + self.pred_len, stop)
        begin = torch.maximum(begin + self.seq_len, first)
        return begin, torch.where(count > 0, after, begin)

    def limits(self, index: Tensor) -> Limits | None:
        """As `Windows.limits`, those of the series that each window is of."""
        limits = self.resident.limits
        return None if limits is None else limits.at(self.series_of(index))

    def place(self, number: int) -> tuple[str, int]:
        """Series of window `number`, and the row, counted from the first that its windows see, at which the forecast
        begins."""
        series = int(self.series_of(torch.tensor(number)))
        first, _, begin, windows = self.spans[series].tolist()
        within = number - int(self.ends[series]) + windows
        return self.names[series], begin + within + self.seq_len - first

    @property
    def masked(self) -> bool:
        """True where some values are missing, for a window may reach out of its series."""
        return not self._complete

    def seen(self, index: Tensor) -> Tensor | None:
        """As `Windows.seen`; what is not within the series is missing."""
        if not self.masked:
            return None
        rows, inside = self._rows(index)
        observed = self.resident.observed
        if observed is None:
            return inside[..., None].expand(*inside.shape, self.series.shape[1])
        return inside[..., None] & observed[rows]

    def _cut(self, values: Tensor, index: Tensor) -> Tensor:
        rows, inside = self._rows(index)
        return torch.where(inside[..., None], values[rows], torch.zeros((), dtype=values.dtype, device=values.device))

    def _rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (B, L + P) of the windows `index`, kept within their series, and which of them are within it."""
        rows, within = self._rows_and_nearest(index)
        return within, rows == within

    def _rows_and_nearest(self, index: Tensor) -> tuple[Tensor, Tensor]:
        index = index.to(self.series.device)
        number = self.series_of(index)
        first, stop, begin, count = self.spans[number].unbind(1)
        rows = (begin + index - (self.ends[number] - count))[:, None] + self._steps
        return rows, rows.clamp(first[:, None], stop[:, None] - 1)

    def _raw_rows(self, index: Tensor) -> tuple[Tensor, Tensor]:
        rows, inside = self._rows(index)
        return rows[:, : self.seq_len].cpu(), inside[:, : self.seq_len].cpu()

    def spread(self, most: int | None) -> Tensor:
        """As `Windows.spread`, shared out evenly over the series, of which each keeps its last window at least."""
        if most is None or len(self) <= most:
            return torch.arange(len(self))
        counts = self.spans[:, 3].cpu()
        each = max(1, most // int((counts > 0).sum()))
        begin = [0, *counts.cumsum(0).tolist()]
        some = [spread(n, each) if each > 1 else torch.arange(max(0, n - 1), n) for n in counts.tolist()]
        return torch.cat([first + numbers for first, numbers in zip(begin, some, strict=False)])

    def to(self, device: torch.device | str) -> PanelWindows:
        """The same windows over a copy of the series on `device`."""
        static = None if self.static is None else self.static.to(device)
        resident, spans = self.resident.to(device), self.spans.to(device)
        moved = PanelWindows(resident, self.seq_len, self.pred_len, spans, self.names, static)
        moved.counted = None if self.counted is None else self.counted.to(device)
        return moved


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
    if min(seq_len, pred_len) >= 1:  # shorter ones are named by Windows itself
        fitting = min(seq_len, dataset.split.longest(part, pred_len)) if preprocess.reads_raw else seq_len
        dataset.split.check(dataset.name, part, max(1, fitting), pred_len)
    series = _resident(dataset, preprocess) if like is None else like.resident
    if preprocess.reads_raw:
        spans = torch.tensor([span(dataset.split, part, seq_len, pred_len)])
        windows: Windows = PanelWindows(series, seq_len, pred_len, spans, (dataset.name,))
    else:
        windows = Windows(series, seq_len, pred_len, start, stop, dataset.split.overhang(part, pred_len))
    every = torch.arange(len(windows)).split(64)
    if windows.counted is not None and not any(_any_scored(windows, index, counted=True) for index in every):
        windows.counted = None
    if not any(_any_scored(windows, index) for index in every):
        raise UsageError(
            f"No value of '{dataset.name}' is there in its {part} rows, or none with a value in its look-back of "
            f"{seq_len}; bring a table without such a gap."
        )
    return windows


def _any_scored(windows: Windows, index: Tensor, counted: bool = False) -> bool:
    scored, counts = windows.scored(index), windows.counts(index) if counted else None
    return scored is None or bool((scored if counts is None else scored & counts).any())


def _resident(dataset: Dataset, preprocess: Preprocess) -> ScaledSeries:
    where = f"Data set '{shown(dataset.name)}'"
    taken_off = preprocess.offsets(dataset.covariates, dataset.dates, where)
    offsets = None if taken_off is None else torch.from_numpy(taken_off).float()
    values = torch.from_numpy(preprocess.transform(dataset.values, taken_off, where)).float()
    observed = None if dataset.observed is None else torch.from_numpy(dataset.observed)
    raw = raw_rows(preprocess, dataset.values, taken_off) if preprocess.reads_raw else None
    limits, counted = Limits.of([preprocess], dataset.targets), counted_of([preprocess], dataset.targets)
    phase = phases(dataset.dates, dataset.freq, dataset.season)
    facts = SeriesFacts(
        (dataset.name,),
        location([preprocess], dataset.targets),
        dataset.season,
        None if phase is None else torch.from_numpy(phase).int(),
    )
    return ScaledSeries(values, observed, offsets, dataset.targets, raw, limits, counted, facts)


def location(series: Sequence[Preprocess], targets: int) -> Tensor:
    """Mean over scale of the first T channels of each series, (S, T) float64."""
    return torch.from_numpy(np.stack([one.scaler.mean[:targets] / one.scaler.scale[:targets] for one in series]))


def counted_of(series: Sequence[Preprocess], targets: int) -> Tensor | None:
    """Which targets of several series have a scale of their own, (S, T), the first ones; None where all or none has."""
    own = np.stack([one.scaler.own[:targets] for one in series])
    return None if own.all() or not own.any() else torch.from_numpy(own)
