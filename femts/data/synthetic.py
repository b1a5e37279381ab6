"""Built-in synthetic data: reproducible, with realistic structure. Its scores are never shown next to those of real
data."""

from __future__ import annotations

import numpy as np
import pandas as pd

SEED = 2026
LAGS = (0, 3, 6, 12, 24, 36)
"""Lag in hours of each channel behind the shared process: channel i repeats the past of channel 0, plus noise."""


def synthetic_frame(rows: int = 8760, seed: int = SEED) -> pd.DataFrame:
    """Six hourly channels `s0` to `s5` after a `date` column, starting on Monday 2020-01-06.

    Channel i at hour t is `level_i + scale_i * (cycle_i(t) + trend(t) + shared(t - LAGS[i]) + noise_i(t))`:

    * cycle: a daily wave with its second harmonic, a third weaker at weekends, plus a weekly wave, different for each
    channel; * trend: piecewise linear with a new slope every 500 to 900 hours, the same for all channels (structural
    breaks); * shared: an AR(1) process (.95) that reaches channel i LAGS[i] hours late, so that channels predict each
    other; * noise: white, standard deviation .15.

    Values are rounded to four decimals, so that they do not depend on the last bit of a platform's sine.
    """
    rng = np.random.default_rng(seed)
    hour, longest, channels = np.arange(rows), max(LAGS), len(LAGS)

    breaks = np.cumsum(rng.integers(500, 900, size=rows // 500 + 1))
    slopes = rng.uniform(-1.0, 1.0, size=len(breaks) + 1) / 600
    trend = np.cumsum(slopes[np.searchsorted(breaks, hour, side="right")])

    shared = np.empty(rows + longest)
    shocks = rng.normal(0.0, np.sqrt(1 - 0.95**2), size=len(shared))
    shared[0] = shocks[0]
    for t in range(1, len(shared)):  # recurrence over time
        shared[t] = 0.95 * shared[t - 1] + shocks[t]

    phase, size = rng.uniform(0, 2 * np.pi, size=(3, channels)), rng.uniform(0.7, 1.3, size=(3, channels))
    daily, weekly = 2 * np.pi * hour[:, None] / 24, 2 * np.pi * hour[:, None] / 168
    weekend = np.where(hour[:, None] % 168 >= 120, 2 / 3, 1.0)
    cycle = weekend * (size[0] * np.sin(daily + phase[0]) + 0.4 * size[1] * np.sin(2 * daily + phase[1]))
    cycle = cycle + 0.3 * size[2] * np.sin(weekly + phase[2])

    lagged = np.stack([shared[longest - lag : longest - lag + rows] for lag in LAGS], axis=1)
    noise = rng.normal(0.0, 0.15, size=(rows, channels))
    level, scale = rng.uniform(5, 50, size=channels), rng.uniform(1, 10, size=channels)
    values = np.round(level + scale * (cycle + trend[:, None] + lagged + noise), 4)

    frame = pd.DataFrame(values, columns=[f"s{i}" for i in range(channels)])
    frame.insert(0, "date", pd.date_range("2020-01-06", periods=rows, freq="h"))
    return frame
