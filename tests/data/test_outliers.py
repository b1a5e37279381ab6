"""Readings far outside the usual range: which are found in which columns."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from femts.data import outliers
from femts.data.outliers import NEAREST, RECENT, STEPS, Found, Outliers

Array = NDArray[np.float64]
RNG = np.random.default_rng(5)
N, TRAIN, STOP = 500, 300, 400
DAY = np.arange(N)
WEEKLY = 50 + 8 * np.sin(2 * np.pi * DAY / 7) + RNG.normal(0, 1, N)
TREND = WEEKLY * np.exp(DAY / 200)
COUNTS = RNG.poisson(1.0, N).astype(np.float64)
PROMOTIONS = 20 + RNG.normal(0, 1, N) + 200 * np.isin(DAY % 30, (3, 4))
INTERMITTENT = np.where(RNG.uniform(size=N) < 0.1, RNG.lognormal(2, 1.5, N), 0.0)
GAPS = np.where(RNG.uniform(size=N) < 0.2, np.nan, WEEKLY)
WANDERING = RNG.normal(0, 1, N).cumsum()
LEVELS = WEEKLY + 60 * ((DAY // 80) % 2)
COLUMNS = {
    "weekly": WEEKLY,
    "growing": TREND,
    "counts": COUNTS,
    "promotions": PROMOTIONS,
    "intermittent": INTERMITTENT,
    "gaps": GAPS,
    "wandering": WANDERING,
    "changing levels": LEVELS,
}


def fitted(values: Array, season: int = 7) -> Outliers:
    lengths = np.array([len(values)])
    mean, scale = np.nanmean(values[:TRAIN]), np.nanstd(values[:TRAIN])
    scaled, location = (values[:, None] - mean) / scale, np.array([[mean / scale]])
    rows = np.array([TRAIN]), np.array([STOP])
    return Outliers.fit([(scaled, lengths)], *rows, location, season, growing=True)[0]


def found(values: Array, outliers: Outliers | None = None, season: int = 7, learned: Array | None = None) -> Found:
    """What is odd in `values`, given the training rows of `learned`."""
    of = values if learned is None else learned
    mean, scale = np.nanmean(of[:TRAIN]), np.nanstd(of[:TRAIN])
    made = (outliers or fitted(of, season)).find((values[:, None] - mean) / scale, np.array([len(values)]))
    none = np.zeros((len(values), 1), dtype=np.bool_)
    return made or Found(none, none, np.ones((2, len(values), 1)))


def places(mask: NDArray[np.bool_]) -> list[int]:
    return np.flatnonzero(mask[:, 0]).tolist()


@pytest.mark.parametrize("name", COLUMNS)
def test_nothing_is_odd_in_usual_columns(name: str) -> None:
    made = found(COLUMNS[name])
    assert not made.settled.any() and not made.recent.any()


@pytest.mark.parametrize("freedom", [1.5, 2.0, 3.0])
def test_tails_are_rarely_odd(freedom: float) -> None:
    samples = [np.random.default_rng(seed).standard_t(freedom, N) for seed in range(20)]
    assert np.mean([found(each).settled.mean() for each in samples]) < 0.002


@pytest.mark.parametrize("name", ["weekly", "growing", "promotions", "gaps", "wandering", "changing levels"])
def test_single_reading_is_odd(name: str) -> None:
    values = COLUMNS[name].copy()
    row = 450 + int(np.flatnonzero(~np.isnan(values[450:]))[0])
    values[row] += 40 * np.nanstd(values)
    made = found(values, learned=COLUMNS[name])
    assert places(made.settled) == places(made.recent) == [row]


@pytest.mark.parametrize("number", [2, 3, 5])
def test_several_readings_are_odd(number: int) -> None:
    values, rows = WEEKLY.copy(), 480 + np.sort(np.random.default_rng(number).choice(20, number, replace=False))
    values[rows] = np.random.default_rng(number).uniform(300, 900, number)
    assert places(found(values, learned=WEEKLY).recent) == rows.tolist()


def test_readings_after_odd_ones_of_the_same_phase_are_not_odd() -> None:
    values = WEEKLY.copy()
    values[[448, 455]] = 0  # Christmas and New Year, after which the median of three seasons before is 0
    made = found(values, learned=WEEKLY)
    assert places(made.settled) == places(made.recent) == [448, 455]


def test_new_level_is_odd_in_its_first_three_readings_and_not_after() -> None:
    values = WEEKLY + 60 * (DAY >= 450)
    made = found(values, learned=WEEKLY)
    assert not made.settled.any() and places(made.recent) == [450, 451, 452]
    assert places(found(values[:-47], learned=WEEKLY).settled) == [450, 451, 452]  # no readings after


def test_level_that_has_changed_in_training_may_change_again() -> None:
    assert not found(LEVELS[:401], learned=LEVELS).recent.any()


def test_season_tells_a_low_reading_from_a_usual_one() -> None:
    values = 1000 + 800 * np.sin(2 * np.pi * DAY / 24) + RNG.normal(0, 10, N)
    values[450] = 2000 - values[450]  # the mirrored phase
    assert 450 in places(found(values, season=24).settled)
    assert not places(found(values, season=1).settled)


def test_odd_training_readings_do_not_count_as_usual() -> None:
    values = WEEKLY.copy()
    values[[100, 200, 450]] = 900
    assert places(found(values).settled) == [100, 200, 450]
    values[60:300:16] = 900  # as often as to be usual
    assert not found(values).settled.any()


def test_readings_that_begin_to_vary_more_are_kept() -> None:
    values = WEEKLY.copy()
    values[420:] = 50 + 30 * np.random.default_rng(1).normal(size=N - 420)
    made = found(values, learned=WEEKLY)
    for mask in (made.settled, made.recent):
        assert 0 < mask[420:].sum() <= 20 and not mask[-30:].any()
    assert made.unlike[:, -1].min() > 1.5


def test_columns_that_vary_in_another_way_in_validation_are_not_judged() -> None:
    values = WEEKLY.copy()
    values[TRAIN + 5 : STOP : 10] = 900
    values[450] = 900
    assert not found(values).settled.any()


def test_verdicts_do_not_depend_on_later_rows_nor_on_earlier_history() -> None:
    values = WEEKLY.copy()
    values[[380, 440, 447]] = 900
    outliers, season = fitted(WEEKLY), 7
    whole, until = found(values, outliers, learned=WEEKLY), 450
    cut = found(values[:until], outliers, learned=WEEKLY)
    np.testing.assert_array_equal(cut.recent, whole.recent[:until])
    np.testing.assert_array_equal(cut.settled[: until - NEAREST], whole.settled[: until - NEAREST])
    first = 400 - outliers.reach
    short = found(values[first:until], outliers, learned=WEEKLY)
    np.testing.assert_array_equal(short.recent[400 - first :], cut.recent[400:])
    np.testing.assert_allclose(short.unlike[:, 400 - first :], cut.unlike[:, 400:])
    assert outliers.reach == 3 * season + STEPS + RECENT


def test_series_are_judged_by_their_own_rows() -> None:
    values = np.concatenate([WEEKLY, PROMOTIONS, WEEKLY[:20]])[:, None]
    values[[450, N + 450, 2 * N + 15]] = 300
    lengths = np.array([N, N, 20])
    rows = np.array([TRAIN, TRAIN, 14]), np.array([STOP, STOP, 16])
    outliers = Outliers.fit([(values, lengths)], *rows, np.zeros((3, 1)), 7, growing=False)[0]
    made = outliers.find(values, lengths)
    assert made is not None and places(made.settled) == [450]
    two, _ = Outliers.fit(
        [(values[:N], lengths[:1]), (values[N:], lengths[1:])], *rows, np.zeros((3, 1)), 7, growing=False
    )
    np.testing.assert_array_equal(two.near, outliers.near)
    assert outliers.take(np.array([1, 0, -1])).near[:, 0, 0].tolist() == [*outliers.near[[1, 0], 0, 0], np.inf]


def test_odd_readings_make_a_look_back_rough_only_if_they_are_kept() -> None:
    assert (found(WEEKLY).unlike == 1).all()
    without = found(np.where(DAY == 495, 900, WEEKLY), fitted(WEEKLY), learned=WEEKLY)
    assert (without.unlike[1, -1] == 1).all()
    keeping = replace(fitted(WEEKLY), keep=True)
    made = found(np.where(DAY == 495, 900, WEEKLY), keeping, learned=WEEKLY)
    assert made.unlike[:, -1].min() > 5 and not made.settled.any() and not made.recent.any()


def test_record_is_restored_to_the_bit() -> None:
    outliers = fitted(WEEKLY)
    again = Outliers.from_dict(json.loads(json.dumps(outliers.to_dict(), allow_nan=False)))
    for name in ("near", "phase", "level", "rough", "location"):
        np.testing.assert_array_equal(getattr(again, name), getattr(outliers, name))
    assert again.season == outliers.season
    constant = fitted(np.where(DAY % 40 == 0, 1.0, 0.0))
    assert np.isinf(Outliers.from_dict(json.loads(json.dumps(constant.to_dict(), allow_nan=False))).near).all()


@pytest.mark.parametrize("gaps", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("steps", [NEAREST, STEPS])
@pytest.mark.parametrize("rows", [1, 3, 300])
def test_medians_are_those_of_pandas(rows: int, steps: int, gaps: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outliers, "CELLS", 1000)  # several pieces
    values = np.where(RNG.uniform(size=(rows, 2)) < gaps, np.nan, RNG.normal(size=(rows, 2)).round(1))
    expected = pd.DataFrame(values).rolling(steps, min_periods=(steps + 1) // 2).median()
    np.testing.assert_array_equal(outliers._medians(values, steps), expected.to_numpy())


@pytest.mark.parametrize("kept", [(), (0, 2)])
def test_odd_training_readings_are_those_of_the_rows_up_to_the_test(kept: tuple[int, ...]) -> None:
    values = np.concatenate([WEEKLY, PROMOTIONS, TREND[:350], GAPS])[:, None]
    values[[100, 299, 450, N + 10, N + 200, 2 * N + 250, 2 * N + 380], 0] = 300, 900, 900, 5000, 9000, 900, -900
    lengths = np.array([N, N, 350, N])
    train, stop = np.array([TRAIN, 200, 280, 20]), np.array([STOP, 450, 340, 20])
    first, further = np.cumsum(lengths) - lengths, (train, stop, np.zeros((4, 1)), 7, False)
    series = [(values[a : a + n], lengths[k : k + 1]) for k, (a, n) in enumerate(zip(first, lengths, strict=True))]
    chunks = [(np.concatenate([series[0][0], series[1][0]]), lengths[:2]), *series[2:]]
    known = None
    if kept:
        others, _ = Outliers.fit([(values * 2, lengths)], *further)
        known = others, np.isin(np.arange(4), kept)
    outliers, (rows, columns) = Outliers.fit(chunks, *further, known)
    expected = list[int]()
    for number, (part, length) in enumerate(series):
        made = outliers.take(np.array([number])).find(part[: stop[number]], np.minimum(length, stop[number]))
        expected += [] if made is None else (first[number] + np.flatnonzero(made.settled[: train[number]])).tolist()
    assert rows.tolist() == expected and not columns.any() and len(rows) > 1
