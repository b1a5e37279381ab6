"""Rows of a table after its last readings, which hold only what is known in advance, as in a planning sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.categories import origins
from femts.data.describe import quoted_names
from femts.data.rows import Rows, as_numbers
from femts.text import Message, arguments

Mask = NDArray[np.bool_]


class Ahead(NamedTuple):
    """What a table says about the steps after its last readings.

    Attributes:
        frame: names of series in a panel, time stamps, future and static covariates, and countries of these rows.
        steps: number of these rows with all future covariates, that of the series with the fewest.
        note: sentence that says how the rows are read.
    """

    frame: pd.DataFrame
    steps: int
    note: str


def channels_of(rows: Rows) -> tuple[str, ...]:
    """Names of the targets and past covariates of a table to train on."""
    roles, value = rows.schema.roles, (rows.schema.form.value,)
    others = tuple(name for name in rows.columns if name not in roles.named)
    return (*(roles.target or (value if rows.long else others)), *roles.past)


def after_readings(rows: Rows, channels: Sequence[str]) -> Mask:
    """Mask of the rows after the last reading of all targets and past covariates, `channels`, in tables in which some of
    these have future covariates; no row in others.

    Series that end at the same time stamp share their last reading, because one that is reported late has the same future
    as the others.
    """
    none, future = np.zeros(len(rows), dtype=np.bool_), rows.schema.roles.future
    if not future or not len(rows):
        return none
    numbers = as_numbers(rows.stamps)
    ends = np.full(len(rows.series), numbers.min())
    np.maximum.at(ends, rows.codes, numbers)
    end = ends[rows.codes]
    last = np.flatnonzero(numbers == end)
    read = ~np.isnan(rows.take(last).readable(channels)).all(axis=1)
    if np.isin(end[last], end[last[read]]).all():  # as in most tables, which need not be read any further
        return none
    read = ~np.isnan(rows.readable(channels)).all(axis=1)
    known = ~np.isnan(rows.readable(future)).all(axis=1)
    before = numbers.min() - 1
    reading = pd.Series(np.where(read, numbers, before)).groupby(end).transform("max").to_numpy()
    late = (numbers > reading) & (reading > before)
    return np.asarray(late & np.isin(end, end[late & known]), dtype=np.bool_)


def without_ahead(rows: Rows, channels: Sequence[str]) -> tuple[Rows, Ahead | None]:
    """The rows up to the last readings, and what the others say about the steps after them; see `after_readings`.

    Series of a panel without any reading are left out, because they have no history.
    """
    late = after_readings(rows, channels)
    if not late.any():
        return rows, None
    roles, form, panel = rows.schema.roles, rows.schema.form, bool(rows.schema.panel)
    after, kept = rows.take(late), rows.take(~late)
    order = after.in_order()
    after = after if order is None else after.take(order)
    frame = after.only((*roles.future, *roles.constant)).frame.reset_index(drop=True)
    frame.insert(0, form.written(panel), after.stamps)
    if panel:
        frame.insert(0, form.series, np.array(after.series, dtype=object)[after.codes])
    whole = pd.Series(~np.isnan(after.readable(roles.future)).any(axis=1)).groupby(after.codes).sum()
    most = int(np.bincount(after.codes).max())
    last = f"the last {most} rows" if most > 1 else "the last row"
    if panel:
        last += (
            f" of {len(rows.series)} series" if len(whole) == len(rows.series) else f" of {len(whole)} of the series"
        )
    verbs = ("has", "is") if most == 1 and len(whole) == 1 else ("have", "are")
    lacking, known = (quoted_names(some) for some in (channels, origins(roles.future, form)))
    note = f"{last} {verbs[0]} no {lacking} and {verbs[1]} read as the future of {known}"
    there = np.unique(kept.codes)
    if len(there) < len(rows.series):
        new = tuple(name for code, name in enumerate(rows.series) if code not in there)
        kept = replace(kept, codes=np.searchsorted(there, kept.codes), series=tuple(np.array(rows.series)[there]))
        note = Message(
            f"{note}; {quoted_names(new)} {'has' if len(new) == 1 else 'have'} no row before these, so a trained model is asked "
            f"for such series with {arguments({'new': list(new[:1])})}"
        )
    return kept, Ahead(frame, int(whole.min()), note)


def undeclared(rows: Rows) -> str | None:
    """Sentence about a wide table whose last rows lack some columns alone, which is perhaps a planning sheet whose
    covariates have no role; None for others."""
    channels = channels_of(rows)
    if rows.schema.roles.future or rows.long or len(channels) < 2 or not len(rows):
        return None
    order = np.argsort(as_numbers(rows.stamps), kind="stable")
    last = rows.take(order[-1:]).readable(channels)
    if np.isnan(last).all() or not np.isnan(last).any():
        return None
    there = ~np.isnan(rows.readable(channels))[order]
    since = there[::-1].argmax(axis=0)  # rows after the last reading of each column
    rest = int(since[there.any(axis=0)].max())
    short = since == rest
    if rest < 2 or not there[-rest:, ~short].all() or there[-2 * rest : -rest, short].mean() < 0.5:
        return None  # one reading alone, or columns that mostly have none
    lacking, others = (tuple(np.array(channels)[some].tolist()) for some in (short, ~short))
    said = f"the last {rest} rows have {quoted_names(others)} but no {quoted_names(lacking)}"
    return Message(f"{said}; if these are known in advance, use {arguments({'future_covariates': list(others)})}")
