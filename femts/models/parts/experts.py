"""Closed-form forecasts ("experts") from every origin of a series, each from the rows before that origin only.

Arrays are laid out time first, (rows, series), because all series of a batch share their seasons and hence their index
arithmetic: a shifted copy is then a selection of whole rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from femts.mixers.ops.scan import running_max

NAMES = (
    "seasonal naive",
    "mean of seasons",
    "nearest neighbours",
    "last value",
    "seasons at the last level",
    "seasons at the last deviation",
    "smoothed level and half the trend",
    "autoregression",
    "autoregression of differences",
    "autoregression of seasonal differences",
    "direct regression",
    "drift",
    "second seasons at the last level",
)
TRENDING = (  # experts that may leave the range of the past by its width
    "smoothed level and half the trend",
    "autoregression of differences",
    "autoregression of seasonal differences",
    "drift",
)
SEASONS = 7  # seasons that a phase mean averages
SECOND_SEASONS = 4  # longer seasons that are averaged
LEAD_GROUPS = (0, 1, 2, 4, 8, 16, 32, 64, 128)  # first leads that share the coefficients of the direct regression
LEADS_PER_GROUP = 3  # leads of a group that the regression is fitted on
LONGEST_LAG = 1200  # of the autoregression; longer ones are left out
NEIGHBOURS = 24  # windows that `nearest neighbours` averages
POINTS, NARROWEST = 24, 8  # rows of a window that are compared, and its rows at least
SMOOTHING = 0.5  # of the level of `smoothed level and half the trend`
DRIFT_ROWS, DRIFT_SEASONS = 32, 3  # the longer of the two is what the drift is measured over
INPUTS = 10  # of the direct regression
MIN_FITTED = 12  # rows that an autoregression is fitted on, if the series has them
FITTED = (1536, 400)  # rows before the first origin that autoregression and direct regression are fitted on, about
STRIDES = (16, 8, 4, 2, 1)
BIWEIGHT = 4.0  # mean absolute residuals from which on a row has no weight in the direct regression
PRECISION = 1e-6  # of sums of products, relative

Rows = tuple[Tensor, Tensor, Tensor]  # inputs and targets of a regression, and square roots of their weights


@dataclass(frozen=True)
class Forecasts:
    """What is known at the O origins of B series, of which the last has the horizon ahead.

    Attributes:
        experts: forecasts of the `NAMES`, (O, H, B, K), in the units of the series.
        location: mean of the context before an origin, (O, B).
        scale: its standard deviation, positive, (O, B).
        seasonal: mean absolute seasonal difference of all rows before an origin, the scale of MASE, positive, (O, B).
        residual: standard deviation of the residuals of the direct regression by lead, positive, (O, H, B).
        seen: observed rows before an origin, (O, B).
        age: rows before an origin from the first observed one on, at least 1, (O, B).
    """

    experts: Tensor
    location: Tensor
    scale: Tensor
    seasonal: Tensor
    residual: Tensor
    seen: Tensor
    age: Tensor


class History:
    """Rows of B series with running sums.

    Args:
        x: values (T, B); those that are not observed are ignored.
        observed: which are, (T, B).
        first: the first origin; values are kept around the mean before it, so that sums stay precise.
    """

    def __init__(self, x: Tensor, observed: Tensor, first: int) -> None:
        rows = torch.arange(x.shape[0])[:, None]
        self.observed = observed
        self.start = torch.where(observed.any(0), observed.float().argmax(0), x.shape[0])  # first observed row, (B)
        last = _running_max(torch.where(observed, rows, -1))
        start = self.start.clamp(max=x.shape[0] - 1).expand_as(last)
        filled = torch.gather(torch.where(observed, x, 0.0), 0, torch.where(last < 0, start, last))
        early = observed[: max(first, 1)]
        total = torch.where(early, x[: len(early)] - filled[:1], 0.0).sum(0, keepdim=True)
        self.offset = filled[:1] + total / early.sum(0, keepdim=True).clamp(min=1)
        self.x = filled - self.offset
        self._sum = _running(self.x)

    def at(self, rows: Tensor) -> Tensor:
        """Values at `rows` of any shape, (*rows, B); rows before the first are the first."""
        return _at(self.x, rows)

    def differenced(self, lag: int) -> History:
        """Differences from the values `lag` rows before; 0 in the first `lag` rows of a series and where it has a gap."""
        made = copy(self)
        earlier = torch.arange(len(self.x)) - lag
        made.observed = self.observed & _at(self.observed, earlier) & (earlier >= 0)[:, None]
        made.start = self.start + lag
        made.offset = torch.zeros_like(self.offset)
        made.x = torch.where(self.known(earlier), self.x - self.at(earlier), 0.0)
        made._sum = _running(made.x)
        return made

    def known(self, rows: Tensor) -> Tensor:
        """Whether `rows` of any shape are not before the start of a series, (*rows, B)."""
        return rows[..., None] >= self.start

    def mean(self, ends: Tensor, count: int, sums: Tensor | None = None) -> Tensor:
        """Mean over up to `count` rows before `ends` of any shape, at least 1, from the start of each series on."""
        sums = self._sum if sums is None else sums
        rows = ends.clamp(0, len(self.x))[..., None]
        used = (rows - self.start).clamp(1, count)
        below = (rows - used).clamp(min=0)
        high = sums.index_select(0, rows.reshape(-1)).reshape(*ends.shape, -1)
        low = torch.gather(sums, 0, below.reshape(-1, below.shape[-1])).reshape(below.shape)
        return ((high - low) / used).to(self.x)

    def phase_mean(self, rows: Tensor, season: int, seasons: int) -> Tensor:
        """Mean of the values at `rows` and up to `seasons` - 1 seasons before, (*rows, B)."""
        total, count = _phase_sum(self.x, self.start, rows, season, seasons)
        return torch.where(count > 0, total / count.clamp(min=1), self.at(rows))

    def growth(self, origins: Tensor, season: int, span: int) -> Tensor:
        """Growth a step over up to `span` rows before the `origins` O, from the mean of their first season to that of
        their last, (O, B); 0 where there is no more than a season."""
        used = (origins[:, None] - self.start).clamp(max=span)
        ends = origins[:, None].expand_as(used)
        first, last = (ends - used).clamp(min=0), (ends - season).clamp(min=0)

        def total(low: Tensor) -> Tensor:
            return self._sum.gather(0, (low + season).clamp(max=len(self.x))) - self._sum.gather(0, low)

        step = (total(last) - total(first)) / (season * (used - season).clamp(min=1))
        return torch.where(used > season, step, 0.0).to(self.x)


def _at(x: Tensor, rows: Tensor) -> Tensor:
    """`x` (T, B) at `rows` of any shape, or at the nearest row that there is, (*rows, B)."""
    return x.index_select(0, rows.reshape(-1).clamp(0, len(x) - 1)).reshape(*rows.shape, -1)


def _phase_sum(x: Tensor, start: Tensor, rows: Tensor, season: int, seasons: int) -> tuple[Tensor, Tensor]:
    """Sum of `x` (T, B) at `rows` and up to `seasons` - 1 seasons before, from the rows `start` (B) on, and how many rows
    these are, (*rows, B) each."""
    total, count = torch.zeros(()), torch.zeros(())
    for back in range(seasons):
        earlier = rows - back * season
        known = (earlier[..., None] >= start).to(x)
        total = total + _at(x, earlier) * known
        count = count + known
    return total, count


def _running(x: Tensor) -> Tensor:
    return F.pad(x.double().cumsum(0), (0, 0, 1, 0))


def expert_forecasts(
    x: Tensor, observed: Tensor, season: int, second: int, horizon: int, starts: Sequence[int], context: int
) -> Forecasts:
    """Forecasts of all experts from all origins.

    Args:
        x: values (T, B). Those at or after an origin do not affect its forecasts.
        observed: which are observed, (T, B).
        season: steps of the season, 1 for none.
        second: steps of a longer season, or `season`.
        horizon: steps ahead H.
        starts: the O origins, rows that are forecast first, `horizon` apart, in ascending order.
        context: rows before an origin that location and scale are computed from.

    Returns:
        See `Forecasts`.
    """
    history = History(x, observed, starts[0])
    origins, leads = torch.tensor(starts), torch.arange(horizon)
    targets = origins[:, None] + leads
    same_phase = targets - (leads // season + 1) * season  # the last known row of the phase
    longer = targets - (leads // second + 1) * second
    shape = (len(origins), horizon, x.shape[1])

    location, scale = _moments(history, origins, context)
    naive = history.at(same_phase)
    phase = history.phase_mean(same_phase, season, SEASONS)
    last = history.at(origins - 1)[:, None].expand(shape)
    level = history.mean(origins, season) - history.mean(origins, SEASONS * season)
    at_level = phase + level[:, None]
    deviation = history.at(origins - 1) - history.phase_mean(origins - 1 - season, season, SEASONS)
    adjusted, ahead = _deseasonalised(history, season, same_phase)
    steps = (leads + 1)[:, None]
    drift = steps * history.growth(origins, season, max(DRIFT_ROWS, DRIFT_SEASONS * season))[:, None]
    trend = steps * history.growth(origins, season, len(x))[:, None]
    seasonal = _seasonal_scale(history, season, origins, scale)
    regression = DirectRegression(history, season, second, horizon, starts)
    direct, residual = regression.forecast(seasonal, scale)
    experts = [
        naive,
        phase,
        _nearest_neighbours(history, season, origins, leads, scale, at_level),
        last,
        at_level,
        phase + deviation[:, None],
        # The theta method in the form of Hyndman and Billah (2003).
        ahead + _smoothed(adjusted, origins)[:, None] + 0.5 * trend,
        *_autoregressions(history, season, second, horizon, starts, context),
        direct,
        ahead + _at(adjusted, origins - 1)[:, None] + drift,
        torch.where(history.known(longer), regression.usual(longer) + regression.above(origins)[:, None], at_level),
    ]
    low, high = (_extremes(history, origins, sign) for sign in (-1, 1))
    trending = torch.tensor([name in TRENDING for name in NAMES])
    beyond = torch.where(trending, (high - low)[..., None], scale[..., None])[:, None]  # (O, 1, B, K)
    low, high = low[:, None, :, None], high[:, None, :, None]
    bounded = torch.stack(experts, -1).clamp(low - beyond, high + beyond)
    return Forecasts(
        bounded + history.offset[..., None],
        location + history.offset,
        scale,
        seasonal,
        residual,
        _running(observed.to(x)).index_select(0, origins).to(x),
        (origins[:, None] - history.start).clamp(min=1).to(x),
    )


def _moments(history: History, origins: Tensor, context: int) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the context; the latter at least a tenth of that of all rows so far."""
    squares = _running(history.x**2)

    def moments(count: int) -> tuple[Tensor, Tensor]:
        mean = history.mean(origins, count)
        return mean, (history.mean(origins, count, squares) - mean**2).clamp(min=0).sqrt()

    mean, deviation = moments(context)
    _, overall = moments(len(history.x))
    scale = torch.maximum(deviation, 0.1 * overall)
    tiny = 1e-6 * (mean + history.offset).abs()
    return mean, torch.where(scale <= tiny, torch.ones_like(scale), scale)


