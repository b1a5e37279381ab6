"""Run a cell again from its own record, and compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from femts.errors import UsageError
from femts.experiments.grid import PLACE, Cell
from femts.experiments.record import place
from femts.settings import SHAPE

TOLERANCE = 0.02  # of the test MSE, on other hardware or with other libraries


@dataclass(frozen=True)
class Verdict:
    """What running a record again showed.

    Attributes:
        recorded, found: test MSE in the record and now.
        differences: what is not as it was then (hardware, libraries); empty where the number must be equal to the bit.
    """

    recorded: float
    found: float
    differences: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Equal to the bit in the same place, within 2 % elsewhere."""
        if not self.differences:
            return self.found == self.recorded
        return abs(self.found / self.recorded - 1) <= TOLERANCE

    def __str__(self) -> str:
        pair = f"test MSE {self.found:.6f}, recorded {self.recorded:.6f}"
        if not self.differences:
            return f"{pair}: {'equal to the bit' if self.holds else 'NOT equal, in the same place'}"
        gap = f"{100 * (self.found / self.recorded - 1):+.2f} %"
        return f"{pair}: {gap}, {'within' if self.holds else 'NOT within'} 2 %; different now: {', '.join(self.differences)}"


def verify_record(record: Mapping[str, Any], device: str = "auto", data_root: str | None = None) -> Verdict:
    """Train what `record` describes and compare the test MSE.

    Raises:
        UsageError: the data are not those of the record.
    """
    import torch

    from femts.training.fit import train

    config, cell = record["config"], record["cell"]
    data = Cell(**cell).load(data_root)
    if data.sha256 != record["data"]["sha256"]:
        raise UsageError(
            f"The data of {cell['dataset']} are not those of the record (sha256 {record['data']['sha256'][:12]}...)."
        )
    settings = {f"model.{key}": value for key, value in config["model"].items() if key not in ("name", *SHAPE)}
    settings |= {f"training.{key}": value for key, value in config["training"].items() if key not in PLACE}
    before = torch.get_num_threads()
    torch.set_num_threads(record["place"]["threads"])  # sums are formed in another order with another number
    try:
        again = train(
            data, cell["model"], config["pred_len"], seq_len=config["seq_len"], protocol=config["protocol"], device=device,
            settings=settings,
        )  # fmt: skip
        now = place(again.metrics["device"], again.metrics["precision"])
    finally:
        torch.set_num_threads(before)
    return Verdict(record["test"]["mse"], again.metrics["test"]["mse"], tuple(_differences(record["place"], now)))


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    changed = [
        f"{key} {now[key]} instead of {then.get(key)}" for key in now if key != "libraries" and now[key] != then.get(key)
    ]
    for name in ("femts", "torch", "numpy"):  # what a score on a CPU is computed with
        before, after = then["libraries"].get(name), now["libraries"].get(name)
        if before != after:
            changed.append(f"{name} {after} instead of {before}")
    return changed
