"""Export of a forecaster to ONNX, with raw units as inputs and outputs, for programs with onnxruntime but without
torch."""

from __future__ import annotations

import copy
import json
import logging
import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from femts._version import __version__
from femts.data.batch import Batch
from femts.data.power import SMALL
from femts.data.preprocess import Preprocess
from femts.environment import without_traces
from femts.errors import UsageError
from femts.files import check_target, write_file
from femts.forecaster.forecasting import forecast_array
from femts.mixers.ops.precision import full_precision
from femts.mixers.ops.scan import prefixes
from femts.models.fem_zero import ZeroShot
from femts.text import arguments

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster

BOUND = 1e-4  # tolerated difference between graph and torch, in scaled units
NAMES = ("history", "forecast")
BATCHES = (1, 5)  # batch sizes of the check


@dataclass(frozen=True)
class Exported:
    """Attributes: path: the file; size: bytes; steps: horizon; difference: largest difference from torch, in scaled
    units."""

    path: Path
    size: int
    steps: int
    difference: float


class RawForecast(nn.Module):
    """Maps raw look-backs (B, L, C), float32, to raw forecasts of the targets (B, steps, T): fills gaps, scales,
    forecasts and scales back; NaN for a target without any value in its look-back."""

    def __init__(self, forecaster: Forecaster, steps: int) -> None:
        super().__init__()
        self.model, self.steps = copy.deepcopy(forecaster.model).cpu().float().eval(), steps
        self.targets = len(forecaster.targets)
        self.mean: Tensor
        self.scale: Tensor
        self.low: Tensor | None
        self.powers: Tensor | None
        preprocess = forecaster.preprocess
        scaler, power, domain = preprocess.scaler, preprocess.power, preprocess.domain
        self.shift, self.high = 0.0 if power is None else power.shift, domain.high
        powers = None if power is None else power.powers[0]
        used = {"mean": scaler.mean[0], "scale": scaler.scale[0], "low": domain.low, "powers": powers}
        for name, value in used.items():
            if value is None:
                setattr(self, name, None)  # torch fails to trace an empty buffer, and traces again in a slower way
            else:
                self.register_buffer(name, torch.tensor(value, dtype=torch.float32))

    def forward(self, history: Tensor) -> Tensor:
        even = self._even(history)
        if isinstance(self.model, ZeroShot):
            return self._finished(self.model.graph_forecast(even, self.steps).float(), history)
        scaled = (even - self.mean) / self.scale
        (filled,) = prefixes((scaled,), lambda before, here: (torch.where(here[0].isnan(), before[0], here[0]),))
        forecast: Tensor = self.model.forecast(Batch(torch.where(filled.isnan(), 0.0, filled)), self.steps)
        return self._finished(forecast * self.scale + self.mean, history)

    def _finished(self, forecast: Tensor, history: Tensor) -> Tensor:
        """Raw forecasts within their bounds of the targets, given those of all columns after the transform."""
        raw = self._raw(forecast[..., : self.targets])
        raw = raw if self.low is None else torch.maximum(raw, self.low)
        raw = raw if self.high is None else raw.clamp(max=self.high)
        return torch.where(history[..., : self.targets].isnan().all(1, keepdim=True), torch.nan, raw)

    def _even(self, history: Tensor) -> Tensor:
        """As `femts.data.power.PowerTransform.apply`, for the targets."""
        if self.powers is None:
            return history
        targets, rest = history.split([self.targets, history.shape[-1] - self.targets], dim=-1)
        base, straight = targets + self.shift, torch.where(self.powers == 0, 1.0, self.powers)
        even = torch.where(self.powers == 0, base.log(), (base**straight - 1) / straight)
        return torch.cat([even, rest], dim=-1)

    def _raw(self, values: Tensor) -> Tensor:
        """As `femts.data.power.PowerTransform.undo`."""
        if self.powers is None:
            return values
        straight = torch.where(self.powers == 0, 1.0, self.powers)
        base = (self.powers * values + 1).clamp(min=SMALL)
        return torch.where(self.powers == 0, values.exp(), base ** (1 / straight)) - self.shift


