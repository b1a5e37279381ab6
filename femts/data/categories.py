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

MOST_CATEGORIES = 24  # per column; all but one become inputs


def encode_categories(
    frame: pd.DataFrame, columns: Sequence[str], roles: Roles, names: ColumnNames, where: str
) -> tuple[pd.DataFrame, Roles, ColumnNames, tuple[str, ...]]:
    """Encode the text covariates `columns` of a table as 0/1 indicators.

    Returns:
        The table, its roles and column names with indicators in place of these columns, and notes.

    Raises:
        UsageError: A column has a single category, or more than `MOST_CATEGORIES`.
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
    """Replace the text columns of a table by the indicators of the categories in `names`.

    Warns:
        GapWarning: Categories do not occur in the training data.
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
    """The original columns from which `columns` were encoded."""
    known = {indicator: each.column for each in names.categories for indicator in each.indicators}
    return tuple(dict.fromkeys(known.get(name, name) for name in columns))


def _categories(column: pd.Series, where: str) -> Categories:
    """Categories of a column, most frequent first."""
    cells, name = as_text(column[column.notna()]).str.strip(), str(column.name)
    counts = cells.value_counts().sort_index().sort_values(ascending=False, kind="stable")
    if len(counts) == 1:
        raise UsageError(
            f"{where} has the same text '{quote(counts.index[0])}' in every row of '{quote(name)}'; remove the column."
        )
    if len(counts) > MOST_CATEGORIES:
        raise UsageError(
            f"{where} has {len(counts)} categories in column '{quote(name)}', but at most {MOST_CATEGORIES} are "
            "supported; group them into fewer."
        )
    return Categories(name, tuple(map(str, counts.index)))
