"""Files that nobody should bring."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from small_tables import small_table


def write_bad_tables(folder: Path) -> None:
    """A good table, and one for each way of spoiling it."""
    good = small_table()
    good.to_csv(folder / "good.csv", index=False)
    good.head(20).to_csv(folder / "short.csv", index=False)
    good.head(0).to_csv(folder / "header.csv", index=False)
    good.drop(columns="date").to_csv(folder / "undated.csv", index=False)
    good.drop(columns="heat").to_csv(folder / "one_column.csv", index=False)
    good.assign(wind=1.5).to_csv(folder / "three_columns.csv", index=False)
    good.assign(date=good["date"].where(good.index != 40, good["date"] + good["date"].diff() / 3)).to_csv(
        folder / "uneven.csv", index=False
    )
    good.iloc[[*range(6), 5, *range(6, 300)]].to_csv(folder / "repeated.csv", index=False)
    good.assign(date=good["date"][0] + (good["date"] - good["date"][0]) / 4).to_csv(
        folder / "quarters.csv", index=False
    )
    _spoilt(good, {"heat": [7]}, "broken").to_csv(folder / "text.csv", index=False)
    _spoilt(good, {"load": range(250)}, None).to_csv(folder / "nan.csv", index=False)
    _spoilt(good, {"load": range(250, 300), "heat": range(250, 300)}, None).to_csv(folder / "nan_last.csv", index=False)
    _spoilt(good, {"heat": [8]}, float("inf")).to_csv(folder / "inf.csv", index=False)
    (folder / "empty.csv").write_text("")
    (folder / "binary.csv").write_bytes(bytes(range(256)))


def _spoilt(good: pd.DataFrame, cells: Mapping[str, Any], value: object) -> pd.DataFrame:
    table = good.astype(dict.fromkeys(cells, object))
    for name, rows in cells.items():
        table.loc[rows, name] = value
    return table


def write_bad_configs(folder: Path) -> None:
    """A recipe for each way of getting one wrong."""
    texts = {
        "broken": "dataset: synthetic\nmodel: [naive\n",
        "list": "- dataset\n- model\n",
        "key": "datset: synthetic\n",
        "setting": "dataset: synthetic\nmodel: naive\ntraining:\n  lrr: 1\n",
        "value": "dataset: synthetic\nmodel: naive\ntraining:\n  lr: fast\n",
        "number": "dataset: 7\n",
        "flat": "dataset: synthetic\ntraining: fast\n",
        "twice": 'dataset: synthetic\ntraining:\n  lr: 1e-3\n  seed: 1\n  "lr": 1e-4\n',
        "refit": "dataset: synthetic\nrefit: often\n",
    }
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)


def state_of(folder: Path) -> dict[str, bytes | None]:
    """What lies in a folder: the content of each file by its path, None for a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}
