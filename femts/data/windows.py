"""Windows as index arithmetic over a resident tensor: a batch is a single gather, on a CPU or a GPU."""

from __future__ import annotations

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from femts.data.batch import Batch
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset
from femts.data.frequency import phases
from femts.data.limits import Limits
from femts.data.preprocess import Preprocess
from femts.data.raw import Raw
from femts.data.resident import Context, ScaledSeries, SeriesFacts
from femts.errors import UsageError
from femts.text import quote

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
                f"A look-back of {seq_len} and a forecast of {pred_len} steps do not fit in "
                f"{int((stop - first).max())} rows; provide more rows, or use fewer steps."
            )
        within = (begin >= first) & (begin + count - 1 + seq_len + pred_len <= stop)
        self._within = bool((within | (count == 0)).all())
        self._steps = torch.arange(seq_len + pred_len, device=self.rows.device)
        self.known_steps = pred_len  # steps after the look-back for which a batch has future covariates
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
        return self.resident.observed is not None or not self._within

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

    def batch(self, index: Tensor) -> Batch:
        """Batch of the windows with numbers `index` (B,), int64.

        Raises:
            IndexError: A number is outside [0, len); checked only for an index on the CPU, where no synchronisation is
                needed.
        """
        lengths, resident = [self.seq_len, self.pred_len], self.resident
        past, future = self._with_mean_before(self.rows, index).split(lengths, dim=1)
        seen = self.seen(index)
        before, after = (None, None) if seen is None else seen.split(lengths, dim=1)
        return Batch(
            past=past,
            past_observed=before,
            known=None if resident.known is None else self._cut(resident.known, self._nearest(index, self.known_steps)),
            static=None if resident.static is None else resident.static[self.series_of(index)],
            future=future,
            future_observed=after,
            raw=None if resident.raw is None else self._raw(index, resident.raw),
            series=self.series_of(index),
            number=index,
        )

    def seen(self, index: Tensor) -> Tensor | None:
        """Observed mask (B, L + P, C) of the windows `index`, look-backs and targets; None if nothing is missing."""
        if not self.masked:
            return None
        rows, nearest = self._rows(index), self._nearest(index)
        observed, inside = self.resident.observed, (rows == nearest)[..., None]
        if observed is None:
            return inside.expand(-1, -1, self.rows.shape[1])
        seen = self._cut(observed, nearest)
        return seen if self._within else inside & seen

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
        """The same windows for model selection by mean error, which excludes targets of a series if most of their
        values are more than `FAR` standard deviations from the training mean; unless that would exclude all."""
        values, observed = self.rows[:, : self.n_targets], self.resident.observed
        far = values.abs() > FAR
        if not far.any():
            return self
        seen = torch.ones_like(far) if observed is None else observed[:, : self.n_targets]
        ends = (torch.nn.functional.pad(each.cumsum(0), (0, 0, 1, 0)) for each in (far & seen, seen))
        first, stop, begin, count = self.spans.unbind(1)
        after = torch.minimum(begin + self.seq_len + count - 1 + self.pred_len, stop)
        begin = torch.maximum(begin + self.seq_len, first)
        after = torch.where(count > 0, after, begin)
        beyond, whole = (each[after] - each[begin.clamp(max=len(values))] for each in ends)
        near = 2 * beyond <= whole
        there = whole > 0 if self.counted is None else (whole > 0) & self.counted
        if near.all() or not (near & there).any():
            return self
        windows = copy.copy(self)
        windows.counted = near if self.counted is None else near & self.counted
        return windows

    def offsets(self, index: Tensor) -> Tensor | None:
        """Offsets (B, L + P, C) of the windows `index`, look-backs and targets; None if there are none."""
        return None if self.resident.offsets is None else self._with_mean_before(self.resident.offsets, index)

    def limits(self, index: Tensor) -> Limits | None:
        """Forecast limits of the windows `index`, before offsets are removed; None if there are none."""
        limits = self.resident.limits
        return None if limits is None else limits.at(self.series_of(index))

    def context(self, index: Tensor) -> Context:
        """Context of the forecasts of the windows `index`, on the CPU."""
        series, facts = self.series_of(index).cpu(), self.resident.facts
        rows, nearest = self._rows(index), self._nearest(index)
        recent = self._recent(nearest[:, self.seq_len - self.recent_steps : self.seq_len])
        if facts is None:
            return Context(series, torch.zeros_like(recent), recent)
        location = facts.location[series][:, None]
        if facts.phase is None:
            return Context(series, location, recent)
        rows, nearest = (each[:, self.seq_len :].cpu() for each in (rows, nearest))
        return Context(series, location, recent, (facts.phase[nearest] + rows - nearest) % facts.season)

    @property
    def recent_steps(self) -> int:
        """Steps before a forecast that define the recent level: a season or, without one, a horizon."""
        season = 1 if self.resident.facts is None else self.resident.facts.season
        return min(self.seq_len, season if season > 1 else self.pred_len)

    def _recent(self, rows: Tensor) -> Tensor:
        """Mean (B, 1, T) float64 of the targets in `rows` (B, n), with effects added back, on the CPU."""
        values, offsets = self.rows[rows][..., : self.n_targets], self.resident.offsets
        values = values if offsets is None else values + offsets[rows][..., : self.n_targets]
        return values.cpu().double().mean(1, keepdim=True)

    def _raw(self, index: Tensor, resident: Raw) -> Raw:
        """Unscaled look-backs (B, L, C) of the windows `index`."""
        values, mean, scale = resident
        rows, nearest = (each[:, : self.seq_len].cpu() for each in (self._rows(index), self._nearest(index)))
        series = self.series_of(index).cpu()
        return Raw(values[nearest].where((rows == nearest)[..., None], torch.nan), mean[series], scale[series])

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
        begin = [0, *counts.cumsum(0).tolist()]
        some = [_evenly(n, each) if each > 1 else torch.arange(max(0, n - 1), n) for n in counts.tolist()]
        return torch.cat([first + numbers for first, numbers in zip(begin, some, strict=False)])

    def _rows(self, index: Tensor, ahead: int | None = None) -> Tensor:
        """Rows (B, L + P) of the windows `index`, some of which may be outside of their series; `ahead` replaces P."""
        if index.device.type == "cpu" and len(index) and not 0 <= int(index.min()) <= int(index.max()) < self._length:
            raise IndexError(
                f"window numbers are 0 to {self._length - 1}, not {int(index.min())} to {int(index.max())}"
            )
        index = index.to(self.rows.device, non_blocking=True)
        first = self._offsets if len(self.spans) == 1 else self._offsets[self.series_of(index)]
        steps = self._steps if ahead in (None, self.pred_len) else torch.arange(self.seq_len + ahead).to(index.device)
        return (first + index)[:, None] + steps

    def _nearest(self, index: Tensor, ahead: int | None = None) -> Tensor:
        """As `_rows`, and the same with rows outside of their series replaced by the nearest within."""
        rows = self._rows(index, ahead)
        if self._within and ahead in (None, self.pred_len):
            return rows
        first, stop = self.spans[:, 0], self.spans[:, 1] - 1
        if len(self.spans) > 1:
            number = self.series_of(index)
            first, stop = first[number], stop[number]
        return rows.clamp(first[:, None], stop[:, None])

    def _with_mean_before(self, values: Tensor, index: Tensor) -> Tensor:
        """`values` (N, C) in the windows `index`, (B, L + P, C), with 0, the training mean, for steps before the series
        begins."""
        nearest = self._nearest(index)
        cut = self._cut(values, nearest)
        return cut if self._within else cut.masked_fill((nearest > self._rows(index))[..., None], 0.0)

    def _cut(self, values: Tensor, rows: Tensor) -> Tensor:
        return values.index_select(0, rows.flatten()).view(*rows.shape, -1)

    def to(self, device: torch.device | str) -> Windows:
        """Copy the rows to `device`."""
        moved = Windows(self.resident.to(device), self.seq_len, self.pred_len, self.spans.to(device))
        moved.counted = None if self.counted is None else self.counted.to(device)
        moved.known_steps = self.known_steps
        return moved