def _seasonal_scale(history: History, season: int, origins: Tensor, scale: Tensor) -> Tensor:
    rows = torch.arange(len(history.x))
    earlier = rows - season
    both = history.observed & history.observed.index_select(0, earlier.clamp(min=0)) & history.known(earlier)
    difference = (history.x - history.at(earlier)).abs() * both
    total, count = (_running(sums).index_select(0, origins).to(history.x) for sums in (difference, both))
    return torch.where(count > 0, total / count.clamp(min=1), 0.5 * scale).clamp_(min=0.02 * scale)


def _extremes(history: History, origins: Tensor, sign: int) -> Tensor:
    if torch.compiler.is_exporting():  # a running maximum would be a tenth of the graph
        before = torch.arange(len(history.x)) < origins.clamp(min=1)[:, None]  # (O, T)
        return sign * torch.where(before[..., None], sign * history.x, -torch.inf).amax(1)
    return sign * _running_max(sign * history.x).index_select(0, (origins - 1).clamp(min=0))


def _deseasonalised(history: History, season: int, same_phase: Tensor) -> tuple[Tensor, Tensor]:
    """All rows without their season, (T, B), and the season of the rows ahead from the last known rows of their phases
    `same_phase` (O, H), (O, H, B).

    The season of a phase is how far it is from the mean of the season that ends with it, on average over up to `SEASONS`
    seasons, which a trend does not change; 0 in the first season. That of a row is the one known a season before, if
    there is one.
    """
    rows = torch.arange(len(history.x))
    if season == 1:
        return history.x, torch.zeros(*same_phase.shape, history.x.shape[1])
    deviations = history.x - history.mean(rows + 1, season)
    total, count = _phase_sum(deviations, history.start + season - 1, rows, season, SEASONS)
    shape = total / count.clamp(min=1)
    before = torch.where(history.known(rows - 2 * season + 1), _at(shape, rows - season), shape)
    return history.x - before, _at(shape, same_phase)


