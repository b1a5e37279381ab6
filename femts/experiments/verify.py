"""Run a cell again from its own record, and compare all that the record says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from femts.config.model import AUTO
from femts.config.rules import Misfit
from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.source import split_for
from femts.errors import UsageError
from femts.experiments.grid import Cell
from femts.experiments.record import make_record
from femts.experiments.record_rules import check_record

TOLERANCE = 0.02  # of a score, on other hardware or with other libraries
SHOWN = 3  # deviations that a sentence names
# Where, when and how long a cell ran: nobody can check it, and no score rests on it but by `place`.
_UNCHECKED = ("seconds", "place", "commit", "config.format", "config.training.device")
# What other hardware or libraries change by more than rounding: a step more or less, or a kernel.
_OF_THE_PLACE = ("history", "kept_step", "steps", "stopped", "kernels", "samples.forecast", "window_errors")


@dataclass(frozen=True)
class Verdict:
    """Result of running a record again.

    Attributes:
        recorded: test MSE in the record.
        repeated: the same now; None where the cell was not run, because its configuration, data or
            model already are not those.
        differences: what is not as it was then (hardware, libraries); empty where all must be equal to the bit.
        deviations: what the record says wrongly: field, its value now and the one in the record.
    """

    recorded: float
    repeated: float | None
    differences: tuple[str, ...]
    deviations: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """All equal to the bit in the same place; elsewhere scores within 2 %, and the rest equal."""
        return not self.deviations

    def __str__(self) -> str:
        more = len(self.deviations) - SHOWN
        wrong = "; ".join(self.deviations[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
        if self.repeated is None:
            return f"NOT run, for this femts makes another thing of its cell: {wrong}"
        pair = f"test MSE {self.repeated:.6f}, recorded {self.recorded:.6f}"
        if not self.differences:
            return f"{pair}: {'equal to the bit' if self.holds else f'NOT equal, in the same place: {wrong}'}"
        gap = f"{100 * (self.repeated / self.recorded - 1):+.2f} %" if self.recorded else "no ratio"
        within = "within 2 %" if self.holds else f"NOT within 2 %: {wrong}"
        return f"{pair}: {gap}, {within}; different now: {', '.join(self.differences)}"


def verify_record(record: Mapping[str, Any], device: str = "auto", data_root: str | None = None) -> Verdict:
    """Train what `record` describes, roll it out where it was, and compare all that the record says of it.

    Raises:
        UsageError: the record cannot be one, or the data are not those of the record.
    """
    try:
        check_record(record)
    except Misfit as error:
        raise UsageError(f"The record is damaged: {error}; bring back the one that 'femts table' wrote.") from error
    cell = Cell(**record["cell"])
    data = split_for(cell.load(data_root), cell.pred_len)
    if data.sha256 != record["data"]["sha256"]:
        raise UsageError(
            f"The data of {cell.dataset} are not those of the record (sha256 {record['data']['sha256'][:12]}...)."
        )
    untrue = _untrue_claims(record, cell, data)
    if untrue:  # found before anything is trained, which a forged configuration may make as large as it likes
        return Verdict(record["test"]["mse"], None, (), untrue)
    again = _run_again(cell, data, device, record["place"]["threads"])
    differences = _differences(record["place"], again["place"])
    return Verdict(
        record["test"]["mse"], again["test"]["mse"], differences, _deviations(record, again, bool(differences))
    )


def _run_again(cell: Cell, data: Dataset | Panel, device: str, threads: int) -> dict[str, Any]:
    """The record of `cell` as it is made here and now."""
    import torch

    from femts.training.train import train

    before = torch.get_num_threads()
    torch.set_num_threads(min(threads, os.cpu_count() or 1))  # with another number sums are formed in another order
    try:
        forecaster = train(
            data, cell.model, cell.pred_len, seq_len=cell.seq_len, protocol=cell.protocol, seed=cell.seed,
            device=device, settings=cell.settings,
        )  # fmt: skip
        return make_record(cell, forecaster, data)
    finally:
        torch.set_num_threads(before)


def _untrue_claims(record: Mapping[str, Any], cell: Cell, data: Dataset | Panel) -> tuple[str, ...]:
    """List what the record says wrongly of its configuration, its data and the size of its model."""
    from femts.forecaster.restore import outline
    from femts.training.resolve import Lengths, resolve_run, resolve_training

    if cell.model == AUTO:  # its configuration is known when the models have been tried
        return _deviations({"data": record["data"]}, {"data": data.record}, elsewhere=False)
    settings, training = resolve_training(cell.model, {"seed": cell.seed}, cell.settings)
    config = resolve_run(data, cell.model, Lengths(cell.pred_len, cell.seq_len, cell.protocol), settings, training)
    again = {"config": config.to_dict(), "data": data.record}
    untrue = _deviations({key: record[key] for key in again}, again, elsewhere=False)
    if untrue:
        return untrue
    try:
        model = outline(config, record["parameters"])
    except Misfit as error:
        return (str(error),)
    except ValueError as error:
        raise UsageError(f"The model of the record cannot be built: {error}.") from error
    count = sum(parameter.numel() for parameter in model.parameters())
    return _deviations({"parameters": record["parameters"]}, {"parameters": count}, elsewhere=False)


def _deviations(then: Mapping[str, Any], now: Mapping[str, Any], elsewhere: bool) -> tuple[str, ...]:
    now = json.loads(json.dumps(now))  # as a record has it
    return tuple(_compare(then, now, "", elsewhere))


def _is_newer(name: str, then: Any) -> bool:
    """True where a record says nothing of what those of its time did not have."""
    return then is _MISSING and name.rpartition(".")[2] in ("naive", "window_errors")


def _compare(then: Any, now: Any, name: str, elsewhere: bool) -> Iterator[str]:
    """A sentence for each value that is not as it was."""
    general = ".".join(part for part in name.split(".") if not part.isdecimal())
    if _is_newer(name, then):
        return
    if general in _UNCHECKED or general == "history.seconds" or (elsewhere and general in _OF_THE_PLACE):
        return
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for key in {**then, **now}:
            yield from _compare(
                then.get(key, _MISSING), now.get(key, _MISSING), f"{name}.{key}" if name else key, elsewhere
            )
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for place, pair in enumerate(zip(then, now, strict=True)):
            yield from _compare(*pair, f"{name}.{place}", elsewhere)
    elif (
        elsewhere
        and general.endswith((".mse", ".mae", ".pinball", ".skill", ".mase"))
        and isinstance(then, float)
        and isinstance(now, float)
    ):
        if not abs(now - then) <= TOLERANCE * abs(then):
            yield f"{name} {now:.6g}, recorded {then:.6g}"
    elif type(then) is not type(now) or then != now:
        yield f"{name} {_short(now)}, recorded {_short(then)}"


_MISSING = object()


def _short(value: Any) -> str:
    if value is _MISSING:
        return "none"
    if isinstance(value, list):
        return f"{len(value)} values"
    return "a mapping" if isinstance(value, Mapping) else repr(value)


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    changed = [
        f"{key} {now[key]} instead of {then.get(key)}"
        for key in now
        if key != "libraries" and now[key] != then.get(key)
    ]
    for name in ("femts", "torch", "numpy"):  # what a score on a CPU is computed with
        before, after = then["libraries"].get(name), now["libraries"].get(name)
        if before != after:
            changed.append(f"{name} {after} instead of {before}")
    return tuple(changed)
