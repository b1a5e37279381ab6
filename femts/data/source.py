"""Kind of a user's source of data: a data set of columns, or a panel of series."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from femts.data.dataset import Dataset, for_horizon
from femts.data.loading import is_path, load_dataset, table_dataset
from femts.data.opened import open_table
from femts.data.panel import Panel, load_panel, panel_for_horizon, table_panel
from femts.data.schema import PLAIN, Schema


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
