"""What the tests of femts.data share: a small wide table, and the folder of real files."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest
from data_cases import wide
from hypothesis import settings

# The first example of a property may import scikit-learn, which takes seconds.
settings.register_profile("femts", deadline=None)
settings.load_profile("femts")


@pytest.fixture
def table() -> pd.DataFrame:
    return wide()


@pytest.fixture
def real_root() -> Path:
    named = os.environ.get("FEMTS_DATA")
    if not named:
        pytest.skip("FEMTS_DATA is not set: it names the folder with the real files")
    return Path(named)
