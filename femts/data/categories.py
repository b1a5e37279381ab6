"""Categorical covariates: text in past and future columns, one-hot encoded without the most frequent category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from femts.data.column_names import Categories, ColumnNames
from femts.data.roles import Roles
from femts.data.stamps import as_text
from femts.errors import GapWarning, UsageError, warn
from femts.text import quote

MOST_CATEGORIES = 24  # of a column: each but one is an input


def encode_categories(
    frame: pd.DataFrame, columns: Sequence[str], roles: Roles, names: ColumnNames, where: str
) -> tuple[pd.DataFrame, Roles, ColumnNames, tuple[str, ...]]:
    """A table with its covariates of text, `columns`, encoded as indicators of 0 and 1.

    Returns:
        The table, its roles and names with the indicators in place of these columns, and notes.

    Raises:
        UsageError: a column has one category, or more than `MOST_CATEGORIES`.
    """
    if not columns:
        return frame, roles, names, ()
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    found = tuple(_categories(frame[name], where) for name in columns)
    indicators = {each.column: each.indicators for each in found}
    past, future = (
        tuple(new for name in of for new in indicators.get(name, (name,))) for of in (roles.past, roles.future)
    )
    names = replace(names, categories=found)
    notes = tuple(
        f"column '{quote(each.column)}' is categorical; its {len(each.values)} categories are encoded as "
        f"{len(each.indicators)} indicator column{'s' * (len(each.indicators) > 1)}"
        for each in found
    )
    return with_indicators(frame, names), replace(roles, past=past, future=future), names, notes


def with_indicators(frame: pd.DataFrame, names: ColumnNames) -> pd.DataFrame:
    """The table with the indicators of the categories in `names` in place of its columns of text.

    Warns:
        GapWarning: categories that the training data did not have.
    """
    given = [each for each in names.categories if each.column in map(str, frame.columns)]
    if not given:
        return frame
    indicators = dict[str, pd.Series]()
    for each in given:
        there, cells = frame[each.column].notna(), as_text(frame[each.column]).str.strip()
        new = there & ~cells.isin(each.values)
        if new.any():
            warn(
                f"Column '{quote(each.column)}' has the category '{quote(cells[new].iloc[0])}', which is not in the "
                f"training data; it is treated as '{quote(each.values[0])}'.",
                GapWarning,
            )
        for name, value in zip(each.indicators, each.values[1:], strict=True):
            indicators[name] = (cells == value).astype(float).where(there, np.nan)
    rest = frame.drop(columns=[each.column for each in given])
    made = pd.concat([rest, pd.DataFrame(indicators, index=frame.index)], axis=1)
    made.attrs = frame.attrs
    return made


def origins(columns: Sequence[str], names: ColumnNames) -> tuple[str, ...]:
    """The columns of the user's table that `columns` come from."""
    known = {indicator: each.column for each in names.categories for indicator in each.indicators}
    return tuple(dict.fromkeys(known.get(name, name) for name in columns))


def _categories(column: pd.Series, where: str) -> Categories:
    """The categories of a column, the most frequent first."""
    cells, name = as_text(column[column.notna()]).str.strip(), str(column.name)
    counts = cells.value_counts().sort_index().sort_values(ascending=False, kind="stable")
    if len(counts) == 1:
        raise UsageError(
            f"{where} has the same text '{quote(counts.index[0])}' in every row of '{quote(name)}'; leave the column "
            "out."
        )
    if len(counts) > MOST_CATEGORIES:
        raise UsageError(
            f"{where} has {len(counts)} categories in column '{quote(name)}', but at most {MOST_CATEGORIES} are "
            "supported; group them into fewer."
        )
    return Categories(name, tuple(map(str, counts.index)))
