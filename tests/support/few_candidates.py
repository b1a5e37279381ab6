"""Fewer candidates of `auto`: one of each kind shows what a selection does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from femts.training.select import run
from femts.training.select.candidates import Candidate, shortlist


@contextmanager
def few_candidates(*names: str) -> Iterator[None]:
    """Let `auto` try only the models `names`, as far as it would try them."""

    def few(*given: Any) -> tuple[Candidate, ...]:
        return tuple(each for each in shortlist(*given) if each.model in names)

    with patch.object(run, "shortlist", few):
        yield
