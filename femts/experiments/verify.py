"""Run a cell of a table again from its own record, and compare all that the record says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from femts.config.model import AUTO
from femts.config.rules import Misfit
from femts.data.dataset import Dataset
from femts.environment import cores, cpu_threads
from femts.errors import UsageError
from femts.experiments.grid import Cell
from femts.experiments.newer_settings import with_newer_settings
from femts.experiments.record import make_record
from femts.experiments.record_rules import check_record
from femts.experiments.verdict import Scope, Verdict, place_differences

TOLERANCE = 0.02  # of a score, on other hardware or with other libraries
_ERRORS = ("window_errors", "series_errors")
_SCORES = (".mse", ".mae", ".pinball", ".skill", ".mase")


def _tolerance(name: str, recorded: float) -> float | None:
    return TOLERANCE * abs(recorded) if name.endswith(_SCORES) else None


SCOPE = Scope(
    unchecked=("seconds", "place", "commit", "config.format", "config.training.device", "history.seconds"),
    of_the_place=("history", "kept_step", "steps", "stopped", "kernels", "samples.forecast", *_ERRORS),
    newer=("naive", *_ERRORS),
    tolerance=_tolerance,
    within="2 %",
)


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
    data = cell.load(data_root).for_horizon(cell.pred_len)
    if data.sha256 != record["data"]["sha256"]:
        raise UsageError(
            f"The data of {cell.dataset} are not those of the record (sha256 {record['data']['sha256'][:12]}...)."
        )
    record = {**record, "config": with_newer_settings(record["config"])}
    untrue = _untrue_claims(record, cell, data)
    if untrue:  # found before anything is trained, which a forged configuration may make as large as it likes
        return _verdict(record, None, (), untrue)
    again = _run_again(cell, data, device, record["place"]["threads"])
    differences = place_differences(record["place"], again["place"])
    deviations = SCOPE.deviations(record, again, elsewhere=bool(differences))
    return _verdict(record, again["test"]["mse"], differences, deviations)


def _verdict(
    record: Mapping[str, Any], repeated: float | None, differences: tuple[str, ...], deviations: tuple[str, ...]
) -> Verdict:
    return Verdict("test MSE", record["test"]["mse"], repeated, differences, deviations, SCOPE.within)


def _run_again(cell: Cell, data: Dataset, device: str, threads: int) -> dict[str, Any]:
    """The record of `cell` as it is made here and now."""
    from femts.training.train import train

    with cpu_threads(min(threads, cores())):  # with another number sums are formed in another order
        forecaster = train(
            data, cell.model, cell.pred_len, seq_len=cell.seq_len, protocol=cell.protocol, seed=cell.seed,
            device=device, settings=cell.settings,
        )  # fmt: skip
        return make_record(cell, forecaster, data)


def _untrue_claims(record: Mapping[str, Any], cell: Cell, data: Dataset) -> tuple[str, ...]:
    """List what the record says wrongly of its configuration, its data and the size of its model."""
    from femts.models.registry import build_model
    from femts.training.resolve import Lengths, resolve_run, resolve_training

    if cell.model == AUTO:  # its configuration is known when the models have been tried
        return SCOPE.deviations({"data": record["data"]}, {"data": data.record}, elsewhere=False)
    settings, training = resolve_training(cell.model, {"seed": cell.seed}, cell.settings)
    config = resolve_run(data, cell.model, Lengths(cell.pred_len, cell.seq_len, cell.protocol), settings, training)
    again = {"config": config.to_dict(), "data": data.record}
    untrue = SCOPE.deviations({key: record[key] for key in again}, again, elsewhere=False)
    if untrue:
        return untrue
    try:
        model = build_model(config.model, config.model_config, config.quantiles)
    except ValueError as error:
        raise UsageError(f"The model of the record cannot be built: {error}.") from error
    count = sum(parameter.numel() for parameter in model.parameters())
    return SCOPE.deviations({"parameters": record["parameters"]}, {"parameters": count}, elsewhere=False)
