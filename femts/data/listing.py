"""Table of the datasets in the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from femts.config.arguments import check_path
from femts.data.catalog import CATALOG
from femts.data.download import locate
from femts.plugins import load_plugins

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("name", "rows", "channels", "step", "here")


def datasets(data_root: str | Path | None = None) -> pd.DataFrame:
    """List the datasets of the catalogue.

    Args:
        data_root: folder with their files; None searches as `load_dataset` does.

    Returns:
        One row per dataset: `name`, `rows`, `channels`, `step` (a pandas frequency) and `here`, whether its file is
            present: `yes`, `no` or `built-in`.

    Raises:
        UsageError: The data root is not a folder.
    """
    import pandas as pd

    return pd.DataFrame(rows(data_root), columns=list(COLUMNS))


def rows(data_root: str | Path | None = None) -> list[tuple[str, int, int, str, str]]:
    """Rows of `datasets`, without the slow import of pandas."""
    load_plugins()
    root = None if data_root is None else check_path(data_root, "The data root")
    return [
        (c.name, c.rows, c.channels, c.freq, "built-in" if not c.filename else "yes" if locate(c, root) else "no")
        for c in CATALOG.values()
    ]
