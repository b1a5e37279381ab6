"""Members of a mean: their records in a run, and the forecasters restored from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from femts.errors import UsageError, nearest, suggest
from femts.explain.posterior import explainable
from femts.forecaster.metrics import RunMetrics
from femts.forecaster.run_folder import RunConfig
from femts.models.mean import MeanConfig, MeanModel
from femts.text import arguments

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Forecaster


def member_record(forecaster: Forecaster) -> dict[str, Any]:
    """Record of how a member was trained and scored, in plain types."""
    return {"config": forecaster.config.to_dict(), "metrics": dict(forecaster.metrics)}


def members_of(forecaster: Forecaster) -> tuple[Forecaster, ...]:
    """The members of the mean `forecaster`; see `Forecaster.members`."""
    if not isinstance(forecaster.model, MeanModel):
        return ()
    records = forecaster.metrics.get("members")
    scored = () if forecaster.scored is None else members_of(forecaster.scored)
    made = []
    for place, (model, config) in enumerate(zip(forecaster.model.models, _configs(forecaster.config), strict=True)):
        record = None if records is None else records[place]  # a view of one series has no records
        one = type(forecaster)(
            model,
            config if record is None else _trained_as(config, record),
            forecaster.preprocess.reading(config.reads_raw, config.reads),
            forecaster.freq,
            forecaster.data,
            RunMetrics() if record is None else record["metrics"],
            until=forecaster.until,
            series_until=forecaster.series_until,
            series_trained=forecaster.series_trained,
            scored=scored[place] if scored else None,
            _dataset=forecaster._dataset,
        )
        made.append(one)
    return tuple(made)


def explained_member(forecaster: Forecaster, name: str | None) -> Forecaster:
    """The forecaster to explain: for a mean the member `name`, by default the first that can be explained.

    Raises:
        UsageError: There is no such member, or none that can be explained.
    """
    members = members_of(forecaster)
    if not members:
        if name is not None:
            text = f"Model '{forecaster.config.model}' is not an ensemble and has no members; remove {arguments({'member': name})}."
            raise UsageError(text, argument="member", value=name, remedy={"member": None})
        return forecaster
    names = [member.config.model for member in members]
    if name is not None:
        if name not in names:
            text = f"This ensemble has no member '{name}'{suggest(name, names)}"
            raise UsageError(text, argument="member", value=name, remedy={"member": nearest(name, names)})
        return members[names.index(name)]
    for member in members:
        try:
            explainable(member.model, member.config.model)
        except UsageError:
            continue
        return member
    raise UsageError(
        f"None of the ensemble members {', '.join(names)} has attention over past segments to show; train a model "
        "that has, such as fem_sm."
    )


def _configs(config: RunConfig) -> list[RunConfig]:
    """Run configurations of the members of a mean, derived from its own."""
    assert isinstance(config.model_config, MeanConfig)
    return [replace(config, model=each.model, model_config=each.config) for each in config.model_config.members]


def _trained_as(config: RunConfig, record: Mapping[str, Any]) -> RunConfig:
    """`config` with the recipe in the member's `record`."""
    said = record["config"]
    own = RunConfig.from_dict({**config.to_dict(), "protocol": said["protocol"], "training": said["training"]})
    return replace(config, protocol=own.protocol, training=own.training)
