"""Windows as index arithmetic over a resident tensor: a batch is a single gather, on a CPU or a GPU."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset
from femts.data.describe import count as counted
from femts.data.frequency import phases, steps_between
from femts.data.limits import Limits
from femts.data.outliers import NEAREST
from femts.data.preprocess import Preprocess, fill_gaps
from femts.data.raw import Raw
from femts.data.resident import Context, Factors, Odd, ScaledSeries, SeriesFacts
from femts.errors import UsageError
from femts.text import argument, quote

FAR = 10.0  # standard deviations from the training mean


class Windows:
    """Windows of stride 1 over the rows of S consecutive series: `seq_len` steps of look-back, then `pred_len` steps.

    Shapes: B windows, L = `seq_len`, P = `pred_len`, C channels. Windows share the rows and are copied only when
    requested.

    Args:
        rows: scaled rows; a tensor (N, C) is a single series without missing values.
        seq_len: L, steps.
        pred_len: P, steps.
        spans: (S, 4), for each series its first row and one past the last row that windows may see, the row at which
            the first window begins, and the number of windows, as returned by `Split.windows`. Steps outside of these
            rows are missing, and 0, the training mean, in look-backs. None selects all windows of a single series.

    Raises:
        UsageError: A length is below 1, or there are no windows.
    """

    def __init__(self, rows: ScaledSeries | Tensor, seq_len: int, pred_len: int, spans: Tensor | None = None) -> None:
        self.resident = rows if isinstance(rows, ScaledSeries) else ScaledSeries(rows)
        self.rows = self.resident.values
        if seq_len < 1 or pred_len < 1:
            raise UsageError(f"Look-back {seq_len} and forecast {pred_len} must each be at least 1 step.")
        if spans is None:
            spans = torch.tensor([[0, len(self.rows), 0, max(0, len(self.rows) - seq_len - pred_len + 1)]])
        self.seq_len, self.pred_len, self.spans = seq_len, pred_len, spans.to(self.rows.device)
        first, stop, begin, count = self.spans.unbind(1)
        self.ends = count.cumsum(0)
        self._offsets, self._length = begin - (self.ends - count), int(self.ends[-1])
        if not self._length:
            raise UsageError(
                f"A look-back of {seq_len} and a forecast of {counted(pred_len, 'step')} do not fit in "
                f"{counted(int((stop - first).max()), 'row')}; provide more rows, or use fewer steps."
            )
        within = (begin >= first) & (begin + count - 1 + seq_len + pred_len <= stop)
        self._within = bool((within | (count == 0)).all())
        self._steps = torch.arange(seq_len + pred_len, device=self.rows.device)
        self.known_steps = pred_len  # steps after the look-back for which a batch has future covariates
        self.checks = True  # whether numbers of windows on the CPU are compared with their range
        self.lacks_odd = False  # whether odd readings are missing among the targets, too
        self.counted = self.resident.counted
        if self.counted is not None and len(self.counted) > 1 and not self.counted[count > 0].any():
            self.counted = None  # no target that counts has a window here

    def __len__(self) -> int:
        return self._length

    @property
    def n_targets(self) -> int:
        """Number T of scored channels, which come first."""
        return self.rows.shape[1] if self.resident.targets is None else self.resident.targets

    @property
    def masked(self) -> bool:
        """Whether some values are missing, so that `seen` returns a mask."""
        return self.resident.observed is not None or self.resident.odd is not None or not self._within

    @property
    def disjoint(self) -> int:
        """Largest number of windows whose forecasts do not overlap within a series."""
        return int((-(-self.spans[:, 3] // self.pred_len)).sum())

    @property
    def disjoint_by_step(self) -> NDArray[np.int64]:
        """`disjoint` by step, (P,). If forecasts extend past the rows, it is the number of windows that reach a step and
        do not overlap up to it, at steps that none reaches that of the last one."""
        _first, stop, begin, count = (each.cpu().numpy()[:, None] for each in self.spans.unbind(1))
        ahead = np.where(count > 0, stop - begin - self.seq_len, 0)  # rows from the first forecast on
        if ((ahead >= count - 1 + self.pred_len) | (count == 0)).all():
            return np.full(self.pred_len, self.disjoint)
        steps = np.minimum(np.arange(1, self.pred_len + 1), ahead.max())
        reached = np.clip(ahead - steps + 1, 0, count)
        return np.asarray((-(-reached // steps)).sum(0))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the series."""
        return ("",) if self.resident.facts is None else self.resident.facts.names

    def series_of(self, index: Tensor) -> Tensor:
        """Number of the series of each window in `index` (B,)."""
        if len(self.spans) == 1:
            return torch.zeros_like(index)
        return torch.searchsorted(self.ends, index.to(self.ends.device).contiguous(), right=True)

    def origins(self, index: Tensor) -> Tensor:
        """Step at which the forecast of each window in `index` (B,) begins, on a time axis common to all series."""
        rows, facts = self._rows(index)[:, self.seq_len].cpu(), self.resident.facts
        return rows if facts is None or facts.shift is None else rows + facts.shift[self.series_of(index).cpu()]

    def batch(self, index: Tensor) -> Batch:
        """Batch of the windows with numbers `index` (B,), int64.

        Raises:
            IndexError: A number is outside [0, len); checked only for an index on the CPU, where no synchronisation is
                needed, and only with `checks`.
        """
        lengths, resident = [self.seq_len, self.pred_len], self.resident
        past, future = self._gathered(self.rows, index).split(lengths, dim=1)
        seen, odd = self.seen(index), self.odd(index)
        before, after = (None, None) if seen is None else seen.split(lengths, dim=1)
        if odd is not None and before is not None:
            past = _carried(past, before, odd)
        return Batch(
            past=past,
            past_observed=before,
            known=None if resident.known is None else self._cut(resident.known, self._nearest(index, self.known_steps)),
            static=None if resident.static is None else resident.static[self.series_of(index)],
            future=future,
            future_observed=after,
            raw=None if resident.raw is None else self._raw(index, resident.raw, odd),
            series=self.series_of(index),
            number=index,
        )

    def seen(self, index: Tensor) -> Tensor | None:
        """Mask of the observed values (B, L + P, C) of the windows `index`; None if nothing is missing. Odd readings
        count as missing in look-backs, but not in targets."""
        if not self.masked:
            return None
        rows, nearest = self._rows(index), self._nearest(index)
        observed, inside = self.resident.observed, (rows == nearest)[..., None]
        if observed is None:
            seen = inside.expand(-1, -1, self.rows.shape[1])
        else:
            seen = self._cut(observed, nearest)
            seen = seen if self._within else inside & seen
        odd, (before, after) = self.odd(index), seen.split([self.seq_len, self.pred_len], dim=1)
        before = before if odd is None else before & ~odd
        if self.lacks_odd and self.resident.odd is not None:
            after = after & ~self._cut(self.resident.odd.settled, nearest[:, self.seq_len :])
        return torch.cat([before, after], dim=1)

    def odd(self, index: Tensor) -> Tensor | None:
        """Mask (B, L, C) of the readings in the look-backs of the windows `index` that are far outside the usual range,
        by the rows of the look-back alone and those before; None if there are none."""
        odd = self.resident.odd
        if odd is None:
            return None
        rows, nearest = (each[:, : self.seq_len] for each in (self._rows(index), self._nearest(index)))
        late = max(0, self.seq_len - NEAREST)
        pieces = self._cut(odd.settled, nearest[:, :late]), self._cut(odd.recent, nearest[:, late:])
        found = torch.cat(pieces, dim=1) & (rows == nearest)[..., None]
        return found if bool(found.any()) else None

    def scored(self, index: Tensor) -> Tensor | None:
        """Mask (B, P, T) of the scored values in the windows `index`: observed values of the T targets that have a
        value in the look-back, because `predict` does not forecast others. None if all are scored."""
        seen = self.seen(index)
        if seen is None:
            return None
        before, after = seen[..., : self.n_targets].split([self.seq_len, self.pred_len], dim=1)
        return after & before.any(1, keepdim=True)

    def counts(self, index: Tensor) -> Tensor | None:
        """Mask (B or 1, 1, T) of the targets of the windows `index` that are included in means over targets or series;
        None for all.

        Targets without a scale of their own (`Scaler.own`) are excluded, because their scaled errors would dominate the
        mean.
        """
        if self.counted is None:
            return None
        return self.counted[:, None] if len(self.counted) == 1 else self.counted[self.series_of(index)][:, None]

    def within_scale(self) -> Windows:
        """The same windows for model selection and calibration by validation errors, without those that would outweigh
        all others: odd readings are missing among the targets, and targets of a series are excluded if most of their
        values are more than `FAR` standard deviations from the training mean, unless that would exclude all."""
        if self.resident.odd is not None and not self.lacks_odd:
            windows = copy.copy(self)
            windows.lacks_odd = True
            return windows.within_scale()
        first, stop, begin, count = self.spans.unbind(1)
        after = torch.minimum(begin + self.seq_len + count - 1 + self.pred_len, stop)
        begin = torch.maximum(begin + self.seq_len, first)
        lengths = torch.where(count > 0, after - begin, 0)
        series = torch.repeat_interleave(lengths)
        rows = torch.arange(len(series), device=series.device) + (begin - lengths.cumsum(0) + lengths)[series]
        far = self.rows[rows, : self.n_targets].abs() > FAR
        if not far.any():
            return self
        observed = self.resident.observed
        seen = torch.ones_like(far) if observed is None else observed[rows, : self.n_targets]
        none = torch.zeros((len(lengths), self.n_targets), dtype=torch.int64, device=series.device)
        beyond, whole = (none.index_add(0, series, each.long()) for each in (far & seen, seen))
        near = 2 * beyond <= whole
        there = whole > 0 if self.counted is None else (whole > 0) & self.counted
        if near.all() or not (near & there).any():
            return self
        windows = copy.copy(self)
        windows.counted = near if self.counted is None else near & self.counted
        return windows

    def offsets(self, index: Tensor) -> Tensor | None:
        """Offsets (B, L + P, C) of the windows `index`, look-backs and targets; None if there are none."""
        return None if self.resident.offsets is None else self._gathered(self.resident.offsets, index)

    def limits(self, index: Tensor) -> Limits | None:
        """Forecast limits of the windows `index`, before offsets are removed; None if there are none."""
        limits = self.resident.limits
        return None if limits is None else limits.at(self.series_of(index))

    def context(self, index: Tensor) -> Context:
        """Context of the forecasts of the windows `index`, on the CPU."""
        series, facts = self.series_of(index).cpu(), self.resident.facts
        rows, nearest = self._rows(index), self._nearest(index)
        recent, unlike = self._recent(index, nearest[:, self.seq_len - self.recent_steps : self.seq_len]), None
        if self.resident.odd is not None:
            unlike = self._unlike(index, nearest[:, : self.seq_len].cpu(), self.resident.odd)
        if facts is None:
            return Context(series, torch.zeros_like(recent), recent, unlike=unlike)
        location = facts.location[series][:, None]
        if facts.phase is None:
            return Context(series, location, recent, unlike=unlike)
        rows, nearest = (each[:, self.seq_len :].cpu() for each in (rows, nearest))
        return Context(series, location, recent, (facts.phase[nearest] + rows - nearest) % facts.season, unlike)

    @property
    def recent_steps(self) -> int:
        """Steps before a forecast that define the recent level: a season or, without one, a horizon."""
        season = 1 if self.resident.facts is None else self.resident.facts.season
        return min(self.seq_len, season if season > 1 else self.pred_len)

    def _recent(self, index: Tensor, rows: Tensor) -> Tensor:
        """Mean (B, 1, T) float64 of the targets in the last `rows` (B, n) of the look-backs, with effects added back and
        without odd readings, on the CPU."""
        values, offsets = self.rows[rows][..., : self.n_targets], self.resident.offsets
        values = values if offsets is None else values + offsets[rows][..., : self.n_targets]
        values, odd = values.cpu().double(), self.odd(index)
        if odd is None:
            return values.mean(1, keepdim=True)
        usual = ~odd[:, -rows.shape[1] :, : self.n_targets].cpu()
        return values.where(usual, 0.0).sum(1, keepdim=True) / usual.sum(1, keepdim=True).clamp(min=1)

    def _unlike(self, index: Tensor, rows: Tensor, odd: Odd) -> Tensor | None:
        """Factors (B, 1, T) on the widths of intervals after look-backs with these `rows` (B, L); None if all are 1.

        They are for rougher rows than in training, and grow as the recent steps lack more readings, since fewer
        readings say less.
        """
        late = max(0, self.seq_len - NEAREST)
        settled, recent = (each.most(some) for each, some in zip(odd.unlike, rows.tensor_split([late], 1), strict=True))
        made, lacking = torch.maximum(settled, recent)[:, None].double(), self.odd(index)
        if lacking is not None:
            share = lacking[:, -self.recent_steps :, : self.n_targets].double().mean(1, keepdim=True).cpu()
            made = made / (1 - share).clamp(min=1 / self.recent_steps)
        return made if bool((made > 1).any()) else None

    def _raw(self, index: Tensor, resident: Raw, odd: Tensor | None) -> Raw:
        """Unscaled look-backs (B, L, C) of the windows `index`, without `odd` readings."""
        values, mean, scale = resident
        rows, nearest = (each[:, : self.seq_len].cpu() for each in (self._rows(index), self._nearest(index)))
        series = self.series_of(index).cpu()
        there = (rows == nearest)[..., None]
        there = there if odd is None else there & ~odd.cpu()
        return Raw(values[nearest].where(there, torch.nan), mean[series], scale[series])

    def rows_of(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (B, L + `known_steps`) of the windows `index`, and the same with rows outside of their series replaced
        by the nearest within."""
        return self._rows(index, self.known_steps), self._nearest(index, self.known_steps)

    def place(self, number: int) -> tuple[int, int]:
        """Series of window `number`, and the row at which its forecast begins, counted from the first row that windows
        see."""
        series = int(self.series_of(torch.tensor(number)))
        return series, int(self._offsets[series]) + number + self.seq_len - int(self.spans[series, 0])

    def subsample(self, most: int | None) -> Tensor:
        """Numbers of all windows, or of `most` evenly spaced ones; series get equal shares and keep their last
        window."""
        if most is None or len(self) <= most:
            return torch.arange(len(self))
        counts = self.spans[:, 3].cpu()
        each = max(1, most // int((counts > 0).sum()))
        if len(counts) == 1:
            return _evenly(len(self), each)
        if each == 1:
            return (counts.cumsum(0) - 1)[counts > 0]
        begin = [0, *counts.cumsum(0).tolist()]
        some = [_evenly(n, each) for n in counts.tolist()]
        return torch.cat([first + numbers for first, numbers in zip(begin, some, strict=False)])

    def _rows(self, index: Tensor, ahead: int | None = None) -> Tensor:
        """Rows (B, L + P) of the windows `index`, some of which may be outside of their series; `ahead` replaces P."""
        checked = self.checks and index.device.type == "cpu" and len(index) > 0
        if checked and not 0 <= int(index.min()) <= int(index.max()) < self._length:
            raise IndexError(
                f"window numbers are 0 to {self._length - 1}, not {int(index.min())} to {int(index.max())}"
            )
        index = index.to(self.rows.device, non_blocking=True)
        first = self._offsets if len(self.spans) == 1 else self._offsets[self.series_of(index)]
        steps = (
            self._steps if ahead in (None, self.pred_len) else torch.arange(self.seq_len + ahead, device=index.device)
        )
        return (first + index)[:, None] + steps

    def _nearest(self, index: Tensor, ahead: int | None = None) -> Tensor:
        """As `_rows`, with rows outside of their series replaced by the nearest within."""
        rows = self._rows(index, ahead)
        if self._within and ahead in (None, self.pred_len):
            return rows
        first, stop = self.spans[:, 0], self.spans[:, 1] - 1
        if len(self.spans) > 1:
            number = self.series_of(index)
            first, stop = first[number], stop[number]
        return rows.clamp(first[:, None], stop[:, None])

    def _gathered(self, values: Tensor, index: Tensor) -> Tensor:
        """`values` (N, C) in the windows `index`, (B, L + P, C), with 0, the training mean, for steps before the series
        begins."""
        nearest = self._nearest(index)
        cut = self._cut(values, nearest)
        return cut if self._within else cut.masked_fill((nearest > self._rows(index))[..., None], 0.0)

    def _cut(self, values: Tensor, rows: Tensor) -> Tensor:
        return values.index_select(0, rows.flatten()).view(*rows.shape, values.shape[1])

    def to(self, device: torch.device | str) -> Windows:
        """Copy the rows to `device`."""
        moved = Windows(self.resident.to(device), self.seq_len, self.pred_len, self.spans.to(device))
        moved.counted = None if self.counted is None else self.counted.to(device)
        moved.known_steps, moved.lacks_odd, moved.checks = self.known_steps, self.lacks_odd, self.checks
        return moved


def _carried(past: Tensor, observed: Tensor, odd: Tensor) -> Tensor:
    """Look-backs `past` (B, L, C) in which `odd` readings, and gaps that were filled with one, have the last `observed`
    value before them or, at the start, the first one after."""
    steps = torch.arange(past.shape[1], device=past.device)[:, None]
    last = torch.where(observed, steps, -1).cummax(1).values
    first = observed.int().argmax(1, keepdim=True).expand_as(last)
    carried = past.gather(1, torch.where(last < 0, first, last))
    after_odd = torch.where(odd, steps, -1).cummax(1).values > last  # nothing else changes
    return torch.where(after_odd, carried, past)


def _evenly(count: int, most: int) -> Tensor:
    """All of `count` numbers, or `most` evenly spaced ones including the first and the last."""
    if count <= most:
        return torch.arange(count)
    return torch.linspace(0, count - 1, most, dtype=torch.float64).round().long()


def part_windows(
    data: Dataset, preprocess: Preprocess, part: str, seq_len: int, pred_len: int, rows: ScaledSeries | None = None
) -> Windows:
    """Windows of a split (`train`, `val`, `test`) of all series that have rows in it.

    A look-back may begin before its series, with missing values; `check_windows` says for which models.

    Args:
        data: series and their splits.
        preprocess: preprocessing fitted on the training rows.
        part: split to forecast; look-backs of `val` and `test` reach into the rows before them.
        seq_len: look-back, steps.
        pred_len: horizon, steps.
        rows: result of `resident` for the same data and preprocessing; None computes them.

    Raises:
        UsageError: The split is unknown, or has no value to score.
    """
    counts = data.split.windows(part, seq_len, pred_len)
    counts[:, :3] += data.spans[:, :1]
    rows = resident(data, preprocess) if rows is None else rows
    rows = rows.learned(torch.from_numpy(data.spans[:, 0])) if part == "train" else rows
    windows = Windows(rows, seq_len, pred_len, torch.tensor(counts))
    some = torch.arange(len(windows)).split(64)
    if windows.counted is not None and not any(_any_scored(windows, index, counted=True) for index in some):
        windows.counted = None
    if not any(_any_scored(windows, index) for index in some):
        raise UsageError(
            f"No {part} row of '{quote(data.name)}' has a value, or none has a value in its look-back of {seq_len} "
            "steps; provide a table without this gap."
        )
    return windows


def check_windows(data: Dataset, part: str, seq_len: int, pred_len: int, within: bool = True) -> None:
    """Raise UsageError if the split `part` of `data` has no window of these lengths; the message says which would fit.

    Look-backs of a single series are `within` it (`RunConfig.looks_within`). Others, and those of several series, may begin
    before their series.
    """
    ranges, name = data.split.part(part), quote(data.name)
    if min(seq_len, pred_len) < 1:  # Windows itself raises an error
        return
    if data.source in CATALOG and part != "train":  # published splits are scored as a whole
        check_whole(data, part, pred_len)
    if not data.schema.panel and len(ranges) == 1:
        longest = data.split.longest_look_back(part, pred_len)
        data.split.check_fits(name, part, seq_len if within else max(1, min(seq_len, longest)), pred_len)
    elif not data.split.windows(part, seq_len, pred_len)[:, 3].any():
        text = (
            f"No series of '{name}' has a window of {counted(pred_len, 'step')} in its {part} split (the longest has {data.rows} "
            f"rows); use a shorter {argument('pred_len')}, or provide more rows."
        )
        raise UsageError(text, argument="pred_len", value=pred_len)


def check_whole(data: Dataset, part: str, pred_len: int) -> None:
    """Raise UsageError if `part` of a short table has no whole forecast of `pred_len` steps, which may extend past its
    end only at the horizon of the run."""
    start, stop = data.split.part(part).T
    rows = int((stop - start).max())
    if data.split.short(pred_len) and pred_len > rows:
        remedy = f"the longest that fits is {rows}" if rows else "provide more rows"
        text = f"A forecast of {counted(pred_len, 'step')} does not fit the {counted(rows, f'{part} row')} of '{quote(data.name)}'; {remedy}."
        raise UsageError(text, argument="pred_len", value=pred_len, remedy={"pred_len": rows} if rows else None)


def _any_scored(windows: Windows, index: Tensor, counted: bool = False) -> bool:
    scored, counts = windows.scored(index), windows.counts(index) if counted else None
    return scored is None or bool((scored if counts is None else scored & counts).any())


def resident(data: Dataset, preprocess: Preprocess) -> ScaledSeries:
    """Scaled rows of all series of `data` for windows, computed for some series at a time."""
    shape, targets = data.values.shape, data.n_targets
    scaled, offsets, outliers = np.empty(shape, dtype=np.float32), None, preprocess.outliers
    odd = None if outliers is None else np.zeros((2, *shape), dtype=np.bool_)
    unlike = tuple([Factors.of(np.ones((0, targets)))] for _ in ("settled", "recent"))
    raw = np.empty(shape) if preprocess.reads_raw else None
    known, phase = None, None
    if preprocess.known is not None:
        known = np.empty((len(data.values), preprocess.known.width), dtype=np.float32)
    for series, rows in data.chunks():
        stamps = data.dates(None if data.stamps is None else data.stamps[rows], data.codes(series))
        values, lengths = data.values[rows], data.lengths[series]
        part = phases(None if data.stamps is None else data.stamps[rows], data.freq, data.season)
        if part is not None:
            small = np.min_scalar_type(-data.season)
            phase = np.empty(len(data.values), dtype=small) if phase is None else phase
            phase[rows] = part
        made, taken = preprocess.unfilled(data, series, rows)
        first = None if len(data) == 1 else np.repeat(data.spans[series, 0] - rows.start, lengths)
        scaled[rows] = fill_gaps(made, first)
        found = None if outliers is None else outliers.take(np.arange(len(data))[series]).find(made, lengths)
        if found is not None and odd is not None:
            odd[0, rows], odd[1, rows] = found.settled, found.recent
            for pieces, factors in zip(unlike, found.unlike, strict=True):
                pieces.append(Factors.of(factors[:, :targets], rows.start))
        if taken is not None:
            offsets = np.empty(shape, dtype=np.float32) if offsets is None else offsets
            offsets[rows] = taken
        if known is not None and preprocess.known is not None:
            known[rows] = preprocess.known.encode(data.known(rows), stamps)
        if raw is not None:
            raw[rows] = preprocess.at(data.codes(series)).unscaled(values, taken)
    mean, scale = (torch.from_numpy(each) for each in (preprocess.scaler.mean, preprocess.scaler.scale))
    own_scale = preprocess.scaler.own[:, :targets]
    static = None
    if preprocess.static is not None and data.static is not None:
        static = torch.from_numpy(preprocess.static.encode(data.static, f"'{quote(data.name)}'"))
    return ScaledSeries(
        torch.from_numpy(scaled),
        None if data.observed is None else torch.from_numpy(data.observed),
        None if offsets is None else torch.from_numpy(offsets),
        targets,
        None if raw is None else Raw(torch.from_numpy(raw), mean[:, None], scale[:, None]),
        Limits.of(preprocess, targets),
        None if own_scale.all() or not own_scale.any() else torch.from_numpy(own_scale),
        SeriesFacts(
            data.series,
            mean[:, :targets] / scale[:, :targets],
            data.season,
            None if phase is None else torch.from_numpy(phase),
            _shift(data),
        ),
        static,
        None if known is None else torch.from_numpy(known),
        None if odd is None else _odd(odd, *map(Factors.joined, unlike)),
    )


def _shift(data: Dataset) -> Tensor | None:
    """Number to add to the row numbers of each series, (S,), so that they count the steps since the earliest one."""
    first = data.spans[:, 0]
    if len(data) == 1 or data.stamps is None or data.freq is None:
        return None if len(data) == 1 else torch.from_numpy(-first)
    codes, begins = pd.factorize(data.stamps[first])
    steps = [steps_between(begins.min(), each, data.freq) or 0 for each in begins]
    return torch.from_numpy(np.array(steps, dtype=np.int64)[codes] - first)


def _odd(masks: NDArray[np.bool_], *unlike: Factors) -> Odd | None:
    """The readings in `masks` (2, N, C), settled and recent ones; None if nothing is unusual."""
    if not masks.any() and not any(len(each.rows) for each in unlike):
        return None
    settled, recent = unlike
    return Odd(torch.from_numpy(masks[0]), torch.from_numpy(masks[1]), (settled, recent))


def training_rows(data: Dataset, windows: Windows, distance: int) -> tuple[Tensor, Tensor | None]:
    """Training rows of all series (rows, C) and their observed mask, with `distance` missing rows between series.

    For models fitted in closed form. The gaps keep windows within one series. Series without variation are excluded if
    there are several, because there is nothing to fit (`Windows.counts`).
    """
    values, observed = windows.rows, windows.resident.observed
    ranges = data.part("train")
    if len(data) == 1:
        rows = slice(*ranges[0])
        return values[rows], None if observed is None else observed[rows]
    some = ranges[:, 1] > ranges[:, 0]
    if windows.counted is not None:
        some &= windows.counted.any(1).cpu().numpy()
    first, lengths = ranges[some, 0], ranges[some, 1] - ranges[some, 0]
    if len(first) == 1:
        rows = slice(*ranges[some][0])
        return values[rows], None if observed is None else observed[rows]
    begin = lengths.cumsum() - lengths + distance * np.arange(len(first))
    spaced = values.new_zeros(int(begin[-1] + lengths[-1]), values.shape[1])
    seen = torch.zeros_like(spaced, dtype=torch.bool)
    for row, place, count in zip(first.tolist(), begin.tolist(), lengths.tolist(), strict=True):
        spaced[place : place + count] = values[row : row + count]
        seen[place : place + count] = True if observed is None else observed[row : row + count]
    return spaced, seen
