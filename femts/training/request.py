"""Arguments of a training, resolved from those of `femts.train`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from femts.config.arguments import check_text
from femts.config.model import AUTO, DEFAULT_MODEL
from femts.config.training import TrainingConfig, parse_span
from femts.data.dataset import Dataset
from femts.data.splits import PARTS
from femts.data.windows import check_windows
from femts.errors import UsageError
from femts.evaluation.criterion import CRITERIA, DEFAULT
from femts.evaluation.validation import BUILT_IN
from femts.models.registry import model_card
from femts.text import arguments, quote
from femts.training.accelerator import Accelerator, find_accelerator
from femts.training.constants import SHORT_STEPS
from femts.training.resolve import BUDGETS, Lengths, resolve_run, resolve_training

WEIGHTS = "model.weights"  # given to `auto`, it adds the pretrained model of these weights


@dataclass(frozen=True)
class FitRequest:
    """Arguments of `train` except the data.

    Attributes:
        model: registered name, or `auto`.
        settings: settings of the model by name; for `auto`, those of pretrained weights that it tries as well.
        training: the recipe.
        asked: arguments `given` and `settings` of `resolve_training`, from which these two were resolved.
        accelerator: device, precision and number of processes.
        started: `time.monotonic()` when the call began.
        lengths: horizon, look-back and protocol as requested.
        out: run folder; None writes nothing.
        resume: continue the run in it.
        anew: with `resume`, start over if it holds a run of another request, instead of raising an error.
        refit: refit on all rows after scoring.
        progress: show a progress line on a terminal.
        most_windows: largest number of windows to score per split; None for the model's default.
        chosen: sentences on choices that femts made for the user.
        ignores: ignore past and static covariates that the model cannot read, instead of raising an error.
    """

    model: str
    settings: Mapping[str, Any]
    training: TrainingConfig
    asked: tuple[Mapping[str, Any], Mapping[str, Any]]
    accelerator: Accelerator
    started: float
    lengths: Lengths = field(default_factory=Lengths)
    out: Path | None = None
    resume: bool = False
    anew: bool = False
    refit: bool = False
    progress: bool = False
    most_windows: int | None = None
    chosen: tuple[str, ...] = ()
    ignores: bool = False

    @classmethod
    def of(cls, model: str, given: Mapping[str, Any], settings: Mapping[str, Any], started: float) -> FitRequest:
        """Request for `model` with recipe fields `given` and dotted `settings`; see `resolve_training`.

        Raises:
            UsageError: As in `resolve_training` and `find_accelerator`.
        """
        named = DEFAULT_MODEL if check_text(model, "model") == AUTO else model
        weights = dict[str, Any]()
        if model == AUTO and isinstance(settings, Mapping) and WEIGHTS in settings:
            of_model = [key for key in settings if str(key).startswith("model.")]
            weights = {key.removeprefix("model."): settings[key] for key in of_model}
            settings = {key: value for key, value in settings.items() if key not in of_model}
        resolved, training = resolve_training(named, given, settings)
        if model == AUTO and (resolved or training.learned_quantiles):
            odd = f"model.{next(iter(resolved))}" if resolved else "training.loss=pinball"
            raise UsageError(
                f"Setting '{quote(odd)}' applies to a single model, but {arguments({'model': AUTO})} selects the model; name a model.",
                argument=odd.partition("=")[0],
            )
        if model == AUTO and training.metric not in ("", *CRITERIA):
            text = f"Model 'auto' cannot select by '{quote(training.metric)}'; use one of {', '.join(CRITERIA)}, or name a model."
            raise UsageError(text, argument="training.metric", value=training.metric)
        if model != AUTO and training.metric in CRITERIA and training.metric not in BUILT_IN:
            fault = f"Metric '{training.metric}' requires {arguments({'model': AUTO})}"
            text = f"{fault}; a single model is validated by {', '.join(BUILT_IN)} or a registered metric."
            raise UsageError(text, argument="training.metric", value=training.metric)
        return cls(model, weights or resolved, training, (given, settings), find_accelerator(training), started)

    def for_candidate(
        self,
        model: str,
        budget: Mapping[str, Any],
        out: Path | None,
        most_windows: int,
        loss: str = "mse",
        model_settings: Mapping[str, Any] | None = None,
    ) -> FitRequest:
        """Request for one of the models that `auto` tries: with `model_settings`, trained in the folder `out` within
        `budget`, fields of the recipe, by `loss` unless the user set one, and scored on at most `most_windows`
        windows."""
        given, settings = self.asked
        settings = {**settings, **{f"model.{name}": value for name, value in (model_settings or {}).items()}}
        if self.criterion not in BUILT_IN:  # trainings are validated by the error in scaled units
            given = {name: value for name, value in given.items() if name != "metric"}
            settings = {name: value for name, value in settings.items() if name != "training.metric"}
            settings["training.metric"] = DEFAULT
        other = FitRequest.of(model, given, settings, time.monotonic())
        training = replace(other.training, **{"max_time": None, **budget})
        if "training.loss" not in self.asked[1]:
            training = replace(training, loss=loss)
        if training.max_time is not None or budget.get("max_steps", SHORT_STEPS) < SHORT_STEPS:
            short = model_card(model).model_class.short_training_defaults
            training = replace(
                training, **{key: v for key, v in short.items() if f"training.{key}" not in self.asked[1]}
            )
        same: dict[str, Any] = {"lengths": self.lengths, "progress": self.progress, "most_windows": most_windows}
        return replace(other, training=training, out=out, resume=out is not None, ignores=True, **same)

    def check_fits(self, data: Dataset, lengths: Lengths) -> None:
        """Raise UsageError if a training, for `auto` that of the default model, does not fit `data`, which are split for
        its horizon."""
        auto = self.model == AUTO
        model, settings = (DEFAULT_MODEL, {}) if auto else (self.model, self.settings)
        config = resolve_run(data, model, lengths, settings, self.training, ignores=auto)
        for part in PARTS:
            check_windows(data, part, config.seq_len, config.pred_len, config.looks_within(data.season))

    @property
    def criterion(self) -> str:
        """Selection criterion of `auto`, one of `CRITERIA`."""
        return self.training.metric or DEFAULT

    @property
    def sets_steps(self) -> bool:
        """Whether the user set the number of steps or epochs."""
        return any(f"training.{name}" in self.asked[1] or self.asked[0].get(name) is not None for name in BUDGETS)

    @property
    def limit(self) -> float | None:
        """Time limit in seconds; None is no limit."""
        return None if self.training.max_time is None else parse_span(self.training.max_time)
