"""Small selection tasks, which show the mixer outside forecasting."""

from scripts.bench.selection.channels import Fetch, Maximum
from scripts.bench.selection.suite import Compression, FuzzyRecall, Memorisation, NoisyRecall, Recall, SelectiveCopy
from scripts.bench.selection.task import Task, fit
from scripts.bench.selection.text_and_images import Digits, NextByte

KINDS: tuple[type[Task], ...] = (
    *(Fetch, Maximum),
    *(Recall, NoisyRecall, FuzzyRecall, SelectiveCopy, Compression, Memorisation),
    *(NextByte, Digits),
)
TASKS = {kind.name: kind for kind in KINDS}
"""Every task by its name, in the order of the tables."""

__all__ = ["TASKS", "Fetch", "Task", "fit"]
