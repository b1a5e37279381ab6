"""Models, a package; called, as `femts.models()`, it lists them.

Args:
    name: one model, for its settings; None lists all.

Returns:
    What `femts.models.listing.models` returns.

Raises:
    UsageError: no such model.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class _Package(ModuleType):
    """A package that is called where its name is a public function, too."""

    def __call__(self, name: str | None = None) -> pd.DataFrame:
        from femts.models.listing import models

        return models(name)


sys.modules[__name__].__class__ = _Package
