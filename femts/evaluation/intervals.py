"""Prediction intervals whose widths, for each step and channel, come from errors on the validation split.

The half-width of a level is the ceil((n + 1) * level / 100)-th smallest of the n absolute validation errors, ignoring
missing targets. It has at least that coverage if future errors are exchangeable with these (Lei et al.,
"Distribution-Free Predictive Inference for Regression", JASA 2018). If errors differ by series, level or season, they
are first divided by their difficulty (`femts.evaluation.difficulty`). Because errors drift over time, coverage is
measured on the test split. Quantile models are handled in `femts.evaluation.quantiles`, and few windows in
`femts.evaluation.few`.

All values are in scaled units of the model whose errors these are. A model refit on all rows has other units: its
forecasts are converted to those of the scored model, and back.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from safetensors.numpy import load, save
from torch import Tensor

from femts.data.describe import are, count
from femts.data.resident import Context
from femts.errors import UsageError, reads
from femts.evaluation.constants import FADING, LEVELS, SHARE, UNIT_LEVEL
from femts.evaluation.difficulty import Difficulty
from femts.evaluation.few import are_few, widening
from femts.evaluation.joint import JointErrors
from femts.evaluation.quantiles import conformal_bounds, ends_of
from femts.models.base import MEMBER_QUANTILES
from femts.models.parts.quantiles import quantile_at


@reads("level")
def check_levels(levels: Sequence[float] | float) -> tuple[float, ...]:
    """Distinct levels in percent, in the given order; UsageError unless all are at least 1 and below 100."""
    several = levels if isinstance(levels, Iterable) and not isinstance(levels, str) else [levels]
    numbers: dict[float, None] = {}
    for level in several:
        if isinstance(level, bool) or not isinstance(level, (int, float, np.number)):
            raise UsageError(f"Level '{level}' is not a number; use a percentage between 1 and 100, such as 80 or 95.")
        if not 1 <= level < 100:  # 0.8 is probably meant as 80 %
            raise UsageError(f"Level {level:g} is not a percentage between 1 and 100; use a level such as 80 or 95.")
        numbers[float(level)] = None
    if not numbers:
        raise UsageError("No level is given; use a percentage such as 80 or 95.")
    return tuple(numbers)


def normal_quantile(level: float) -> float:
    """Upper bound of the central interval of `level` percent of the standard normal distribution."""
    return NormalDist().inv_cdf(ends_of(level)[1])


def rank(level: float, windows: int) -> int:
    """Rank of the half-width of `level` percent among `windows` errors in increasing order; if above `windows`, it is
    infinite."""
    return math.ceil((windows + 1) * Fraction(str(level)) / 100)  # in floating point, 20 * 0.95 may not be 19


def reachable(level: float, windows: int, disjoint: int) -> bool:
    """Return whether an interval of `level` percent is finite; with few windows, Student's t makes all levels
    finite."""
    return are_few(windows, disjoint) or rank(level, windows) <= windows


def refuse_unreachable(levels: Sequence[float], windows: int, disjoint: int) -> None:
    """Raise UsageError for a level whose interval would be infinite, because there are too few `windows`."""
    for level in levels:
        if not reachable(level, windows, disjoint):
            highest = Fraction(100 * windows, windows + 1)
            text = (
                f"Level {level:g} cannot be calibrated on {count(windows, 'validation window')}, because its interval would be "
                f"infinite; use a level of at most {math.floor(highest)}, or provide more rows."
            )
            raise UsageError(text, argument="level", value=level, remedy={"level": [math.floor(highest)]})


def with_bounds(forecast: pd.DataFrame, bounds: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """`forecast` (steps, C) with `bounds`, (steps, C) each, next to its columns: `lo-80` as `NAME-lo-80`.

    Raises:
        UsageError: A column has the name of a bound.
    """
    if not bounds:
        return forecast
    names = [each for name in forecast.columns for each in (name, *(f"{name}-{bound}" for bound in bounds))]
    if len(set(names)) < len(names):
        raise UsageError(
            "A column is named like an interval bound, such as NAME-lo-80; rename it to forecast with levels."
        )
    values = np.stack([forecast.to_numpy(), *bounds.values()], axis=2).reshape(len(forecast), -1)
    return pd.DataFrame(values, index=forecast.index, columns=names)


OF_MEMBERS = "of_members."  # start of the names of their arrays


@dataclass(frozen=True, eq=False)
class Intervals:
    """Half-widths of the intervals around a forecast of S steps and C channels, or corrections of a model's quantiles.

    Levels between those calibrated are interpolated linearly in the quantiles of the normal distribution
    (`normal_quantile`), starting at a width of 0 for 0 percent.

    Attributes:
        levels: K calibrated levels in percent, increasing.
        half_widths: (K, S, C) float32, scaled units, at difficulty 1; NaN for a channel without errors.
        windows: number n of validation windows.
        disjoint: number of windows without overlap; both are 0 if the model has intervals of its own.
        difficulty: factors on the half-widths.
        names: names of the series known to `difficulty`.
        joint: errors from which sample paths are drawn; None for intervals without them.
        of_members: corrections of the quantiles of the members of a mean, whose intervals are averaged with these, see
            `share`; None if they have none.
    """

    levels: tuple[float, ...]
    half_widths: NDArray[np.float32]
    windows: int
    disjoint: int
    difficulty: Difficulty
    names: tuple[str, ...] = ("",)
    joint: JointErrors | None = None
    of_members: Intervals | None = None

    @property
    def few(self) -> bool:
        """Whether there were too few windows for order statistics; see `femts.evaluation.few`."""
        return not self.own and are_few(self.windows, self.disjoint)

    @property
    def share(self) -> float:
        """Share of these in the mean with the intervals of members: half, and less with few windows, because their
        errors say little."""
        return SHARE * self.disjoint / (self.disjoint + FADING) if self.few else SHARE

    @classmethod
    def uncorrected(cls, levels: Sequence[float], steps: int, channels: int) -> Intervals:
        """Intervals between the quantiles of a model as they are."""
        nothing = np.zeros((len(levels), steps, channels), dtype=np.float32)
        return cls(tuple(levels), nothing, 0, 0, Difficulty.even(1, channels))

    @property
    def own(self) -> bool:
        """Whether these are the model's own intervals, without calibration."""
        return self.windows == 0

    @property
    def source(self) -> str:
        """Description of what they were calibrated on."""
        return "the model itself" if self.own else f"{self.windows} window{'s' * (self.windows > 1)}"

    @property
    def standard(self) -> tuple[float, ...]:
        """Those of `LEVELS` that are calibrated, or all calibrated levels if there are none; scored by default."""
        return tuple(level for level in self.levels if level in LEVELS) or self.levels

    @property
    def steps(self) -> int:
        """Longest calibrated horizon S."""
        return int(self.half_widths.shape[1])

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Quantiles given by these intervals and the forecast, in increasing order."""
        return tuple(sorted({0.5, *(end for level in self.standard for end in ends_of(level))}))

    @property
    def missing(self) -> NDArray[np.bool_]:
        """(C,), whether a channel has no intervals, because it has no values in the validation split."""
        return np.asarray(np.isnan(self.half_widths).any(axis=(0, 1)))

    def without(self, targets: Sequence[str]) -> list[str]:
        """The `targets` (C,) without intervals."""
        return [name for name, missing in zip(targets, self.missing, strict=True) if missing]

    def of(self, name: str) -> Intervals:
        """Intervals of one series by name, as those of a single table."""
        series = np.ones((1, self.half_widths.shape[2]))
        if name in self.names:
            series = self.difficulty.series[[self.names.index(name)]]
        joint = self.joint.of(self.names.index(name)) if self.joint is not None and name in self.names else self.joint
        others = None if self.of_members is None else self.of_members.of(name)
        difficulty = replace(self.difficulty, series=series)
        return replace(self, difficulty=difficulty, names=("",), joint=joint, of_members=others)

    def longer(self, steps: int) -> Intervals:
        """The same for `steps` steps, of which those after the last calibrated one are wider by `widening`."""
        more = np.arange(self.steps + 1, steps + 1)
        beyond = self.half_widths[:, -1:] * widening(more, self.steps)[:, None].astype(np.float32)
        joint = self.joint
        if joint is not None and len(more):
            last = joint.relative[:, :, -1:].repeat(len(more), axis=2)
            joint = replace(joint, relative=np.concatenate([joint.relative, last], axis=2))
        others = None if self.of_members is None else self.of_members.longer(steps)
        widths = np.concatenate([self.half_widths, beyond], axis=1)
        return replace(self, half_widths=widths, joint=joint, of_members=others)

    def numbers(self, names: Sequence[str]) -> Tensor:
        """Numbers (len(names),) of the series `names` for a `Context`: -1 for series without calibration errors."""
        if len(self.names) == 1:
            return torch.zeros(len(names), dtype=torch.int64)
        numbers = {name: number for number, name in enumerate(self.names)}
        return torch.tensor([numbers.get(name, -1) for name in names], dtype=torch.int64)

    def bounds(
        self,
        forecast: Tensor,
        context: Context,
        quantiles: Tensor | None = None,
        learned: Sequence[float] = (),
        levels: Sequence[float] | None = None,
    ) -> dict[float, tuple[Tensor, Tensor]]:
        """Lower and upper bounds (B, S, C) float64 of each level, in scaled units of the errors; on the CPU.

        Args:
            forecast: (B, S, C), with effects added back.
            context: context of these forecasts, with series from `numbers`.
            quantiles: (B, S, Q, C), for a quantile model, at the levels `learned`.
            levels: percent, up to the highest one calibrated; None for all calibrated levels.
        """
        wanted = self.levels if levels is None else tuple(levels)
        made = self._bounds(forecast, context, quantiles, learned, wanted)
        if self.of_members is not None:
            others = self.of_members._bounds(forecast, context, context.of_members, MEMBER_QUANTILES, wanted)
            made = {
                level: tuple(map(self._mean, ends, others[level]))  # type: ignore[misc]
                for level, ends in made.items()
            }
        if context.unlike is None:
            return made
        middle = (forecast if quantiles is None else quantile_at(quantiles, learned, 0.5)).cpu().double()
        return {
            level: tuple(middle + context.unlike * (end - middle) for end in ends)  # type: ignore[misc]
            for level, ends in made.items()
        }

    def _bounds(
        self,
        forecast: Tensor,
        context: Context,
        quantiles: Tensor | None,
        learned: Sequence[float],
        wanted: Sequence[float],
    ) -> dict[float, tuple[Tensor, Tensor]]:
        """As `bounds`, for look-backs like those that were scored."""
        if quantiles is None:
            middle = forecast.cpu().double()
            widths = self._widths(wanted, forecast, context)
            return {level: (middle - width, middle + width) for level, width in zip(wanted, widths, strict=True)}
        widths = self._widths(self.levels, forecast, context)
        made = dict(zip(self.levels, conformal_bounds(quantiles, learned, self.levels, widths), strict=True))
        between = [level for level in wanted if level not in made]
        middle = quantile_at(quantiles, learned, 0.5).cpu().double()
        for level, width in zip(between, self._widths(between, forecast, context), strict=True):
            k, part = self._place(level)
            inner, outer = made[self.levels[k - 1]] if k else (middle, middle), made[self.levels[k]]
            if self.own:
                made[level] = torch.lerp(inner[0], outer[0], part), torch.lerp(inner[1], outer[1], part)
            else:
                low, high = (quantile_at(quantiles, learned, end).cpu().double() for end in ends_of(level))
                made[level] = (low - width).clamp(outer[0], inner[0]), (high + width).clamp(inner[1], outer[1])
        return {level: made[level] for level in wanted}

    def _mean(self, ours: Tensor, others: Tensor) -> Tensor:
        return torch.lerp(others, ours, self.share)

    def units(
        self, forecast: Tensor, context: Context, quantiles: Tensor | None = None, learned: Sequence[float] = ()
    ) -> tuple[Tensor, Tensor]:
        """Units (B, S, C) of joint errors below and above the forecast: the distances to the bounds of `UNIT_LEVEL`, for
        a quantile model those of its own quantiles, before correction, and for a mean on average with those of its
        members. Arguments as in `bounds`."""
        if quantiles is None:
            level = min(UNIT_LEVEL, self.levels[-1])
            below = above = self._widths([level], forecast, context)[0].expand(forecast.shape)
        else:
            below, above = _distances(quantiles, learned)
        if self.of_members is not None and context.of_members is not None:
            others = _distances(context.of_members, MEMBER_QUANTILES)
            below, above = self._mean(below, others[0]), self._mean(above, others[1])
        wider = torch.ones(()) if context.unlike is None else context.unlike
        return below * wider, above * wider

    def _place(self, level: float) -> tuple[int, float]:
        """Index k of the first calibrated level that is at least `level`, or the last, and the position of `level` between
        the previous one (or 0 percent) and that: in (0, 1], or above 1 beyond the last."""
        k = min(bisect_left(self.levels, level), len(self.levels) - 1)
        below, above = normal_quantile(self.levels[k - 1]) if k else 0.0, normal_quantile(self.levels[k])
        return k, (normal_quantile(level) - below) / (above - below)

    def half_width(self, level: float, steps: int) -> NDArray[np.float64]:
        """Half-width, or correction, (steps, C) of any level at difficulty 1."""
        widths = self.half_widths[:, :steps].astype(np.float64)
        if level in self.levels:
            return np.asarray(widths[self.levels.index(level)])
        k, part = self._place(level)
        return np.asarray((1 - part) * (widths[k - 1] if k else np.zeros_like(widths[0])) + part * widths[k])

    def _widths(self, levels: Sequence[float], forecast: Tensor, context: Context) -> list[Tensor]:
        """Half-widths, or corrections, of each level around `forecast` (B, S, C): (S, C) or (B, S, C) float64."""
        widths = [torch.from_numpy(self.half_width(level, forecast.shape[1])) for level in levels]
        if self.difficulty.constant:
            return widths
        difficulty = self.difficulty.of(forecast, context)
        return [width * difficulty for width in widths]

    def check(self, levels: Sequence[float], steps: int) -> None:
        """Raise UsageError for levels or horizons beyond those calibrated; the message says which are."""
        if steps > self.steps:
            fault = f"Intervals are calibrated for {count(self.steps, 'step')}, not for {steps}"
            text = f"{fault}; forecast at most {self.steps}, or run `femts calibrate RUN --horizon {steps}`."
            raise UsageError(text, argument="horizon", value=steps, remedy={"horizon": self.steps})
        highest = self.levels[-1] if self.levels else 0.0
        beyond = next((level for level in levels if level > highest), None)
        if beyond is None:
            return
        if self.own:
            text = f"This model provides intervals for levels up to {highest:g}, not for {beyond:g}; use a lower level."
            raise UsageError(text, argument="level", value=beyond)
        ends = " and ".join(f"{end:g}" for end in ends_of(beyond))
        remedy = (
            f", because {count(self.windows, 'validation window')} {are(self.windows)} too few; use at most {highest:g}"
        )
        if reachable(beyond, self.windows, self.disjoint):
            remedy = f"; use at most {highest:g}, or run `femts calibrate RUN --level {beyond:g}` (quantiles {ends})"
        raise UsageError(f"Level {beyond:g} is not calibrated{remedy}.", argument="level", value=beyond)

    def to_bytes(self) -> bytes:
        """Serialise to safetensors, the file of a run that `metrics.json` names."""
        others = {} if self.of_members is None else self.of_members._arrays()
        arrays = {**self._arrays(), **{f"{OF_MEMBERS}{name}": each for name, each in others.items()}}
        return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "levels": np.array(self.levels, dtype=np.float64),
            "half_widths": self.half_widths,
            "windows": np.array([self.windows, self.disjoint, self.difficulty.recent], dtype=np.int64),
            "kinds": self.difficulty.kinds,
            "series": self.difficulty.series,
            "phases": self.difficulty.phases,
            "lowest": self.difficulty.lowest,
            **(
                {} if self.joint is None else {"joint": self.joint.relative, "origins": np.array([self.joint.disjoint])}
            ),
            # Not metadata, which is text without a guaranteed order, and there may be a million names.
            "names": np.frombuffer(json.dumps(list(self.names)).encode(), dtype=np.uint8),
        }

    @classmethod
    def from_bytes(cls, content: bytes) -> Intervals:
        """The inverse of `to_bytes`."""
        read = load(content)
        others = {name.removeprefix(OF_MEMBERS): read[name] for name in read if name.startswith(OF_MEMBERS)}
        return replace(cls._of(read), of_members=cls._of(others) if others else None)

    @classmethod
    def _of(cls, read: Mapping[str, NDArray[Any]]) -> Intervals:
        windows, disjoint, recent = read["windows"].tolist()
        return cls(
            tuple(read["levels"].tolist()),
            read["half_widths"],
            windows,
            disjoint,
            Difficulty(read["kinds"], read["series"], read["phases"], read["lowest"], recent),
            tuple(json.loads(read["names"].tobytes())),
            JointErrors(read["joint"], int(read["origins"][0])) if "joint" in read else None,
        )


def _distances(quantiles: Tensor, levels: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Distances (B, S, C) float64 of the median to the quantiles .1 and .9 of `quantiles` (B, S, Q, C) at `levels`."""
    low, middle, high = (quantile_at(quantiles, levels, each).cpu().double() for each in (0.1, 0.5, 0.9))
    return middle - low, high - middle
