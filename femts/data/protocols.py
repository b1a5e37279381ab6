"""Default look-backs and horizons: as in the literature for the catalogue, by frequency for other data."""

from __future__ import annotations

from typing import NamedTuple

from femts.config.arguments import check_text
from femts.data.describe import count
from femts.errors import unknown

HORIZONS: tuple[int, ...] = (96, 192, 336, 720)
"""Horizons in the tables of the literature, in steps."""
LOOK_BACKS: tuple[int, ...] = (512, 1024, 2048, 4096)
"""Look-backs, in steps, among which our own tables of these horizons choose."""
PROTOCOLS: tuple[str, ...] = ("paper", "lookback96", "seasons")
PUBLISHED_HORIZON = 96
SHORT = 4  # horizons in the training rows below which training windows may extend past their end
FEWEST_WINDOWS = 4  # number of windows that a look-back of one season has to leave
LEAST_LOOK_BACK = 24  # steps, for data without a season
_DAYS = 2  # horizon in days for steps below a day, up to 96 steps
_HORIZONS = {  # by the base of a pandas frequency: steps, and their description
    "D": (28, "four weeks of days"),
    "B": (20, "four weeks of business days"),
    "W": (13, "a quarter of weeks"),
    "SM": (24, "a year of half months"),
    "M": (12, "a year of months"),
    "Q": (8, "two years of quarters"),
    "Y": (6, "six years"),
}


class Choice(NamedTuple):
    """A number of steps chosen by femts, and the reason, which is empty if the user chose it."""

    steps: int
    reason: str = ""


def check_protocol(name: object) -> str:
    """Return `name` if it is one of `PROTOCOLS`; raise UsageError otherwise."""
    if check_text(name, "protocol") not in PROTOCOLS:
        raise unknown("protocol", name, PROTOCOLS, "protocol")
    return str(name)


def default_protocol(published: bool) -> str:
    """Default protocol for catalogue data if `published`, or for other data."""
    return "paper" if published else "seasons"


