"""Fits in closed form within a time limit: they cannot be cut short, so they are measured on a part first."""

from __future__ import annotations

from collections.abc import Sequence

from femts.data.dataset import Dataset
from femts.errors import UsageError
from femts.models.registry import build_model
from femts.models.ridge import LinearForecast, RidgeConfig
from femts.text import rough
from femts.training.data_module import DataModule
from femts.training.request import FitRequest
from femts.training.select.candidates import Candidate
from femts.training.select.work import resolved


def in_time(
    candidates: Sequence[Candidate], request: FitRequest, fold: Dataset, room: float
) -> tuple[dict[str, float], dict[str, str]]:
    """Estimate the fits in closed form, those with short look-backs first, as long as they take at most `room` seconds
    together.

    Returns:
        Their seconds by key, and reasons for skipping the others.
    """
    seconds, late, longest = dict[str, float](), dict[str, str](), (0.0, 1)
    with_maps = list[tuple[int, Candidate]]()
    for each in candidates:
        try:
            config = resolved(each, request, fold)
        except UsageError:  # the trial itself reports the reason
            continue
        if isinstance(config.model_config, RidgeConfig):
            with_maps.append((config.seq_len, each))
    for steps, each in sorted(with_maps, key=lambda pair: pair[0]):
        before, length = longest
        expected = before * (steps / length) ** 2  # moments grow so, and solutions faster
        spent = sum(seconds[one.key] for _, one in with_maps if one.key in seconds and not one.learns)
        if spent + expected <= room:
            try:
                expected = _seconds(each, request, fold)
            except UsageError:
                continue
            longest = expected, steps
        if spent + expected <= room:
            seconds[each.key] = expected
        else:
            late[each.key] = f"its fit may take {rough(expected)} s and there is not enough time"
    return seconds, late


def _seconds(candidate: Candidate, request: FitRequest, fold: Dataset) -> float:
    config = resolved(candidate, request, fold)
    module = DataModule.of(fold, config, ("train",))
    model = build_model(config.model, config.model_config)
    linear, settings = model.linear, config.model_config
    assert isinstance(linear, LinearForecast) and isinstance(settings, RidgeConfig)
    rows, observed = module.rows_for(model)
    return linear.seconds_of_fit(rows, settings.ridge, observed)
