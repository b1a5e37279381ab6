"""Sizes that a task cannot have, told before anything is run.

They stand beside the tasks and not in them: a record has a hash of the sources that decide its score, and what is
refused here decides none.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import perm

from torch import Generator

from femts.bench.tasks.base import IGNORED, Part, Task
from femts.bench.tasks.compression import Compression
from femts.bench.tasks.digits import PATCH, TESTED, Digits
from femts.bench.tasks.fetch import ChannelTask
from femts.bench.tasks.fuzzy_recall import FuzzyRecall
from femts.bench.tasks.memorisation import Memorisation
from femts.bench.tasks.next_byte import NextByte, sources
from femts.bench.tasks.recall import Recall
from femts.bench.tasks.selective_copy import SelectiveCopy
from femts.errors import UsageError

Rule = tuple[str, bool, str]  # a size, whether it keeps the rule, and what it takes in words
_SIDE = 8  # pixels of an image of digits
_DRAWN = 100  # sequences that tell how many ask for nothing
_ENOUGH = 13  # 13! is above every number of motifs that can be asked for
_PAIRS = "an even number of tokens, for they are pairs"


def check_sizes(task: Task) -> None:
    """UsageError for the first size of `task` that cannot be, alone or beside the others."""
    for name, fits, words in _rules(task):
        if not fits:
            raise UsageError(
                f"Setting 'task.{name}' of {task.NAME} takes {words}, not {getattr(task, name)}; "
                "change it, or choose other tasks."
            )


def _rules(task: Task) -> Iterator[Rule]:
    """The rules of a task, each of sizes that keep those before it."""
    if isinstance(task, ChannelTask):
        several = task.scored * task.channels > 1
        yield "scored", several, "at least 2 where channels=1, for an error is over the variance of what is asked"
    elif isinstance(task, Digits):
        patches = (_SIDE // PATCH) ** 2
        yield "length", task.length == patches, f"{patches}, the patches of an image"
        yield "scored", task.scored <= TESTED, f"at most {TESTED}, the images of the test part"
    elif isinstance(task, NextByte):
        most = min(map(len, sources()[:2])) - 1
        yield "length", task.length <= most, f"at most {most}, for the test part has no more bytes"
    else:
        yield from _suite_rules(task)


def _suite_rules(task: Task) -> Iterator[Rule]:
    if isinstance(task, SelectiveCopy):
        yield "vocabulary", task.vocabulary >= 3, "at least 3, for two are the blank and the sign"
        yield "length", task.length >= 3, "at least 3, for a token, the sign and its copy"
        most = (task.length - 1) // 2
        yield "copied", task.copied <= most, f"at most {most} at length={task.length}, for each stands there twice"
    elif isinstance(task, Compression):
        yield "vocabulary", task.vocabulary >= 2, "at least 2, for one is the sign"
        yield "length", task.length >= 2, "at least 2, for the sign at the end is not scored"
    elif isinstance(task, Memorisation):
        yield "vocabulary", task.vocabulary >= 3, "at least 3, for a key, a value and the sign"
        yield "length", task.length % 2 == 0, _PAIRS
    elif isinstance(task, Recall):
        least, kinds = (4, "keys, values and noise") if task.noise else (2, "keys and values")
        yield "vocabulary", task.vocabulary >= least, f"at least {least}, for {kinds}"
        yield "length", task.length % 2 == 0, _PAIRS
        yield _asking_rule(task, f"vocabulary={task.vocabulary}, noise={task.noise:g}")
    elif isinstance(task, FuzzyRecall):
        yield "vocabulary", task.vocabulary >= 2, "at least 2, for keys and values"
        half = task.vocabulary // 2
        yield "longest", task.longest <= half, f"at most {half}, half of the vocabulary, for tokens of a motif differ"
        most = perm(half, min(task.longest, _ENOUGH))
        yield "motifs", task.motifs <= most, f"at most {most}, the motifs that there are of {task.longest} tokens"
        yield _asking_rule(task, f"motifs={task.motifs}, longest={task.longest}")


def _asking_rule(task: Task, sizes: str) -> Rule:
    """Nothing is asked for where no key comes again, and a batch of such sequences has NaN for its loss.

    Refused is what can hardly end well: one such batch, or such a test part, is to be expected.
    """
    expected = task.steps * _silent(task, "train") ** task.batch + _silent(task, "test") ** task.scored
    words = f"a number of tokens at which keys come again in every batch ({sizes}, batch={task.batch})"
    return "length", expected < 0.5, words


def _silent(task: Task, part: Part) -> float:
    """The share of sequences that ask for nothing."""
    generator = Generator().manual_seed(0)
    # One at a time: recall compares all pairs of a sequence, which is large for a long one.
    targets = (task.draw(part, 1, generator)[1] for _ in range(_DRAWN))
    return sum(bool((target == IGNORED).all()) for target in targets) / _DRAWN
