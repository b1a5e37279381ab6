"""Fits of classical models by statsforecast, one series at a time, in parallel processes if there are many."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from femts.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LONG, LONG_SEASON = 150, 12  # rows or season beyond which R's auto.arima approximates likelihoods
ARIMA_SEASON = 24  # longest season of AutoARIMA, whose search would take minutes; MSTL removes longer ones
WORTH = 3.0  # seconds of fitting that justify starting processes
FAR = 100.0  # standard deviations of the mean from 0 beyond which AutoARIMA is fitted to deviations from the mean
MOST_RECENT = 4096  # cached forecasts: scores, audits and reports request the same ones
_RECENT: dict[tuple[Fit, bytes], tuple[Array, str]] = {}


@dataclass(frozen=True)
class Fit:
    """A model of statsforecast with its settings.

    Attributes:
        name: class of the model.
        season: season length in steps; 1 for no season.
        steps: horizon in steps.
        levels: levels of the intervals in percent, increasing.
        approximation: approximate likelihoods during the search of AutoARIMA; None for long series only, as in R.
        further: further season lengths in steps, for MSTL.
    """

    name: str
    season: int
    steps: int
    levels: tuple[float, ...] = ()
    approximation: bool | None = None
    further: tuple[int, ...] = ()

    def model(self, rows: int) -> Any:
        """The library's model for a series of `rows` rows."""
        from statsforecast import models

        # one season of rows is enough for MSTL (results/trials.md), two for further seasons
        held = ((self.season, rows), *((each, rows / 2) for each in self.further))
        seasons = [each for each, most in held if 1 < each <= most]
        if self.name == "AutoARIMA":
            long = rows > LONG or self.season > LONG_SEASON
            chosen = long if self.approximation is None else self.approximation
            if self.season <= ARIMA_SEASON:
                return models.AutoARIMA(season_length=self.season, approximation=chosen)
            arima = models.AutoARIMA(approximation=chosen)
            return models.MSTL(season_length=seasons, trend_forecaster=arima) if seasons else arima
        if self.name == "MSTL":
            # without a season, what it fits to the seasonally adjusted rows
            return models.MSTL(season_length=seasons) if seasons else models.AutoETS(model="ZZN")
        if self.name == "CrostonSBA":
            return models.CrostonSBA()
        return getattr(models, self.name)(season_length=self.season)

    def forecast(self, values: Array) -> tuple[Array, str]:
        """Forecast the steps after `values` (n,), NaN for missing values.

        Leading gaps are dropped, others filled with the last value before them. If the library fails, its `Naive`
        replaces the model.

        Returns:
            (steps, 1 + 2 levels): lower ends from the widest on, the forecast, upper ends; NaN if there is no value.
            And why the library failed, empty if it did not.
        """
        present = np.flatnonzero(~np.isnan(values))
        if not len(present):
            return np.full((self.steps, 1 + 2 * len(self.levels)), np.nan), ""
        series = values[present[0] :]
        series = series[np.maximum.accumulate(np.where(np.isnan(series), 0, np.arange(len(series))))]
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            try:
                level = self._level(series)
                made = self._columns(self.model(len(series)), series - level) + level
                if np.isfinite(made).all():
                    return made, ""
                reason = "its forecast is not finite"
            except ImportError:
                raise
            except Exception as error:  # the library raises errors of many kinds
                reason = str(error).rstrip(".") or type(error).__name__
            return self._naive(series), reason

    def _level(self, series: Array) -> float:
        """What is subtracted from `series` before the fit. AutoARIMA is equivariant to shifts, but loses precision at a
        level far from 0: its intervals were twelve times as wide at a level of 10,000 with a deviation of 2."""
        mean = float(series.mean())
        return mean if self.name == "AutoARIMA" and abs(mean) > FAR * float(series.std()) > 0 else 0.0

    def _columns(self, model: Any, series: Array) -> Array:
        # columns are named after the levels
        levels = [int(level) if level == int(level) else level for level in self.levels]
        made = model.forecast(y=series, h=self.steps, **({"level": levels} if levels else {}))
        lower = [made[f"lo-{level}"] for level in reversed(levels)]
        upper = [made[f"hi-{level}"] for level in levels]
        return np.stack([*lower, made["mean"], *upper], axis=1).astype(np.float64)

    def _naive(self, series: Array) -> Array:
        from statsforecast import models

        last = np.full((self.steps, 1), series[-1])
        if len(series) == 1:
            return last.repeat(1 + 2 * len(self.levels), axis=1)
        made = self._columns(models.Naive(), series)
        return np.where(np.isfinite(made), made, last)


def forecast_all(fit: Fit, series: Sequence[Array], processes: int) -> tuple[Array, list[str]]:
    """Forecast each of `series`, in `processes` processes if the fits take long enough.

    Returns:
        (series, steps, 1 + 2 levels) as in `Fit.forecast`, and the reasons why the library failed on some.

    Raises:
        UsageError: statsforecast is not installed.
    """
    try:
        import statsforecast  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"This model needs {error.name}, which is not installed; run pip install 'femts[stats]'."
        ) from error
    keys = [(fit, hashlib.blake2b(values.tobytes()).digest()) for values in series]
    made = {key: _RECENT[key] for key in keys if key in _RECENT}
    waiting = {key: values for key, values in zip(keys, series, strict=True) if key not in made}
    began, count = time.monotonic(), len(waiting)
    while waiting:
        key = next(iter(waiting))
        made[key] = fit.forecast(waiting.pop(key))
        each = (time.monotonic() - began) / (count - len(waiting))
        if processes > 1 and len(waiting) > 1 and each * len(waiting) > WORTH:
            from joblib import Parallel, delayed

            forecasts = Parallel(processes)(delayed(fit.forecast)(values) for values in waiting.values())
            made |= dict(zip(waiting, forecasts, strict=True))
            break
    _RECENT.update(made)
    for old in list(_RECENT)[: max(0, len(_RECENT) - MOST_RECENT)]:
        del _RECENT[old]
    return np.stack([made[key][0] for key in keys]), [made[key][1] for key in keys if made[key][1]]
