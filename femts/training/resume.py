"""Check that a folder can take a run: a new one, or the rest of one that was begun."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from femts.config.model import AUTO
from femts.errors import UsageError
from femts.forecaster.run_folder import CHECKPOINT, CONFIG, METRICS, ORDER, RunConfig, check_new_folder
from femts.forecaster.saved_run import read_config, read_metrics, read_preprocess
from femts.training.state import TrainState

# What may differ when a run goes on: how far and where, never what is learned from what.
_FREE = {"training.max_time", "training.device", "training.devices", "training.eval_batch_size"}


class Finished(Exception):
    """The run that was to go on is finished; it is of the same settings and data."""


def find_state(config: RunConfig, preprocess: Mapping[str, Any], out: Path | None, resume: bool) -> TrainState:
    """State to start from: the beginning, or with `resume` where the run in `out` stands, if one has begun there.
    Nothing is written.

    Raises:
        UsageError: `out` holds another run, or with `resume` one of other settings or data.
        Finished: with `resume`, it holds this one, and there is nothing left to do.
    """
    if out is None:
        check_resumable(out, resume)
        return TrainState()
    begun, finished = (out / CHECKPOINT).is_file(), (out / METRICS).is_file()
    if resume and ("auto" in read_metrics(out) if finished else (out / ORDER).is_file()):
        check_same({"model": {"name": AUTO}}, {"model": {"name": config.model}}, out)
    if not resume or not (out / CONFIG).is_file():
        check_new_folder(out)
        return TrainState()
    check_same(read_config(out).to_dict(), config.to_dict(), out)
    if (begun or finished) and read_preprocess(out)["data"] != preprocess["data"]:
        raise changed_data(config.dataset, out)
    state = TrainState.load(out / CHECKPOINT) if begun else TrainState()
    if finished and (not state.model or state.complete):
        raise Finished
    return state


def check_resumable(out: Path | None, resume: bool) -> None:
    """UsageError where a run is to go on that is kept nowhere."""
    if resume and out is None:
        raise UsageError("To resume, name the run folder with --out (out= in Python).")


def changed_data(dataset: str, out: Path) -> UsageError:
    """Error that is said where the run in `out` began with other data."""
    return UsageError(f"The data '{dataset}' changed since run {out} began; train again in a new folder.")


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], out: Path) -> None:
    """UsageError for the first setting of the run in `out` that was another `before`; both as `RunConfig.to_dict`."""
    old, new = ({"final": False, **_flat(record)} for record in (before, now))
    for key in old | new:
        # The same file may be named in two ways; its hash is compared instead.
        if key in _FREE or key == "dataset.source" or old.get(key) == new.get(key):
            continue
        raise UsageError(
            f"Run {out} was begun with {key}={old.get(key)}, not {new.get(key)}; resume it with that, or choose "
            "another folder."
        )


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        flat.update(_flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value})
    return flat
