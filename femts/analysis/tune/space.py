"""The search space: which settings vary, and over which values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite
from typing import TYPE_CHECKING, Any, get_type_hints

from femts.config.bounds import check_value
from femts.config.settings import read_setting
from femts.config.training import TrainingConfig
from femts.config.values import whole_number
from femts.errors import UsageError
from femts.models.registry import model_card
from femts.text import shown

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

SEQ_LEN = "seq_len"
# Settings that no trial may vary: they say where or how long it runs, or what its score means.
FIXED = (
    *("seed", "device", "devices", "precision", "compile", "max_time", "eval_batch_size"),
    *("loss", "quantiles", "windows"),
)
_WIDE = 10  # times its lower bound, from which on a range is searched by its logarithm


@dataclass(frozen=True)
class Dimension:
    """Values of one setting: some to choose from, or a range.

    Attributes:
        key: `seq_len`, `model.NAME` or `training.NAME`.
        choices: typed values; empty for a range.
        low, high: ends of the range, themselves taken; whole numbers where the setting is one.
    """

    key: str
    choices: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0

    @property
    def log(self) -> bool:
        """True for a range over ratios rather than differences."""
        return self.low > 0 and self.high >= _WIDE * self.low

    def takes(self, value: Any) -> bool:
        """Tell if `value` is one of the dimension's."""
        if self.choices:
            return value in self.choices
        return value is not None and self.low <= value <= self.high

    def distribution(self) -> BaseDistribution:
        """The dimension as Optuna has it."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution(self.choices)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return IntDistribution(self.low, self.high, log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    def plain(self) -> Any:
        """The dimension in plain types, for the study's file."""
        return list(self.choices) if self.choices else [f"{self.low!r}..{self.high!r}"]


Space = Mapping[str, Dimension]


def combinations(space: Space) -> list[dict[str, Any]] | None:
    """All values of a space of choices alone; None where there is a range."""
    if not all(each.choices for each in space.values()):
        return None
    return [dict(zip(space, values, strict=True)) for values in product(*(space[key].choices for key in space))]


def own_search(model: str, trained: bool) -> dict[str, str]:
    """Values that `model` declares for itself and, where it is `trained` by steps, those of the recipe."""
    recipe = {f"training.{name}": values for name, values in TrainingConfig.SEARCH.items()} if trained else {}
    declared = model_card(model).model_class.Config.searched()
    return {**{f"model.{name}": values for name, values in declared.items()}, **recipe}


def make_dimension(key: str, values: str | Sequence[Any], model: str) -> Dimension:
    """The dimension of the setting `key` of `model`.

    Args:
        key: as in `Dimension`.
        values: text `a,b,c` or `low..high`, or a list.
        model: registered name.

    Raises:
        UsageError: a setting that there is not, or values that it does not take.
    """
    if isinstance(values, str) and ".." in values:
        return _range(key, values, model)
    parts = values.split(",") if isinstance(values, str) else values
    typed = tuple(dict.fromkeys(_read(key, each.strip() if isinstance(each, str) else each, model) for each in parts))
    if not typed:
        raise UsageError(f"Setting '{key}' has no values to search; write {key}=a,b or {key}=low..high.")
    return Dimension(key, typed)


def _range(key: str, text: str, model: str) -> Dimension:
    low, _, high = text.partition("..")
    ends = [_read(key, end.strip(), model) for end in (low, high)]
    if not all(isinstance(end, int | float) and not isinstance(end, bool) and isfinite(end) for end in ends):
        raise UsageError(f"Setting '{key}' has no range '{shown(text)}'; write its values as {key}=a,b.")
    if ends[0] >= ends[1]:
        raise UsageError(f"Range '{shown(text)}' of '{key}' does not rise; write {key}=low..high.")
    return Dimension(key, low=ends[0], high=ends[1])


def _read(key: str, value: Any, model: str) -> Any:
    """A value of the setting `key`, typed and within its bounds."""
    if key == SEQ_LEN:
        steps = whole_number(value, "Look-back")
        if steps is None or steps < 1:
            raise UsageError(f"Look-back '{shown(value)}' is not a number of steps; write seq_len=168,336.")
        return steps
    part, _, name = key.partition(".")
    kind: type = {"model": model_card(model).model_class.Config, "training": TrainingConfig}[part]
    typed = read_setting(kind, name, value, part)
    if "tuple" in str(get_type_hints(kind)[name]):
        raise UsageError(f"Setting '{key}' is a list, which cannot be searched; give it by --set.")
    check_value(kind, name, typed, part)
    return typed
