"""Sizes of tasks: what cannot be is refused in a sentence, and the smallest that can be are trained."""

from __future__ import annotations

from math import isfinite

import pytest

from femts.bench.tasks.base import task_class, task_names
from femts.bench.tasks.cell import make_cells
from femts.bench.tasks.fit import fit
from femts.bench.tasks.next_byte import sources
from femts.bench.tasks.sizes import check_sizes
from femts.errors import UsageError

TINY = {"steps": 2, "batch": 2, "scored": 8, "width": 8, "heads": 1, "layers": 1}
BYTES = min(map(len, sources()[:2]))


@pytest.mark.parametrize(
    ("task", "sizes", "name", "words"),
    [
        ("fetch", {"channels": 1, "scored": 1}, "scored", "at least 2 where channels=1"),
        ("recall", {"vocabulary": 1}, "vocabulary", "at least 2"),
        ("recall", {"noise": 0.1, "vocabulary": 3}, "vocabulary", "at least 4"),
        ("recall", {"length": 1}, "length", "an even number"),
        ("recall", {"length": 2}, "length", "keys come again"),
        ("recall", {"length": 4}, "length", "keys come again"),
        ("recall", {"noise": 0.99, "batch": 1}, "length", "noise=0.99, batch=1"),
        ("noisy_recall", {"length": 65}, "length", "an even number"),
        ("fuzzy_recall", {"vocabulary": 1}, "vocabulary", "at least 2"),
        ("fuzzy_recall", {"longest": 9}, "longest", "at most 8, half of the vocabulary"),
        ("fuzzy_recall", {"longest": 1, "motifs": 9}, "motifs", "at most 8"),
        ("fuzzy_recall", {"length": 6}, "length", "motifs=8, longest=3, batch=32"),
        ("selective_copy", {"vocabulary": 2}, "vocabulary", "at least 3"),
        ("selective_copy", {"length": 2}, "length", "at least 3"),
        ("selective_copy", {"copied": 32}, "copied", "at most 31 at length=64"),
        ("compression", {"vocabulary": 1}, "vocabulary", "at least 2"),
        ("compression", {"length": 1}, "length", "at least 2"),
        ("memorisation", {"vocabulary": 2}, "vocabulary", "at least 3"),
        ("memorisation", {"length": 33}, "length", "an even number"),
        ("next_byte", {"length": BYTES}, "length", f"at most {BYTES - 1}"),
        ("digits", {"length": 20}, "length", "16, the patches"),
        ("digits", {"scored": 598}, "scored", "at most 597"),
    ],
)
def test_a_size_that_cannot_be_is_refused(task: str, sizes: dict[str, float], name: str, words: str) -> None:
    with pytest.raises(UsageError, match=f"'task.{name}' of {task} takes .*{words}.*, not .*; change it"):
        make_cells([task], ["sm"], [1], sizes)


@pytest.mark.parametrize(
    ("task", "sizes"),
    [
        ("maximum", {"length": 1, "channels": 1, "scored": 2}),
        ("recall", {"vocabulary": 2, "length": 4}),
        ("noisy_recall", {"vocabulary": 4}),
        ("fuzzy_recall", {"vocabulary": 2, "longest": 1, "motifs": 1, "length": 8}),
        ("selective_copy", {"vocabulary": 3, "length": 3, "copied": 1}),
        ("compression", {"vocabulary": 2, "length": 2}),
        ("memorisation", {"vocabulary": 3, "length": 2}),
        ("next_byte", {"length": 1}),
        ("digits", {"scored": 1}),
    ],
)
def test_the_smallest_that_can_be_are_trained(task: str, sizes: dict[str, int]) -> None:
    (cell,) = make_cells([task], ["sm"], [1], {**TINY, **sizes})
    outcome = fit(cell.sizes(), "sm", 1)
    assert isfinite(outcome.score) and all(map(isfinite, outcome.losses))


def test_the_sizes_of_the_tasks_themselves_can_be() -> None:
    for name in task_names():
        check_sizes(task_class(name)())


def test_a_seed_that_is_given_twice_is_one_cell() -> None:
    assert [cell.seed for cell in make_cells(["fetch"], ["sm"], [2, 1, 2], {})] == [2, 1]