def export(forecaster: Forecaster, path: str | Path, horizon: int | None = None) -> Exported:
    """Export `forecaster` to `path` as ONNX, after verifying that onnxruntime and torch give the same forecasts.

    The graph takes `history` (B, L, C), float32, in raw units, oldest step first, with columns in training order and
    NaN for missing values (replace other sentinels and outliers beforehand). It fills these like `predict` for a history of L rows:
    with the last value before, or at the start with the training mean. It returns `forecast` (B, horizon, T) of the
    targets, float32, in raw units, NaN for a target whose history has no value; B is dynamic. Intervals and time stamps
    are not included, and a bound that was inferred in training is kept whatever the history. The metadata contain
    `femts` (the version), `model`, `columns` and `targets` (JSON), `freq` (empty without stamps), `seq_len`, `pred_len`
    and `data_sha256`.

    Args:
        forecaster: a trained forecaster, which is not changed.
        path: file to write, completely or not at all.
        horizon: number of steps to forecast, P by default; longer forecasts are recursive within the graph, whose size
            grows accordingly.

    Raises:
        UsageError: The folder of `path` is missing, the run has future covariates, onnxscript or onnxruntime is
            missing, an operator of the model is not supported by ONNX, or graph and torch differ by more than `BOUND`
            in scaled units; nothing is written.
        RunFailure: The file cannot be written.
    """
    if len(forecaster.series) > 1:
        fault = f"This run has {len(forecaster.series)} series, but an ONNX graph holds one"
        text = f"{fault}; select it, as with {arguments({'series': forecaster.series[0]})}."
        raise UsageError(text, argument="series", remedy={"series": forecaster.series[0]})
    apart = {
        "is refitted to each look-back": lambda one: one.config.reads_raw and not _exportable(one, forecaster),
        "uses decision trees outside of torch": lambda one: not one.model.in_torch,
    }
    for does, of in apart.items():
        found = [each for each in forecaster.members or (forecaster,) if of(each)]
        if found:
            members = ", ".join(f"'{each.config.model}'" for each in found) if forecaster.members else ""
            subject = f"Model '{forecaster.config.model}'" + (f", by its members {members}," if members else "")
            raise UsageError(f"{subject} {does}, which ONNX does not support; export another, such as ridge.")
    if forecaster.preprocess.effects is not None or forecaster.preprocess.known is not None:
        raise UsageError(
            "A run with future covariates or calendar features cannot be exported to ONNX; export one trained without "
            "them."
        )
    check_target(Path(path))  # before the minute that the graph takes
    steps = forecaster.config.pred_len if horizon is None else horizon
    content = _graph(forecaster, steps)
    difference = _difference(forecaster, content, steps)
    write_file(Path(path), content)
    return Exported(Path(path), len(content), steps, difference)


def _exportable(one: Forecaster, of: Forecaster) -> bool:
    """Whether `one` reads raw rows within a graph, which only a model alone does, not a member of a mean."""
    return one is of and isinstance(one.model, ZeroShot)