def _evenly(count: int, most: int) -> Tensor:
    """All of `count` numbers, or `most` evenly spaced ones including the first and the last."""
    if count <= most:
        return torch.arange(count)
    return torch.linspace(0, count - 1, most, dtype=torch.float64).round().long()


def part_windows(
    data: Dataset, preprocess: Preprocess, part: str, seq_len: int, pred_len: int, like: Windows | None = None
) -> Windows:
    """Windows of a split (`train`, `val`, `test`) of all series that have rows in it.

    Look-backs of a single series are within it, except for models that read raw rows. With several series, a look-back
    may begin before its series, with missing values.

    Args:
        data: series and their splits.
        preprocess: preprocessing fitted on the training rows.
        part: split to forecast; look-backs of `val` and `test` reach into the rows before them.
        seq_len: look-back, steps.
        pred_len: horizon, steps.
        like: windows of the same data and preprocessing for another split or length, whose values are shared.

    Raises:
        UsageError: The split is unknown, or a length does not fit; the message says which would.
    """
    check_windows(data, part, seq_len, pred_len, preprocess.reads_raw)
    counts = data.split.windows(part, seq_len, pred_len)
    counts[:, :3] += data.spans[:, :1]
    windows = Windows(
        resident(data, preprocess) if like is None else like.resident, seq_len, pred_len, torch.tensor(counts)
    )
    some = torch.arange(len(windows)).split(64)
    if windows.counted is not None and not any(_any_scored(windows, index, counted=True) for index in some):
        windows.counted = None
    if not any(_any_scored(windows, index) for index in some):
        raise UsageError(
            f"No {part} row of '{quote(data.name)}' has a value, or none has a value in its look-back of {seq_len} "
            "steps; provide a table without this gap."
        )
    return windows


