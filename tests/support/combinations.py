"""Samples of the combinations of several parameters, where each one adds nothing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest


def in_turn(**axes: Sequence[object]) -> pytest.MarkDecorator:
    """As many cases as the longest axis has values; shorter axes repeat."""
    longest = max(map(len, axes.values()))
    cases = [tuple(values[i % len(values)] for values in axes.values()) for i in range(longest)]
    return pytest.mark.parametrize(tuple(axes), cases, ids=[_id(case) for case in cases])


def pairwise(**axes: Sequence[object]) -> pytest.MarkDecorator:
    """Cases that cover every pair of values of two axes."""
    every = list(itertools.product(*(range(len(values)) for values in axes.values())))
    pairs = {case: set(itertools.combinations(enumerate(case), 2)) for case in every}
    left, cases = set().union(*pairs.values()), []
    while left:
        best = max(every, key=lambda case: len(left & pairs[case]))
        left -= pairs[best]
        cases.append(tuple(values[i] for values, i in zip(axes.values(), best, strict=True)))
    return pytest.mark.parametrize(tuple(axes), cases, ids=[_id(case) for case in cases])


def _id(case: tuple[object, ...]) -> str:
    return "-".join(str(value).removeprefix("torch.").replace(" ", "") for value in case)
