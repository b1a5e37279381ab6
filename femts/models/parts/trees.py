"""Boosted regression trees as tensors: kept in `state_dict`, and evaluated without the library that grew them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

TREES, ROWS = 128, 512  # evaluated at a time, so that they fit into the cache
LEVELS = 4  # levels evaluated before finished rows are removed


class Trees(nn.Module):
    """Sum of a constant and of binary trees, as grown by scikit-learn's histogram boosting.

    Args:
        most: R, maximum number of trees.
        leaves: M, maximum number of leaves per tree.

    Attributes:
        count: () int64, number of trees.
        start: () float32, the constant.
        column: (R, 2 M - 1) int32, column tested by a node; -1 for a leaf.
        bound: (R, 2 M - 1) float32, largest value that goes to the left; for a leaf, its output.
        branches: (R, 2 M - 1, 2) int32, the left and right child of a node, with higher numbers.
        missing: (R, 2 M - 1) bool, whether NaN goes to the left.
    """

    count: Tensor
    start: Tensor
    column: Tensor
    bound: Tensor
    branches: Tensor
    missing: Tensor

    def __init__(self, most: int, leaves: int) -> None:
        super().__init__()
        shape = most, 2 * leaves - 1
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("start", torch.zeros(()))
        self.register_buffer("column", torch.full(shape, -1, dtype=torch.int32))
        self.register_buffer("bound", torch.zeros(shape))
        self.register_buffer("branches", torch.zeros((*shape, 2), dtype=torch.int32))
        self.register_buffer("missing", torch.zeros(shape, dtype=torch.bool))

    def take(self, start: float, trees: Sequence[NDArray[Any]]) -> None:
        """Store these `trees`, each as scikit-learn's array of nodes, and the constant `start`."""
        self.count.fill_(len(trees))
        self.start.fill_(start)
        for number, nodes in enumerate(trees):
            size, leaf = len(nodes), nodes["is_leaf"].astype(bool)
            said = {
                "column": np.where(leaf, -1, nodes["feature_idx"].astype(np.int32)),
                "bound": np.where(leaf, nodes["value"].astype(np.float32), _rounded_down(nodes["num_threshold"])),
                "branches": np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int32),
                "missing": nodes["missing_go_to_left"].astype(bool),
            }
            for name, values in said.items():
                getattr(self, name)[number, :size] = torch.from_numpy(values)

    def forward(self, table: NDArray[np.float32]) -> NDArray[np.float64]:
        """Sums (n,) for the rows of `table` (n, columns), NaN where a value is missing."""
        made = np.full(len(table), float(self.start))
        for tree in range(0, int(self.count), TREES):
            some = slice(tree, min(tree + TREES, int(self.count)))
            for row in range(0, len(table), ROWS):
                made[row : row + ROWS] += self._leaves(some, table[row : row + ROWS]).sum(0, dtype=np.float64)
        return made

    def _leaves(self, some: slice, table: NDArray[np.float32]) -> NDArray[np.float32]:
        """Outputs of R trees, `some` of all, for n rows, (R, n): all are evaluated in parallel, one level at a time.

        A leaf leads to itself, so that finished rows have to be removed only every few levels.
        """
        columns, bounds, missing = (each[some].cpu().numpy() for each in (self.column, self.bound, self.missing))
        (count, size), n = columns.shape, len(table)
        of_tree = np.arange(count, dtype=np.int32)[:, None] * size
        leaf, itself = columns < 0, of_tree + np.arange(size, dtype=np.int32)
        branches = np.where(leaf[..., None], itself[..., None], self.branches[some].cpu().numpy() + of_tree[..., None])
        leaf, columns, bounds, missing = leaf.ravel(), n * columns.clip(min=0).ravel(), bounds.ravel(), missing.ravel()
        branches, values = branches.ravel(), table.T.ravel()
        gaps = np.isnan(values).any()
        made, going = np.empty(count * n, np.float32), np.arange(count * n, dtype=np.int32)
        node, row = np.repeat(of_tree.ravel(), n), np.tile(np.arange(n, dtype=np.int32), count)
        while len(going):
            for _ in range(LEVELS):
                value = _take(values, row + _take(columns, node))
                to_left = value <= _take(bounds, node)
                if gaps:
                    to_left |= np.isnan(value) & _take(missing, node)
                node = _take(branches, 2 * node + ~to_left)
            there = _take(leaf, node)
            made[going[there]] = _take(bounds, node[there])
            left = np.flatnonzero(~there)
            going, node, row = going[left], node[left], row[left]
        return made.reshape(count, n)


def _take(values: NDArray[Any], index: NDArray[np.int32]) -> NDArray[Any]:
    """Values of a flat array; `wrap` is the fastest mode, and no index is out of bounds."""
    return values.take(index, mode="wrap")


def _rounded_down(bounds: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 values that are not above `bounds`, which separate float32 values in the same way."""
    near = bounds.astype(np.float32)
    return np.where(near > bounds, np.nextafter(near, np.float32(-np.inf)), near)
