"""Short descriptions of counts, names and time stamps."""

from __future__ import annotations

from collections.abc import Sequence

from femts.text import quote

MOST_NAMES = 6  # names listed
MOST_PAST = 5  # steps shown before a forecast, relative to its length


def count(number: int, noun: str) -> str:
    """Number and noun, such as `1 row` or `2 rows`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def are(number: int) -> str:
    """The verb that goes with a number of things: `is` or `are`."""
    return "is" if number == 1 else "are"


def names(columns: tuple[str, ...]) -> str:
    """The first names, and how many more there are."""
    rest = len(columns) - MOST_NAMES
    return ", ".join(map(quote, columns[:MOST_NAMES])) + (f" and {rest} more" if rest > 0 else "")


def quoted_names(columns: Sequence[str]) -> str:
    """As `names`, each in quotes."""
    more = f" and {len(columns) - MOST_NAMES} more" * (len(columns) > MOST_NAMES)
    return ", ".join(f"'{quote(name)}'" for name in columns[:MOST_NAMES]) + more


def stamp(when: object) -> str:
    """A time stamp for display, without the time if it is midnight."""
    return str(when).removesuffix(" 00:00:00")


def shown_past(steps: int, season: int) -> int:
    """Steps to draw before a forecast of `steps` steps: two seasons and at least twice its length, but not so many that
    the forecast fills less than a sixth of the picture."""
    return max(2 * steps, min(2 * season, MOST_PAST * steps))
