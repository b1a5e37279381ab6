"""Tables of the task suite: scores of each task by mixer, and what they cost."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from femts.bench.tasks.base import task_class
from femts.bench.tasks.cell import TaskCell, code
from femts.experiments.results import Store
from femts.experiments.tables import as_markdown
from femts.text import part_of, table

NONE = "-"


@dataclass(frozen=True)
class Entry:
    """A mixer on a task.

    Attributes:
        task, mixer: names.
        records: of its finished seeds.
        asked: number of seeds that were asked for.
    """

    task: str
    mixer: str
    records: tuple[dict[str, Any], ...]
    asked: int

    def mean(self, name: str) -> float | None:
        """The mean of a field over the seeds; None while there is none."""
        return statistics.fmean(record[name] for record in self.records) if self.records else None

    @property
    def score(self) -> str:
        """Mean score with its deviation over seeds, in percent for accuracies, and their number where some lack."""
        if not self.records:
            return NONE
        percent = task_class(self.task).MEASURE == "accuracy"
        scores = [record["score"] * (100 if percent else 1) for record in self.records]
        places = 1 if percent else 3
        spread = f" ±{statistics.stdev(scores):.{places}f}" if len(scores) > 1 else ""
        return f"{statistics.fmean(scores):.{places}f}{spread}{part_of(len(scores), self.asked, 'seeds')}"


def make_entries(cells: Sequence[TaskCell], store: Store) -> list[Entry]:
    """An entry for each task and mixer, of what is finished and can be used."""
    groups = dict[tuple[str, str], list[TaskCell]]()
    for cell in cells:
        groups.setdefault((cell.task, cell.mixer), []).append(cell)
    return [
        Entry(task, mixer, tuple(record for cell in own if (record := store.readable(cell))), len(own))
        for (task, mixer), own in groups.items()
    ]


def as_text(entries: Sequence[Entry], markdown: bool = False) -> str:
    """Two tables: scores with the number of seeds that were asked for, then parameters and seconds of a training."""
    mixers = list(dict.fromkeys(entry.mixer for entry in entries))
    scores, costs = list[list[str]](), list[list[str]]()
    for task in dict.fromkeys(entry.task for entry in entries):
        row = [entry for entry in entries if entry.task == task]
        measure = task_class(task).MEASURE
        scores.append(
            [task, f"{measure}{' %' * (measure == 'accuracy')}", str(row[0].asked), *(entry.score for entry in row)]
        )
        costs.append([task, *map(_cost, row)])
    form = as_markdown if markdown else table
    return f"{form(['task', 'measure', 'seeds', *mixers], scores)}\n\n{form(['weights, seconds', *mixers], costs)}"


def other_code(entries: Sequence[Entry]) -> int:
    """Number of records that were made by other sources than those of now."""
    return sum(record["code"] != code(entry.task) for entry in entries for record in entry.records)


def _cost(entry: Entry) -> str:
    parameters, seconds = entry.mean("parameters"), entry.mean("seconds")
    return NONE if parameters is None or seconds is None else f"{parameters:.0f}, {seconds:.0f}"
