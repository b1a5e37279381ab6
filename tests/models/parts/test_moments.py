"""Moments, compared with explicit windows."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from femts.models.parts.moments import Moments, pool, window_moments

L, H, ROWS = 9, 5, 80
SERIES = torch.randn(ROWS, generator=torch.Generator().manual_seed(0), dtype=torch.float64).cumsum(0) + 3


def by_hand(series: Tensor, observed: Tensor | None = None) -> Moments:
    windows = series.unfold(0, L + H, 1)
    windows = windows - windows[:, L - 1 : L]
    real = torch.ones(len(series)) if observed is None else observed
    weights = real.double()[L:].unfold(0, H, 1)
    x, y, counts = windows[:, :L], windows[:, L:], weights.sum(0)
    past = torch.einsum("ni,nj,nh->ij", x, x, weights) / weights.sum()
    cross, future = torch.einsum("ni,nh,nh->ih", x, y, weights) / counts, (y.square() * weights).sum(0) / counts
    return Moments(past, cross, future, counts)


def assert_same(found: Moments, wanted: Moments) -> None:
    for name in ("past", "cross", "future", "counts"):
        torch.testing.assert_close(getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-9)


def test_moments_of_complete_series() -> None:
    for rows in [L + H, L + H + 1, 40, ROWS]:
        assert_same(window_moments(SERIES[:rows], L, H), by_hand(SERIES[:rows]))


def test_moments_ignore_missing_values() -> None:
    for missing in [
        (),
        (30,),
        (0, 1, 2),
        (79,),
        tuple(range(20, 60)),
        (0, 5, *range(20, 26), 40, 42, 60, 77, 78, 79),
        range(0, 80, 2),
    ]:
        observed = torch.ones(ROWS, dtype=torch.bool)
        observed[list(missing)] = False
        assert_same(window_moments(SERIES, L, H, observed), by_hand(SERIES, observed))


def test_sampled_windows_approximate_the_moments() -> None:
    series = torch.randn(6000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    observed = torch.rand(6000, generator=torch.Generator().manual_seed(2)) > 0.2
    some, every = (window_moments(series, L, H, observed, most) for most in (3000, 6000))
    assert some.counts.max() < 3000 < every.counts.min()
    assert 0 < (some.past - every.past).abs().max() < 0.1 and (some.cross - every.cross).abs().max() < 0.1


def test_pooled_moments() -> None:
    halves = SERIES[:50], SERIES[20:]
    one, two = (by_hand(half) for half in halves)
    n, m = 50 - L - H + 1, 60 - L - H + 1
    names = ("past", "cross", "future")
    means = {name: (getattr(one, name) * n + getattr(two, name) * m) / (n + m) for name in names}
    wanted = Moments(**means, counts=torch.full((H,), n + m, dtype=torch.float64))
    assert_same(pool([one, two]), wanted)
    with pytest.raises(ValueError, match="no moments"):
        pool([])


def test_errors_from_moments() -> None:
    maps = torch.randn(2, L, H, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    maps[1, :-3] = 0  # from the last three steps alone
    windows = SERIES.unfold(0, L + H, 1)
    windows = windows - windows[:, L - 1 : L]
    errors = windows[:, :L] @ maps - windows[:, L:]
    found = window_moments(SERIES, L, H)
    torch.testing.assert_close(found.errors(maps), torch.einsum("knh,mnh->kmh", errors, errors) / len(windows))
    torch.testing.assert_close(found.thinned(2).errors(maps[..., ::2]), found.errors(maps)[..., ::2])
    torch.testing.assert_close(found.recent(3).errors(maps[1:, -3:]), found.errors(maps[1:]))
