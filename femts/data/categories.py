"""Words in past and future covariates, as columns of 0 and 1: one for each word but the most frequent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from femts.data.column_names import ColumnNames, Words
from femts.data.roles import Roles
from femts.data.stamps import as_text
from femts.errors import GapWarning, UsageError, warn
from femts.text import shown

MOST = 24  # words of a column: each is an input


def code_words(
    frame: pd.DataFrame, columns: Sequence[str], roles: Roles, names: ColumnNames, where: str
) -> tuple[pd.DataFrame, Roles, ColumnNames, tuple[str, ...]]:
    """The table with its covariates of words, which are some `columns`, coded, and their new roles and names; and notes
    on them.

    Raises:
        UsageError: a column has more than `MOST` words.
    """
    words = tuple(_words(frame[name], name, where) for name in columns)
    if not words:
        return frame, roles, names, ()
    coded = {each.column: each.coded for each in words}
    past, future = (tuple(new for name in of for new in coded.get(name, (name,))) for of in (roles.past, roles.future))
    names = replace(names, words=words)
    notes = tuple(
        f"column '{shown(each.column)}' has {len(each.words)} words, which become {len(each.coded)} columns of 0 and 1"
        for each in words
    )
    return with_words(frame, names), replace(roles, past=past, future=future), names, notes


def with_words(frame: pd.DataFrame, names: ColumnNames) -> pd.DataFrame:
    """The table with the columns of words that `names` has coded, as they were for the training.

    Warns:
        GapWarning: words that the training did not have.
    """
    given = [each for each in names.words if each.column in map(str, frame.columns)]
    if not given:
        return frame
    coded = dict[str, pd.Series]()
    for each in given:
        cells = as_text(frame[each.column]).str.strip()
        there = frame[each.column].notna()
        new = there & ~cells.isin(each.words)
        if new.any():
            warn(
                f"Column '{shown(each.column)}' has the word '{shown(cells[new].iloc[0])}', which the training did not "
                f"have; it counts as '{shown(each.words[0])}'.",
                GapWarning,
            )
        for name, word in zip(each.coded, each.words[1:], strict=True):
            coded[name] = (cells == word).astype(float).where(there, np.nan)
    rest = frame.drop(columns=[each.column for each in given])
    attrs = frame.attrs
    made = pd.concat([rest, pd.DataFrame(coded, index=frame.index)], axis=1)
    made.attrs = attrs
    return made


def origins(columns: Sequence[str], names: ColumnNames) -> tuple[str, ...]:
    """Names that a user knows these `columns` by."""
    known = {coded: each.column for each in names.words for coded in each.coded}
    return tuple(dict.fromkeys(known.get(name, name) for name in columns))


def _words(column: pd.Series, name: str, where: str) -> Words:
    """The words of a column, the most frequent one first."""
    cells = as_text(column[column.notna()]).str.strip()
    words = tuple(map(str, cells.value_counts().sort_index().sort_values(ascending=False, kind="stable").index))
    if len(words) > MOST:
        raise UsageError(
            f"{where} has {len(words)} different words in column '{shown(name)}', and at most {MOST} are taken; bring "
            "one of fewer, such as a group."
        )
    return Words(name, words)
