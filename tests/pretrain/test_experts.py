"""Closed-form experts against plain definitions, one series and one origin at a time, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from femts.models.parts.expert_network import origins_of
from femts.models.parts.experts import (
    BIWEIGHT,
    DRIFT_ROWS,
    DRIFT_SEASONS,
    FITTED,
    LEAD_GROUPS,
    LEADS_PER_GROUP,
    LONGEST_LAG,
    MIN_FITTED,
    NAMES,
    NARROWEST,
    NEIGHBOURS,
    POINTS,
    PRECISION,
    SEASONS,
    SECOND_SEASONS,
    SMOOTHING,
    TRENDING,
    Forecasts,
    expert_forecasts,
)

SHAPES = [
    (1, 1, 90, 16),
    (7, 7, 60, 16),
    (12, 12, 150, 24),
    (24, 168, 500, 48),
    (5, 10, 40, 8),
    (30, 30, 70, 8),
    (4, 4, 1400, 96),
]


def series(rows: int, season: int, count: int = 2) -> Tensor:
    rng = np.random.default_rng(season)
    t = np.arange(rows)[:, None]
    x = np.sin(2 * np.pi * t / max(season, 2)) + 0.1 * rng.standard_normal((rows, count)).cumsum(0)
    return torch.from_numpy(x + 0.3 * rng.standard_normal((rows, count)) + 5)


def forecasts(x: Tensor, observed: Tensor, season: int, second: int, horizon: int) -> tuple[Forecasts, list[int]]:
    origins = origins_of(len(x) - horizon, horizon, 512)
    return expert_forecasts(x, observed, season, second, horizon, origins, 512), origins


@pytest.mark.parametrize(("season", "second", "length", "horizon"), SHAPES)
def test_forecasts_are_those_of_the_plain_definitions(season: int, second: int, length: int, horizon: int) -> None:
    x = series(length + horizon, season)
    observed = torch.ones_like(x, dtype=torch.bool)
    observed[:10, 1] = False  # a series that starts later
    fast, origins = forecasts(x, observed, season, second, horizon)
    for column in range(x.shape[1]):
        start = int(observed[:, column].float().argmax())
        for o in sorted({0, len(origins) // 2, len(origins) - 1}):
            origin = origins[o]
            if origin <= start:
                continue
            past = x[:origin, column].numpy().copy()
            past[:start] = past[start]
            plain = _plain(past, start, season, second, horizon, len(x))
            for k, name in enumerate(NAMES):
                got = fast.experts[o, :, column, k].numpy()
                np.testing.assert_allclose(got, plain[name], rtol=1e-6, atol=1e-6, err_msg=f"{name} at {origin}")


@pytest.mark.parametrize(("season", "second", "length", "horizon"), SHAPES)
def test_nothing_after_an_origin_affects_its_forecasts(season: int, second: int, length: int, horizon: int) -> None:
    x = series(length + horizon, season)
    observed = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) > 0.1
    before, origins = forecasts(x, observed, season, second, horizon)
    for o, origin in enumerate(origins):
        changed, seen = x.clone(), observed.clone()
        changed[origin:] += 100 * torch.randn(changed[origin:].shape, generator=torch.Generator().manual_seed(1))
        seen[origin:] = False
        seen[-1] = True
        after, _ = forecasts(changed, seen, season, second, horizon)
        for name in ("experts", "location", "scale", "seasonal", "residual", "seen", "age"):
            assert torch.equal(getattr(before, name)[: o + 1], getattr(after, name)[: o + 1]), name


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_forecasts_follow_the_units(factor: float) -> None:
    x = series(400, 24)
    observed = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) > 0.1
    plain, _ = forecasts(x, observed, 24, 168, 48)
    scaled, _ = forecasts(factor * x + 7 * factor, observed, 24, 168, 48)
    torch.testing.assert_close(scaled.experts, factor * plain.experts + 7 * factor, rtol=1e-7, atol=1e-7 * factor)
    for name in ("scale", "seasonal", "residual"):
        torch.testing.assert_close(getattr(scaled, name), factor * getattr(plain, name), rtol=1e-7, atol=0)


@pytest.mark.parametrize("season", [1, 7, 300])
def test_short_constant_and_missing_series_give_finite_forecasts(season: int) -> None:
    x = torch.stack([torch.full((72,), 3.0), torch.zeros(72), torch.arange(72.0), torch.full((72,), 1e9)], 1)
    observed = torch.ones_like(x, dtype=torch.bool)
    observed[:-17, 1] = False  # one row of history
    observed[:, 2] = False
    got, origins = forecasts(x, observed, season, season, 16)
    for name in ("experts", "location", "scale", "seasonal", "residual"):
        assert torch.isfinite(getattr(got, name)).all(), name
    assert (got.scale > 0).all() and (got.seasonal > 0).all() and (got.residual > 0).all()
    torch.testing.assert_close(got.experts[..., 0, :], torch.full_like(got.experts[..., 0, :], 3.0))
    torch.testing.assert_close(got.experts[..., 3, :], torch.full_like(got.experts[..., 3, :], 1e9))
    assert got.seen[:, 0].tolist() == origins and not got.seen[:, 2].any()


def _plain(past: np.ndarray, start: int, season: int, second: int, horizon: int, total: int) -> dict[str, np.ndarray]:
    """The experts by their definitions; `past` before `start` is its first value."""
    n = len(past)

    def at(row: int) -> float:
        return float(past[max(row, 0)])

    def phase(row: int, seasons: int, step: int = season) -> float:
        known = [at(row - k * step) for k in range(seasons) if row - k * step >= start]
        return float(np.mean(known)) if known else at(row)

    def mean(end: int, count: int, values: np.ndarray = past) -> float:
        count = max(min(count, end - start), 1)
        return float(values[max(end - count, 0) : end].mean())

    def base(row: int) -> float:
        return phase(row - season, SEASONS)

    def shape(row: int) -> float:
        rows = [r for r in range(row, row - SEASONS * season, -season) if r - season + 1 >= start]
        return float(np.mean([at(r) - past[r - season + 1 : r + 1].mean() for r in rows])) if rows else 0.0

    def growth(span: int) -> float:
        span = min(span, n - start)
        ends = past[n - season :].mean() - past[n - span : n - span + season].mean()
        return float(ends / (span - season)) if span > season else 0.0

    adjusted = [at(row) - shape(row - season if row - 2 * season + 1 >= start else row) for row in range(n)]
    leads = range(horizon)
    same = [n + j - (j // season + 1) * season for j in leads]
    longer = [n + j - (j // second + 1) * second for j in leads]
    means = np.array([phase(row, SEASONS) for row in same])
    naive = np.array([at(row) for row in same])
    level = mean(n, season) - mean(n, SEASONS * season)
    scale, _ = _scales(past, start, season)
    smooth = adjusted[0]
    for value in adjusted[1:]:
        smooth += SMOOTHING * (value - smooth)
    steps, shapes = np.arange(1, horizon + 1), np.array([shape(row) for row in same])
    above = [at(row) - phase(row - second, SECOND_SEASONS, second) if row - second >= start else 0 for row in range(n)]
    usual = np.array([phase(row, SECOND_SEASONS, second) for row in longer]) + mean(n, season, np.array(above))
    forecasts = {
        "seasonal naive": naive,
        "mean of seasons": means,
        "last value": np.full(horizon, past[-1]),
        "seasons at the last level": means + level,
        "seasons at the last deviation": means + past[-1] - base(n - 1),
        "smoothed level and half the trend": shapes + smooth + 0.5 * growth(total) * steps,
        "autoregression": _autoregression(past, start, season, second, horizon, total, scale),
        "autoregression of differences": _of_differences(past, start, 1, season, second, horizon, total),
        "autoregression of seasonal differences": _of_differences(past, start, season, season, second, horizon, total),
        "direct regression": _direct(past, start, season, second, horizon, total),
        "drift": shapes + adjusted[-1] + growth(max(DRIFT_ROWS, DRIFT_SEASONS * season)) * steps,
        "second seasons at the last level": np.where(np.array(longer) >= start, usual, means + level),
        "nearest neighbours": _neighbours(past, start, season, horizon, scale, means + level),
    }
    low, high = past.min(), past.max()
    beyond = {name: high - low if name in TRENDING else scale for name in forecasts}
    return {name: np.clip(values, low - beyond[name], high + beyond[name]) for name, values in forecasts.items()}


def _scales(past: np.ndarray, start: int, season: int) -> tuple[float, float]:
    """Standard deviation of the context, and mean absolute seasonal difference."""
    recent = past[max(len(past) - 512, start) :] if len(past) > start else past[-1:]
    scale = max(recent.std(), 0.1 * past[start:].std()) if len(past) > start else 0.0
    scale = 1.0 if scale <= 1e-6 * abs(recent.mean()) else scale
    differences = [abs(past[r] - past[r - season]) for r in range(start + season, len(past))]
    return float(scale), float(max(np.mean(differences) if differences else 0.5 * scale, 0.02 * scale))


def _neighbours(
    past: np.ndarray, start: int, season: int, horizon: int, scale: float, otherwise: np.ndarray
) -> np.ndarray:
    n, width = len(past), max(season, NARROWEST)
    points = min(POINTS, width)

    def window(end: int) -> np.ndarray:
        return np.array([past[end - 1 - width * i // points] for i in range(points)]) - past[end - 1]

    ends = range(start + width, n - horizon + 1)
    near = sorted((float(((window(end) - window(n)) ** 2).sum()), end) for end in ends)[:NEIGHBOURS]
    if not near:
        return otherwise
    nearest = max(near[0][0], PRECISION * scale**2)
    weights = np.exp([1 - distance / nearest for distance, _ in near])
    followed = np.array([past[end : end + horizon] - past[end - 1] for _, end in near])
    return past[-1] + weights @ followed / weights.sum()


def _ridge(inputs: np.ndarray, targets: np.ndarray, penalty: np.ndarray) -> np.ndarray:
    gram = inputs.T @ inputs
    return np.linalg.solve(gram + np.diag(penalty + PRECISION * np.diag(gram)), inputs.T @ targets)


def _offset(past: np.ndarray, start: int, first: int) -> float:
    return float(past[start : max(first, 1)].mean()) if max(first, 1) > start else float(past[start])


def _training_rows(n: int, horizon: int, first: int, fitted: int) -> list[int]:
    stride = next(s for s in (16, 8, 4, 2, 1) if horizon % s == 0 and (s == 1 or max(first, 1) >= fitted * s))
    return [n - 1 - stride * k for k in range(max(first, 1) // stride + (n - first) // stride)]


def _autoregression(
    past: np.ndarray,
    start: int,
    season: int,
    second: int,
    horizon: int,
    total: int,
    scale: float,
    centred: bool = False,
) -> np.ndarray:
    n, first = len(past), origins_of(total - horizon, horizon, 512)[0]
    zero = 0.0 if centred else _offset(past, start, first)
    x = past - zero
    wanted = [1, 2, 3, 4, 6, 8, *(season + i for i in range(-3, 4)), *(2 * season + i for i in (-1, 0, 1)), 3 * season]
    lags = sorted({lag for lag in [*wanted, second - 1, second, second + 1] if 0 < lag <= LONGEST_LAG})
    length = total - horizon - start
    reach = max([0, *(r for r in (season, 2 * season, lags[-1]) if length >= max(2 * r, r + MIN_FITTED))])
    inputs, targets = [], []
    for row in _training_rows(n, horizon, first, FITTED[0]):
        if row - reach >= start:
            inputs.append([*(x[max(row - lag, 0)] for lag in lags), 1.0])
            targets.append(x[row])
    count = len(targets)
    penalty = (0.001 * count + 3) * np.array([scale**2] * len(lags) + [0.1])
    coefficients = _ridge(np.array(inputs).reshape(count, -1), np.array(targets), penalty) if count else 0 * penalty
    path, width = list(x), x.max() - x.min()
    for step in range(n, n + horizon):
        forecast = sum(c * path[max(step - lag, 0)] for c, lag in zip(coefficients, lags, strict=False))
        path.append(np.clip(forecast + coefficients[-1], x.min() - width, x.max() + width))
    return np.array(path[n:]) + zero


def _of_differences(
    past: np.ndarray, start: int, lag: int, season: int, second: int, horizon: int, total: int
) -> np.ndarray:
    n = len(past)
    known = np.arange(n) - lag >= start
    steps = np.where(known, past - past[np.maximum(np.arange(n) - lag, 0)], 0.0)
    scale, _ = _scales(steps, start + lag, season)
    ahead = _autoregression(steps, start + lag, season, second, horizon, total, scale, centred=True)
    path = list(past)
    for step in ahead:
        path.append(path[max(len(path) - lag, 0)] + step)
    return np.array(path[n:])


def _robust(
    past: np.ndarray,
    start: int,
    season: int,
    leads: int,
    origins: list[int],
    ends: np.ndarray,
    rows: np.ndarray,
    targets: np.ndarray,
) -> np.ndarray:
    """Coefficients of the direct regression: the rows after an origin are weighted by what a fit before it missed."""
    if not len(ends):
        return np.zeros(10)

    def fit(before: int, root: np.ndarray) -> np.ndarray:
        chosen = ends < before
        scale, seasonal = _scales(past[: max(before, 1)], start, season)
        variance = seasonal**2 + 0.01 * scale**2
        penalty = (0.02 * chosen.sum() + 10.0 * leads) * np.array([variance] * 9 + [0.1])
        return _ridge((root[:, None] * rows)[chosen], (root * targets)[chosen], penalty)

    missed, root = np.zeros(len(ends)), np.ones(len(ends))
    for before, origin in zip([origins[0], *origins], origins, strict=False):
        chunk = (ends < origin) & ((ends >= before) | (origin == origins[0]))
        missed[chunk] = np.abs(targets - rows @ fit(before, np.ones(len(ends))))[chunk]
        if chunk.any():
            usual = missed[ends < origin].mean()
            root[chunk] = np.clip(1 - (missed[chunk] / (BIWEIGHT * usual)) ** 2, 0, None)
    return fit(origins[-1], root)


def _direct(past: np.ndarray, start: int, season: int, second: int, horizon: int, total: int) -> np.ndarray:
    n, origins = len(past), [o for o in origins_of(total - horizon, horizon, 512) if o <= len(past)]
    first = origins[0]
    zero = _offset(past, start, first)
    x = past - zero

    def at(row: int) -> float:
        return float(x[max(row, 0)])

    def base(row: int) -> float:
        rows = [row - k * season for k in range(1, SEASONS + 1)]
        known = [at(r) for r in rows if r >= start]
        return float(np.mean(known)) if known else at(row - season)

    def usual(row: int) -> float:
        known = [at(row - k * second) for k in range(SECOND_SEASONS) if row - k * second >= start]
        return float(np.mean(known)) if known else at(row)

    left = np.array([at(row) - base(row) for row in range(n)])
    above = np.array([at(row) - usual(row - second) if row - second >= start else 0.0 for row in range(n)])

    def mean(end: int, count: int, values: np.ndarray = x) -> float:
        end = max(end, 0)
        count = max(min(count, end - start), 1)
        sums = np.concatenate([[0.0], values.cumsum()])
        return float((sums[end] - sums[max(end - count, 0)]) / count)

    def inputs(origin: int, lead: int) -> tuple[list[float], float]:
        same = origin + lead - (lead // season + 1) * season
        longer = origin + lead - (lead // second + 1) * second
        anchor = base(max(same + season, 0))
        naive = at(same) - anchor
        last = at(origin - 1)
        return [
            naive,
            usual(longer) - anchor if longer >= start else naive,
            anchor,
            mean(origin, season) - mean(origin, SEASONS * season),
            last - base(max(origin - 1, 0)),
            at(origin - 1 - season) - base(max(origin - 1 - season, 0)),
            mean(origin, max(season // 6, 1), left),
            last - mean(origin, 3),
            mean(origin, season, above),
            1.0,
        ], anchor

    forecasts = np.zeros(horizon)
    last_leads = [*LEAD_GROUPS[1:], horizon]
    for group, end in zip(LEAD_GROUPS, last_leads, strict=True):
        end = min(end, horizon)
        if group >= end:
            continue
        count = min(LEADS_PER_GROUP, end - group)
        fitted = [group + i * ((end - group) // count) for i in range(count)]
        ends, rows, targets = [], [], []
        for row in _training_rows(n, horizon, first, FITTED[1]):
            origin = row - fitted[-1]
            for lead in fitted:
                if origin + lead >= start and origin - season >= start:
                    values, anchor = inputs(origin, lead)
                    ends.append(row)
                    rows.append(values)
                    targets.append(at(origin + lead) - anchor)
        coefficients = _robust(past, start, season, count, origins, np.array(ends), np.array(rows), np.array(targets))
        for lead in range(group, end):
            values, anchor = inputs(n, lead)
            forecasts[lead] = coefficients @ values + anchor
    return forecasts + zero
