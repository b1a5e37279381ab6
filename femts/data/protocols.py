"""Look-backs and horizons that nobody gave: those of the literature for the catalogue, those of the
step for other data."""

from __future__ import annotations

from typing import NamedTuple

from femts.config.arguments import check_text
from femts.errors import UsageError, suggest
from femts.text import quote

HORIZONS: tuple[int, ...] = (96, 192, 336, 720)
"""Steps to forecast in the literature's tables."""
LOOK_BACKS: tuple[int, ...] = (512, 1024, 2048, 4096)
"""Steps of look-back that our own tables of these choose from."""
PROTOCOLS: tuple[str, ...] = ("paper", "lookback96", "seasons")
PUBLISHED_HORIZON = 96
SHORT = 4  # horizons in training rows whose windows may forecast beyond them
FEWEST_WINDOWS = 4  # that a single season of look-back has to leave
LEAST_LOOK_BACK = 24  # steps, of data without a season
_DAYS = 2  # of steps below a day, as far as 96 steps reach
_HORIZONS = {  # by the base of a pandas frequency: steps, and words for them
    "D": (28, "four weeks of days"),
    "B": (20, "four weeks of business days"),
    "W": (13, "a quarter of weeks"),
    "SM": (24, "a year of half months"),
    "M": (12, "a year of months"),
    "Q": (8, "two years of quarters"),
    "Y": (6, "six years"),
}


class Choice(NamedTuple):
    """A number of steps that femts chose, and why; the reason is empty where a user gave it."""

    steps: int
    reason: str = ""


def check_protocol(name: object) -> str:
    """`name` where it is one of `PROTOCOLS`; else UsageError."""
    if check_text(name, "protocol") not in PROTOCOLS:
        raise UsageError(f"Unknown protocol '{quote(name)}'{suggest(str(name), PROTOCOLS)}")
    return str(name)


def default_protocol(published: bool) -> str:
    """Name of the protocol for data of the catalogue, or for others."""
    return "paper" if published else "seasons"


def default_horizon(freq: str | None, rows: int, published: bool) -> Choice:
    """Horizon by the step of the data.

    Args:
        freq: the step, a pandas frequency or a number; None without stamps.
        rows: of the whole table, of which the horizon takes a third at most: to learn from, to validate and to test by.
        published: data of the catalogue, whose tables begin at 96.
    """
    if published:
        return Choice(PUBLISHED_HORIZON, "the first of the published ones")
    steps, reason = _by_step(freq)
    most = max(1, rows // (3 if reason else 20))
    if steps <= most:
        return Choice(steps, reason or "the usual for steps without dates")
    return Choice(most, f"as far as {rows} rows allow")


def _by_step(freq: str | None) -> tuple[int, str]:
    """Horizon of a table that is long enough; without a reason where the step is none of the calendar."""
    from pandas.tseries.frequencies import to_offset

    offset = to_offset(freq) if freq and not freq.isdecimal() else None
    if offset is None:
        return PUBLISHED_HORIZON, ""
    base = offset.rule_code.split("-")[0]
    day = _steps_a_day(offset)
    if day is not None:
        steps = max(8, min(PUBLISHED_HORIZON, _DAYS * day))
        return steps, "two days" if steps == _DAYS * day else f"{steps} steps of {freq}"
    base = base if base in _HORIZONS else base.removeprefix("B").removesuffix("S").removesuffix("E")
    if base not in _HORIZONS:
        return PUBLISHED_HORIZON, ""
    steps, words = _HORIZONS[base]
    return (steps, words) if offset.n == 1 else (max(4, steps // offset.n), f"{words}, {offset.n} at a time")


def _steps_a_day(offset: object) -> int | None:
    """Steps of a frequency in a day; None for one of a day and more."""
    from pandas.tseries.offsets import Day, Tick

    if not isinstance(offset, Tick) or isinstance(offset, Day):
        return None
    return max(1, round(86_400_000_000_000 / offset.nanos))


def default_look_back(protocol: str, pred_len: int, train_rows: int, season: int = 1) -> Choice:
    """Look-back in steps for forecasts of `pred_len` steps.

    `paper` takes 1024 steps up to 96, 2048 up to 336 and 4096 beyond; `lookback96` always takes 96.
    Where look-back and forecast would fill more than 60% of the training rows the look-back is
    halved until they do not, because too few windows would be left to learn from. `seasons` takes
    as many whole seasons as leave half of the training rows to learn from, and no more steps than
    `paper`; data without a season get four horizons. In fewer than `SHORT` horizons of training
    rows, forecasts end beyond them, so the look-back takes half of the rows.

    Args:
        protocol: one of `PROTOCOLS`.
        pred_len: P, steps.
        train_rows: rows that are trained on.
        season: steps of the natural season of the data, 1 for none.

    Raises:
        UsageError: no such protocol.
    """
    if check_protocol(protocol) == "seasons":
        return _whole_seasons(pred_len, train_rows, season)
    usual = seq_len = 96 if protocol == "lookback96" else _published(pred_len)
    while seq_len > 1 and seq_len + pred_len > 0.6 * train_rows:
        seq_len //= 2
    return Choice(
        seq_len, f"of the protocol {protocol}" + f", halved for {train_rows} training rows" * (seq_len < usual)
    )


def every_row(rows: int, most: int) -> Choice:
    """Look-back of a model that is fitted to the look-back alone: all of `rows`, and no more than `most`."""
    if rows <= most:
        return Choice(rows, "all rows that there are")
    return Choice(most, "as far back as this model is fitted to unasked")


def look_back_choices(protocol: str, pred_len: int, train_rows: int, season: int = 1) -> tuple[int, ...]:
    """Look-backs to choose from, rising: that of `default_look_back`, and an eighth, a quarter, a half of it and twice
    it in whole seasons, as far as they leave a quarter of the training rows to begin a window at."""
    usual = default_look_back(protocol, pred_len, train_rows, season).steps
    wholes = {max(1, round(share * usual / season)) * season for share in (0.125, 0.25, 0.5, 2)}
    return tuple(sorted({usual, *(steps for steps in wholes if steps + pred_len <= 0.75 * train_rows)}))


def _published(pred_len: int) -> int:
    return 1024 if pred_len <= 96 else 2048 if pred_len <= 336 else 4096


def _whole_seasons(pred_len: int, train_rows: int, season: int) -> Choice:
    short = train_rows < SHORT * pred_len  # where a window is let forecast beyond the training rows
    within = 1 if short else pred_len  # steps of a forecast that have to lie within them
    room = min(_published(pred_len), train_rows // 2 - (0 if short else pred_len))
    left = f"which leaves {{}} of {train_rows} training rows to begin a window at"
    if season == 1:
        steps = max(1, min(room, max(4 * pred_len, LEAST_LOOK_BACK)))
        reason = f"data without a season, {left}"
    elif room >= season or (not short and season + pred_len + FEWEST_WINDOWS - 1 <= train_rows):
        seasons = max(1, room // season)
        steps = seasons * season
        reason = f"{seasons} season{'s' * (seasons > 1)} of {season} steps, {left}"
    else:
        steps = max(1, room if short else (train_rows - pred_len) // 2)
        reason = f"no whole season of {season} steps fits, {left}"
    return Choice(steps, reason.format(max(0, train_rows - steps - within + 1)))
