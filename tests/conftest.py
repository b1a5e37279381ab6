"""Shared by all tests. What takes long to import is imported where it is used, since the process that hands the tests to
the workers, which wait for it, reads this file, too."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import femts


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Let Triton run kernels as NumPy where there is no GPU, before any is made."""
    if isinstance(collector, pytest.Session):
        import torch

        if not torch.cuda.is_available():
            os.environ["TRITON_INTERPRET"] = "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the files of slow tests first, to balance the workers."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what is imported, which it would look through again and again."""
    gc.freeze()


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
    from small_tables import small_table

    from femts.cli import main

    folder = tmp_path_factory.mktemp("own")
    small_table().to_csv(folder / "past.csv", index=False)
    arguments = ["train", "--dataset", folder / "past.csv", "--model", "naive", "--out", folder / "run"]
    assert main([*map(str, arguments), "--horizon", "12", "--seq-len", "24"]) == 0
    return folder
