"""Models; calling the package, as in `femts.models()`, lists them.

Args:
    name: model whose settings to list; None lists all models.

Returns:
    The table of `femts.models.listing.models`.

Raises:
    UsageError: The model is unknown.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class _Package(ModuleType):
    """A package that can be called, since its name is also that of a public function."""

    def __call__(self, name: str | None = None) -> pd.DataFrame:
        from femts.models.listing import models

        return models(name)


sys.modules[__name__].__class__ = _Package
