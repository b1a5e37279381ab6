"""Rows that trials see: everything before the test part, and of it what precedes an origin."""

from __future__ import annotations

from dataclasses import replace

from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.split_rule import SplitRule
from femts.data.splits import Split
from femts.errors import UsageError


def before_test(data: Dataset | Panel, pred_len: int, origins: int) -> list[Dataset | Panel]:
    """`data` cut off after its validation part and, for each further origin, that part's length earlier still.

    The rows of the test part are in none of them. Their own test part, which `train` asks for, is
    the last window of the validation part once more.

    Args:
        data: split for forecasts of `pred_len` steps.
        pred_len: steps.
        origins: as many data sets, the latest first.

    Raises:
        UsageError: the training rows do not reach for so many, or the data are a panel.
    """
    if isinstance(data, Panel):
        if origins > 1:
            raise UsageError(f"A panel is validated at one origin, not at {origins}; leave --origins out.")
        schema = replace(data.schema, split=SplitRule(test_rows=pred_len))  # or it would be split anew
        return [
            replace(data, series={name: _cut(each, pred_len, 0) for name, each in data.series.items()}, schema=schema)
        ]
    (first, start), stop = data.split.train, data.split.val[1]
    most = most_origins(data)
    if origins > most:
        raise UsageError(
            f"{origins} origins, each {stop - start} rows before the next, leave less than half of the "
            f"{start - first} training rows of '{data.name}'; ask for at most {most}."
        )
    return [_cut(data, pred_len, back) for back in range(origins)]


def most_origins(data: Dataset | Panel) -> int:
    """Origins at most that `before_test` takes: those that leave half of the training rows."""
    if isinstance(data, Panel):
        return 1
    (first, start), stop = data.split.train, data.split.val[1]
    return 1 + (start - first) // (2 * (stop - start))


def _cut(data: Dataset, pred_len: int, back: int) -> Dataset:
    """`data` up to the end of its validation part, or `back` times that part's length before it."""
    (first, start), stop = data.split.train, data.split.val[1]
    shift = back * (stop - start)
    start, stop = start - shift, stop - shift
    return replace(
        data,
        values=data.values[:stop],
        dates=None if data.dates is None else data.dates[:stop],
        covariates=None if data.covariates is None else data.covariates[:stop],
        split=Split((first, start), (start, stop), (max(start, stop - pred_len), stop)),
        schema=replace(data.schema, split=SplitRule(test_rows=pred_len)),
        notes=(),
    )
