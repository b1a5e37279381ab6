"""Search space of `tune`: the values of each setting, parsed from text, checked, and as Optuna distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite
from typing import TYPE_CHECKING, Any, get_type_hints

from femts.config.arguments import check_kind
from femts.config.bounds import check_value
from femts.config.settings import read_setting
from femts.config.training import TrainingConfig
from femts.config.values import whole_number
from femts.errors import UsageError, suggest
from femts.models.registry import model_card
from femts.text import argument, quote

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

SEQ_LEN = "seq_len"
# Settings that trials must not vary: they affect where or how long a trial runs, or what its score means.
FIXED = (
    *("seed", "device", "devices", "precision", "compile", "graph", "max_time", "eval_batch_size"),
    *("loss", "quantiles", "windows"),
)
LOG_FROM = 10  # ranges are searched on a log scale if their ends differ by this factor
Space = Mapping[str, "BaseDistribution"]  # by dotted name of the setting


def import_optuna() -> Any:
    """Import Optuna; raise UsageError if it is not installed."""
    try:
        import optuna
    except ImportError as error:
        raise UsageError("Tuning needs Optuna, which is not installed; run pip install 'femts[tune]'.") from error
    return optuna


def own_search(model: str, trained: bool) -> dict[str, str]:
    """Search values declared by `model` and, if it is `trained` by gradient steps, those of the recipe."""
    recipe = {f"training.{name}": values for name, values in TrainingConfig.SEARCH.items()} if trained else {}
    return {
        f"model.{name}": values for name, values in model_card(model).model_class.Config.searched().items()
    } | recipe


def check_search(search: object, settings: Mapping[str, Any], seq_len: object) -> None:
    """Raise UsageError for settings that cannot be searched, or are both fixed and searched."""
    check_kind(search, Mapping, "The search", "give a mapping such as {'training.lr': '1e-4..1e-2'}")
    assert isinstance(search, Mapping)
    for key in search:
        part, dot, name = str(key).partition(".")
        if key != SEQ_LEN and (part not in ("model", "training") or not dot or not name):
            raise UsageError(
                f"Unknown setting '{quote(key)}'{suggest(str(key), [SEQ_LEN, 'model.NAME', 'training.NAME'])}"
            )
        if name in FIXED:
            raise UsageError(
                f"Setting '{key}' cannot be searched, because scores would not be comparable; fix its value."
            )
        if key in settings or (key == SEQ_LEN and seq_len not in (None, "auto")):
            raise UsageError(f"Setting '{key}' is both fixed and searched; remove one of the two.")
    if settings.get("training.max_time") is not None:
        fault = "Setting 'training.max_time' would make scores depend on the machine"
        text = f"{fault}; remove it, and limit the study with {argument('time_limit')}."
        raise UsageError(text, argument="training.max_time", value=settings["training.max_time"])


def make_distribution(key: str, values: str | Sequence[Any], model: str) -> BaseDistribution:
    """Distribution of the setting `key` of `model`.

    Args:
        key: `seq_len`, `model.NAME` or `training.NAME`.
        values: text `a,b,c` or `low..high`, both ends included, or a list.
        model: registered name.

    Raises:
        UsageError: The setting is unknown, or does not accept the values.
    """
    of = import_optuna().distributions
    if not isinstance(values, str) or ".." not in values:
        parts = [each.strip() for each in values.split(",")] if isinstance(values, str) else values
        choices = tuple(dict.fromkeys(_read(key, each, model) for each in parts))
        if not choices:
            raise UsageError(f"Setting '{key}' has no values to search; write {key}=a,b or {key}=low..high.")
        return of.CategoricalDistribution(choices)
    low, high = (_read(key, end.strip(), model) for end in values.split("..", 1))
    if not all(isinstance(end, int | float) and not isinstance(end, bool) and isfinite(end) for end in (low, high)):
        raise UsageError(f"Setting '{key}' does not support the range '{quote(values)}'; list values as {key}=a,b.")
    if low >= high:
        raise UsageError(f"Range '{quote(values)}' of '{key}' is not increasing; write {key}=low..high.")
    kind = of.IntDistribution if isinstance(low, int) and isinstance(high, int) else of.FloatDistribution
    return kind(low, high, log=low > 0 and high >= LOG_FROM * low)


def _read(key: str, value: Any, model: str) -> Any:
    """A value of the setting `key`, parsed and checked."""
    if key == SEQ_LEN:
        steps = whole_number(value, "Look-back")
        if steps is None or steps < 1:
            raise UsageError(f"Look-back '{quote(value)}' is not a number of steps; write numbers such as 168,336.")
        return steps
    part, _, name = key.partition(".")
    kind: type = {"model": model_card(model).model_class.Config, "training": TrainingConfig}[part]
    typed = read_setting(kind, name, value, part)
    if "tuple" in str(get_type_hints(kind)[name]):
        raise UsageError(f"Setting '{key}' is a list, which cannot be searched; fix its value.")
    check_value(kind, name, typed, part)
    return typed


def contains(space: Space, values: Mapping[str, Any]) -> bool:
    """Return whether each of the `values` belongs to its distribution."""
    return all(
        values[key] in each.choices
        if hasattr(each, "choices")
        else values[key] is not None and each.low <= values[key] <= each.high  # type: ignore[attr-defined]
        for key, each in space.items()
    )


def combinations(space: Space) -> list[dict[str, Any]] | None:
    """All combinations of a space of categorical values; None if it contains a range."""
    if not all(hasattr(distribution, "choices") for distribution in space.values()):
        return None
    every = product(*(getattr(distribution, "choices") for distribution in space.values()))  # noqa: B009
    return [dict(zip(space, values, strict=True)) for values in every]
