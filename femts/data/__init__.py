"""Data: what there is, where it comes from, how it is checked, split, scaled and cut into windows.

Names are loaded on first use, so that the catalogue answers without importing pandas or torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from femts.data.catalog import CATALOG, DatasetCard, card
    from femts.data.dataset import Dataset, load_dataset
    from femts.data.dates import future_dates, season_of, step_of
    from femts.data.frames import check_frame, check_values, write_table
    from femts.data.protocols import PROTOCOLS, default_seq_len
    from femts.data.reading import read_headless, read_table
    from femts.data.scaler import Scaler
    from femts.data.sources import data_root, fetch, locate, verify
    from femts.data.splits import PARTS, Split, ett_split, ratio_split
    from femts.data.synthetic import synthetic_frame
    from femts.data.windows import Windows, part_windows, scaled_series

_HOME = {
    "catalog": ["CATALOG", "DatasetCard", "card"],
    "dataset": ["Dataset", "load_dataset"],
    "dates": ["future_dates", "season_of", "step_of"],
    "frames": ["check_frame", "check_values", "write_table"],
    "protocols": ["PROTOCOLS", "default_seq_len"],
    "reading": ["read_headless", "read_table"],
    "scaler": ["Scaler"],
    "sources": ["data_root", "fetch", "locate", "verify"],
    "splits": ["PARTS", "Split", "ett_split", "ratio_split"],
    "synthetic": ["synthetic_frame"],
    "windows": ["Windows", "part_windows", "scaled_series"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "CATALOG",
    "PARTS",
    "PROTOCOLS",
    "Dataset",
    "DatasetCard",
    "Scaler",
    "Split",
    "Windows",
    "card",
    "check_frame",
    "check_values",
    "data_root",
    "default_seq_len",
    "ett_split",
    "fetch",
    "future_dates",
    "load_dataset",
    "locate",
    "part_windows",
    "ratio_split",
    "read_headless",
    "read_table",
    "scaled_series",
    "season_of",
    "step_of",
    "synthetic_frame",
    "verify",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'femts.data' has no attribute '{name}'")
    return getattr(import_module(f"femts.data.{_MODULE_OF[name]}"), name)
