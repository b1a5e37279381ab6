"""Resolves user input to a run configuration: fills in defaults and reports mistakes, without writing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from femts.config.arguments import check_kind, check_text
from femts.config.settings import apply_settings
from femts.config.training import TrainingConfig
from femts.config.values import check_plain, left_open, whole_number
from femts.data.catalog import CATALOG
from femts.data.categories import origins
from femts.data.dataset import Dataset
from femts.data.describe import names
from femts.data.frequency import further_seasons
from femts.data.known import HOLIDAY_MARKS, KnownInputs, Reads, calendar_marks
from femts.data.protocols import (
    Choice,
    check_protocol,
    default_horizon,
    default_look_back,
    default_protocol,
    every_row,
)
from femts.data.scaler import SCALERS
from femts.data.static import StaticCodes
from femts.errors import UsageError, blamed, nearest, reads, suggest
from femts.evaluation.conformal import INTERVALS
from femts.evaluation.criterion import CRITERIA
from femts.evaluation.validation import check_selects
from femts.forecaster.run_folder import RunConfig
from femts.models.losses import find_loss
from femts.models.registry import build_config, check_learns_quantiles, check_library, check_trained, model_card
from femts.text import Blank, Message, argument, arguments, quote
from femts.training.constants import DRAWN_CHANNELS, MANY_CHANNELS

if TYPE_CHECKING:
    from femts.data.preprocess import Preprocess
    from femts.data.windows import Windows
    from femts.models.base import ForecastModel

BUDGETS = ("max_steps", "max_epochs")

_DEFAULTS = {f.name: f.default for f in fields(TrainingConfig)}


def resolve_training(
    model: str, given: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[dict[str, Any], TrainingConfig]:
    """Split `settings` into those of the model and of the training, and apply them to the recipe of `model`.

    Args:
        model: registered name; its class may change the recipe.
        given: training fields with an argument of their own; None for those that were not given.
        settings: values by dotted name, `model.*` and `training.*`.

    Returns:
        Settings of the model by name, and the training recipe.

    Raises:
        UsageError: A model, prefix or name is unknown, a value is invalid, a setting is given twice with different
            values, or the model does not support the loss.
    """
    check_trained(model)
    check_library(model)
    recipe = model_card(model).model_class.training_defaults
    check_kind(settings, Mapping, "The settings", "give a mapping such as {'training.lr': 1e-3}")
    parts: dict[str, dict[str, Any]] = {"model": {}, "training": {}}
    for key, value in settings.items():
        prefix, dot, name = check_text(key, "settings").partition(".")
        if not dot or prefix not in parts:
            text = f"Unknown setting '{quote(key)}'{suggest_setting(key, (model,))}"
            raise UsageError(text, argument=key, value=value)
        parts[prefix][name] = value
    training = {**recipe, **parts["training"]}
    for name, value in given.items():
        with blamed(name, value):
            check_plain(value, f"Argument '{name}'")
        if value is None or value == _DEFAULTS[name]:
            continue
        if name in parts["training"] and quote(value) != quote(training[name]):
            text = (
                f"'{name}' is given twice, as {quote(value)} and as training.{name}={quote(training[name])}; give one."
            )
            raise UsageError(text, argument=name, value=value, remedy={name: None})
        training[name] = value
    asked = {name for name in BUDGETS if name in parts["training"] or given.get(name) is not None}
    if len(asked) == 1:  # if one of these is given, it replaces the recipe's other one
        training = {name: value for name, value in training.items() if name not in BUDGETS or name in asked}
    try:
        resolved = apply_settings(TrainingConfig(), training, where="training")
    except UsageError as error:
        name = str(error.argument).removeprefix("training.")
        if name in given and name not in parts["training"]:  # the caller wrote it as an argument
            error.argument = {"max_time": "time_limit"}.get(name, name)
        raise
    _check_registered(resolved)
    if resolved.learned_quantiles:
        check_learns_quantiles(model)
    losses = model_card(model).model_class.losses
    if losses and resolved.loss not in losses:
        text = f"Model '{model}' does not support training.loss={quote(resolved.loss)}; use one of {', '.join(losses)}."
        raise UsageError(text, argument="training.loss", value=resolved.loss)
    return parts["model"], resolved


def _check_registered(training: TrainingConfig) -> None:
    """Raise UsageError if the loss, metric, scaler or interval method named in `training` is unknown."""
    find_loss(training.loss)
    SCALERS[training.scaler]
    INTERVALS[training.intervals]
    if training.metric and training.metric not in CRITERIA:
        check_selects(training.metric)


def suggest_setting(key: str, models: Sequence[str]) -> str:
    """End of a message about `key`, which is no setting: the one that it is closest to, also if only the prefix is
    missing, or all settings of training and of any of `models`."""
    of_models = dict.fromkeys(field for model in models for field in model_card(model).default_settings())
    choices = [*(f"training.{field}" for field in _DEFAULTS), *(f"model.{field}" for field in of_models)]
    near = nearest(key, (choice.partition(".")[2] for choice in choices))
    meant = [choice for choice in choices if choice.partition(".")[2] == near]
    return suggest(meant[0], meant) if meant else suggest(key, choices)


class Lengths(NamedTuple):
    """Lengths of a run as requested by the user; arguments of `train`."""

    pred_len: int | str | None = None
    seq_len: int | str | None = None
    protocol: str | None = None


def resolve_run(
    data: Dataset,
    model: str,
    lengths: Lengths,
    model_settings: Mapping[str, Any],
    training: TrainingConfig,
    ignores: bool = False,
) -> RunConfig:
    """Resolve the configuration of a run, with horizon, look-back and season filled in; raise UsageError if something
    does not fit.

    Args:
        data: the loaded data.
        model: as in `train`.
        lengths: requested lengths.
        model_settings, training: results of `resolve_training`.
        ignores: ignore past and static covariates that the model cannot read, instead of raising an error.
    """
    steps, protocol = horizon(data, lengths.pred_len).steps, lengths.protocol
    if not ignores:
        check_past(model, data.schema.roles.past)
    if not ignores or model_card(model).model_class.supports.static:
        model_settings = {**model_settings, **_static(model, data, model_settings.get("n_static"))}
    model_settings = {**model_settings, **_known(model, data, model_settings.get("n_known"), training.covariates)}
    seasons = data.schema.season or (data.season, *further_seasons(data.freq))
    if seasons[1:] and hasattr(model_card(model).model_class.Config, "further"):
        model_settings = {"further": seasons[1:], **model_settings}
    back = look_back(data, model, lengths._replace(pred_len=steps)).steps
    config = build_config(
        model,
        seq_len=back,
        pred_len=steps,
        n_channels=len(data.columns),
        settings=model_settings,
    )
    # A default look-back that is too long is not the user's mistake.
    seen = back >= data.season or not left_open(lengths.seq_len)
    config = config.for_data(data.season if seen else 1, data.common_rows)
    training = replace(training, channels=_drawn(model, training.channels, len(data.columns)))
    name = default_protocol(_published(data)) if protocol is None else protocol
    return RunConfig(data.name, data.source, model, config, name, training, data.schema)


@reads("pred_len", place=1)
def horizon(data: Dataset, pred_len: object) -> Choice:
    """Horizon of a run on `data`: `pred_len`, or if that is None or `auto`, a default for the step of the data.

    Raises:
        UsageError: It is not a number of steps.
    """
    if left_open(pred_len):
        if data.ahead is not None and 0 < data.ahead.steps <= data.rows // 3:
            return Choice(data.ahead.steps, "as many steps as the table has future covariates")
        return default_horizon(data.freq, data.rows, _published(data))
    steps = whole_number(pred_len, "Horizon")
    if steps is None or steps < 1:
        raise UsageError(
            f"Horizon '{quote(pred_len)}' is not a number of steps; give a whole number of at least 1, or auto."
        )
    return Choice(steps)


def look_back(data: Dataset, model: str, lengths: Lengths) -> Choice:
    """Look-back of a run of `model` on `data`; if None or `auto`, by the protocol, which defaults to that of the data.
    A model that reads raw values takes all rows, up to its default maximum, whatever the protocol, since it needs none
    for training.

    Raises:
        UsageError: It is not a number of steps, or the protocol is unknown.
    """
    pred_len, seq_len, protocol = lengths
    name = check_protocol(default_protocol(_published(data)) if protocol is None else protocol)
    card = model_card(model).model_class
    if card.supports.raw:
        preset = every_row(data.rows, card.longest_look_back(data.season))
    else:
        ahead = int(pred_len or 1)
        most: int | None = None
        if card.most_horizons is not None:
            most = max(card.most_horizons * ahead, 2 * data.season, *further_seasons(data.freq))
        # In less than two seasons, one leaves too few windows to learn from: 12 months ahead, the mean error of `ridge` on
        # 12 synthetic series of 15, 18 and 23 months was 21.9, 15.6 and 14.1 from a season, and 15.5, 12.9 and 12.4 from 4
        # months. That of `seasonal_naive` was 11.9, 12.8 and 14.0 from a season; of 15 and 18 months, 17.7 and 15.2 without.
        single = card.supports.fixed or data.rows >= 2 * data.season
        preset = default_look_back(name, ahead, data.typical_rows, data.season, most, single)
        if card.supports.fixed and preset.steps < data.season < data.rows:
            preset = Choice(data.season, f"the only season of {data.season} steps in {data.rows} rows")
    if left_open(seq_len):
        return preset
    with blamed("seq_len", seq_len):
        steps = whole_number(seq_len, "Look-back")
        if steps is None:
            raise UsageError(f"Look-back '{quote(seq_len)}' is not a number of steps; give a whole number or auto.")
        if steps < 1:
            raise UsageError(f"A look-back of {steps} steps is empty; use {argument('seq_len=1')} or more.")
    return Choice(steps)


def length_notes(data: Dataset, model: str, lengths: Lengths) -> list[str]:
    """Sentences on horizon and look-back if they were not given; arguments as in `train`."""
    steps = horizon(data, lengths.pred_len).steps
    back = look_back(data, model, lengths._replace(pred_len=steps))
    note = Message(f"look-back {back.steps} for {steps} ahead, {back.reason}; change it with {argument('seq_len')}")
    return horizon_notes(data, lengths.pred_len) + [note] * bool(back.reason)


def horizon_notes(data: Dataset, pred_len: object) -> list[str]:
    """A sentence on the horizon if it was not given."""
    ahead = horizon(data, pred_len)
    change = f"change it with {argument('pred_len')}"
    return [Message(f"horizon {ahead.steps}, {ahead.reason}; {change}")] * bool(ahead.reason)


def thinned_notes(model: ForecastModel, windows: Mapping[str, Windows]) -> list[str]:
    """A sentence on the splits that `model` scores on a subset of windows."""
    most, scored = model.most_windows, [part for part in windows if part != "train"]
    if most is None or all(len(windows[part]) <= most for part in scored):
        return []
    counts = " and ".join(f"{len(windows[part].subsample(most))} of {len(windows[part])} {part}" for part in scored)
    more = arguments({"settings": {"model.windows": Blank("N")}})
    remedy = f"; score more with {more}" if hasattr(model.config, "windows") else ""
    return [Message(f"scores are of {counts} windows, evenly spaced{remedy}")]


def _published(data: Dataset) -> bool:
    """Return whether the data are from the catalogue, so that the lengths of the literature apply."""
    return data.source in CATALOG


def _drawn(model: str, asked: int | None, channels: int) -> int | None:
    """Number of channels to draw at each step; None for all of them."""
    if asked is not None and not model_card(model).model_class.supports.subsampling:
        raise UsageError(f"Model '{model}' does not support channel subsampling; remove training.channels.")
    if asked is None:
        asked = (
            DRAWN_CHANNELS if channels > MANY_CHANNELS and model_card(model).model_class.supports.subsampling else None
        )
    return None if asked is None or asked >= channels else asked


def _static(model: str, data: Dataset, asked: object) -> dict[str, int]:
    """Settings that follow from the static covariates of `data`; raise UsageError if the model does not support
    them."""
    names = list(data.schema.roles.static)
    width = 0 if data.static is None or not names else StaticCodes.fit(data.static[names]).width
    if asked is not None and whole_number(asked, "Setting 'model.n_static'") != width:
        text = f"Setting 'model.n_static' is determined by {argument('static_covariates')}; remove it."
        raise UsageError(text, argument="model.n_static", value=asked)
    if not width:
        return {}
    if not model_card(model).model_class.supports.static:
        text = (
            f"Model '{model}' does not support static covariates; use one that does, such as fem_sm, or leave out "
            f"{arguments({'static_covariates': data.schema.roles.static})}."
        )
        left_out = {"static_covariates": None}
        raise UsageError(text, argument="static_covariates", value=list(data.schema.roles.static), remedy=left_out)
    return {"n_static": width}


def _known(model: str, data: Dataset, asked: object, covariates: str) -> dict[str, int]:
    """Settings that follow from the future covariates and calendar of `data`; raise UsageError if the model is to read
    them and cannot."""
    roles, supports = data.schema.roles, model_card(model).model_class.supports
    reads = Reads.of(roles, supports, covariates, len(calendar_marks(data.freq, roles.holidays)))
    dated = roles.calendar or roles.holidays is not None
    if covariates == "model" and (bool(roles.future) > reads.columns or (dated and not reads.calendar)):
        named = ", ".join(map(quote, roles.future)) if roles.future and not supports.known else "the calendar"
        raise UsageError(
            f"Model '{model}' cannot read {named} over the forecast horizon; use one that can, such as fem_sm or "
            "tide, or leave training.covariates at auto, which removes the linear effect first."
        )
    width = KnownInputs.width_of(reads, len(roles.future))
    if asked is not None and whole_number(asked, "Setting 'model.n_known'") != width:
        these = f"{argument('future_covariates')} and {argument('calendar=True')}"
        text = f"Setting 'model.n_known' is determined by {these} and the model; remove it."
        raise UsageError(text, argument="model.n_known", value=asked)
    return {"n_known": width} if width else {}


def bound_notes(preprocess: Preprocess) -> list[str]:
    """A sentence on targets that are bounded by default because of their training values."""
    bounded = tuple(preprocess.columns[each] for each in preprocess.domain.bounded)
    which = "forecasts" if len(bounded) == len(preprocess.columns) else f"forecasts of {names(bounded)}"
    why, none = "because no training value is negative", arguments({"min": "none"})
    return [Message(f"{which} are bounded below at 0, {why}; remove the bound with {none}")] * bool(bounded)


def known_notes(data: Dataset, config: RunConfig, preprocess: Preprocess) -> list[str]:
    """Sentences on how the model uses future covariates and calendar, and which of them it does not use, because
    `preprocess` has no effect of them."""
    roles, reads, effects = data.schema.roles, config.reads, preprocess.effects
    by = roles.country_column
    of = roles.holidays if by is None else f"each '{quote(by)}'"
    holidays = [] if of is None else [f"the holidays of {of}"]
    dated = [*["the calendar"] * bool(roles.calendar), *holidays]
    calendar = ["the calendar"] * (reads.calendar > len(holidays) * HOLIDAY_MARKS)
    read = [*map(quote, roles.future if reads.columns else ()), *calendar, *(holidays if reads.calendar else ())]
    notes = [f"'{config.model}' reads {', '.join(read)} as inputs"] if read else []
    if effects is None:
        return notes
    without = preprocess.without_effect(roles.future, data.schema.form, data.n_targets)
    used = [quote(name) for name in origins(roles.future, data.schema.form) if name not in without]
    every = (effects, *preprocess.own_effects.values())
    used += dated if any(each.of_dates(data.n_targets) for each in every) else []
    if used:
        notes.append(
            f"the linear effect of {', '.join(used)} is removed before '{config.model}' and added back to its forecast"
        )
    columns = () if reads.columns else tuple(map(quote, without))
    lost = [*columns, *(name for name in dated if name not in (*used, *read))]
    if lost:
        them = "it" if len(lost) == 1 else "them"
        scenarios = f", and scenarios of {them} do not differ" * bool(columns)
        notes.append(
            f"the training rows show too little effect of {', '.join(lost)}, so '{config.model}' does not use "
            f"{them}{scenarios}; train a model that reads {them}, such as fem_sm or tide, or leave {them} out"
        )
    return notes


def seen_notes(config: RunConfig) -> list[str]:
    """A sentence if the model was pretrained on the dataset."""
    said = f"'{config.model}' was pretrained on '{quote(config.dataset)}', so its scores do not reflect performance on unseen data"
    return [said] if config.model_config.has_seen(config.dataset) else []


def check_past(model: str, past: Sequence[str]) -> None:
    """Raise UsageError if past covariates `past` are given to a model that reads only the column it forecasts."""
    if past and model_card(model).model_class.supports.channels == 1:
        text = (
            f"Model '{model}' forecasts each column from its own past alone, so {arguments({'past_covariates': past})} would "
            "have no effect; use a model that reads all columns, such as fem_sm, or leave them out."
        )
        raise UsageError(text, argument="past_covariates", value=list(past), remedy={"past_covariates": None})
