"""Future covariates in another unit are noticed, and those that grow, jump or repeat are not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from femts.data.usual_values import UsualValues

N, P = 730, 28
DAYS = np.arange(N + P)
RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=N + P)
WEATHER = np.convolve(NOISE, 0.7 ** np.arange(20))[: N + P]
WARM = 12 - 14 * np.cos(DAYS * 2 * np.pi / 365.25) + 2 * WEATHER  # degrees Celsius
PRICE = 10 + np.cumsum(RNG.random(N + P) < 0.02) * 0.5  # rises in steps
BUDGET = np.where(RNG.random(N + P) < 0.1, RNG.uniform(500, 5000, N + P), 0)

CALM = {
    "temperature": WARM,
    "half a year of temperature": WARM[365 - 180 :],
    "price": PRICE,
    "price that rises": np.append(PRICE[:-P], 1.25 * PRICE[-P:]),
    "constant price that rises": np.append(np.full(N, 9.99), np.full(P, 12.99)),
    "counter": DAYS.astype(float),
    "short counter": DAYS[: 2 * P].astype(float),
    "counter of 1000s": 1000.0 * DAYS,
    "year": 2020.0 + DAYS // 365,
    "new year": 2020.0 + (DAYS >= N),
    "month": 1.0 + DAYS // 30 % 12,
    "growth": np.exp(DAYS / 100),
    "doubled in a week": 2.0 ** (DAYS[:84] // 7),
    "logistic": 100 / (1 + np.exp(-(DAYS - N) / 50)),
    "flag": (NOISE > 1).astype(float),
    "flag never seen": (DAYS >= N).astype(float),
    "flag no longer seen": (DAYS < N).astype(float),
    "budget": BUDGET,
    "larger budget": np.append(BUDGET[:-P], np.full(P, 8000.0)),
    "share": RNG.random(N + P),
    "negative": -50 - 10 * RNG.random(N + P),
    "random walk": 100 + NOISE.cumsum(),
    "missing": np.append(np.full(N, np.nan), DAYS[-P:]),
}
OTHER_UNITS = {
    "Fahrenheit in spring": (WARM[: 90 - N], lambda x: 32 + 1.8 * x),
    "Fahrenheit in summer": (WARM[:-180], lambda x: 32 + 1.8 * x),
    "Celsius": (32 + 1.8 * WARM, lambda x: (x - 32) / 1.8),
    "Kelvin": (WARM, lambda x: x + 273.15),
    "cents": (PRICE, lambda x: 100 * x),
    "euros": (100 * PRICE, lambda x: x / 100),
    "constant price in cents": (np.full(N + P, 9.99), lambda x: 100 * x),
    "percent": (RNG.random(N + P), lambda x: 100 * x),
    "share of 1": (30 + 70 * RNG.random(N + P), lambda x: x / 100),
    "km/h": (np.abs(20 + 5 * NOISE), lambda x: 3.6 * x),
    "kW": (5000 + 1000 * NOISE, lambda x: x / 1000),
    "milliseconds": (1000.0 * DAYS, lambda x: 1000 * x),
}


def judged(values: NDArray[np.float64], ahead: NDArray[np.float64]) -> bool:
    past = values[:-P, None]
    usual = UsualValues.fit(past, np.array([[0, len(past)]]))
    usual = UsualValues.from_dict(usual.to_dict())
    return bool(usual.odd(past[-1:], ahead[None, :, None])[0, 0])


@pytest.mark.parametrize("name", CALM)
def test_usual_courses_are_not_odd(name: str) -> None:
    assert not judged(CALM[name], CALM[name][-P:])


@pytest.mark.parametrize("name", OTHER_UNITS)
def test_other_units_are_odd(name: str) -> None:
    values, unit = OTHER_UNITS[name]
    assert not judged(values, values[-P:])
    assert judged(values, unit(values[-P:]))


def test_one_series_of_a_panel() -> None:
    n, summer = N - 180, WARM[:-180]
    values = np.concatenate([summer[:n], summer[:n] + 2])[:, None]
    usual = UsualValues.fit(values, np.array([[0, n], [n, 2 * n]]))
    ahead = np.stack([summer[n:], 32 + 1.8 * summer[n:]])[..., None]
    assert usual.odd(values[[n - 1, 2 * n - 1]], ahead).tolist() == [[False], [True]]
