"""Catalogue of datasets, one module per dataset or family, with the hashes of the published files."""

from __future__ import annotations

from femts.data.catalog.registry import CATALOG, DatasetCard, card, dated_table, plain_matrix, register_dataset
from femts.plugins import import_all

__all__ = ["CATALOG", "DatasetCard", "card", "dated_table", "plain_matrix", "register_dataset"]

import_all(__name__)
