"""Standardization of each channel of each series."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from femts.data.scaler import Scaler
from femts.errors import UsageError

TABLES = hnp.arrays(
    np.float64, st.tuples(st.integers(2, 20), st.integers(1, 4)), elements=st.floats(-1e6, 1e6, width=32)
)


def fit(*series: NDArray[np.float64]) -> Scaler:
    """The scaler of the training rows (rows, C) of each series."""
    return Scaler.fit([(rows, rows, rows) for rows in series], series[0].shape[1])


def test_fit_mean_and_std_per_channel_and_series() -> None:
    rows = np.array([[0.0, 5.0], [2.0, 5.0], [0.0, 5.0], [2.0, 5.0], [0.0, 5.0], [2.0, 5.0]])
    scaler = fit(rows, 10 * rows)
    assert scaler.mean.tolist() == [[1.0, 5.0], [10.0, 50.0]] and scaler.scale[:, 0].tolist() == [1.0, 10.0]
    assert scaler.own.tolist() == [[True, False]] * 2, "a constant channel has no scale of its own"
    assert fit(np.zeros((9, 1))).scale.tolist() == [[1.0]]


@given(TABLES)
def test_inverse_and_json_roundtrip(values: NDArray[np.float64]) -> None:
    scaler = fit(values)
    np.testing.assert_allclose(scaler.inverse(scaler.transform(values)), values, atol=1e-6, rtol=1e-12)
    again = Scaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    for name in ("mean", "scale", "own"):
        assert np.array_equal(getattr(again, name), getattr(scaler, name))


def test_matches_sklearn_bit_for_bit() -> None:
    for shift in [0.0, 1e6, 1e15]:
        for gaps in [False, True]:
            rng = np.random.default_rng(2)
            values = rng.normal(size=(997, 5)) + shift
            if gaps:
                values[rng.random(values.shape) < 0.2] = np.nan
            expected, scaler = StandardScaler().fit(values), fit(values)
            varying = expected.scale_ != 1  # what scikit-learn takes for constant is fitted more exactly
            np.testing.assert_array_equal(scaler.mean[0, varying], expected.mean_[varying])
            np.testing.assert_array_equal(scaler.scale[0, varying], expected.scale_[varying])


def test_tensors_scale_like_arrays() -> None:
    for dtype in [torch.float32, torch.float64]:
        values = np.random.default_rng(0).normal(3, 2, size=(4, 50, 3))
        scaler = fit(*values)
        scaled = scaler.transform(torch.from_numpy(values).to(dtype))
        assert scaled.dtype == dtype
        np.testing.assert_allclose(scaled.numpy(), scaler.transform(values), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(scaler.inverse(scaled).numpy(), values, rtol=1e-5, atol=1e-6)
        some = np.array([2, 0])
        np.testing.assert_array_equal(scaler.take(some).transform(values[some]), scaler.transform(values)[some])


def test_channel_mismatch_is_refused() -> None:
    with pytest.raises(UsageError, match="fitted on 3 channels, not 1"):
        fit(np.eye(3)).transform(np.ones((4, 1)))


def test_damaged_scaler_is_refused() -> None:
    cases: list[Any] = [
        {"mean": [[1.0]]},
        {"mean": [[1.0]], "scale": [["x"]]},
        {"mean": [1.0], "scale": [1.0]},
        {"mean": [[1.0]], "scale": [[1.0, 2.0]]},
        {"mean": [[float("nan")]], "scale": [[1.0]]},
        {"mean": [[1.0]], "scale": [[0.0]]},
        {"mean": [[1.0]], "scale": [[1.0]], "own": [[1]]},
    ]
    for stored in cases:
        with pytest.raises(UsageError, match="stored scaler"):
            Scaler.from_dict(stored)
