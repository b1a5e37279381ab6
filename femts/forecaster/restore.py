"""A saved run made anew: its parts are held against each other, so that a forged one does not load."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd
import torch
from pandas.tseries.frequencies import to_offset
from safetensors import SafetensorError
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_bytes
from torch import Tensor
from torch.nn.modules.module import register_module_parameter_registration_hook

from femts.config.rules import MISSING, Misfit, fingerprint
from femts.data.effects import Effects
from femts.data.frequency import steps_between
from femts.data.panel_preprocess import PanelPreprocess
from femts.data.preprocess import Preprocess
from femts.data.roles import Roles
from femts.data.static import StaticCodes
from femts.errors import UsageError
from femts.evaluation.difficulty import KINDS, PHASE
from femts.evaluation.intervals import Intervals
from femts.forecaster.members import check_members
from femts.forecaster.run_folder import CONFIG, INTERVALS, PREPROCESS, SCORED, WEIGHTS, RunConfig
from femts.forecaster.saved_run import SavedRun, changed, read_run
from femts.models.base import ForecastModel
from femts.models.registry import build_model

P = TypeVar("P", Preprocess, PanelPreprocess)
SPARE = 100_000  # weights that a model may make and replace while it is built
_UNREADABLE = (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ArithmeticError)


@dataclass(frozen=True)
class Restored(Generic[P]):
    """A run, and what was made of its files."""

    run: SavedRun
    model: ForecastModel
    preprocess: P
    intervals: Intervals | None
    scored: Restored[P] | None = None

    def fields(self) -> dict[str, Any]:
        """Fields of a forecaster by name, but for `scored`."""
        run = self.run
        trained_on = {
            "freq": run.preprocess["freq"],
            "data": run.preprocess["data"],
            "until": run.preprocess.get("until"),
            "series_until": run.preprocess.get("series_until", {}),
        }
        said = {"config": run.config, "metrics": run.metrics, "validations": run.validations}
        return {"model": self.model, "preprocess": self.preprocess, "intervals": self.intervals, **trained_on, **said}


def weights_bytes(model: ForecastModel, preprocess: object) -> bytes:
    """`model.safetensors`, which says by a hash what data the weights are for: the order of the
    columns, and their scales."""
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    return tensors_bytes(state, {"preprocess": fingerprint(preprocess)})


def restore(folder: str | Path) -> Restored[Preprocess]:
    """Restore what `folder` holds; UsageError in one sentence for each way in which it cannot be a run."""
    run = read_run(folder)
    if run.config.schema.panel:
        raise UsageError(f"Run {folder} is of a panel of series, and this takes a single table; load it by femts.load.")
    return _restored(run, Path(folder), _preprocess, restore)


def restore_panel(folder: str | Path) -> Restored[PanelPreprocess]:
    """As `restore`, for a run of a panel."""
    run = read_run(folder)
    if not run.config.schema.panel:
        raise UsageError(f"Run {folder} is of a single table, not of a panel of series; load it as such.")
    return _restored(run, Path(folder), _panel_preprocess, restore_panel)


def _restored(
    run: SavedRun, folder: Path, preprocessing: Callable[[SavedRun], P], read: Callable[[Path], Restored[P]]
) -> Restored[P]:
    """The `run` in `folder` made anew, the one that is scored within it by `read`."""
    try:
        preprocess = preprocessing(run)
        check_members(run.config, run.metrics)
        model = _model(run)
        intervals = None if run.intervals is None else _intervals(run, run.intervals)
        return Restored(run, model, preprocess.reading(model.reads_raw), intervals, _scored(run, folder, read))
    except Misfit as error:
        raise changed(folder, error) from error


def _scored(run: SavedRun, folder: Path, read: Callable[[Path], Restored[P]]) -> Restored[P] | None:
    """The run that is scored within the one in `folder`, where that learned from all rows."""
    if not run.config.final:
        return None
    scored = read(folder / SCORED)
    if scored.run.config != replace(run.config, final=False):
        raise Misfit(f"{SCORED}/{CONFIG}", "another one", f"that of {CONFIG}, but for `final`")
    return scored


def _model(run: SavedRun) -> ForecastModel:
    try:
        weights = read_tensors(run.weights)
        header = json.loads(run.weights[8 : 8 + int.from_bytes(run.weights[:8], "little")])
    except _UNREADABLE as error:
        raise Misfit(WEIGHTS, run.weights[:20], "in the format of safetensors") from error
    if header.get("__metadata__", {}).get("preprocess") != fingerprint(run.preprocess):
        raise Misfit(PREPROCESS, "another one", f"that of {WEIGHTS}")
    try:
        expected = outline(run.config, sum(value.numel() for value in weights.values())).state_dict()
    except Misfit:
        raise
    except UsageError as error:
        raise Misfit(
            "model of config.yaml", run.config.model, f"one that can be built: {str(error).rstrip('.')}"
        ) from error
    except (*_UNREADABLE, AssertionError, LookupError) as error:
        raise Misfit("model of config.yaml", run.config.model, f"one that can be built ({error})") from error
    check_tensors(weights, expected, WEIGHTS)
    model = build_model(run.config.model, run.config.model_config, run.config.quantiles)
    model.load_state_dict(weights)
    return model.eval()


def outline(config: RunConfig, parameters: int) -> ForecastModel:
    """The model of `config` without memory for its weights; a Misfit when it has many more of them
    than `parameters`."""
    left, thread = 2 * parameters + SPARE, threading.get_ident()

    def count(module: torch.nn.Module, name: str, parameter: torch.nn.Parameter) -> None:
        nonlocal left
        if threading.get_ident() == thread:
            left -= 0 if parameter is None else parameter.numel()
            if left < 0:  # before a million layers that somebody wrote are built
                raise Misfit("model of config.yaml", "larger", f"one of {parameters} weights")

    hook = register_module_parameter_registration_hook(count)
    try:
        with torch.device("meta"):
            return build_model(config.model, config.model_config, config.quantiles)
    finally:
        hook.remove()


def check_tensors(tensors: object, expected: dict[str, Tensor], where: str) -> None:
    """A Misfit unless `tensors` has the tensors `expected`, by name, shape and dtype, with finite numbers."""
    if not isinstance(tensors, dict):
        raise Misfit(where, tensors, "tensors by name")
    for name in {**tensors, **expected}:
        value, like, called = tensors.get(name), expected.get(name), f"{where}: {name}"
        if like is None or not isinstance(value, Tensor):
            raise Misfit(called, MISSING, "") if like is not None else Misfit(called, "there", "a part of this model")
        if (value.shape, value.dtype) != (like.shape, like.dtype):
            raise Misfit(called, (tuple(value.shape), value.dtype), f"{tuple(like.shape)} of {like.dtype}")
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise Misfit(called, "not finite", "numbers")


def _check_preprocess(run: SavedRun) -> None:
    saved, roles = run.preprocess, run.config.schema.roles
    if "series" in saved:
        raise Misfit(PREPROCESS, "of a panel", "that of a single table, as config.yaml says")
    columns, scaler, freq = tuple(saved["columns"]), saved["scaler"], saved["freq"]
    channels = run.config.model_config.n_channels
    for name, values in {"columns": columns, "scaler.mean": scaler["mean"], "scaler.scale": scaler["scale"]}.items():
        if len(values) != channels:
            raise Misfit(f"{PREPROCESS}: {name}", values, f"one for each of {channels} channels")
    if len(set(columns)) < len(columns) or set(columns) & set(roles.future):
        raise Misfit(f"{PREPROCESS}: columns", columns, "a name for each")
    targets = columns[: len(columns) - len(roles.past)]
    if columns[len(targets) :] != roles.past or not targets or (roles.target and roles.target != targets):
        raise Misfit(f"{PREPROCESS}: columns", columns, f"{(*roles.target, *roles.past)} as config.yaml says")
    try:
        stepped = freq is None or (int(freq) > 0 if freq.isdecimal() else to_offset(freq) is not None)
    except (ValueError, OverflowError) as error:
        raise Misfit(f"{PREPROCESS}: freq", freq, "a step between stamps") from error
    _check_until(saved)
    if not stepped or (roles.calendar and (freq is None or freq.isdecimal())):
        raise Misfit(f"{PREPROCESS}: freq", freq, "a step between stamps")


def _check_until(saved: Mapping[str, Any]) -> None:
    freq = saved["freq"]
    if "until" in saved and (freq is None or steps_between(saved["until"], saved["until"], freq) is None):
        raise Misfit(f"{PREPROCESS}: until", saved["until"], "a stamp of that step")


def _preprocess(run: SavedRun) -> Preprocess:
    """The preprocessing, held to the configuration."""
    _check_preprocess(run)
    try:
        preprocess = Preprocess.from_dict(run.preprocess)
    except ValueError as error:  # a list of lists that are not as long as each other
        raise Misfit(f"{PREPROCESS}: scaler", run.preprocess["scaler"], "in the form of arrays") from error
    _check_effects(preprocess.effects, run.config.schema.roles, len(preprocess.columns))
    return preprocess


def _panel_preprocess(run: SavedRun) -> PanelPreprocess:
    """As `_preprocess`, of a panel."""
    if "series" not in run.preprocess or len(run.preprocess["columns"]) != run.config.model_config.n_channels:
        raise Misfit(f"{PREPROCESS}: columns", run.preprocess["columns"], "those of a panel, a channel each")
    _check_until(run.preprocess)
    preprocess = PanelPreprocess.from_dict(run.preprocess)
    for name, one in preprocess.series.items():
        if len(one.scaler.mean) != len(preprocess.columns):
            raise Misfit(f"{PREPROCESS}: series '{name}'", one.scaler.mean, "one mean a column")
        if one.effects is not preprocess.effects:
            _check_effects(one.effects, run.config.schema.roles, len(preprocess.columns))
    _check_effects(preprocess.effects, run.config.schema.roles, len(preprocess.columns))
    _check_static(preprocess.static, run.config)
    return preprocess


def _check_static(static: StaticCodes | None, config: RunConfig) -> None:
    names = () if static is None else tuple(column.name for column in static.columns)
    width = 0 if static is None else static.width
    if names != config.schema.roles.static or width != getattr(config.model_config, "n_static", 0):
        raise Misfit(f"{PREPROCESS}: static", names, f"those of {config.schema.roles.static} as config.yaml says")


def _check_effects(effects: Effects | None, roles: Roles, channels: int) -> None:
    """A Misfit unless the effects suit the roles; they are tried on one row, as their shapes depend on each other."""
    if effects is None and not roles.future and not roles.calendar:
        return
    name = f"{PREPROCESS}: scaler.effects"
    like = f"those of the columns {roles.future} and the calendar as config.yaml says"
    if (
        effects is None
        or effects.calendar != roles.calendar
        or (effects.zone is not None and not roles.calendar)
        or not len(effects.knots) == len(effects.mean) == len(roles.future)
    ):
        raise Misfit(name, effects, like)
    try:
        when = pd.DatetimeIndex(["2000-01-01"], tz=effects.zone)
        tried = effects.of(np.zeros((1, len(roles.future))), when)
    except (ValueError, LookupError, TypeError, OSError) as error:  # of a zone that there is not, too
        raise Misfit(name, effects, like) from error
    if tried.shape != (1, channels) or not np.isfinite(tried).all() or effects.weight.shape[1:] != effects.offset.shape:
        raise Misfit(name, effects, like)


def _intervals(run: SavedRun, content: bytes) -> Intervals:
    try:
        intervals = Intervals.from_bytes(content)
        levels, widths = intervals.levels, intervals.half_widths
        fitting = widths.ndim == 3 and widths.shape[::2] == (
            len(levels),
            len(run.preprocess["columns"]) - len(run.config.schema.roles.past),
        )
        rising = all(low < high for low, high in zip((0.0, *levels), (*levels, 100.0), strict=True))
        # A correction of learned quantiles may be negative, and a channel without values in validation has none.
        whole = np.isnan(widths).all(axis=(0, 1)) | np.isfinite(widths).all(axis=(0, 1))
        numbers = widths.dtype == np.float32 and bool(whole.all()) and not np.isnan(widths).all()
        difficulty, targets = intervals.difficulty, widths.shape[2]
        factors = (*difficulty.series.ravel(), *difficulty.phases.ravel(), *difficulty.lowest.ravel())
        numbers &= all(0 < factor < np.inf for factor in factors)
        fitting &= difficulty.series.shape == (len(intervals.names), targets)
        fitting &= difficulty.phases.shape[1:] == difficulty.kinds.shape == difficulty.lowest.shape == (targets,)
        fitting &= set(difficulty.kinds.tolist()) <= set(range(len(KINDS)))
        fitting &= PHASE not in difficulty.kinds or len(difficulty.phases) > 1
    except (*_UNREADABLE, IndexError) as error:
        raise Misfit(INTERVALS, content[:20], "intervals") from error
    counted = 1 <= intervals.disjoint <= intervals.windows or intervals.windows == intervals.disjoint == 0
    if not (fitting and rising and numbers and widths.shape[1] >= 1 and counted):
        raise Misfit(INTERVALS, widths.shape, "intervals of rising levels for each step and target")
    return intervals
