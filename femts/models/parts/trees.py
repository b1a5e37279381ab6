"""Boosted regression trees as tensors: kept in `state_dict`, and evaluated by indices alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class Trees(nn.Module):
    """Sum of a constant and of R binary trees, of at most M leaves each, as scikit-learn's histogram boosting grows them.

    Args:
        rounds: R, how many trees it can hold.
        leaves: M.

    Attributes:
        count: () int64, trees that it has.
        start: () float64, the constant.
        column: (R, 2 M - 1) int32, column that a node looks at; -1 for a leaf.
        bound: (R, 2 M - 1) float64, where a value at most as large goes to the left; of a leaf what it adds.
        branches: (R, 2 M - 1, 2) int32, nodes to the left and to the right.
        missing: (R, 2 M - 1) bool, whether NaN goes to the left.
    """

    count: Tensor
    start: Tensor
    column: Tensor
    bound: Tensor
    branches: Tensor
    missing: Tensor

    def __init__(self, rounds: int, leaves: int) -> None:
        super().__init__()
        shape = rounds, 2 * leaves - 1
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("start", torch.zeros((), dtype=torch.float64))
        self.register_buffer("column", torch.full(shape, -1, dtype=torch.int32))
        self.register_buffer("bound", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("branches", torch.zeros((*shape, 2), dtype=torch.int32))
        self.register_buffer("missing", torch.zeros(shape, dtype=torch.bool))

    def take(self, start: float, trees: Sequence[NDArray[Any]]) -> None:
        """Take over `trees`, the records of the nodes of each, which begin at `start`."""
        self.count.fill_(len(trees))
        self.start.fill_(start)
        for number, nodes in enumerate(trees):
            size, leaf = len(nodes), nodes["is_leaf"].astype(bool)
            columns = np.where(leaf, -1, nodes["feature_idx"].astype(np.int32))
            self.column[number, :size] = torch.from_numpy(columns)
            self.bound[number, :size] = torch.from_numpy(np.where(leaf, nodes["value"], nodes["num_threshold"]))
            both = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int32)
            self.branches[number, :size] = torch.from_numpy(both)
            self.missing[number, :size] = torch.from_numpy(nodes["missing_go_to_left"].astype(bool))

    def forward(self, table: NDArray[np.float32]) -> NDArray[np.float64]:
        """Sums (n,) of the rows of `table` (n, columns), NaN where a value is missing."""
        made = np.full(len(table), float(self.start))
        columns, every = np.ascontiguousarray(table.T), np.arange(len(table), dtype=np.int32)
        each = (value[: int(self.count)].cpu().numpy() for value in (self.column, self.bound, self.branches, self.missing))
        for column, bound, branches, missing in zip(*each, strict=True):
            open_nodes = [(0, every)]
            while open_nodes:
                node, rows = open_nodes.pop()
                if column[node] < 0:
                    made[rows] += bound[node]
                    continue
                values = columns[column[node]][rows]
                left = values <= bound[node]
                if missing[node]:
                    left |= np.isnan(values)
                open_nodes += [(branches[node, 0], rows[left]), (branches[node, 1], rows[~left])]
        return made
