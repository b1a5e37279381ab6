"""Gradient boosting on lags: ensembles of regression trees for all series, channels and steps of a forecast.

A training row is one step of one window of one channel. Its features are values one season before the step, recent
values and means of the look-back, all as differences from a level, future covariates at the step, static covariates,
and the number of steps ahead. Models of this kind won the M5 competition (Makridakis et al., "M5 accuracy competition",
IJF 2022). The trees are grown by scikit-learn's histogram boosting (after Ke et al., "LightGBM", NeurIPS 2017) and kept
as tensors. A forecast is the mean of up to three ensembles, each with another form of the target.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from femts.config.bounds import Bounds, Count, Natural, Positive
from femts.config.model import ModelConfig
from femts.config.training import TrainingConfig, parse_span
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.base import Exchanged, ForecastModel, Supports, mean_error
from femts.models.naive import check_season
from femts.models.parts.trees import Trees
from femts.models.registry import register

if TYPE_CHECKING:
    from femts.data.windows import Windows

LAGS = 8  # last values of the look-back
CYCLES = 3  # values one, two and three seasons before a step
SPANS = 3, 6  # steps of rolling means, in addition to one, two and four seasons and the look-back
SEQUENCES = 2048  # channels of windows whose rows are computed at a time
STEPS = 4  # minimum number of steps sampled per window, whose statistics cost more than a row
LEAST = 20  # minimum number of rows per leaf
PATIENCE = 20  # rounds without a lower validation error after which training stops
VALIDATED = 4  # ratio of training to validation rows
TRIED = 4  # ratio of rows, and of maximum rounds, in the final fit to those in a trial of a form
BEST, WITHIN = 3, 1.1  # maximum number of forms in the mean, and of their errors in those of the best
MOST_RECURSIVE = 48  # longest horizon for which recursion is tried, since each step recomputes all statistics
COMPARED = 1024  # maximum number of channels of validation windows on which forms are compared
VALUES, MEANS, SEASONS = "last values", "rolling means", "seasons before"  # groups of columns computed from a look-back
NARROWEST = 0.05  # smallest deviation of a look-back, in scaled units
LOSSES = {"mse": "squared_error", "mae": "absolute_error", "pinball": "quantile"}  # names in scikit-learn
ROWS_A_SECOND = 2500  # maximum number of training rows per second of a time limit


@dataclass(frozen=True)
class BoostConfig(ModelConfig):
    """Settings of `boost`.

    Attributes:
        season: steps of one season; None uses the season of the dataset (one day for hourly data) if the look-back
            contains one, otherwise 1.
        further: steps of further seasons; None uses those of the data, as for `mstl`. Seasons longer than the look-back
            are left out.
        rounds: maximum number of trees; the number is chosen on validation rows.
        learning_rate: factor by which the output of each tree is multiplied.
        leaves: maximum number of leaves per tree.
        rows: maximum number of training rows; if there are more, a random subset is used.
        n_static, n_known: inputs, determined by the static and future covariates.
    """

    SEARCH: ClassVar[Mapping[str, str]] = {"learning_rate": "0.02..0.2", "leaves": "8,16,31,63"}

    season: Count | None = None
    further: tuple[Count, ...] | None = None
    rounds: Count = 400
    learning_rate: Positive = 0.1
    leaves: Annotated[int, Bounds("a whole number of at least 2", at_least=2)] = 31
    rows: Count = 100_000
    n_static: Natural = 0
    n_known: Natural = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_season(self.season, self.seq_len)

    def for_data(self, season: int, rows: int) -> Self:
        """Fill in the season of the data if none is set and the look-back contains one."""
        return replace(self, season=season if season <= self.seq_len else 1) if self.season is None else self

    @property
    def seasons(self) -> list[int]:
        """Numbers of steps of the seasons that the look-back contains, the first one first."""
        every = dict.fromkeys((self.season or 1, *(self.further or ())))
        return [season for season in every if 1 < season <= self.seq_len]


class Form(NamedTuple):
    """What trees forecast. Which form is best depends on the table, so the validation split decides.

    Attributes:
        base: the forecast is a difference from the `last` value, from the mean of its `phase` of the season in the
            look-back, from the `level` of the last season, or from `zero`, with features that are values themselves.
        in_deviations: whether it is divided by the deviation of the look-back.
        recursive: whether it is of one step ahead, and of later ones recursively.
    """

    base: str
    in_deviations: bool = False
    recursive: bool = False


FORMS = (
    Form("last"),
    Form("last", in_deviations=True),
    Form("phase"),
    Form("phase", in_deviations=True),
    Form("last", recursive=True),
    Form("level", recursive=True),
    Form("zero", recursive=True),
    Form("zero"),
    Form("level"),
)


class Rows(NamedTuple):
    """Training rows, n of them.

    Attributes:
        x: (n, columns), NaN where a value is missing.
        y: (n,), difference of the target from the base, in units of the window.
    """

    x: NDArray[np.float32]
    y: NDArray[np.float32]


class Past:
    """Look-backs (B, L, C), NaN where missing, and what the forecast of some future steps reads from them.

    Statistics of their last steps are (B, C), values and means at earlier seasons of the future steps (B, S, C).

    Args:
        batch: B windows.
        steps: (B, S) int64, the future steps, 0 for the first one.
        season: number of steps in a season, whose mean is the level.
        further: maximum number of forecasts to append, each of which shifts the look-backs by one step.
    """

    def __init__(self, batch: Batch, steps: Tensor, season: int, further: int = 0) -> None:
        seen, self.steps, self._season = batch.past_observed, steps, season
        seen = None if seen is None or bool(seen.all()) else seen  # most windows of most tables lack nothing
        self.length = self._end = batch.past.shape[1]
        self._filled = functional.pad(batch.past, (0, 0, 0, further)) if further else batch.past
        self._values, self._counts = self._filled, None
        if seen is not None:
            self._values = functional.pad(batch.past.masked_fill(~seen, torch.nan), (0, 0, 0, further))
            self._counts = _running_sums(seen.long(), further)
        # Running sums give the same bits for any number of windows; trees would amplify a difference.
        real = (batch.past if seen is None else batch.past.masked_fill(~seen, 0.0)).double()
        self._sums, self._squares = (_running_sums(each, further) for each in (real, real.square()))
        self._found = dict[tuple[int, ...], Tensor]()  # several ensembles read the same
        self.level = self._level()

    def append(self, made: Tensor) -> None:
        """Append the forecast (B, 1, C) of the next step as if it had been observed."""
        end, real = self._end, made.double()
        self._filled[:, end : end + 1] = self._values[:, end : end + 1] = made.to(self._filled.dtype)
        for sums, one in ((self._sums, real), (self._squares, real.square()), (self._counts, 1)):
            if sums is not None:
                sums[:, end + 1 : end + 2] = sums[:, end : end + 1] + one
        self._end += 1
        self._found.clear()
        self.level = self._level()

    def _level(self) -> Tensor:
        """Mean of the last season; the last value if there is no season, or no value in it."""
        last = self.last[:, 0]
        if self._season == 1:
            return last
        mean = self.mean(self._season)
        return torch.where(mean.isnan(), last, mean)

    @property
    def values(self) -> Tensor:
        """The look-backs, NaN where missing."""
        return self._values[:, self._end - self.length : self._end]

    @property
    def last(self) -> Tensor:
        """The last values (B, 1, C), gaps filled."""
        return self._filled[:, self._end - 1 : self._end]

    def mean(self, steps: int, before: int = 0) -> Tensor:
        """Mean of `steps` steps that end `before` steps before the end; NaN where all are missing."""
        return (self._of(self._sums, steps, before) / self._count(steps, before)).float()

    def deviation(self, steps: int) -> Tensor:
        """Deviation of the last `steps`; NaN where all are missing."""
        count = self._count(steps)
        mean = self._of(self._sums, steps) / count
        return (self._of(self._squares, steps) / count - mean.square()).clamp(min=0).sqrt().float()

    def _count(self, steps: int, before: int = 0) -> Tensor | int:
        return steps if self._counts is None else self._of(self._counts, steps, before)

    def _of(self, sums: Tensor, steps: int, before: int = 0) -> Tensor:
        end = self._end - before
        return sums[:, end] - sums[:, end - steps]

    def before(self, season: int, cycle: int = 0, shift: int = 0) -> Tensor:
        """Values a whole number of seasons before the future steps; see `seasons_before`."""
        which = season, cycle, shift
        if which not in self._found:
            self._found[which] = seasons_before(self.values, self.steps, *which)
        return self._found[which]

    def phase_mean(self, season: int) -> Tensor:
        """Mean of the values at the phase of each future step, over the last whole seasons; NaN where all are missing."""
        if (season,) not in self._found:
            self._found[(season,)] = self._phase_mean(season)
        return self._found[(season,)]

    def _phase_mean(self, season: int) -> Tensor:
        cycles, values, phases = self.length // season, self.values, self.steps % season
        whole = values[:, self.length - cycles * season :].unflatten(1, (cycles, season))
        # In float64, the order of the sum does not matter.
        if phases.shape[1] >= season:  # each phase is computed once
            return _at(whole.double().nanmean(1).float(), phases)
        index = phases[:, None, :, None].expand(-1, cycles, -1, values.shape[2])
        return whole.gather(2, index).double().nanmean(1).float()


def _running_sums(values: Tensor, further: int) -> Tensor:
    """Sums (B, 1 + L + further, C) of the first 0, 1, ... L steps of `values` (B, L, C); `further` ones are not set."""
    windows, length, channels = values.shape
    sums = values.new_empty(windows, 1 + length + further, channels)
    sums[:, 0] = 0
    torch.cumsum(values, 1, out=sums[:, 1 : length + 1])
    return sums


def seasons_before(values: Tensor, steps: Tensor, season: int, cycle: int = 0, shift: int = 0) -> Tensor:
    """Select from `values` (B, L, D) those a whole number of seasons before the future `steps` (B, S): (B, S, D).

    `cycle` 0 is the latest such value. Values outside the look-back, also after a `shift`, are NaN.
    """
    length = values.shape[1]
    rows = length + steps % season - season * (1 + cycle) + shift
    inside = (rows >= 0) & (rows < length)
    found = values.gather(1, rows.clamp(0, length - 1)[..., None].expand(-1, -1, values.shape[2]))
    return found.masked_fill(~inside[..., None], torch.nan)


class Ensemble(nn.Module):
    """Trees that forecast any step of any channel from one row of features, in one form; see the module.

    With quantiles, there are trees for each.

    Args:
        config: settings.
        quantiles: those to forecast; none for a point forecast.

    Attributes:
        number: () int64, that of the form in `FORMS`.
        trees: `Trees` of each output.
    """

    number: Tensor

    def __init__(self, config: BoostConfig, quantiles: Sequence[float]) -> None:
        super().__init__()
        self.config, self.quantiles, self.n_outputs = config, tuple(quantiles), max(1, len(quantiles))
        self.register_buffer("number", torch.zeros((), dtype=torch.int64))
        self.outputs = nn.ModuleList(Trees(config.rounds, config.leaves) for _ in range(self.n_outputs))

    @property
    def form(self) -> Form:
        """What the trees forecast."""
        return FORMS[int(self.number)]

    @property
    def trees(self) -> list[Trees]:
        """Those of each output."""
        return [cast(Trees, each) for each in self.outputs]

    def forward(self, batch: Batch, exchanged: Exchanged | None = None, past: Past | None = None) -> Tensor:
        """Forecast (B, P, C), or (B, P Q, C) with a step's quantiles side by side; `past` is of all steps."""
        if not self.form.recursive:
            return self.forecast_steps(batch, self.past(batch) if past is None else past, exchanged)
        pieces, known = list[Tensor](), batch.known
        past = self.past(batch, 1, self.config.pred_len)
        for step in range(self.config.pred_len):
            moved = batch if known is None else replace(batch, known=known[:, step:])
            pieces.append(self.forecast_steps(moved, past, exchanged))
            past.append(pieces[-1])
        return torch.cat(pieces, dim=1)

    def past(self, batch: Batch, steps: int | None = None, further: int = 0) -> Past:
        """The look-backs of `batch` for the first `steps`, or for all."""
        ahead = torch.arange(steps or self.config.pred_len, device=batch.past.device).expand(len(batch.past), -1)
        return Past(batch, ahead, self.season, further)

    @property
    def season(self) -> int:
        """Number of steps in the first season that the look-back contains, or 1."""
        return next(iter(self.config.seasons), 1)

    def forecast_steps(self, batch: Batch, past: Past, exchanged: Exchanged | None = None) -> Tensor:
        """Forecasts (B, S Q, C) of the steps of `past`; see `columns`."""
        columns, base, unit = self.columns(batch, past, exchanged)
        columns = [each.cpu() for each in columns]
        made = torch.stack([trees(columns).float() for trees in self.trees], dim=2).to(base.device)  # (B, S, Q, C)
        return (made * unit[:, :, None] + base[:, :, None]).flatten(1, 2).to(batch.past.dtype)

    def columns(
        self, batch: Batch, past: Past, exchanged: Exchanged | None = None
    ) -> tuple[list[Tensor], Tensor, Tensor]:
        """Features of the steps of `past`, with the base and unit of their forecasts.

        Args:
            batch: B windows.
            past: its look-backs, to which forecasts may have been appended.
            exchanged: features to exchange between windows.

        Returns:
            A feature each, float32, NaN where missing, the base and the unit, all of which expand to (B, S, C).
        """
        base, unit = self._units(past)
        level = self._level(past)
        of_base = SEASONS if self.form.base == "phase" else VALUES
        scaled = [
            *((VALUES, each) for each in self._of_values(past)),
            *((MEANS, each) for each in self._of_means(past)),
            *((SEASONS, each) for each in self._of_steps(past)),
            (of_base, base - level[:, None]),
        ]
        columns = [(each[:, None] if each.dim() == 2 else each) / unit for _, each in scaled]
        columns += [past.level[:, None], unit, *self._of_inputs(batch, past.steps)]
        if exchanged is not None:
            others = exchanged.others(len(base))
            for number, group in enumerate([*(group for group, _ in scaled), MEANS, MEANS]):
                if group == exchanged.group:
                    columns[number] = columns[number][others]
        return [each.float() for each in columns], base, unit

    def table(self, batch: Batch, steps: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `columns` for the `steps` (B, S), as a table (B S C, columns), column after column in memory, which is several
        times faster to fill."""
        columns, base, unit = self.columns(batch, Past(batch, steps, self.season))
        return torch.stack(torch.broadcast_tensors(*columns)).flatten(1).T, base, unit

    def _units(self, past: Past) -> tuple[Tensor, Tensor]:
        """Base (B, S, C), or (B, 1, C) if it is that of all steps, and unit (B, 1, C) of the forecasts."""
        form = self.form
        base = past.last if form.base in ("last", "phase") else self._level(past)[:, None]
        if form.base == "phase":
            same = past.phase_mean(self.season)
            base = torch.where(same.isnan(), base, same)
        if not form.in_deviations:
            return base, torch.ones_like(base[:, :1])
        return base, past.deviation(past.length).nan_to_num(1.0).clamp(min=NARROWEST)[:, None]

    def _level(self, past: Past) -> Tensor:
        """The level (B, C) of which features are differences."""
        return torch.zeros_like(past.level) if self.form.base == "zero" else past.level

    def _of_values(self, past: Past) -> Iterator[Tensor]:
        """The last values minus the level, each (B, C)."""
        for lag in range(1, min(LAGS, past.length) + 1):
            yield past.values[:, -lag] - self._level(past)

    def _of_means(self, past: Past) -> Iterator[Tensor]:
        """Means of the last steps minus the level, their deviations and changes, each (B, C)."""
        length, seasons, level = past.length, self.config.seasons, self._level(past)
        spans = {*SPANS, length, *(times * season for season in seasons for times in (1, 2, 4))}
        for steps in sorted(each for each in spans if each <= length):
            mean = past.mean(steps)
            yield mean - level
            yield past.deviation(steps)
            if 2 * steps <= length:
                yield mean - past.mean(steps, before=steps)

    def _of_steps(self, past: Past) -> Iterator[Tensor]:
        """Values at earlier seasons of each step minus the level, (B, S, C)."""
        level = self._level(past)[:, None]
        for season in self.config.seasons:
            for cycle in range(min(CYCLES, past.length // season)):
                yield past.before(season, cycle) - level
            for shift in (-1, 1):
                yield past.before(season, shift=shift) - level
            yield past.phase_mean(season) - level

    def _of_inputs(self, batch: Batch, steps: Tensor) -> Iterator[Tensor]:
        """Columns that expand to (B, S, C): number of steps ahead, channel, future covariates, also as differences from
        a season before and from the last season's mean, and static covariates."""
        config, known = self.config, batch.known_to(int(steps.max()) + 1)
        yield steps[..., None]
        yield torch.arange(config.n_channels, device=steps.device)[None, None]
        if config.n_known and known is not None:
            rows = (config.seq_len + steps)[..., None].expand(-1, -1, known.shape[2])
            then, season = known.gather(1, rows), self.season
            yield from then.split(1, dim=2)
            yield from (then - seasons_before(known[:, : config.seq_len], steps, season)).split(1, dim=2)
            yield from (then - known[:, config.seq_len - season : config.seq_len].mean(1, keepdim=True)).split(1, dim=2)
        if config.n_static and batch.static is not None:
            yield from batch.static[:, None].split(1, dim=2)

    def grow(
        self, train: Windows, val: Windows | None, most: int, training: TrainingConfig, rounds: Sequence[int]
    ) -> None:
        """Train `rounds` trees for each output, or as many of them as are best on `val`."""
        from sklearn.ensemble import HistGradientBoostingRegressor  # takes a second to import

        draws, loss = torch.Generator().manual_seed(training.seed), LOSSES[training.loss]
        learned = self.drawn(train, most, draws)
        held = None if val is None else self.drawn(val, max(1, most // VALIDATED), draws)
        learned.x[:, np.isnan(learned.x).all(0)] = 0.0  # the library cannot bin a column without values
        for number, (trees, count) in enumerate(zip(self.trees, rounds, strict=True)):
            grown = HistGradientBoostingRegressor(
                loss=loss,
                quantile=self.quantiles[number] if self.quantiles else None,
                learning_rate=self.config.learning_rate,
                max_leaf_nodes=self.config.leaves,
                min_samples_leaf=LEAST,
                max_iter=max(1, count),
                early_stopping=held is not None,
                scoring="loss",
                n_iter_no_change=PATIENCE,
                random_state=training.seed,
            )
            if held is None:
                grown.fit(learned.x, learned.y)
            else:
                grown.fit(learned.x, learned.y, X_val=held.x, y_val=held.y)
                count = int(np.argmax(grown.validation_score_))  # the first of these is that of no tree
            # The trees have no public name. A test compares their forecasts with the library's own predict.
            trees.take(
                float(np.ravel(grown._baseline_prediction)[0]), [each[0].nodes for each in grown._predictors[:count]]
            )

    def drawn(self, windows: Windows, most: int, draws: torch.Generator) -> Rows:
        """Feature rows of randomly sampled windows and steps, at most `most` or one window.

        Raises:
            UsageError: None of them has a value to forecast.
        """
        channels, count = windows.rows.shape[1], len(windows)
        ahead = 1 if self.form.recursive else windows.pred_len
        some = max(1, min(count, most // (channels * min(STEPS, ahead))))
        each = max(1, min(ahead, most // (channels * some)))
        parts = list[tuple[Tensor, Tensor]]()
        for index in torch.randperm(count, generator=draws)[:some].sort().values.split(max(1, SEQUENCES // channels)):
            batch = windows.batch(index)
            steps = torch.rand(len(index), ahead, generator=draws).argsort(1)[:, :each]
            table, base, unit = self.table(batch, steps)
            there = _at(_learned(windows, index, batch), steps)
            difference = (_at(batch.target, steps) - base) / unit
            parts.append((table[there.flatten()], difference[there]))
        x, y = (torch.cat(each).numpy() for each in zip(*parts, strict=True))
        if not len(y):
            raise UsageError("The sampled windows contain no value to train on; increase model.rows.")
        return Rows(x, y)


@register(
    "boost", "Gradient boosting on lags, calendar, future and static covariates: one model of trees for all series."
)
class Boost(ForecastModel):
    """Mean of ensembles whose forms of the target were best on validation; see the module."""

    Config: ClassVar[type[ModelConfig]] = BoostConfig
    supports = Supports(known=True, dated=True, static=True, quantiles=True, channels=1)
    losses = tuple(LOSSES)
    in_torch = False  # leaves are read from the bits of numbers
    groups = (VALUES, MEANS, SEASONS)
    used: Tensor
    grown: Tensor

    def __init__(self, config: BoostConfig, quantiles: Sequence[float] = ()) -> None:
        super().__init__(config, quantiles)
        self.register_buffer("used", torch.ones((), dtype=torch.int64))  # number of ensembles in the mean
        self.register_buffer("grown", torch.zeros((), dtype=torch.int64))  # number of rows of the final fit
        self.members = nn.ModuleList(Ensemble(config, quantiles) for _ in range(BEST))

    @property
    def ensembles(self) -> list[Ensemble]:
        """Those in the mean, the best one first."""
        return [cast(Ensemble, each) for each in self.members][: int(self.used)]

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P, C), or (B, P Q, C) with a step's quantiles side by side."""
        past = self.ensembles[0].past(batch)
        return torch.stack([each(batch, self.exchanged, past) for each in self.ensembles]).mean(0)

    def learn(
        self, train: Windows, val: Windows | None, training: TrainingConfig, chosen: ForecastModel | None = None
    ) -> None:
        """Train on rows sampled from `train`, with forms and numbers of trees chosen on `val` or taken from `chosen`."""
        config, began = self.config, time.monotonic()
        limit = None if training.max_time is None else parse_span(training.max_time)
        most = config.rows if limit is None else ROWS_A_SECOND * limit
        most = int(min(config.rows, most) / self.n_outputs**0.5)
        if isinstance(chosen, Boost):
            self.used.copy_(chosen.used)
            if limit is not None:
                most = min(most, int(chosen.grown) or most)
            self.grown.fill_(most)
            for mine, other in zip(self.ensembles, chosen.ensembles, strict=True):
                mine.number.copy_(other.number)
                mine.grow(train, None, most, training, [int(trees.count) for trees in other.trees])
            return
        assert val is not None
        errors, few, trial = dict[int, float](), max(1, config.rounds // TRIED), self.ensembles[0]
        tried = [few if each == 0.5 else 0 for each in self.quantiles or (0.5,)]
        # quantiles of one step ahead say nothing of later ones
        recursive = not self.quantiles and config.pred_len <= MOST_RECURSIVE
        for number, form in enumerate(FORMS):
            if (config.seasons or form.base != "phase") and (recursive or not form.recursive):
                trial.number.fill_(number)
                trial.grow(train, val, most // TRIED, training, tried)
                errors[number] = sampled_error(trial, val, training.seed)
        first, *others = sorted(errors, key=errors.__getitem__)[:BEST]
        best = [first, *(each for each in others if errors[each] <= WITHIN * errors[first])]
        if limit is not None:  # the trials are the part on which the final fits, of more rows and rounds, are measured
            spent = time.monotonic() - began
            expected = spent / len(errors) * TRIED**2 * len(best)
            most = max(most // TRIED, int(most * min(1.0, max(0.0, limit - spent) / expected)))
        self.used.fill_(len(best))
        self.grown.fill_(most)
        for chosen_form, each in zip(best, self.ensembles, strict=True):
            each.number.fill_(chosen_form)
            each.grow(train, val, most, training, [config.rounds] * self.n_outputs)


def sampled_error(model: Ensemble | Boost, windows: Windows, seed: int) -> float:
    """Mean absolute error of point or median forecasts over randomly sampled windows of `windows`."""
    count, draws = max(1, COMPARED // windows.rows.shape[1]), torch.Generator().manual_seed(seed)
    index = torch.randperm(len(windows), generator=draws)[:count]
    batch, middle = windows.batch(index), model.quantiles.index(0.5) if model.quantiles else 0
    made = model(batch).unflatten(1, (-1, model.n_outputs))[:, :, middle]
    return float(mean_error(made, batch.target, _learned(windows, index, batch), absolute=True))


def _at(values: Tensor, steps: Tensor) -> Tensor:
    """Select the `steps` (B, S) from `values` (B, P, C): (B, S, C)."""
    return values.gather(1, steps[..., None].expand(-1, -1, values.shape[2]))


def _learned(windows: Windows, index: Tensor, batch: Batch) -> Tensor:
    """Mask (B, P, C) of the training targets of the windows `index`: those that are observed, follow a look-back with a
    value, and are included in mean errors (`Windows.counts`)."""
    learned = torch.ones_like(batch.target, dtype=torch.bool)
    if batch.past_observed is not None and batch.future_observed is not None:
        learned = batch.future_observed & batch.past_observed.any(1, keepdim=True)
    counts = windows.counts(index)
    if counts is not None:
        learned[..., : counts.shape[2]] &= counts
    return learned
