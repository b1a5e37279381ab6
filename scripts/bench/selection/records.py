"""Records of trainings on tasks: made, written, verified, and printed as tables."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from femts.environment import commit, run_environment
from femts.errors import RunFailure, UsageError
from femts.mixers.kernels import recorded
from scripts.bench.selection import TASKS, Task, fit
from scripts.bench.selection.task import RECIPE, SCALES

TOLERANCE = 0.02  # of a measure's scale, for a record of other hardware, libraries or sources


@dataclass(frozen=True)
class Cell:
    """One training of a mixer on a task; `settings` are the sizes that differ from the task's own."""

    task: str
    mixer: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Path of its record among the results."""
        variant = "".join(f"-{name}={value}" for name, value in sorted(self.settings.items()))
        return Path(f"{self.task}{variant}") / f"{self.mixer}-seed{self.seed}.json"

    def sizes(self) -> Task:
        """The task with its settings."""
        return TASKS[self.task](**self.settings)

    def run(self, device: str) -> dict[str, Any]:
        """The record of a training, on one core: so its score does not depend on how many there are."""
        torch.set_num_threads(1)
        task = self.sizes()
        with recorded() as kernels:
            outcome = fit(task, self.mixer, self.seed, device)
        return {
            "cell": asdict(self),
            **claims(task),
            **outcome,
            "kernels": dict(kernels),
            "place": run_environment(device, "32"),
            "commit": commit(),
        }


def claims(task: Task) -> dict[str, Any]:
    """What a record says of its task, known before anything is trained."""
    return {"task": asdict(task), "recipe": RECIPE, "measure": task.measure, "data": task.data()}


def make_cells(
    tasks: Sequence[str], mixers: Sequence[str], seeds: Sequence[int], settings: Mapping[str, str]
) -> list[Cell]:
    """All combinations, task by task; a task that lacks one of the `settings` is run without it.

    Raises:
        UsageError: a mixer that there is not, or sizes that no layer can have.
    """
    cells = []
    for task in tasks:
        defaults = vars(TASKS[task]())
        own = {name: type(defaults[name])(value) for name, value in settings.items() if name in defaults}
        changes = {name: value for name, value in own.items() if value != defaults[name]}
        for mixer in mixers:
            TASKS[task](**changes).host(mixer)  # refuses what cannot be made
            cells += [Cell(task, mixer, seed, changes) for seed in seeds]
    return cells


def run_and_keep(cell: Cell, folder: Path, device: str) -> tuple[str, bool]:
    """Train, and write the record whole or not at all; words on the end, and whether it is finished."""
    try:
        record = cell.run(device)
    except RunFailure as error:
        return f"{cell.path}: failed: {error}", False
    path = folder / cell.path
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_text(json.dumps(record, indent=1) + "\n")
    unfinished.replace(path)
    return f"{cell.path}: {record['measure']} {record['score']:.4f} after {record['seconds']:.0f} s", True


def verify(record: Mapping[str, Any], device: str = "cpu") -> tuple[bool, str]:
    """Train what `record` says again; whether the record holds, and words on it.

    It must be equal to the bit with the same hardware, libraries and commit; elsewhere the score must be within
    `TOLERANCE` of the measure's scale.
    """
    cell = Cell(**record["cell"])
    expected = claims(cell.sizes())
    wrong = [name for name, value in expected.items() if record[name] != value]
    if wrong:
        return False, f"NOT run, for this femts has another {', another '.join(wrong)}"
    again, measure = cell.run(device), record["measure"]
    words = f"{measure} {again['score']:.6f}, recorded {record['score']:.6f}"
    wrong = [name for name in ("parameters", "mixer_parameters") if record[name] != again[name]]
    if not wrong and all(record[name] == again[name] for name in ("score", "losses")):
        return True, f"{words}: equal to the bit"
    elsewhere = [name for name in ("place", "commit") if record[name] != again[name]]
    allowed = TOLERANCE * SCALES[measure] if elsewhere else 0.0
    if not elsewhere or abs(again["score"] - record["score"]) > allowed:
        wrong.append("score or losses")
    if wrong:
        return False, f"{words}: NOT as recorded: {', '.join(wrong)}"
    return True, f"{words}: within {allowed:g}; other than recorded: {', '.join(elsewhere)}"


def tables(cells: Sequence[Cell], folder: Path) -> str:
    """Markdown of the scores by task and mixer, and below of the parameters and the seconds of a training."""
    mixers = list(dict.fromkeys(cell.mixer for cell in cells))
    scores, costs = [["task", "measure", "seeds", *mixers]], [["weights, seconds", *mixers]]
    for task in dict.fromkeys(cell.task for cell in cells):
        own = [[cell for cell in cells if (cell.task, cell.mixer) == (task, mixer)] for mixer in mixers]
        found = [[read(folder / cell.path) for cell in group if (folder / cell.path).exists()] for group in own]
        measure = TASKS[task].measure
        words = f"{measure}{' %' * (measure == 'accuracy')}"
        scores.append([task, words, str(len(own[0])), *(_score(each, measure, len(own[0])) for each in found)])
        costs.append([task, *map(_cost, found)])
    return f"{_markdown(scores)}\n\n{_markdown(costs)}"


def read(path: Path) -> dict[str, Any]:
    """The record in `path`; UsageError where it holds none."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        Cell(**content["cell"]), content["score"]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"Record {path} cannot be read; bring it back, or remove it and run its cell again."
        ) from error
    return content


def _score(records: Sequence[Mapping[str, Any]], measure: str, asked: int) -> str:
    """Mean score with its deviation over seeds, in percent for accuracies, and their number where some lack."""
    if not records:
        return "-"
    factor, places = (100, 1) if measure == "accuracy" else (1, 3)
    scores = [each["score"] * factor for each in records]
    deviation = f" ±{statistics.stdev(scores):.{places}f}" if len(scores) > 1 else ""
    part = f" ({len(scores)} of {asked} seeds)" if len(scores) < asked else ""
    return f"{statistics.fmean(scores):.{places}f}{deviation}{part}"


def _cost(records: Sequence[Mapping[str, Any]]) -> str:
    means = (statistics.fmean(each[name] for each in records) for name in ("parameters", "seconds") if records)
    return ", ".join(f"{mean:.0f}" for mean in means) or "-"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, f"|{' --- |' * len(rows[0])}", *body])