def default_horizon(freq: str | None, rows: int, published: bool) -> Choice:
    """Default horizon for the frequency of the data.

    Args:
        freq: pandas frequency or a number; None without time stamps.
        rows: number of rows in the whole table; the horizon is at most a third, so that training, validation and test
            fit.
        published: whether the data are from the catalogue, for which published tables begin at 96 steps.
    """
    if published:
        return Choice(PUBLISHED_HORIZON, "the first of the published ones")
    steps, reason = _by_step(freq)
    most = max(1, rows // (3 if reason else 20))
    if steps <= most:
        return Choice(steps, reason or "the usual for steps without dates")
    return Choice(most, f"as far as {count(rows, 'row')} allow")


def _by_step(freq: str | None) -> tuple[int, str]:
    """Horizon for a table that is long enough; the reason is empty for steps that are not calendar steps."""
    from pandas.tseries.frequencies import to_offset

    offset = to_offset(freq) if freq and not freq.isdecimal() else None
    if offset is None:
        return PUBLISHED_HORIZON, ""
    base = offset.rule_code.split("-")[0]
    day = _steps_a_day(offset)
    if day is not None:
        steps = max(8, min(PUBLISHED_HORIZON, _DAYS * day))
        return steps, "two days" if steps == _DAYS * day else f"{count(steps, 'step')} of {freq}"
    base = base if base in _HORIZONS else base.removeprefix("B").removesuffix("S").removesuffix("E")
    if base not in _HORIZONS:
        return PUBLISHED_HORIZON, ""
    steps, words = _HORIZONS[base]
    return (steps, words) if offset.n == 1 else (max(4, steps // offset.n), f"{words}, {offset.n} at a time")


def _steps_a_day(offset: object) -> int | None:
    """Number of steps in a day; None for steps of a day or more."""
    from pandas.tseries.offsets import Day, Tick

    if not isinstance(offset, Tick) or isinstance(offset, Day):
        return None
    return max(1, round(86_400_000_000_000 / offset.nanos))


def default_look_back(
    protocol: str, pred_len: int, train_rows: int, season: int = 1, most: int | None = None, single: bool = True
) -> Choice:
    """Default look-back for forecasts of `pred_len` steps.

    `paper` uses 1024 steps for horizons up to 96, 2048 up to 336 and 4096 beyond; `lookback96` always uses 96. If
    look-back and horizon fill more than 60% of the training rows, the look-back is halved until they do not, because
    too few windows would be left for training. `seasons` uses as many whole seasons as leave half of the training rows
    as starting points of windows, and at most as many steps as `paper`; data without a season get four horizons. With
    fewer than `SHORT` horizons of training rows, forecasts may extend past their end, and the look-back uses half of
    the rows, or a season if they hold one.

    Args:
        protocol: one of `PROTOCOLS`.
        pred_len: P, steps.
        train_rows: number of training rows.
        season: number of steps in a season, 1 for none.
        most: maximum in steps under `seasons`; None for that of `paper`.
        single: whether the look-back of forecasts that may extend past the training rows is a season if they hold one, or
            else half of the rows; otherwise it is a third of them.

    Raises:
        UsageError: The protocol is unknown.
    """
    if check_protocol(protocol) == "seasons":
        usual = _published(pred_len)
        return _whole_seasons(pred_len, train_rows, season, usual if most is None else min(usual, most), single)
    usual = seq_len = 96 if protocol == "lookback96" else _published(pred_len)
    while seq_len > 1 and seq_len + pred_len > 0.6 * train_rows:
        seq_len //= 2
    return Choice(
        seq_len,
        f"from the protocol {protocol}" + f", halved for {count(train_rows, 'training row')}" * (seq_len < usual),
    )


def every_row(rows: int, most: int) -> Choice:
    """Look-back of a model that is fitted to the look-back itself: all `rows`, at most `most`."""
    if rows <= most:
        return Choice(rows, "all available rows")
    return Choice(most, "the maximum for this model unless set")


def look_back_choices(protocol: str, pred_len: int, train_rows: int, season: int = 1) -> tuple[int, ...]:
    """Candidate look-backs in increasing order: that of `default_look_back`, an eighth, a quarter and half of it, and
    twice it, in whole seasons, as long as they leave a quarter of the training rows as starting points of windows."""
    usual = default_look_back(protocol, pred_len, train_rows, season).steps
    wholes = {max(1, round(share * usual / season)) * season for share in (0.125, 0.25, 0.5, 2)}
    return tuple(sorted({usual, *(steps for steps in wholes if steps + pred_len <= 0.75 * train_rows)}))


def _published(pred_len: int) -> int:
    return 1024 if pred_len <= 96 else 2048 if pred_len <= 336 else 4096


def _whole_seasons(pred_len: int, train_rows: int, season: int, most: int, single: bool) -> Choice:
    short = train_rows < SHORT * pred_len  # windows may then extend past the training rows
    within = 1 if short else pred_len  # steps of a forecast that must be inside the training rows
    room = min(most, train_rows // 2 - (0 if short else pred_len))
    left = f"which leaves {{}} of {train_rows} training rows as starting points of windows"
    if season == 1:
        steps = max(1, min(room, max(4 * pred_len, LEAST_LOOK_BACK)))
        reason = f"data without a season, {left}"
    elif room >= season or (
        (single or not short) and season + (1 if short else pred_len + FEWEST_WINDOWS - 1) <= train_rows
    ):
        seasons = max(1, room // season)
        steps = seasons * season
        reason = f"{seasons} season{'s' * (seasons > 1)} of {season} steps, {left}"
    else:
        steps = max(1, (room if single else train_rows // 3) if short else (train_rows - pred_len) // 2)
        reason = f"no whole season of {season} steps fits, {left}"
    return Choice(steps, reason.format(max(0, train_rows - steps - within + 1)))
