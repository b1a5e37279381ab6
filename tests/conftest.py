"""Shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from small_tables import small_table

import femts
from femts.cli import main

if not torch.cuda.is_available():  # before any kernel is made: Triton then runs it as NumPy
    os.environ["TRITON_INTERPRET"] = "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the files of slow tests first, to balance the workers."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True, scope="session")
def trained_once() -> Iterator[None]:
    """Train once unless a test or page asks for a refit, which doubles the time."""
    with patch("femts.training.train.refits", lambda data: False):
        yield


@pytest.fixture
def forecaster(folder: Path) -> femts.Forecaster:
    """The run in the module's `folder`."""
    return femts.load(folder)


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `past.csv` and a finished naive run `run`."""
    folder = tmp_path_factory.mktemp("own")
    small_table().to_csv(folder / "past.csv", index=False)
    arguments = ["train", "--dataset", folder / "past.csv", "--model", "naive", "--out", folder / "run"]
    assert main([*map(str, arguments), "--horizon", "12", "--seq-len", "24"]) == 0
    return folder
