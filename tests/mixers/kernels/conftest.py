"""Kernels run on the CUDA device where there is one, else Triton's interpreter runs them on the CPU
(tests/conftest.py)."""

from __future__ import annotations

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture
def device() -> str:
    """The device of the kernels."""
    return DEVICE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of Triton kernels without Triton."""
    try:
        import triton  # noqa: F401
    except ImportError:
        for item in items:
            if "triton" in item.nodeid:
                item.add_marker(pytest.mark.skip(reason="needs Triton, which is not installed"))
