"""The data sets that femts knows by name, one file each or one for a family, pinned by the hash of
the published file."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from femts.data.catalog.registry import CATALOG, DatasetCard, card, dated_table, plain_matrix, register_dataset

__all__ = ["CATALOG", "DatasetCard", "card", "dated_table", "load_cards", "plain_matrix", "register_dataset"]


def load_cards() -> None:
    """Import every module of this folder, in the order of their names; each registers its data sets."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")


load_cards()
