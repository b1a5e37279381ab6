"""Runs a cell of a table again from its record, and compares the results with the record."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from femts.data.describe import count
from femts.environment import cores, cpu_threads
from femts.experiments.cell import Cell
from femts.experiments.results import check_record
from femts.experiments.task_cell import TaskCell

TOLERANCE = 0.02  # relative, of a score on other hardware or with other libraries
SHOWN = 3  # deviations listed in a message
_ERRORS = ("window_errors", "series_errors")
_SCORES = (".mse", ".mae", ".pinball", ".skill", ".mase", ".wape")
# Of older records, whose raw errors were computed in float32, or were summed in another order.
ROUNDING = {"naive.mase": 1e-6, **dict.fromkeys(("mase", "sql", "wape", "wql"), 1e-12)}
_MISSING = object()


@dataclass(frozen=True)
class Scope:
    """Fields of a kind of record that may differ, as dotted names without list indices.

    Attributes:
        unchecked: fields that no score depends on, such as the date and duration of a run.
        of_the_place: fields that other hardware or libraries change by more than rounding.
        newer: last parts of the names of fields that older records lack.
        tolerance: largest change of a score elsewhere, given its dotted name and its recorded value; None for values
            that are not scores and must be equal.
        within: description of that tolerance.
    """

    unchecked: tuple[str, ...]
    of_the_place: tuple[str, ...]
    newer: tuple[str, ...]
    tolerance: Callable[[str, float], float | None]
    within: str

    def deviations(self, then: Mapping[str, Any], now: Mapping[str, Any], elsewhere: bool) -> tuple[str, ...]:
        """A sentence for each value of the record `then` that differs `now`.

        Args:
            then: the record, or fields of it.
            now: the same from the repeated run.
            elsewhere: whether it ran on other hardware or libraries, so that scores may differ slightly.
        """
        return tuple(self._compare(then, json.loads(json.dumps(now)), "", elsewhere))  # in the types of a record

    def _compare(self, then: Any, now: Any, name: str, elsewhere: bool) -> Iterator[str]:
        general = ".".join(part for part in name.split(".") if not part.isdecimal())
        if then is _MISSING and name.rpartition(".")[2] in self.newer:
            return
        if general in self.unchecked or (elsewhere and general in self.of_the_place):
            return
        if isinstance(then, Mapping) and isinstance(now, Mapping):
            for key in {**then, **now}:
                whole = f"{name}.{key}" if name else key
                yield from self._compare(then.get(key, _MISSING), now.get(key, _MISSING), whole, elsewhere)
        elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
            for place, pair in enumerate(zip(then, now, strict=True)):
                yield from self._compare(*pair, f"{name}.{place}", elsewhere)
        elif isinstance(then, float) and isinstance(now, float) and self._within(general, then, now, elsewhere):
            return
        elif type(then) is not type(now) or then != now:
            yield f"{name} {_short(now)}, recorded {_short(then)}"

    def _within(self, general: str, then: float, now: float, elsewhere: bool) -> bool:
        if not elsewhere:
            rounding = next((limit for name, limit in ROUNDING.items() if general.endswith(name)), 0.0)
            return math.isclose(then, now, rel_tol=rounding)
        allowed = self.tolerance(general, then)
        return allowed is not None and abs(now - then) <= allowed


SCOPE = Scope(
    unchecked=("seconds", "place", "commit", "config.format", "config.training.device", "history.seconds"),
    of_the_place=(
        "history",
        "kept_step",
        "steps",
        "stopped",
        "kernels",
        "samples.forecast",
        "val.bias",
        "test.bias",
        "rolled.test.bias",
        "rolled.val.bias",
        *_ERRORS,
    ),
    newer=("naive", "wape", "bias", *_ERRORS),
    tolerance=lambda name, recorded: TOLERANCE * abs(recorded) if name.endswith(_SCORES) else None,
    within="2 %",
)


TASK_SCOPE = Scope(
    unchecked=(
        *("seconds", "train_seconds", "cpu_seconds", "place", "commit"),
        *("trained.config.format", "trained.config.training.device"),
    ),
    of_the_place=("kernels", "windows.mase", "windows.sql", "windows.wape", "windows.wql", "trained"),
    newer=("outliers",),
    tolerance=lambda name, recorded: TOLERANCE * abs(recorded) if name.startswith("scores.") else None,
    within="2 %",
)


@dataclass(frozen=True)
class Verdict:
    """Result of running a record again.

    Attributes:
        measure: name of the score.
        recorded: recorded score.
        repeated: repeated score; None if the cell was not run, because its configuration would differ already.
        differences: changes of hardware and libraries since then; if empty, results must be bit-identical.
        deviations: fields that differ, with their present and recorded values.
        within: description of the tolerance of scores elsewhere.
    """

    measure: str
    recorded: float
    repeated: float | None
    differences: tuple[str, ...]
    deviations: tuple[str, ...]
    within: str

    @property
    def holds(self) -> bool:
        """Whether everything is bit-identical on the same hardware and libraries; elsewhere, whether scores are within
        the tolerance and the rest is equal."""
        return not self.deviations

    def __str__(self) -> str:
        more = len(self.deviations) - SHOWN
        wrong = "; ".join(self.deviations[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
        if self.repeated is None:
            return f"NOT run, because this version of femts configures the cell differently: {wrong}"
        pair = f"{self.measure} {self.repeated:.6f}, recorded {self.recorded:.6f}"
        if not self.differences:
            return f"{pair}: {'bit-identical' if self.holds else f'NOT identical on the same hardware and libraries: {wrong}'}"
        gap = f"{100 * (self.repeated / self.recorded - 1):+.2f} %" if self.recorded else "no ratio"
        within = f"within {self.within}" if self.holds else f"NOT within {self.within}: {wrong}"
        return f"{pair}: {gap}, {within}; different now: {', '.join(self.differences)}"


def verify_record(record: Mapping[str, Any], device: str = "auto", data_root: str | None = None) -> Verdict:
    """Train what `record` describes, score it in the same way, and compare the results with the record.

    Raises:
        UsageError: The record is invalid or depends on a time limit, or the data do not match it.
    """
    kind, scope = (TaskCell, TASK_SCOPE) if record.get("format") == TaskCell.record_format else (Cell, SCOPE)
    check_record(record, kind, "The record")
    cell = kind.of(record, data_root)
    measure, recorded = cell.main_score(record)
    cell.check_data(record, data_root)
    try:
        cell.check_is_of(record)
    except ValueError as error:  # checked before hours of training
        return Verdict(measure, recorded, None, (), (str(error),), scope.within)
    with cpu_threads(min(record["place"]["threads"], cores())):  # other numbers of threads sum in another order
        again = cell.run(None, device, data_root)
    differences = place_differences(record["place"], again["place"])
    deviations = scope.deviations(cell.with_newer_fields(record), again, elsewhere=bool(differences))
    return Verdict(measure, recorded, cell.main_score(again)[1], differences, deviations, scope.within)


def place_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Hardware and libraries that differ between the `place` of a record and that of its repetition."""
    changed = [
        f"{key} {now[key]} instead of {then.get(key)}"
        for key in now
        if key != "libraries" and now[key] != then.get(key)
    ]
    for name in ("femts", "torch", "numpy"):  # libraries that a score on a CPU depends on
        before, after = then["libraries"].get(name), now["libraries"].get(name)
        if before != after:
            changed.append(f"{name} {after} instead of {before}")
    return tuple(changed)


def _short(value: Any) -> str:
    if value is _MISSING:
        return "none"
    if isinstance(value, list):
        return count(len(value), "value")
    return "a mapping" if isinstance(value, Mapping) else repr(value)