def _smoothed(x: Tensor, origins: Tensor) -> Tensor:
    """Simple exponential smoothing of `x` (T, B) up to each origin, (O, B)."""
    age = origins[:, None] - 1 - torch.arange(len(x))
    weights = torch.where(age >= 0, SMOOTHING * (1 - SMOOTHING) ** age.clamp(min=0), 0.0).to(x)
    weights[:, 0] += 1 - weights.sum(1)  # the level before the first row is that of the first
    return weights @ x


def _nearest_neighbours(
    history: History, season: int, origins: Tensor, leads: Tensor, scale: Tensor, otherwise: Tensor
) -> Tensor:
    """What followed the windows that are most like the last season, as differences from their last values, (O, H, B).

    Windows are weighted by the distance of their values, in units of that of the nearest one. `otherwise` (O, H, B) is
    the forecast where no window has all steps ahead behind it.
    """
    width, steps = max(season, NARROWEST), len(leads)
    points = min(POINTS, width)
    x, rows = history.x.mT.contiguous(), torch.arange(len(history.x))
    last = _along(x, rows - 1)  # (B, T)
    back = 1 + width * torch.arange(1, points) // points
    # In double precision, since differences of products count; (B, P, T).
    windows = (_along(x, rows - back[:, None]) - last[:, None]).double()
    squares, wanted = windows.square().sum(1, keepdim=True), windows.index_select(2, origins)
    distance = squares + squares.index_select(2, origins).mT - 2 * wanted.mT @ windows  # (B, O, T)
    complete = (rows + steps <= origins[:, None]) & history.known(rows - width).mT[:, None]
    near = torch.where(complete, distance.to(x), torch.inf).topk(min(NEIGHBOURS, len(rows)), largest=False)
    nearest = near.values[..., :1]
    weights = (-near.values / torch.maximum(nearest, PRECISION * scale.mT[..., None] ** 2)).softmax(-1)
    ahead = (near.indices[..., None] + leads).clamp(max=len(rows) - 1)  # (B, O, N, H)
    followed = x.gather(1, ahead.flatten(1)).view(ahead.shape)
    before = last.gather(1, near.indices.flatten(1)).view(near.indices.shape)
    forecast = (weights[..., None] * (followed - before[..., None])).sum(2) + last.index_select(1, origins)[..., None]
    return torch.where(nearest.isfinite(), forecast, otherwise.permute(2, 0, 1)).permute(1, 2, 0)


