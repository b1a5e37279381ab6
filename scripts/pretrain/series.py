"""Synthetic series: sums of levels, seasons and noises, passed through the transforms and the anomalies of real data.

Everything is drawn from one generator for n series at a time, so a seed gives the same series again with the same
versions of numpy, scipy and synforecast.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.signal import lfilter

Array = NDArray[np.float64]
SLOW = {"KernelSynthGenerator", "GaussianProcessGenerator", "ChaoticSystemGenerator"}  # up to a second a series
LONG = 14  # seasons; longer second seasons have a profile of their own
META_VARIANTS = 6  # of the generators that draw a new composition for each series, among some 60 in all


class Draw:
    """Random numbers for n series, as columns (n, 1)."""

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self.rng, self.n = rng, n

    def bernoulli(self, share: float) -> NDArray[np.bool_]:
        """True with probability `share`."""
        return self.rng.random((self.n, 1)) < share

    def log_uniform(self, low: float, high: float) -> Array:
        """Uniform on a logarithmic scale."""
        return np.exp(self.rng.uniform(np.log(low), np.log(high), (self.n, 1)))

    def uniform(self, low: float = 0.0, high: float = 1.0) -> Array:
        return self.rng.uniform(low, high, (self.n, 1))

    def normal(self) -> Array:
        return self.rng.standard_normal((self.n, 1))


def standardised(x: Array) -> Array:
    x = x - x.mean(1, keepdims=True)
    return x / (x.std(1, keepdims=True) + 1e-9)


def noise(draw: Draw, length: int, season: int) -> Array:
    """Stationary noise of unit variance: white, autoregressive, oscillating or with a power law, (n, length)."""
    n, rng, single = draw.n, draw.rng, np.float32
    padded = next_fast_len(length + length // 2)
    shocks = rng.standard_normal((n, padded), dtype=single)
    heavy = rng.random(n) < 0.25
    shocks[heavy] = rng.standard_t(3, (heavy.sum(), padded)).astype(single) / 1.7
    frequency = np.arange(padded // 2 + 1, dtype=single)[None] / padded
    memory = np.exp(-1 / draw.log_uniform(0.3, 6 * max(season, 10)))
    angle = 2 * np.pi / draw.log_uniform(4, 6 * max(season, 8))
    other = draw.uniform(-0.5, 0.9)
    kind = draw.uniform()
    first = np.where(kind < 0.15, 2 * memory * np.cos(angle), np.where(kind < 0.3, memory + other, memory))
    second = np.where(kind < 0.15, -(memory**2), np.where(kind < 0.3, -memory * other, 0.0))
    moving = np.where(draw.bernoulli(0.3), draw.uniform(-0.9, 0.9), 0.0)
    cut, slope = draw.log_uniform(1 / (140 * max(season, 4)), 0.2), draw.uniform(0, 3.2)
    by_power = draw.bernoulli(0.45)[:, 0]
    # The response of each series, without its phase, which does not matter for noise.
    corner, exponent = cut[by_power].astype(single), -slope[by_power].astype(single) / 4
    power = (frequency**2 + corner**2) ** exponent
    turn = np.exp(-2j * np.pi * frequency).astype(np.complex64)
    first, second, moving = (v[~by_power].astype(single) for v in (first, second, moving))
    rational = np.abs(1 + moving * turn) / np.abs(1 - first * turn - second * turn**2)
    response = np.empty((n, frequency.shape[1]), single)
    response[by_power], response[~by_power] = power, rational
    return standardised(irfft(rfft(shocks) * response, padded)[:, :length].astype(np.float64))


def profile(draw: Draw, season: int) -> Array:
    """Shape of a season, (n, season), of unit variance: smooth, one-sided, peaked, a step or irregular."""
    n, rng = draw.n, draw.rng
    phase = np.arange(season) / season
    harmonic = np.arange(1, min(season // 2, 10) + 1)
    weight = rng.standard_normal((2, n, len(harmonic))) * harmonic ** -draw.uniform(0.3, 2.5)
    angle = 2 * np.pi * harmonic[:, None] * phase
    x = standardised(weight[0] @ np.cos(angle) + weight[1] @ np.sin(angle))
    kind = draw.uniform()
    x = np.where(kind < 0.12, np.maximum(x - draw.uniform(-0.5, 0.5), 0), x)
    x = np.where((kind > 0.12) & (kind < 0.2), np.exp(draw.uniform(0.5, 1.2) * x), x)
    x = np.where((kind > 0.2) & (kind < 0.28), np.sign(x - draw.uniform(-0.5, 0.5)), x)
    x = np.where((kind > 0.28) & (kind < 0.36), rng.standard_normal((n, season)), x)
    return standardised(x)


def seasonal(draw: Draw, length: int, season: int, second: int) -> Array:
    """A season whose shape and strength may change, and differ within the second season, (n, length)."""
    t = np.arange(length)
    u = t / length
    x = profile(draw, season)[:, t % season]
    change = np.clip((u - draw.uniform()) * draw.log_uniform(1, 20) + 0.5, 0, 1)
    x = np.where(draw.bernoulli(0.15), x * (1 - change) + profile(draw, season)[:, t % season] * change, x)
    cycles = second // season
    if cycles > 1:
        day = (t // season + draw.rng.integers(cycles)) % cycles
        free = draw.rng.standard_normal((draw.n, cycles)) * 0.4
        sign = np.where(draw.bernoulli(0.85), -1, 1)
        weekend = (np.arange(cycles) >= cycles - 2) * draw.uniform(0.2, 1.0) * sign
        strength = np.where(draw.bernoulli(0.6), weekend, free)[:, day]
        x = np.where(draw.bernoulli(0.5), np.where(draw.bernoulli(0.5), x * (1 + strength), x + strength), x)
    by_cycle = noise(draw, length // season + 2, 4)[:, t // season]
    return x * np.where(draw.bernoulli(0.5), np.exp(draw.log_uniform(0.05, 0.8) * by_cycle), 1.0)


def growing(draw: Draw, length: int) -> Array:
    """Levels whose growth is autoregressive around a drift, with shocks of heavy tails, half of them exponential,
    (n, length), of unit variance."""
    growth = draw.rng.standard_t(3, (draw.n, length))
    kept = draw.uniform(0, 0.98)
    for step in range(1, length):
        growth[:, step] += kept[:, 0] * growth[:, step - 1]
    drift = draw.normal() * draw.log_uniform(0.1, 2) * growth.std(1, keepdims=True)
    x = standardised(np.cumsum(growth + drift, 1))
    return np.where(draw.bernoulli(0.5), x, standardised(np.exp(x * draw.uniform(0.2, 1.0))))


def composite(rng: np.random.Generator, n: int, length: int, season: int, second: int, grown: float = 0.0) -> Array:
    """n series with the seasons `season` (1 for none) and `second` (or the same), of unit variance, (n, length); a share
    `grown` of them are `growing`."""
    draw = Draw(rng, n)
    on, scale = draw.bernoulli, draw.log_uniform
    u = (np.arange(length) / length)[None]
    slow = season in (1, 4, 5, 7, 12, 52)  # steps of a day and more: levels wander, seasons are weak
    x = on(0.25) * draw.normal() * scale(0.3, 4) * u
    x = x + on(0.15) * draw.normal() * scale(0.5, 6) * np.maximum(u - draw.uniform(), 0)
    x = x + on(0.2) * scale(0.1, 1.5) * np.sin(2 * np.pi * (u * length / (season * scale(20, 400)) + draw.uniform()))
    walk = np.cumsum(rng.standard_normal((n, length)), 1) / np.sqrt(length)
    x = x + on(0.55 if slow else 0.15) * scale(0.2, 4) * walk
    if grown:
        x = x + on(grown) * scale(0.5, 5) * growing(draw, length)
    if season > 1:
        strength = np.where(on(0.5), scale(0.05, 1.2), scale(0.15, 3))
        x = x + on(0.75 if slow else 0.85) * strength * seasonal(draw, length, season, second)
    if second > LONG * season:
        year = (np.arange(length) + rng.integers(second)) % second
        x = x + on(0.5) * scale(0.2, 4) * profile(draw, second)[:, year]
    x = x + on(0.6) * scale(0.2, 1.5) * noise(draw, length, season)
    x = x + on(0.4) * scale(0.1, 1.2) * noise(draw, length, season)
    volatility = np.where(on(0.35), np.exp(scale(0.1, 0.8) * noise(draw, length, season)), 1.0)
    if season > 3:
        by_phase = profile(draw, season)[:, np.arange(length) % season]
        volatility = volatility * np.where(on(0.3), np.exp(scale(0.2, 0.8) * by_phase), 1.0)
    rough = scale(0.02, 1.0)
    x = x + rough * scale(0.3, 1.5) * noise(draw, length, season) * volatility
    x = x + on(0.5) * rough * scale(0.05, 0.8) * rng.standard_normal((n, length)) * volatility
    return standardised(_anomalies(draw, _transformed(draw, standardised(x))))


def _transformed(draw: Draw, z: Array) -> Array:
    """One transform for each series, mostly none: growth, bounds, counts, bursts, angles."""
    rng = draw.rng
    transforms: list[tuple[float, Callable[[Array, Draw], Array]]] = [
        (0.15, lambda z, d: np.exp(np.clip(z * d.log_uniform(0.2, 1.2), -8, 4))),
        (0.05, lambda z, d: np.maximum(z + d.uniform(-1.5, 0.8), 0)),
        (0.04, lambda z, d: np.minimum(z, d.uniform(0, 1.5))),
        (0.02, lambda z, d: np.tanh(z * d.log_uniform(0.5, 3))),
        (0.03, lambda z, d: np.round(z * d.log_uniform(1, 6))),
        (0.03, _counts),
        (0.03, _bursts),
        (0.02, lambda z, d: np.mod(z * d.log_uniform(0.3, 1.2) + d.uniform(), 1)),
    ]
    kind, total, x = rng.random(draw.n), 0.0, z.copy()
    for share, transform in transforms:
        chosen = (kind >= total) & (kind < total + share)
        total += share
        if chosen.any():
            x[chosen] = transform(z[chosen], Draw(rng, int(chosen.sum())))
    return x


def _counts(z: Array, draw: Draw) -> Array:
    rate = np.exp(np.clip(z * 0.7 + draw.uniform(-3, 1), -8, 4))
    size = draw.rng.gamma(1, 1, z.shape) + 0.2
    return draw.rng.poisson(rate).astype(np.float64) * np.where(draw.bernoulli(0.4), size, 1.0)


def _bursts(z: Array, draw: Draw) -> Array:
    likely = draw.log_uniform(0.002, 0.05) * np.exp(np.clip(z, -2, 2))
    hits = (draw.rng.random(z.shape) < likely) * draw.rng.exponential(1, z.shape)
    decays = draw.rng.uniform(0, 0.97, len(z))
    x = np.stack([lfilter([1.0], [1, -decay], hit) for decay, hit in zip(decays, hits, strict=True)])
    return x + np.where(draw.bernoulli(0.3), 0.02, 0) * z


def _anomalies(draw: Draw, x: Array) -> Array:
    """Level shifts, spikes, stuck readings, reversed signs, and mixtures of two series."""
    rng, length = draw.rng, x.shape[1]
    for i in np.flatnonzero(rng.random(draw.n) < 0.12):
        for row in rng.integers(0, length, rng.integers(1, 4)):
            x[i, row:] += rng.standard_normal() * rng.uniform(0.3, 2.5) * x[i].std()
    for i in np.flatnonzero(rng.random(draw.n) < 0.10):
        rows = rng.integers(0, length, rng.integers(1, max(2, length // 90)))
        x[i, rows] += rng.standard_t(2, rows.size) * 2 * x[i].std()
    for i in np.flatnonzero(rng.random(draw.n) < 0.05):
        row = rng.integers(0, length)
        x[i, row : row + rng.integers(5, max(6, length // 10))] = x[i, row]
    if rng.random() < 0.3:
        z, share = standardised(x), draw.uniform()
        x = np.where(draw.bernoulli(0.5), share * z + (1 - share) * z[rng.permutation(draw.n)], x)
    return x * np.where(draw.bernoulli(0.15), -1, 1)


def from_synforecast(rng: np.random.Generator, n: int, length: int, season: int) -> Array:
    """n series of one generator of synforecast (SARIMA, ETS, INAR, regimes, loads, sensors, causal graphs, ...), of
    unit variance, (n, length)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seed, generators = int(rng.integers(2**31)), _generators(season)
        drawn = generators[rng.integers(len(generators))]
        changes = {"seed": seed + drawn.seed, "min_length": length, "max_length": length}
        generator = type(drawn)(**{**drawn.model_dump(exclude_unset=True), **changes})
        frame: pd.DataFrame = generator.generate(n_series=n)
    y: Array = np.nan_to_num(frame["y"].to_numpy(np.float64).reshape(n, length), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = np.quantile(y, [0.0005, 0.9995], axis=1, keepdims=True)
    return standardised(np.clip(y, low, high))


@lru_cache(maxsize=64)
def _generators(season: int) -> list[Any]:
    """Generators of a season, whose seeds count from 0; making them takes longer than drawing from one."""
    from synforecast import pretraining_pool

    pool = pretraining_pool(
        freq=1, seed=0, seasonal_period=season, include_seasonal=season > 1, n_meta_variants=META_VARIANTS
    )
    return [generator for generator in pool if type(generator).__name__ not in SLOW]
