"""The synthetic dataset."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from femts.data.catalog import CATALOG
from femts.data.frequency import step_of
from femts.data.synthetic import synthetic_frame

Values = NDArray[np.float64]


@pytest.fixture(scope="module")
def values() -> Values:
    return synthetic_frame().drop(columns="date").to_numpy()


def test_frame_matches_its_card() -> None:
    frame, known = synthetic_frame(), CATALOG["synthetic"]
    assert frame.shape == (known.rows, known.channels + 1)
    assert step_of(pd.DatetimeIndex(frame["date"])) == known.freq
    assert np.isfinite(frame.drop(columns="date").to_numpy()).all()


def test_frame_is_reproducible() -> None:
    pd.testing.assert_frame_equal(synthetic_frame(500), synthetic_frame(500))
    assert not synthetic_frame(500).equals(synthetic_frame(500, seed=1))


def test_values_are_pinned(values: Values) -> None:
    assert values[0].tolist() == [33.3774, 31.2634, 12.2212, 64.0835, 44.4263, 36.6552]
    assert values.sum() == pytest.approx(1931866.0913, rel=1e-9)