def _along(x: Tensor, rows: Tensor) -> Tensor:
    """`x` (B, T) at `rows` of any shape, those before the first being the first, (B, *rows)."""
    return x.index_select(1, rows.reshape(-1).clamp(min=0)).view(-1, *rows.shape)


def _autoregressions(
    history: History, season: int, second: int, horizon: int, starts: Sequence[int], context: int
) -> list[Tensor]:
    """Ridge regressions of the values, of their differences and of their seasonal differences on recent and seasonal
    lags, fitted before each origin and applied recursively, (O, H, B) each."""
    near = {1, 2, 3, 4, 6, 8}
    around = {k * season + i for k, width in ((1, 3), (2, 1), (3, 0)) for i in range(-width, width + 1)}
    lags = sorted(lag for lag in near | around | {second - 1, second, second + 1} if 0 < lag <= LONGEST_LAG)
    lag, longest, origins = torch.tensor(lags), lags[-1], torch.tensor(starts)
    histories = [history, history.differenced(1), history.differenced(season)]

    def fitted(history: History) -> tuple[Products, Tensor]:
        # How far back a training row has to reach, so that enough rows remain; longer lags then read the first value.
        length = starts[-1] - history.start
        reach = torch.zeros_like(length)
        for most in (season, 2 * season, longest):
            reach = torch.where((length >= 2 * most) & (length >= most + MIN_FITTED), most, reach)

        def rows(at: Tensor) -> Rows:
            inputs = torch.cat([history.at(at[:, None] - lag), torch.ones(len(at), 1, history.x.shape[1])], 1)
            return inputs, history.at(at), (at[:, None] - reach >= history.start) * _observed(history, at)

        products = _products(_chunks(rows, starts, horizon, FITTED[0]))
        strength = 0.001 * products.count + 3.0
        _, scale = _moments(history, origins, context)
        return products, torch.stack([strength * scale**2] * len(lags) + [0.1 * strength], -1)

    # One recursion for all, (steps, 3, O, B).
    products, penalties = zip(*map(fitted, histories), strict=True)
    coefficients = _ridge(_stacked(products), torch.stack(penalties))
    before = origins[:, None] + torch.arange(-longest, 0)
    path = torch.stack([history.at(before).transpose(0, 1) for history in histories], 1)
    path = torch.cat([path, torch.zeros(horizon, *path.shape[1:])])
    low, high = (torch.stack([_extremes(history, origins, sign) for history in histories]) for sign in (-1, 1))
    low, high = 2 * low - high, 2 * high - low
    weights, intercept = coefficients[..., :-1].movedim(-1, 0), coefficients[..., -1]
    for step in range(longest, longest + horizon):
        forecast = (path.index_select(0, step - lag) * weights).sum(0) + intercept
        path[step] = torch.minimum(torch.maximum(forecast, low), high)
    values, *differences = path[longest:].permute(1, 2, 0, 3)
    return [
        values,
        *(_added_up(steps, lag, history, origins) for steps, lag in zip(differences, (1, season), strict=True)),
    ]


