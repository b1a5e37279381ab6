"""Boosted regression trees as tensors: kept in `state_dict`, and evaluated without the library that grew them.

All trees are evaluated at once, without walking them (after QuickScorer; Lucchese et al., SIGIR 2015): the value of each
column excludes some leaves of each tree, and the leaf that no column excludes is the one reached.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

BITS = 31  # leaves per word: those of an int32, whose last one is its sign
EXPONENT = 23  # first bit of the exponent of a float32, which is 127 + n for 2^n and 0 for 0
WORDS = 2**16  # evaluated at a time, so that they fit into the cache
MANY = 2048  # values from which on bisecting all of them step by step beats numpy's search, which takes one at a time

Sets = NDArray[np.int32]  # of leaves, (n, words)


class Column(NamedTuple):
    """What the values of a column say about the leaves of all trees.

    Attributes:
        number: that of the column.
        bounds: (n,) float32, increasing, padded with infinity to one less than a power of 2.
        missing: row of `reached` for NaN.
        reached: (missing + 1, words) int32, bit by bit, whether a value above so many of the bounds can reach a leaf.
    """

    number: int
    bounds: NDArray[np.float32]
    missing: int
    reached: Sets

    def rows(self, values: NDArray[np.float32]) -> NDArray[np.intp]:
        """The row of `reached` of each value (n,)."""
        if len(values) < MANY:
            row = np.searchsorted(self.bounds, values)
        else:  # bisection of all values at once
            row, near = np.zeros(len(values), dtype=np.intp), np.empty_like(values)
            size = (len(self.bounds) + 1) // 2
            while size:
                self.bounds[size - 1 :].take(row, out=near, mode="clip")
                row += size * (near < values)
                size //= 2
        row[np.isnan(values)] = self.missing
        return row


class Leaves(NamedTuple):
    """The leaves of all trees, a bit each; a tree of more than `BITS` leaves has several words.

    Attributes:
        real: (1, words) int32, the leaves that exist.
        columns: those that the trees test.
        outputs: (words (127 + BITS),) float64, of no leaf and, from 127 on, of each leaf of a word.
    """

    real: Sets
    columns: list[Column]
    outputs: Tensor


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
        self._leaves: Leaves | None = None
        self.register_load_state_dict_post_hook(Trees._forget)

    def _forget(self, *_: object) -> None:
        self._leaves = None  # of other trees

    def take(self, start: float, trees: Sequence[NDArray[Any]]) -> None:
        """Store these `trees`, each as scikit-learn's array of nodes, and the constant `start`."""
        self._forget()
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

    def forward(self, columns: Sequence[Tensor]) -> Tensor:
        """Sums for rows of features, float64 on the CPU.

        Args:
            columns: the features, float32 on the CPU, NaN where a value is missing. Their shapes are broadcast: what is
                the same for many rows is evaluated once for all of them.

        Returns:
            The sums, in the broadcast shape.
        """
        shape = torch.broadcast_shapes(*(each.shape for each in columns))
        made, count = np.full(math.prod(shape), float(self.start)), int(self.count)
        if count:
            self._leaves = self._leaves or self._made_leaves(count)
            real, _, outputs = self._leaves
            words, parts = real.shape[1], [*self._reached(columns, shape)]
            most = max(1, min(len(made), WORDS // words))
            first = np.arange(words, dtype=np.int32) * (127 + BITS)
            # Memory is reused, because to allocate it takes longer than to fill it.
            every = [np.empty((most, words), kind) for kind in (np.int32, np.int32, np.float32, np.float64)]
            for row in range(0, len(made), most):
                some = slice(row, row + most)
                leaves, others, floats, found = (each[: len(made) - row] for each in every)
                leaves[...] = real
                for reached, index in parts:
                    leaves &= reached.take(index[some], 0, others, "clip")  # all are in range; to check it takes longer
                floats[...] = leaves
                np.right_shift(floats.view(np.int32), EXPONENT, others)  # the number of the only bit
                others += first
                at, into = (torch.from_numpy(each).flatten() for each in (others, found))
                torch.index_select(outputs, 0, at, out=into)
                made[some] += found.sum(1)  # torch may add single rows in another order
        return torch.from_numpy(made).view(shape)

    def _reached(self, columns: Sequence[Tensor], shape: torch.Size) -> Iterator[tuple[Sets, NDArray[np.intp]]]:
        """Sets of leaves (n, words) that columns leave, and for each row of features (rows,) the number of its set.

        Columns that are broadcast are combined before: those of a shape, with those of shapes that are broadcast to it.
        """
        assert self._leaves is not None
        shared = dict[tuple[int, ...], Sets]()
        for each in self._leaves.columns:
            values = columns[each.number].numpy()
            rows = each.rows(values.ravel())
            if values.shape == shape:
                yield each.reached, rows
            elif values.shape in shared:
                shared[values.shape] &= each.reached[rows]
            else:
                shared[values.shape] = each.reached[rows]
        for its in sorted(shared, key=math.prod):
            reached = shared.pop(its)
            wider = next((other for other in shared if np.broadcast_shapes(its, other) == other), None)
            if wider is None:
                yield reached, np.broadcast_to(np.arange(len(reached)).reshape(its), shape).ravel()
            else:
                into = shared[wider].reshape(*wider, -1)
                into &= reached.reshape(*its, -1)

    def _made_leaves(self, count: int) -> Leaves:
        """The leaves of the first `count` trees."""
        column, bound, branches, missing = (
            each[:count].cpu().numpy() for each in (self.column, self.bound, self.branches, self.missing)
        )
        inner, every = column >= 0, np.arange(count)
        word, bit = np.divmod(np.cumsum(~inner, axis=1) - 1, BITS)
        words = -(-(column.shape[1] // 2 + 1) // BITS)
        one = np.left_shift(1, bit)[..., None] * (word[..., None] == np.arange(words))
        below = np.where(inner[..., None], 0, one).astype(np.int32)  # leaves below each node, (R, nodes, words)
        for n in reversed(range(column.shape[1])):
            both = below[every, branches[:, n, 0]] | below[every, branches[:, n, 1]]
            below[:, n] = np.where(inner[:, n, None], both, below[:, n])
        columns = list[Column]()
        for number in np.unique(column[inner]).tolist():
            tree, node = np.nonzero(column == number)
            left, right = (~below[tree, branches[tree, node, side]] for side in (0, 1))
            bounds, place = np.unique(bound[tree, node], return_inverse=True)
            last = len(bounds)
            up_to, above = np.repeat(below[None, :, 0], 2 * (last + 2), axis=0).reshape(2, last + 2, count, words)
            np.bitwise_and.at(up_to, (place, tree), right)
            np.bitwise_and.at(above, (place + 1, tree), left)
            for some, way in ((up_to, slice(last, None, -1)), (above, slice(last + 1))):
                some[way] = np.bitwise_and.accumulate(some[way], axis=0)
            of_missing = np.where(missing[tree, node, None], right, left)
            np.bitwise_and.at(above, (np.full_like(tree, last + 1), tree), of_missing)
            padded = np.pad(bounds, (0, 2 ** last.bit_length() - 1 - last), constant_values=np.inf)
            columns.append(Column(number, padded, last + 1, (up_to & above).reshape(last + 2, -1)))
        outputs = np.zeros((count, words, 127 + BITS))
        tree, node = np.nonzero(~inner & (word < words))  # without nodes that a small tree lacks
        outputs[tree, word[tree, node], 127 + bit[tree, node]] = bound[tree, node]
        return Leaves(below[:, 0].reshape(1, -1), columns, torch.from_numpy(outputs).flatten())


def _rounded_down(bounds: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 values that are not above `bounds`, which separate float32 values in the same way."""
    near = bounds.astype(np.float32)
    return np.where(near > bounds, np.nextafter(near, np.float32(-np.inf)), near)
