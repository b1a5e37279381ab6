"""Number formats for readers of a page."""

from __future__ import annotations

import math

from pandas.tseries.frequencies import to_offset

NONE = "\u2013"
_SECONDS = {"s": 1, "min": 60, "h": 3600, "D": 86400, "W": 7 * 86400}
_YEAR = 365.25 * 86400
_MONTHS = {"MS": 1, "ME": 1, "QS": 3, "QE": 3, "YS": 12, "YE": 12}


def missing(value: float | None) -> bool:
    """Return whether there is no number."""
    return value is None or math.isnan(value)


def scaled(value: float | None) -> str:
    """A score in scaled units, with four digits as on the command line."""
    return NONE if value is None or math.isnan(value) else f"{value:.4f}"


def raw(value: float) -> str:
    """A number in raw units, of any magnitude."""
    if math.isnan(value):
        return NONE
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}" if abs(value) < 1e12 else f"{value:.3e}"


def percent(part: float, sign: str = "") -> str:
    """A fraction in percent; `sign` as in a format, such as `+`."""
    return NONE if math.isnan(part) else _minus(f"{100 * part:{sign}.1f} %")


def points(difference: float) -> str:
    """Percentage points above or below."""
    return NONE if math.isnan(difference) else _minus(f"{difference:+.1f}")


def _minus(text: str) -> str:
    """A number with a minus sign as wide as a plus."""
    return text.replace("-", "\u2212")


def lasting(seconds: float) -> str:
    """A duration in seconds in the largest suitable unit."""
    sizes = {"year": _YEAR, "day": 86400, "hour": 3600, "minute": 60, "second": 1}
    name, size = next(((n, s) for n, s in sizes.items() if seconds >= s * (2 if n == "year" else 1)), ("second", 1))
    return _counted(seconds / size, name)


def _counted(number: float, unit: str) -> str:
    """A number with its unit, with at least three digits if it is large, and never in scientific notation."""
    count = f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
    return f"{count} {unit}" if count == "1" else f"{count} {unit}s"


def span(steps: int, freq: str | None) -> str | None:
    """Duration of `steps` steps of a pandas frequency; None if it is not fixed (business days, whole numbers)."""
    if not freq or freq.isdecimal():
        return None
    offset = to_offset(freq)
    base, times = offset.rule_code.split("-")[0], offset.n * steps
    if base in _MONTHS:
        months = _MONTHS[base] * times
        return _counted(months / 12, "year") if months % 12 == 0 or months > 48 else _counted(months, "month")
    return lasting(_SECONDS[base] * times) if base in _SECONDS else None


def steps(count: int, freq: str | None) -> str:
    """`96 steps (4 days)`."""
    time = span(count, freq)
    return f"{count} step{'s' if count > 1 else ''}" + (f" ({time})" if time else "")
