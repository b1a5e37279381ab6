"""Boosted regression trees as tensors: kept in `state_dict`, and evaluated without the library that grew them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class Trees(nn.Module):
    """Sum of a constant and of binary trees, as scikit-learn's histogram boosting grows them.

    Args:
        most: R, trees that it has room for.
        leaves: M, of a tree at most.

    Attributes:
        count: () int64, how many trees there are.
        start: () float32, the constant.
        column: (R, 2 M - 1) int32, column that a node looks at; -1 for a leaf.
        bound: (R, 2 M - 1) float32, up to which a value goes to the left; of a leaf, what it adds.
        branches: (R, 2 M - 1, 2) int32, the nodes to the left and to the right, of higher numbers.
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
        """Hold these `trees`, each as scikit-learn's records of its nodes, and the constant `start`."""
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
        made, of_column = np.full(len(table), float(self.start)), np.ascontiguousarray(table.T)
        every, count = np.arange(len(table), dtype=np.int32), int(self.count)
        arrays = (each[:count].cpu().tolist() for each in (self.column, self.branches, self.missing))
        bounds = self.bound[:count].cpu().numpy()
        for columns, branches, missing, bound in zip(*arrays, bounds, strict=True):
            rows: list[NDArray[np.int32]] = [every, *[every[:0]] * (len(columns) - 1)]  # that come to each node
            for node, here in enumerate(rows):
                if not len(here):
                    continue
                if columns[node] < 0:
                    made[here] += bound[node]
                    continue
                values = of_column[columns[node]][here]
                left = values <= bound[node]
                if missing[node]:
                    left |= np.isnan(values)
                rows[branches[node][0]], rows[branches[node][1]] = here[left], here[~left]
        return made


def _rounded_down(bounds: NDArray[np.float64]) -> NDArray[np.float32]:
    """The nearest float32 that are no higher, which separate float32 values as `bounds` do."""
    near = bounds.astype(np.float32)
    return np.where(near > bounds, np.nextafter(near, np.float32(-np.inf)), near)
