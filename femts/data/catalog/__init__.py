"""The data sets that femts knows by name, one file each or one for a family, pinned by the hash of
the published file."""

from __future__ import annotations

from femts.data.catalog.registry import CATALOG, DatasetCard, card, dated_table, plain_matrix, register_dataset
from femts.plugins import import_all

__all__ = ["CATALOG", "DatasetCard", "card", "dated_table", "plain_matrix", "register_dataset"]

import_all(__name__)
