"""Second moments of the windows of a series: a linear map is fitted to them, and judged by them, without its windows.

Over all windows, the moments (i, j) and (i + 1, j + 1) differ by two products. One row of them, a
correlation, gives the others, and a series of any length costs little more than a short one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

CHUNK = 2048  # windows at a time

_Sums = tuple[Tensor, ...]  # the fields of `Moments` before they are divided


@dataclass(frozen=True)
class Moments:
    """Means over windows of look-back L and forecast H, less the last value of the look-back, in float64.

    Attributes:
        past: products of look-back steps, (L, L).
        cross: products of look-back and forecast steps, (L, H).
        future: squares of forecast steps, (H,).
        counts: windows in which each forecast step is real, (H,).
    """

    past: Tensor
    cross: Tensor
    future: Tensor
    counts: Tensor

    def thinned(self, every: int) -> Moments:
        """Those of each `every`-th forecast step."""
        return replace(self, cross=self.cross[:, ::every], future=self.future[::every], counts=self.counts[::every])

    def recent(self, steps: int) -> Moments:
        """Those of the last `steps` of the look-back."""
        return replace(self, past=self.past[-steps:, -steps:], cross=self.cross[-steps:])

    def errors(self, maps: Tensor) -> Tensor:
        """Mean products of the errors that linear `maps` (K, L, H) make at each forecast step: (K, K, H)."""
        fit = torch.einsum("klh,lh->kh", maps, self.cross)
        return self.future - fit - fit[:, None] + torch.einsum("klh,mlh->kmh", maps, self.past @ maps)


def pool(many: Iterable[Moments]) -> Moments:
    """The moments of all windows of `many` together; of one pass, so that no two need to be held at once."""
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
    """Moments of every window of one channel.

    Args:
        series: the values, (rows,), at least `before + after` of them.
        before: look-back L in steps.
        after: forecast H in steps.
        observed: which of them are real, (rows,); None if all are. A window counts by how much of
            what it forecasts is real, and with each later step only where that is.
        most: where more windows than that forecast something that is not real, so many are drawn of all.
    """
    series = series.double()
    if observed is None or bool(observed.all()):
        return _means(*_all_windows(series, before, after))
    real = observed.to(series.dtype)
    missing = torch.cat([real.new_zeros(1), (1 - real).cumsum(0)])
    touched = (missing[before + after :] - missing[before:-after]).nonzero().flatten()
    windows = series.unfold(0, before + after, 1)  # a view, as those of the weights are
    if len(touched) <= most:
        every = _all_windows(series, before, after)
        unreal = _some_windows(windows, (1 - real)[before:].unfold(0, after, 1), touched, before)
        return _means(*(a - b for a, b in zip(every, unreal, strict=True)))
    drawn = torch.randperm(len(windows), generator=torch.Generator().manual_seed(0))[:most]  # each phase of each season
    return _means(*_some_windows(windows, real[before:].unfold(0, after, 1), drawn, before))


def _means(past: Tensor, cross: Tensor, future: Tensor, counts: Tensor) -> Moments:
    return Moments(past / counts.mean().clamp(min=1), cross / counts.clamp(min=1), future / counts.clamp(min=1), counts)


def _some_windows(windows: Tensor, weights: Tensor, which: Tensor, before: int) -> _Sums:
    """Sums over the windows (n, L + H) that `which` names, each later step weighed by `weights` (n, H)."""
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
    """The same sums over all windows, each later step counting, without making one."""
    n = len(series) - before - after + 1
    size = 1 << (len(series) + n - 1).bit_length()
    spectrum = torch.fft.rfft(series, size) * torch.fft.rfft(series[:n], size).conj()
    first = torch.fft.irfft(spectrum, size)[: before + after]  # sums of x_t x_(t+j), t < n
    head, tail = series[: before + after - 1], series[n:]  # what leaves and what enters as both steps move by one
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
