"""Second moments of the windows of a series, by which linear maps are fitted and scored without forming the windows.

Over all windows, the moments (i, j) and (i + 1, j + 1) differ by two products. One row of moments, a correlation, thus
gives the others, and the cost hardly depends on the length of the series.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 2048  # windows or gaps at a time
AT_ONCE = 64  # blocks of a series

_Sums = tuple[Tensor, ...]  # fields of `Moments` before division


@dataclass(frozen=True)
class Moments:
    """Means over windows of look-back L and forecast H, relative to the last value of the look-back, in float64.

    Attributes:
        past: products of look-back steps, (L, L).
        cross: products of look-back and forecast steps, (L, H).
        future: squares of forecast steps, (H,).
        counts: number of windows in which each forecast step is observed, (H,).
        fewest: smallest `most` of `window_moments` that gives these moments, of all windows; None if they are of a sample.
    """

    past: Tensor
    cross: Tensor
    future: Tensor
    counts: Tensor
    fewest: int | None = None

    def thinned(self, every: int) -> Moments:
        """Moments of every `every`-th forecast step."""
        return replace(self, cross=self.cross[:, ::every], future=self.future[::every], counts=self.counts[::every])

    def recent(self, steps: int) -> Moments:
        """Moments of the last `steps` steps of the look-back."""
        return replace(self, past=self.past[-steps:, -steps:], cross=self.cross[-steps:])

    def errors(self, maps: Tensor) -> Tensor:
        """Mean products of the errors of linear `maps` (K, L, H) at each forecast step: (K, K, H)."""
        fit = torch.einsum("klh,lh->kh", maps, self.cross)
        return self.future - fit - fit[:, None] + torch.einsum("klh,mlh->kmh", maps, self.past @ maps)


def pool(many: Iterable[Moments]) -> Moments:
    """Pool moments over all windows of `many`, in one pass so that no two need to be in memory at once."""
    total: _Sums | None = None
    for some in many:
        sums = (some.past * some.counts.mean(), some.cross * some.counts, some.future * some.counts, some.counts)
        total = sums if total is None else tuple(a + b for a, b in zip(total, sums, strict=True))
    if total is None:
        raise ValueError("there are no moments to pool")
    return _means(*total)


def window_moments(
    series: Tensor, before: int, after: int, observed: Tensor | None = None, most: int = 65_536
) -> Moments:
    """Moments over all windows of one channel.

    Args:
        series: values, (rows,), at least `before + after` of them.
        before: look-back L in steps.
        after: forecast H in steps.
        observed: mask (rows,) of the values that are not missing; None if all are observed. A window is weighted by the
            share of its forecast that is observed, and forecast steps count only if they are observed.
        most: number of windows to sample if there are so many gaps that this is faster than sums over the gaps. Fewer
            gaps are counted exactly, whatever their lengths.
    """
    series = series.double()
    if observed is None or bool(observed.all()):
        return replace(_means(*_all_windows(series, before, after)), fewest=0)
    real, (close, alone) = observed.to(series.dtype), _parts(observed)
    fewest = 3 * (_points(close) + _points(alone))  # a gap costs as much as three windows
    if fewest <= most:
        parts = [close.to(series.dtype)] + ([-alone.to(series.dtype)] if alone.any() else [])
        return replace(_means(*_real_windows(series, real, parts, before, after)), fewest=fewest)
    windows = series.unfold(0, before + after, 1)  # views, as are the windows of the weights
    return _means(*_some_windows(windows, real[before:].unfold(0, after, 1), _drawn(len(windows), most), before))


@lru_cache(maxsize=8)
def _drawn(windows: int, most: int) -> Tensor:
    """Numbers of `most` of the windows, which cover each phase of each season."""
    return torch.randperm(windows, generator=torch.Generator().manual_seed(0))[:most].clone()


def _means(past: Tensor, cross: Tensor, future: Tensor, counts: Tensor) -> Moments:
    return Moments(past / counts.mean().clamp(min=1), cross / counts.clamp(min=1), future / counts.clamp(min=1), counts)


def _some_windows(windows: Tensor, weights: Tensor, which: Tensor, before: int) -> _Sums:
    """Sums over the windows (n, L + H) selected by `which`, with forecast steps weighted by `weights` (n, H)."""
    after = windows.shape[1] - before
    shapes = ((before, before), (before, after), (after,), (after,))
    past, cross, future, counts = (windows.new_zeros(shape) for shape in shapes)
    for some in which.split(CHUNK):
        chunk, weight = windows[some], weights[some]
        x, y = (chunk - chunk[:, before - 1 : before]).split([before, after], dim=1)
        past += x.T @ (x * weight.mean(1, keepdim=True))
        cross += x.T @ (y * weight)
        future += (y.square() * weight).sum(0)
        counts += weight.sum(0)
    return past, cross, future, counts


def _all_windows(series: Tensor, before: int, after: int) -> _Sums:
    """The same sums over all windows, with all forecast steps observed, without forming the windows."""
    n = len(series) - before - after + 1
    size = 1 << (len(series) + n - 1).bit_length()
    spectrum = torch.fft.rfft(series, size) * torch.fft.rfft(series[:n], size).conj()
    first = torch.fft.irfft(spectrum, size)[: before + after]  # sums of x_t x_(t+j), t < n
    head, tail = series[: before + after - 1], series[n:]  # terms that leave and enter when both steps move by one
    sums = torch.outer(tail[: before - 1], tail) - torch.outer(head[: before - 1], head)
    whole = series.new_empty(before, before + after)
    whole[0], whole[:, 0] = first, first[:before]
    for row in range(1, before):
        whole[row, 1:] = whole[row - 1, :-1] + sums[row - 1]
    squares = first[0] + (tail.square() - head.square()).cumsum(0)[before - 1 :]
    last = whole[-1].clone()
    whole -= last
    whole += (last[before - 1] - last[:before])[:, None]
    future = squares - 2 * last[before:] + last[before - 1]
    return whole[:, :before], whole[:, before:], future, torch.full_like(future, n)


def _parts(observed: Tensor) -> tuple[Tensor, Tensor]:
    """Two masks whose difference is `observed` (rows,): one that is true except in long gaps, and one that is true in each
    gap that is faster to sum value by value than by its two ends."""
    alone = ~observed
    alone[1:] &= observed[:-1]
    alone[:-1] &= observed[1:]
    return observed | alone, alone


def _points(weights: Tensor) -> int:
    """Number of terms in sums weighted by `weights` (n,), numbers or a mask."""
    return min(_terms(weights))


def _is_sparse(weights: Tensor) -> bool:
    """Return whether summing over non-zero `weights` is at least as fast as summing over their changes."""
    values, changes = _terms(weights)
    return values <= changes


def _terms(weights: Tensor) -> tuple[int, int]:
    """Numbers of non-zero `weights` (n,) and of their `_changes`."""
    ends = int(weights[:1].count_nonzero() + weights[-1:].count_nonzero())
    return int(weights.count_nonzero()), int((weights[1:] != weights[:-1]).count_nonzero()) + ends


def _changes(weights: Tensor) -> Tensor:
    """Differences of `weights` (n,), padded with 0 at both ends: (n + 1,)."""
    return torch.diff(weights, prepend=weights.new_zeros(1), append=weights.new_zeros(1))


def _real_windows(series: Tensor, real: Tensor, parts: Sequence[Tensor], before: int, after: int) -> _Sums:
    """The sums of `_some_windows` over all windows, using the masks `parts` that sum to `real`; the time grows with the
    number of gaps, not with their lengths or the number of windows that they touch."""
    n, values = len(series) - before - after + 1, real * series
    past = _products(series, [_moving_sums(part[before:], after) for part in parts], before) / after
    level = torch.stack([_level_products(series, part, before, after) for part in parts]).sum(0)
    ahead = series.new_empty(before, after)  # products of look-back steps and observed forecast steps
    ahead[0], ahead[:, 0] = _lagged(series[:n], values[before:], after), _lagged(values[before:][:n], series, before)
    moved = torch.outer(series[n:][: before - 1], values[before + n :])
    moved -= torch.outer(series[: before - 1], values[before:][: after - 1])
    for row in range(1, before):
        ahead[row, 1:] = ahead[row - 1, :-1] + moved[row - 1]
    last = past[-1].clone()
    past += last[-1] - last - last[:, None]
    squares, counts = (_moving_sums(each[before:], n) for each in (values * series, real))
    cross, future = ahead - level - ahead[-1] + level[-1], squares - 2 * ahead[-1] + level[-1]
    return past, cross, future, counts


def _moving_sums(values: Tensor, n: int) -> Tensor:
    """Sums over each `n` consecutive `values`."""
    sums = F.pad(values.cumsum(0), (1, 0))
    return sums[n:] - sums[:-n]


def _lagged(first: Tensor, second: Tensor, lags: int) -> Tensor:
    """Sums over t of `first` at t times `second` at t + j, for 0 <= j < `lags`."""
    size = 1 << (4 * lags).bit_length()  # of a block, which fits in the cache, unlike a long series
    step = size - lags
    blocks = -(-len(first) // step)
    first = F.pad(first, (0, blocks * step - len(first))).view(blocks, step)
    second = F.pad(second, (0, max(0, blocks * step + lags - len(second)))).unfold(0, size, step)[:blocks]
    spectrum = sum(
        (torch.fft.rfft(after) * torch.fft.rfft(before, size).conj()).sum(0)
        for before, after in zip(first.split(AT_ONCE), second.split(AT_ONCE), strict=True)
    )
    return torch.fft.irfft(spectrum, size)[:lags]


def _products(series: Tensor, parts: Sequence[Tensor], steps: int) -> Tensor:
    """Sums over t of the weights at t (the sum of `parts`) times the products of the `steps` steps of `series` from t
    on: (steps, steps).

    Sums for later steps differ by the changes of the weights, which are few.
    """
    further = {number: part for number, part in enumerate(parts) if not _is_sparse(part)}
    products = series.new_zeros(steps, steps)
    if len(further) < len(parts):
        weights = sum((part for number, part in enumerate(parts) if number not in further), torch.zeros_like(parts[0]))
        windows = F.pad(series, (0, steps)).unfold(0, steps, 1)
        for some in weights.nonzero().flatten().split(CHUNK):
            rows = windows[some]
            products += (rows * weights[some, None]).T @ rows
    if further:
        whole, moved = (
            torch.empty_like(products),
            _products(series, [_changes(part) for part in further.values()], steps),
        )
        weights = sum(further.values(), torch.zeros_like(parts[0]))
        whole[0] = whole[:, 0] = _lagged(weights * series[: len(weights)], series, steps)
        for row in range(1, steps):
            torch.sub(whole[row - 1, :-1], moved[row - 1, :-1], out=whole[row, 1:])
        products += whole
    return products


def _level_products(series: Tensor, weights: Tensor, before: int, after: int) -> Tensor:
    """Sums over the windows of the products of look-back steps and the last of them, weighted for each forecast step by
    the `weights` (rows,) of its row: (L, H)."""
    n = len(series) - before - after + 1
    if _is_sparse(weights):
        return _level_terms(series, weights, before, after, n)
    first = _lagged(weights[before:][:n] * series[before - 1 :][:n], series, before)
    further = _level_terms(series, torch.diff(weights, prepend=weights[:1]), before, after, n)
    further[:, 0] = first  # each further step adds the changes of the weights
    return further.cumsum(1)


def _level_terms(series: Tensor, weights: Tensor, before: int, after: int, n: int) -> Tensor:
    ending = F.pad(series, (before + after, 0)).unfold(0, before + after, 1)  # just before a row
    products = series.new_zeros(after, before + after)
    for some in weights.nonzero().flatten().split(CHUNK):
        begin = some[:, None] - before - torch.arange(after)  # windows that forecast these rows, by step
        last = series[(begin + before - 1).clamp(min=0)] * weights[some, None] * ((begin >= 0) & (begin < n))
        products += last.T @ ending[some]
    # Look-back step i of the windows of forecast step h is in column H - h + i of row h.
    return products.as_strided((before, after), (1, before + after - 1), after)
