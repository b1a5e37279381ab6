"""Default look-backs and horizons."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from femts.data.protocols import (
    FEWEST_WINDOWS,
    PROTOCOLS,
    default_horizon,
    default_look_back,
    look_back_choices,
)
from femts.data.splits import SHORT


def test_published_look_backs() -> None:
    for protocol, lengths in [("paper", (1024, 2048, 2048, 4096)), ("lookback96", (96, 96, 96, 96))]:
        assert tuple(default_look_back(protocol, pred_len, 8640).steps for pred_len in (96, 192, 336, 720)) == lengths


def test_look_back_shrinks_on_little_data() -> None:
    assert default_look_back("paper", 96, 1000).steps == 256
    assert default_look_back("lookback96", 24, 150).steps == 48


@given(st.sampled_from(PROTOCOLS), st.integers(1, 2000), st.integers(0, 100_000))
def test_look_back_leaves_training_windows(protocol: str, pred_len: int, train_rows: int) -> None:
    seq_len = default_look_back(protocol, pred_len, train_rows).steps
    if protocol == "seasons" and train_rows < SHORT * pred_len:
        assert seq_len <= max(1, train_rows // 2)
    else:
        assert seq_len == 1 or seq_len + pred_len <= 0.6 * train_rows


HORIZONS: dict[str | None, int] = {
    "YS-JAN": 6,
    "QE-DEC": 8,
    "MS": 12,
    "BME": 12,
    "2MS": 6,
    "W-SUN": 13,
    "D": 28,
    "B": 20,
    "6h": 8,
    "h": 48,
}
HORIZONS |= dict.fromkeys(("30min", "15min", "10min", "s", "1", None), 96)


def test_default_horizon_by_frequency() -> None:
    for freq, steps in HORIZONS.items():
        assert default_horizon(freq, 10_000, published=False).steps == steps
        assert default_horizon(freq, 10_000, published=True).steps == 96


def test_default_horizon_is_at_most_a_third_of_the_rows() -> None:
    assert default_horizon("MS", 36, published=False) == (12, "a year of months")
    assert default_horizon("MS", 30, published=False) == (10, "as far as 30 rows allow")
    assert default_horizon(None, 100, published=False).steps == 5
    assert default_horizon("h", 1, published=False).steps == 1


def test_seasonal_look_backs() -> None:
    for pred_len, rows, season, steps in [
        (12, 100, 12, 36),
        (13, 73, 52, 52),
        (12, 25, 12, 12),
        (12, 14, 12, 12),
        (12, 12, 12, 6),
        (7, 9, 12, 4),
        (48, 6000, 24, 1008),
        (96, 36_000, 144, 1008),
        (6, 216, 1, 24),
    ]:
        assert default_look_back("seasons", pred_len, rows, season).steps == steps


def test_look_back_has_a_maximum_under_seasons_only() -> None:
    for pred_len, rows, season, most, steps in [
        (168, 9842, 24, 504, 504),
        (26, 1013, 52, 104, 104),
        (13, 73, 52, 104, 52),
        (6, 216, 1, 18, 18),
        (96, 36_000, 96, 5000, 960),
    ]:
        assert default_look_back("seasons", pred_len, rows, season, most).steps == steps
    assert default_look_back("paper", 96, 8640, 24, 288).steps == 1024


@given(st.integers(1, 400), st.integers(2, 60_000), st.integers(1, 200))
def test_seasonal_look_back_is_a_multiple_of_the_season(pred_len: int, rows: int, season: int) -> None:
    steps = default_look_back("seasons", pred_len, rows, season).steps
    assert steps % season == 0 or steps < season
    short = rows < SHORT * pred_len
    within = 1 if short else pred_len
    assert (
        steps == 1
        or (short and steps == season)
        or rows - steps - within + 1 >= min(FEWEST_WINDOWS, (rows - within) // 2)
    )


def test_look_back_candidates() -> None:
    for protocol, pred_len, rows, season, choices in [
        ("paper", 96, 8640, 24, (120, 264, 504, 1024, 2040)),
        ("seasons", 12, 90, 12, (12, 24, 48)),
        ("seasons", 12, 40, 12, (12,)),
        ("seasons", 96, 500, 1, (19, 38, 77, 154)),
        ("seasons", 4, 10, 52, (5,)),
    ]:
        assert look_back_choices(protocol, pred_len, rows, season) == choices