def _added_up(differences: Tensor, lag: int, history: History, origins: Tensor) -> Tensor:
    """Values whose differences from the values `lag` rows before are `differences` (O, H, B)."""
    horizon = differences.shape[1]
    cycles = -(-horizon // lag)
    padded = F.pad(differences, (0, 0, 0, cycles * lag - horizon)).unflatten(1, (cycles, lag))
    leads = torch.arange(horizon)
    return padded.cumsum(1).flatten(1, 2)[:, :horizon] + history.at(origins[:, None] + leads - (leads // lag + 1) * lag)


class DirectRegression:
    """Robust ridge regression of the deviation from the phase mean at a lead on deviations that are known at the origin; one
    set of coefficients for each group of leads."""

    def __init__(self, history: History, season: int, second: int, horizon: int, starts: Sequence[int]) -> None:
        self.history, self.season, self.second, self.horizon = history, season, second, horizon
        self.starts, self.origins = starts, torch.tensor(starts)
        rows = torch.arange(len(history.x))
        # Mean of the seasons before a row, which is known a season ahead.
        self.anchor = history.phase_mean(torch.arange(-season, len(rows)), season, SEASONS)
        # Mean of the longer seasons that end with a row, and how far the last season was above that of a longer one before.
        self._usual = history.phase_mean(rows, second, SECOND_SEASONS)
        above = history.x - self.usual(rows - second)
        self._above = _running(torch.where(history.known(rows - second), above, 0.0))
        self.states = self._states(torch.arange(len(history.x) + 1))
        # First and last lead, the latter excluded, and the number of those that are fitted.
        self.groups = [
            (first, min(end, horizon), min(LEADS_PER_GROUP, min(end, horizon) - first))
            for first, end in zip(LEAD_GROUPS, (*LEAD_GROUPS[1:], horizon), strict=True)
            if first < horizon
        ]

    def inputs(self, at: Tensor, leads: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (n, p, leads, B) of forecasts from the rows `at` (n), and the phase means to add, (n, leads, B)."""
        history, season, second = self.history, self.season, self.second
        same_phase = at[:, None] + leads - (leads // season + 1) * season
        longer = at[:, None] + leads - (leads // second + 1) * second
        anchor = self._anchor(same_phase + season)
        naive = history.at(same_phase) - anchor
        weekly = torch.where(history.known(longer), self.usual(longer) - anchor, naive)
        states = self.states.index_select(0, at.clamp(min=0))[:, :, None].expand(-1, -1, len(leads), -1)
        return torch.cat([torch.stack([naive, weekly, anchor], 1), states], 1), anchor

    def _states(self, rows: Tensor) -> Tensor:
        """What is known at `rows` (n) for all leads, (n, INPUTS - 3, B)."""
        history, season = self.history, self.season
        last = history.at(rows - 1)
        deviations = _running(history.x - self.anchor[: len(history.x)])
        states = (
            history.mean(rows, season) - history.mean(rows, SEASONS * season),
            last - self._anchor(rows - 1),
            history.at(rows - 1 - season) - self._anchor(rows - 1 - season),
            history.mean(rows, max(season // 6, 1), deviations),
            last - history.mean(rows, 3),
            self.above(rows),
            torch.ones_like(last),
        )
        return torch.stack(states, 1)

    def forecast(self, seasonal: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Forecasts (O, H, B), and the standard deviation of residuals by lead, (O, H, B).

        Args:
            seasonal, scale: of the series at each origin, (O, B).
        """
        fitted = [first + torch.arange(n) * ((end - first) // n) for first, end, n in self.groups]
        chunks = [_chunks(partial(self._rows, leads), self.starts, self.horizon, FITTED[1]) for leads in fitted]
        products = _stacked(map(_products, chunks))  # (G, O, B)
        variance = seasonal**2 + 0.01 * scale**2
        strength = 0.02 * products.count + 10.0 * torch.tensor([n for *_, n in self.groups])[:, None, None]
        penalty = torch.stack([strength * variance] * (INPUTS - 1) + [0.1 * strength], -1)
        coefficients = _ridge(products, penalty)
        predicted = (products.gram @ coefficients[..., None])[..., 0]
        explained = (coefficients * (2 * products.moment - predicted)).sum(-1)
        squares = (products.square - explained).clamp(min=0) + 4 * variance
        residual = (squares / (products.count + 4)).sqrt()
        robust = (_products(_reweighted(*each)) for each in zip(chunks, coefficients, strict=True))
        coefficients = _ridge(_stacked(robust), penalty)
        forecasts = []
        for (first, end, _), own in zip(self.groups, coefficients, strict=True):
            inputs, anchor = self.inputs(self.origins, torch.arange(first, end))
            forecasts.append((inputs * own.mT[:, :, None]).sum(1) + anchor)
        of_lead = torch.tensor([k for k, (first, end, _) in enumerate(self.groups) for _ in range(first, end)])
        return torch.cat(forecasts, 1), residual.index_select(0, of_lead).transpose(0, 1)

    def _rows(self, leads: Tensor, at: Tensor) -> Rows:
        """What the rows `at` and before give for the regression of some `leads`, the last of which ends there."""
        origins = at - leads[-1]
        inputs, anchor = self.inputs(origins, leads)
        targets = origins[:, None] + leads
        used = _observed(self.history, targets) * self.history.known(origins - self.season)[:, None]
        return (
            inputs.transpose(1, 2).flatten(0, 1),
            (self.history.at(targets) - anchor).flatten(0, 1),
            used.flatten(0, 1),
        )

    def usual(self, rows: Tensor) -> Tensor:
        """Mean of the values at `rows` of any shape and in up to `SECOND_SEASONS` - 1 longer seasons before, (*rows, B)."""
        return _at(self._usual, rows)

    def above(self, ends: Tensor) -> Tensor:
        """How far the season before `ends` of any shape was above its usual values a longer season before, on average,
        (*ends, B); 0 where these are not known."""
        return self.history.mean(ends, self.season, self._above)

    def _anchor(self, rows: Tensor) -> Tensor:
        return _at(self.anchor, rows)


def _observed(history: History, rows: Tensor) -> Tensor:
    return (_at(history.observed, rows) & (rows >= 0)[..., None]).to(history.x)


@dataclass(frozen=True)
class Products:
    """Sums over the training rows before each origin: inputs by inputs (O, B, p, p), inputs by target (O, B, p), the
    squared target (O, B) and the number of rows (O, B)."""

    gram: Tensor
    moment: Tensor
    square: Tensor
    count: Tensor


def _chunks(rows: Callable[[Tensor], Rows], starts: Sequence[int], horizon: int, fitted: int) -> list[Rows]:
    """Rows before the first origin, one chunk, and between origins, series first: inputs (B, chunks, n, p), targets and
    square roots of weights (B, chunks, n) each.

    Args:
        rows: inputs (n, p, B) and targets (n, B) that rows before an origin give for its regression, and 1 or 0 for
            those to use or not (n, B), where n is a multiple of the number of rows.
        starts: O origins, `horizon` apart.
        horizon: steps ahead.
        fitted: rows before the first origin to use, about; of longer histories, every second, fourth and so on.
    """
    first = max(starts[0], 1)
    stride = next(s for s in STRIDES if horizon % s == 0 and (s == 1 or first >= fitted * s))
    between, chunk, before = len(starts) - 1, horizon // stride, first // stride
    at = (starts[-1] - 1 - stride * torch.arange(before + between * chunk)).flip(0)
    # As a transposed matrix, which is copied several times faster than a permutation of three dimensions.
    made = [values.flatten(0, -2).mT.contiguous().unflatten(1, values.shape[:-1]) for values in rows(at)]
    split = made[1].shape[1] // len(at) * before
    inputs, target, used = (values[:, None, :split] for values in made)
    if not between:
        return [(inputs, target, used)]
    inputs_after, target_after, used_after = (values[:, split:].unflatten(1, (between, -1)) for values in made)
    return [(inputs, target, used), (inputs_after, target_after, used_after)]


def _products(chunks: Iterable[Rows]) -> Products:
    """Sums over the rows before each origin, each with its weight."""
    return Products(*(torch.cat(part, 1).transpose(0, 1).cumsum(0) for part in zip(*map(_summed, chunks), strict=True)))


def _summed(chunks: Rows) -> tuple[Tensor, ...]:
    inputs, target, used = chunks
    inputs, target = inputs * used[..., None], target * used
    return inputs.mT @ inputs, (inputs.mT @ target[..., None])[..., 0], (target**2).sum(-1), (used**2).sum(-1)


def _reweighted(chunks: list[Rows], coefficients: Tensor) -> list[Rows]:
    """The rows of a regression with Tukey's biweights, of residuals from the `coefficients` (O, B, p) that were fitted
    before the origin that a row follows, or else before the first one."""
    fits = (coefficients[:1], coefficients[:-1])
    missed = [
        (target - (inputs @ fit.transpose(0, 1)[..., None])[..., 0]).abs() * used
        for (inputs, target, used), fit in zip(chunks, fits, strict=False)
    ]
    total = torch.cat([each.sum(-1) for each in missed], 1).cumsum(1)
    count = torch.cat([used.sum(-1) for *_, used in chunks], 1).cumsum(1)
    usual = (total / count.clamp(min=1)).clamp(min=1e-30)
    return [
        (inputs, target, used * (1 - (each / (BIWEIGHT * spread[..., None])) ** 2).clamp(min=0))
        for (inputs, target, used), each, spread in zip(chunks, missed, (usual[:, :1], usual[:, 1:]), strict=False)
    ]


def _stacked(products: Iterable[Products]) -> Products:
    """Those of several regressions along a new first dimension, which are then solved at once."""
    every = list(products)
    return Products(*(torch.stack([getattr(each, field.name) for each in every]) for field in fields(Products)))


def _ridge(products: Products, penalty: Tensor) -> Tensor:
    """Coefficients (..., p) that minimise squared errors plus `penalty` (..., p) times squared coefficients."""
    # What float32 can tell apart, for inputs that are nearly the same.
    penalty = (penalty + PRECISION * products.gram.diagonal(dim1=-2, dim2=-1)).clamp(min=1e-30)
    return solve(products.gram + torch.diag_embed(penalty), products.moment)


def _running_max(x: Tensor) -> Tensor:
    """Largest value of `x` (T, B) up to each row."""
    return running_max(x[None])[0]


def solve(a: Tensor, b: Tensor) -> Tensor:
    """Solutions (..., p) of positive definite systems `a` (..., p, p) with right sides `b` (..., p)."""
    if not torch.compiler.is_exporting():
        solved: Tensor = torch.linalg.solve(a, b)
        return solved
    system, units = torch.cat([a, b[..., None]], -1), torch.eye(a.shape[-1], dtype=torch.bool)
    for k in range(a.shape[-1]):  # Gauss-Jordan elimination; ONNX has no operator for systems
        row = system.narrow(-2, k, 1)
        pivot = row / row.narrow(-1, k, 1)
        system = torch.where(units.narrow(-1, k, 1), pivot, system - system.narrow(-1, k, 1) * pivot)
    return system[..., -1]


def median(x: Tensor, dim: int) -> Tensor:
    """As `x.median(dim).values`."""
    if not torch.compiler.is_exporting():
        return x.median(dim).values
    return x.sort(dim).values.select(dim, (x.shape[dim] - 1) // 2)