def check_windows(data: Dataset, part: str, seq_len: int, pred_len: int, reads_raw: bool = False) -> None:
    """Raise UsageError if the split `part` of `data` has no window of these lengths; see `part_windows`."""
    ranges, name = data.split.part(part), quote(data.name)
    if min(seq_len, pred_len) < 1:  # Windows itself raises an error
        return
    if data.source in CATALOG and part != "train":  # published splits are scored as a whole
        check_whole(data, part, pred_len)
    if not data.schema.panel and len(ranges) == 1:
        longest = data.split.longest_look_back(part, pred_len)
        data.split.check_fits(name, part, max(1, min(seq_len, longest)) if reads_raw else seq_len, pred_len)
    elif not data.split.windows(part, seq_len, pred_len)[:, 3].any():
        raise UsageError(
            f"No series of '{name}' has a window of {pred_len} steps in its {part} split (the longest has {data.rows} "
            "rows); use a shorter pred_len, or provide more rows."
        )


def check_whole(data: Dataset, part: str, pred_len: int) -> None:
    """Raise UsageError if `part` of a short table has no whole forecast of `pred_len` steps, which may extend past its
    end only at the horizon of the run."""
    start, stop = data.split.part(part).T
    rows = int((stop - start).max())
    if data.split.short(pred_len) and pred_len > rows:
        remedy = f"the longest that fits is {rows}" if rows else "provide more rows"
        raise UsageError(
            f"A forecast of {pred_len} steps does not fit the {rows} {part} rows of '{quote(data.name)}'; {remedy}."
        )


def _any_scored(windows: Windows, index: Tensor, counted: bool = False) -> bool:
    scored, counts = windows.scored(index), windows.counts(index) if counted else None
    return scored is None or bool((scored if counts is None else scored & counts).any())


def resident(data: Dataset, preprocess: Preprocess) -> ScaledSeries:
    """Scaled rows of all series of `data` for windows, computed for some series at a time."""
    shape, targets = data.values.shape, data.n_targets
    scaled, offsets = np.empty(shape, dtype=np.float32), None
    raw = np.empty(shape) if preprocess.reads_raw else None
    known = None
    if preprocess.known is not None:
        known = np.empty((len(data.values), preprocess.known.width), dtype=np.float32)
    for series, rows in data.chunks():
        numbers = data.codes(series)
        stamps = None if data.stamps is None else data.stamps[rows]
        own = preprocess.at(numbers)
        values, begin = data.values[rows], rows.start
        words = data.words(series.start)
        taken = preprocess.offsets(data.covariates[rows], stamps, numbers, words)
        first = None if len(data) == 1 else np.repeat(data.spans[series, 0] - begin, data.lengths[series])
        scaled[rows] = own.transform(values, taken, lambda row, begin=begin: data.place(begin + row), first)  # type: ignore[misc]
        if taken is not None:
            offsets = np.empty(shape, dtype=np.float32) if offsets is None else offsets
            offsets[rows] = taken
        if known is not None and preprocess.known is not None:
            known[rows] = preprocess.known.encode(data.covariates[rows], stamps)
        if raw is not None:
            raw[rows] = own.unscaled(values, taken)
    mean, scale = (torch.from_numpy(each) for each in (preprocess.scaler.mean, preprocess.scaler.scale))
    phase, own_scale = phases(data.stamps, data.freq, data.season), preprocess.scaler.own[:, :targets]
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
            None if phase is None else torch.from_numpy(phase).int(),
        ),
        static,
        None if known is None else torch.from_numpy(known),
    )


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
    pieces, masks = list[Tensor](), list[Tensor]()
    for first, stop in ranges[some].tolist():
        pieces.append(values[first:stop])
        masks.append(torch.ones_like(pieces[-1], dtype=torch.bool) if observed is None else observed[first:stop])
    if len(pieces) == 1:
        return pieces[0], None if observed is None else masks[0]
    gap = torch.zeros(distance, values.shape[1], dtype=values.dtype)
    blank = gap.bool()
    spaced = [each for piece in pieces for each in (piece, gap)][:-1]
    return torch.cat(spaced), torch.cat([each for mask in masks for each in (mask, blank)][:-1])
