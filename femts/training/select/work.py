"""Work of a selection, computed from the sizes of a table; see `constants` for the unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from femts.config.training import VALIDATIONS
from femts.data.batch import Batch
from femts.data.dataset import Dataset
from femts.forecaster.run_folder import RunConfig
from femts.models.boost import ROWS_A_SECOND, BoostConfig
from femts.models.classics import Classic
from femts.models.parts import classic_fit
from femts.models.registry import build_model
from femts.training.request import FitRequest
from femts.training.resolve import resolve_run
from femts.training.select import constants
from femts.training.select.candidates import TREES, Candidate


def resolved(candidate: Candidate, request: FitRequest, data: Dataset) -> RunConfig:
    """Configuration of the training of `candidate` on `data`."""
    lengths = candidate.lengths(request.lengths)
    return resolve_run(data, candidate.model, lengths, candidate.settings, request.training, ignores=True)


def last_window(model: nn.Module, config: RunConfig, data: Dataset) -> Batch:
    """The last training rows of a series of median length, as a batch of one look-back."""
    first, stop = data.part("train")[np.argsort(data.train_lengths)[len(data) // 2]]
    values = data.values[max(first, stop - config.seq_len) : stop, : len(data.columns)]
    known = torch.zeros(1, len(values) + config.pred_len, getattr(model.config, "n_known", 0))
    return Batch(torch.tensor(values)[None], known=known if known.shape[2] else None)


def work_of_forecast(candidate: Candidate, request: FitRequest, data: Dataset) -> float:
    """Work of the forecast of one column of one look-back by a classical or pretrained model."""
    config = resolved(candidate, request, data)
    model = build_model(config.model, config.model_config)
    batch = last_window(model, config, data)
    rows, columns = batch.past.shape[1:]
    if isinstance(model, Classic):
        return sum(work_of_fit(fit, rows) for fit in model.fits(config.pred_len))
    from torch.utils.flop_counter import FlopCounterMode  # imports triton

    if model.supports.channels == 1:  # each column takes the same work
        batch, columns = replace(batch, past=batch.past[..., :1]), 1
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(batch)
    return float(counter.get_total_flops()) / constants.FLOPS / columns


def work_of_fit(fit: classic_fit.Fit, rows: int) -> float:
    """Work of a fit to `rows` rows."""
    season = max((each for each in (fit.season, *fit.further) if each <= rows), default=1)
    searched = 1 < season <= classic_fit.ARIMA_SEASON if fit.name == "AutoARIMA" else season > 1
    each = constants.FITS[fit.name][searched]
    return each.base + rows * (each.row + each.square * rows + each.season * season)


def work_of_training(config: RunConfig, data: Dataset) -> tuple[float, float]:
    """Work of a training of a network on `data`: of each step, and of all validations."""
    training, columns = config.training, config.model_config.n_channels
    base, by_value, wide, drawn = constants.STEPS.get(config.model, constants.OTHER_STEPS)
    by_value *= max(1.0, columns / wide)
    windows, values = training.batch_size * training.accumulate, config.seq_len + config.pred_len
    step = base + by_value * windows * min(training.channels or columns, drawn) * values
    of_window = constants.SCORING * (base / windows + by_value * columns * values)
    validated = int((data.split.val[:, 1] - data.split.val[:, 0]).sum())
    return step, VALIDATIONS * min(training.val_windows or validated, validated) * of_window


def within(candidate: Candidate, request: FitRequest, data: Dataset, most: float) -> Candidate:
    """A candidate that learns, with a training that takes at most the work `most`: unchanged if its own recipe does or
    the user set the number of steps, and with a reason for skipping it if it takes more from the first steps on."""
    config = resolved(candidate, request, data)
    if candidate.model == TREES:
        assert isinstance(config.model_config, BoostConfig)
        rows = min(int(most * ROWS_A_SECOND), config.model_config.rows)
        return replace(candidate, settings={**candidate.settings, "rows": rows})
    if request.sets_steps:
        return candidate
    step, validations = work_of_training(config, data)
    steps = int((most - validations) / step)
    if steps < constants.FEWEST_STEPS:
        return replace(candidate, reason=f"{constants.FEWEST_STEPS} steps of it take too long on a table of this size")
    if steps >= config.training.steps(1):
        return candidate
    return replace(candidate, training={"max_steps": steps})
