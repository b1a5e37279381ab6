"""Errors, sorted by whose fault they are: the command line turns these into exit statuses 2 and 1."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from femts.text import MOST, sentence, shown

MOST_CHOICES = 40  # that a sentence names


class FemtsError(Exception):
    """Base of every error that femts raises on purpose; its text is one sentence for the user,
    whatever data it quotes."""

    def __init__(self, text: object = "") -> None:
        super().__init__(sentence(text))


class UsageError(FemtsError, ValueError):
    """A mistake of the caller (exit status 2): the text names the thing, the value and the remedy."""


class RunFailure(FemtsError, RuntimeError):
    """A run that was asked for rightly and failed (exit status 1)."""


class GapWarning(UserWarning):
    """A history that lacks values was filled before it was forecast from."""


class ScaleWarning(UserWarning):
    """A series or column has no scale of its own in its training rows, or leaves it later on."""


class AgeWarning(UserWarning):
    """A history goes on for more than a horizon after the last row that the model learned from."""


class UnitsWarning(UserWarning):
    """A history has values of another size than the rows that the model learned from, as in another unit."""


class CellWarning(UserWarning):
    """Cells of a table have failed, and have no score."""


def suggest(name: str, choices: Iterable[str]) -> str:
    """Ending of a sentence about an unknown `name`: the nearest right one, or all when none is near, if any."""
    choices = list(choices)
    if not choices:
        return "; there is none to choose from, so leave it out."
    by_lower = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(str(name)[:MOST].lower(), list(by_lower), n=1)
    if near:
        return f"; did you mean '{shown(by_lower[near[0]])}'?"
    return f"; choose from {', '.join(map(shown, choices[:MOST_CHOICES]))}{', ...' * (len(choices) > MOST_CHOICES)}."
