"""Restores a saved run from the files that `femts.forecaster.saved_run` has verified."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_bytes

from femts.config.records import fingerprint
from femts.data.preprocess import Preprocess
from femts.errors import UsageError
from femts.evaluation.intervals import Intervals
from femts.forecaster.run_folder import CONFIG, SCORED
from femts.forecaster.saved_run import SavedRun, changed, read_run
from femts.models.base import ForecastModel
from femts.models.registry import build_model

# Errors caused by intact files that do not belong together.
UNFIT = (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ArithmeticError, IndexError)


@dataclass(frozen=True)
class Restored:
    """A run with the objects restored from its files."""

    run: SavedRun
    model: ForecastModel
    preprocess: Preprocess
    intervals: Intervals | None
    scored: Restored | None = None

    def fields(self) -> dict[str, Any]:
        """Fields of a forecaster by name, except `scored`."""
        run = self.run
        names = ("freq", "data", "until", "series_until", "series_trained")
        trained_on = {name: run.preprocess[name] for name in names}
        said = {"config": run.config, "metrics": run.metrics, "validations": run.validations}
        return {"model": self.model, "preprocess": self.preprocess, "intervals": self.intervals, **trained_on, **said}


def weights_bytes(model: ForecastModel, preprocess: object) -> bytes:
    """Contents of `model.safetensors`, with a hash of the data that the weights are for: the order of the columns and
    their scales."""
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    return tensors_bytes(state, {"preprocess": fingerprint(preprocess)})


def restore(folder: str | Path) -> Restored:
    """Restore the run in `folder`, and the scored run within it; raise UsageError if it is not a valid run, with the
    reason."""
    return _restored(read_run(folder), Path(folder))


def _restored(run: SavedRun, folder: Path) -> Restored:
    try:
        preprocess = Preprocess.from_dict(run.preprocess)
        model = build_model(run.config.model, run.config.model_config, run.config.quantiles)
        model.load_state_dict(read_tensors(run.weights))
        intervals = None if run.intervals is None else Intervals.from_bytes(run.intervals)
    except UsageError as error:
        raise changed(folder, str(error).rstrip(".")) from error
    except UNFIT as error:
        raise changed(folder, f"its files do not belong together ({str(error).partition(chr(10))[0]})") from error
    model.read_weights()  # weights that are not stored in the folder
    scored = None if run.scored is None else _restored(run.scored, folder / SCORED)
    if scored is not None:
        of, own = scored.run.config, run.config
        if of != replace(own, refit=False, dataset=of.dataset, source=of.source):  # an update may read another table
            raise changed(folder, f"{SCORED}/{CONFIG} belongs to another run")
    return Restored(run, model.eval(), preprocess.reading(model.supports.raw), intervals, scored)
