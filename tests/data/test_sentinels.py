"""Numbers that stand for missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import femts
from femts import UsageError
from femts.data.sentinels import find_sentinels, sentinels_by_column

RNG = np.random.default_rng(3)
DEGREES = RNG.normal(15, 8, 1000).round(1)
POSITIVE = RNG.gamma(2, 200, 1000).round() + 1


def having(values: Any, number: float, times: int = 6) -> NDArray[np.float64]:
    """`values` of which some are replaced by `number`."""
    made = np.array(values, dtype=np.float64)
    made[np.linspace(0, len(made) - 1, times).astype(int)] = number
    return made


FOUND: dict[str, tuple[NDArray[np.float64], list[float]]] = {
    **{
        f"{number:g}": (having(DEGREES, number), [number])
        for number in (-999, -9999, 9999, 999.9, -999.9, -99.99, 1e20)
    },
    **{f"machine {number:g}": (having(DEGREES, number), [number]) for number in (-32768, 65535, -1e30, 3.4028235e38)},
    "-200 among positive ones of a wide range": (having(POSITIVE, -200), [-200]),
    "-200 in most rows": (having(POSITIVE, -200, 900), [-200]),
    "-1 among speeds": (having(RNG.uniform(20, 120, 1000).round(1), -1, 30), [-1]),
    "two": (having(having(DEGREES, -999), -99, 8), [-999, -99]),
    "both sides": (having(having(DEGREES, -999), 9999, 8), [-999, 9999]),
    "directions": (having(RNG.integers(0, 361, 1000), 999), [999]),
    "ages": (having(RNG.integers(0, 95, 1000), 999), [999]),
    "few counts": (having(RNG.integers(0, 4, 1000), 9999), [9999]),
    "with gaps": (np.where(np.arange(1000) % 7 == 3, np.nan, having(DEGREES, -999, 40)), [-999]),
}


@pytest.mark.parametrize("case", FOUND)
def test_sentinels_are_found(case: str) -> None:
    values, expected = FOUND[case]
    assert find_sentinels(values) == pytest.approx(tuple(expected))


def test_sentinel_in_single_precision_is_found_as_stored() -> None:
    (found,) = find_sentinels(having(DEGREES, -999.9).astype(np.float32).astype(np.float64))
    assert found == np.float32(-999.9)


LAWFUL: dict[str, NDArray[np.float64]] = {
    "once": having(DEGREES, -999, 1),
    "zeros at night": np.maximum(np.sin(np.arange(1000) / 4), 0) * 500,
    "limit of 1000": np.minimum(RNG.normal(900, 150, 1000), 1000),
    "capped at 9999": RNG.gamma(1, 3000, 1000).clip(max=9999).round(),
    "capped at 999": RNG.normal(900, 150, 1000).clip(max=999).round(),
    "signal of -1, 0 and 1": RNG.integers(-1, 2, 1000).astype(np.float64),
    "whole degrees from -1": RNG.integers(-1, 30, 1000).astype(np.float64),
    "-1 beside counts from 0": having(RNG.poisson(5, 1000), -1, 30),
    "percent with 99": RNG.uniform(0, 100, 1000).round(),
    "uptime with 99.9": np.where(np.arange(1000) % 2 == 0, 99.9, RNG.uniform(99, 100, 1000).round(2)),
    "prices with 9999": having(RNG.gamma(1, 2500, 1000).round(), 9999),
    "profit and loss with -999": having(RNG.normal(0, 3000, 1000).round(), -999),
    "payments of 99.99": having(POSITIVE + 0.5, -99.99, 12),
    "jackpot": having(RNG.gamma(1, 10**5, 1000).round(), 10**6, 9),
    "fines of 500": having(POSITIVE, 500, 90),
    "two values": np.repeat([1.0, -999.0], 50),
    "only one": np.full(30, -999.0),
    "nothing": np.full(30, np.nan),
    "no rows": np.zeros(0),
}


@pytest.mark.parametrize("case", LAWFUL)
def test_lawful_values_are_not_taken_for_sentinels(case: str) -> None:
    assert find_sentinels(LAWFUL[case]) == ()


def test_a_sentinel_of_one_column_counts_once_in_another() -> None:
    columns = {
        "wind": having(DEGREES, -9999, 1),
        "rain": having(DEGREES, -9999, 9),
        "snow": np.repeat([0.0, -9999.0], 500),
        "profit": having(RNG.normal(0, 9000, 1000), -9999),
        "clean": DEGREES,
    }
    assert sentinels_by_column(columns) == {"wind": (-9999,), "rain": (-9999,), "snow": (-9999,)}


def test_a_number_that_would_empty_a_flag_is_refused() -> None:
    table = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=60), "sold": 5.0, "promo": [0, 0, 1] * 20})
    table.loc[::7, "sold"] = 0
    table.loc[1::7, "sold"] = 6
    with pytest.raises(UsageError, match="na=0 would also read 0 in column 'promo' as missing, which has only 0 and 1"):
        femts.load_dataset(table, target=["sold"], future_covariates=["promo"], na=0)
    alone = femts.load_dataset(table, target=["sold"], na=0)
    assert np.isnan(alone.values).sum() == 9
