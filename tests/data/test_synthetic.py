from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from femts.data.catalog import CATALOG
from femts.data.frequency import step_of
from femts.data.synthetic import LAGS, synthetic_frame

Values = NDArray[np.float64]


@pytest.fixture(scope="module")
def values() -> Values:
    return synthetic_frame().drop(columns="date").to_numpy()


def residual(column: Values, lag: int = 24 * 7) -> Values:
    """What is left of a channel when the weekly repetition is taken out."""
    return column[lag:] - column[:-lag]


def correlation(a: Values, b: Values) -> float:
    return np.corrcoef(a, b)[0, 1]


def test_form_is_that_of_the_card() -> None:
    frame, known = synthetic_frame(), CATALOG["synthetic"]
    assert frame.shape == (known.rows, known.channels + 1)
    assert step_of(pd.DatetimeIndex(frame["date"])) == known.freq
    assert np.isfinite(frame.drop(columns="date").to_numpy()).all()


def test_one_seed_one_table() -> None:
    pd.testing.assert_frame_equal(synthetic_frame(500), synthetic_frame(500))
    assert not synthetic_frame(500).equals(synthetic_frame(500, seed=1))


def test_values_are_pinned_so_that_scores_stay_comparable(values: Values) -> None:
    assert values[0].tolist() == [33.3774, 31.2634, 12.2212, 64.0835, 44.4263, 36.6552]
    assert values.sum() == pytest.approx(1931866.0913, rel=1e-9)


def test_every_channel_has_a_daily_and_a_weekly_cycle(values: Values) -> None:
    for column in values.T:
        spectrum = np.abs(np.fft.rfft(np.diff(column[: 168 * 23]))) ** 2
        around_a_day = spectrum[23 * 7 - 20 : 23 * 7 + 21]
        assert np.argmax(around_a_day) == 20, "one cycle a day stands out among its neighbours"
        by_weekday = column[: 168 * 23].reshape(-1, 7, 24).std(axis=2).mean(axis=0)
        assert by_weekday[5:].mean() < by_weekday[:5].mean(), "days of the weekend swing less"


def test_channels_follow_the_first_by_their_lags(values: Values) -> None:
    first = residual(values[:, 0])
    for channel, lag in enumerate(LAGS[1:], start=1):
        other = residual(values[:, channel])
        at = {k: correlation(first[: len(first) - k or None], other[k:]) for k in range(0, 48)}
        assert abs(max(at, key=at.__getitem__) - lag) <= 1


def test_the_trend_breaks(values: Values) -> None:
    weekly = values[: 168 * 23, 0].reshape(23, 168).mean(axis=1)
    slopes = np.diff(weekly)
    assert slopes.max() > 0 > slopes.min()
