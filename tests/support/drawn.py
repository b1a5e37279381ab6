"""Draws of anything, and how a test looks at what comes of them: an answer or a sentence."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from femts.errors import FemtsError

ASKED = os.environ.get("FEMTS_CASES")
DRAWN = settings(
    max_examples=int(ASKED or 12),
    derandomize=ASKED is None,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],  # each case takes too long to be made smaller by hundreds more
    print_blob=True,
)


def mostly(usual: Any, odd: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """`usual` in three of four draws."""
    often = usual if isinstance(usual, st.SearchStrategy) else st.just(usual)
    return st.integers(0, 3).flatmap(lambda n: odd if n == 3 else often)


def attempt(do: Callable[[], Any]) -> Any:
    """The result of `do`, or None if it raises a femts error; other exceptions fail the test."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return do()
    except FemtsError as error:
        text = str(error)
        assert text.isprintable() and text.endswith((".", "?")) and 10 < len(text) < 1600, text
        return None


def same(frame: object, before: object) -> bool:
    """Whether a frame is unchanged."""
    if isinstance(frame, pd.Series) and isinstance(before, pd.Series):
        return frame.index.equals(before.index) and _same_cells(frame, before)
    if not isinstance(frame, pd.DataFrame) or not isinstance(before, pd.DataFrame):
        return True
    alike = list(map(repr, frame.columns)) == list(map(repr, before.columns)) and list(frame.dtypes) == list(
        before.dtypes
    )
    return alike and frame.index.equals(before.index) and all(map(_same_cells, _columns(frame), _columns(before)))


def _columns(frame: pd.DataFrame) -> list[pd.Series]:
    return [frame.iloc[:, place] for place in range(frame.shape[1])]


def _same_cells(one: pd.Series, other: pd.Series) -> bool:
    return (
        one.equals(other)
        if one.dtype != object
        else all(a is b or a == b or a != a for a, b in zip(one, other, strict=True))
    )


def copied(frame: object) -> object:
    return frame.copy(deep=True) if isinstance(frame, pd.DataFrame | pd.Series) else frame
