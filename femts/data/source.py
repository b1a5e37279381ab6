"""Kind of a user's source of data: a data set of columns, or a panel of series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

import pandas as pd

from femts.data.dataset import Dataset, for_horizon
from femts.data.loading import is_path, load_dataset, table_dataset
from femts.data.panel import Panel, load_panel, panel_for_horizon, table_panel
from femts.data.read import open_table
from femts.data.schema import PLAIN, Schema
from femts.data.splits import Split

D = TypeVar("D", bound=Dataset | Panel)


def load_source(
    source: str | Path | pd.DataFrame, data_root: str | Path | None = None, schema: Schema = PLAIN
) -> Dataset | Panel:
    """Load `source`: of the catalogue and of a wide table a data set, of a long table a panel.

    Args:
        source: as `load_dataset` takes it.
        data_root: where data of the catalogue is looked for.
        schema: how the table is read; its `panel` decides, where it says something.

    Raises:
        UsageError: as `load_dataset` and `load_panel` do.
    """
    if schema.panel:
        return load_panel(source, schema)
    if schema.panel is not None or (isinstance(source, str) and not is_path(source)):
        return load_dataset(source, data_root, schema=schema)
    opened = open_table(source, schema.form, guess=not schema.roles.any)
    return table_panel(opened, schema) if opened.is_long(schema.roles.target) else table_dataset(opened, schema)


def split_for(data: Dataset | Panel, pred_len: int) -> Dataset | Panel:
    """`data`, split so that whole horizons are left for validation and test; see `for_horizon`, `panel_for_horizon`."""
    return panel_for_horizon(data, pred_len) if isinstance(data, Panel) else for_horizon(data, pred_len)


def all_rows(data: D) -> D:
    """`data`, of which every row is there to learn from, in a panel every row of each series."""
    return _split_anew(
        data, lambda one: Split(train=(0, one.rows), val=(one.rows, one.rows), test=(one.rows, one.rows))
    )


def held_out(data: D) -> D:
    """`data`, of which the validation part goes on to the end of the test part, in a panel that of each series."""
    return _split_anew(data, lambda one: replace(one.split, val=(one.split.val[0], one.split.test[1])))


def _split_anew(data: D, split: Callable[[Dataset], Split]) -> D:
    if isinstance(data, Panel):
        series = {name: replace(one, split=split(one)) for name, one in data.series.items()}
        return cast(D, data.with_series(series))
    return cast(D, replace(data, split=split(data)))