def _graph(forecaster: Forecaster, steps: int) -> bytes:
    """Bytes of the ONNX file."""
    config, columns = forecaster.config, forecaster.columns
    # otherwise it assigns this machine an identifier, stored in the user's cache
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime  # noqa: F401  # before the minute that the graph takes
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"ONNX needs {error.name}, which is not installed; run pip install onnxruntime onnxscript."
        ) from error
    example = torch.zeros(2, config.seq_len, len(columns))
    # These messages report operators of libraries that are not installed and skipped optimisations.
    chatty = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript")]
    levels = [logger.level for logger in chatty]
    try:
        for logger in chatty:
            logger.setLevel(logging.ERROR)
        quiet = warnings.catch_warnings(action="ignore")
        with quiet, without_traces(), torch.no_grad(), full_precision("cpu"):
            program: Any = torch.onnx.export(
                RawForecast(forecaster, steps),
                (example,),
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                input_names=NAMES[:1],
                output_names=NAMES[1:],
                # The optimiser compares every pair of nodes, of which the closed-form forecasts have thousands.
                optimize=not isinstance(forecaster.model, ZeroShot),
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = str(cause).strip().partition("\n")[0].rstrip(".")
        raise UsageError(
            f"Model '{config.model}' cannot be exported to ONNX ({reason}); every network that comes with femts can."
        ) from error
    finally:
        for logger, level in zip(chatty, levels, strict=True):
            logger.setLevel(level)
    proto = program.model_proto
    for node in (*proto.graph.node, *(node for function in proto.functions for node in function.node)):
        # Source locations take up most of a small file and contain paths of this machine.
        del node.metadata_props[:]
    for key, value in _facts(forecaster, steps).items():
        proto.metadata_props.add(key=key, value=value)
    content: bytes = proto.SerializeToString()
    return content


def _facts(forecaster: Forecaster, steps: int) -> dict[str, str]:
    """Metadata that users of the file need."""
    config = forecaster.config
    return {
        "femts": __version__,
        "model": config.model,
        "columns": json.dumps(forecaster.columns),
        "targets": json.dumps(forecaster.targets),
        "freq": forecaster.freq or "",
        "seq_len": str(config.seq_len),
        "pred_len": str(steps),
        "data_sha256": str(forecaster.data["sha256"]),
    }


def _difference(forecaster: Forecaster, content: bytes, steps: int) -> float:
    """Largest difference between onnxruntime and torch, in scaled units; raise UsageError if it exceeds the
    tolerance."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # it warns of constants that it cannot fold
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    preprocess = replace(forecaster.preprocess, outliers=None)  # which a graph keeps
    worst, forecaster = 0.0, replace(forecaster, preprocess=preprocess)
    for past in _look_backs(forecaster):
        (forecast,) = session.run(NAMES[1:], {NAMES[0]: past})
        expected = forecast_array(forecaster, past, steps).astype(np.float32)
        empty = np.isnan(past[..., : len(forecaster.targets)]).all(1, keepdims=True)
        # Only targets without a value may be NaN; any other NaN counts as an infinite difference.
        difference = np.where(empty & np.isnan(forecast), 0.0, np.abs(forecast.astype(np.float64) - expected))
        difference[np.isnan(difference) | (empty & ~np.isnan(forecast))] = np.inf
        worst = max(worst, float(_in_scaled_units(difference, expected, preprocess).max()))
        # Differences below the resolution of float32, for values far from 0 relative to their spread, do not count.
        beyond = np.maximum(difference - 4 * np.nan_to_num(np.spacing(np.abs(expected))), 0.0)
        if not (_in_scaled_units(beyond, expected, preprocess) <= BOUND).all():
            raise UsageError(
                f"Model '{forecaster.config.model}' differs between onnxruntime and torch by {worst:.1e} in scaled "
                f"units, more than the tolerance of {BOUND:g}; upgrade with pip install -U onnxruntime onnxscript."
            )
    return worst


def _in_scaled_units(
    difference: NDArray[np.float64], expected: NDArray[np.float32], preprocess: Preprocess
) -> NDArray[np.float64]:
    """Differences (..., T) in scaled units, given raw `expected` values (..., T); with a transform, at these values."""
    if preprocess.power is None:
        return difference / preprocess.scaler.scale[0, : difference.shape[-1]]
    values = expected.astype(np.float64)
    distance = np.subtract(preprocess.rescale(values + difference), preprocess.rescale(values))
    return np.where(difference > 0, np.where(np.isinf(difference), np.inf, distance), 0.0)


def _look_backs(forecaster: Forecaster) -> list[NDArray[np.float32]]:
    """Look-backs for the check: noise with the training's mean and spread, a random walk of it, and the same with gaps,
    one of them at the start and one target of the first look-back empty."""
    rng, batches = np.random.default_rng(0), []
    for batch in BATCHES:
        noise = rng.normal(size=(batch, forecaster.config.seq_len, len(forecaster.columns)))
        walk = noise.cumsum(1) / np.sqrt(np.arange(1, noise.shape[1] + 1))[:, None]
        gaps = np.where(rng.uniform(size=walk.shape) < 0.2, np.nan, walk)
        gaps[:, :2] = np.nan
        empty = walk.copy()
        empty[0, :, 0] = np.nan
        batches += [forecaster.preprocess.inverse(scaled).astype(np.float32) for scaled in (noise, walk, gaps, empty)]
    return batches
