"""Run a training of the task suite again from its own record, and compare all that the record says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from femts.bench.tasks.cell import TaskCell, code, make_cells
from femts.environment import cpu_threads
from femts.experiments.results import check_record
from femts.experiments.verify import Scope, Verdict, place_differences

TOLERANCE = 0.02  # of a measure's scale, elsewhere or from other sources
_SCALE = {"error": 1.0, "accuracy": 1.0, "bits": 8.0}  # from a perfect score to that of knowing nothing


def verify_task(record: Mapping[str, Any], device: str = "auto") -> Verdict:
    """Train what `record` describes again.

    Other sources of the task, its training or the mixers count as another place: the score may then
    differ by 2 % of the measure's scale.

    Raises:
        UsageError: the record cannot be one, or this femts has no such task, mixer or size, or other data.
    """
    from femts.training.device import named_place

    check_record(record, TaskCell, "The record")
    name, mixer, seed = (record["cell"][key] for key in ("task", "mixer", "seed"))
    (cell,) = make_cells([name], [mixer], [seed], record["cell"]["settings"])
    task, scope = cell.sizes(), _scope(record["measure"])
    again: dict[str, Any] = {"cell": asdict(cell), "task": asdict(task), "measure": task.MEASURE, "data": task.data()}
    untrue = scope.deviations({key: record[key] for key in again}, again, elsewhere=False)
    if untrue:
        return Verdict(record["measure"], record["score"], None, (), untrue, scope.within)
    with cpu_threads():  # which a cell sets for its process
        again = cell.run(Path(), named_place(device).device, None)
    differences = place_differences(record["place"], again["place"])
    if record["code"] != code(name):
        differences = (*differences, "the sources")
    deviations = scope.deviations(record, again, elsewhere=bool(differences))
    return Verdict(record["measure"], record["score"], again["score"], differences, deviations, scope.within)


def _scope(measure: str) -> Scope:
    scale = _SCALE[measure]
    return Scope(
        unchecked=("seconds", "place", "commit", "code"),
        of_the_place=("losses", "kernels"),
        newer=(),
        tolerance=lambda name, _: TOLERANCE * scale if name == "score" else None,
        within=f"{TOLERANCE * scale:g}",
    )
