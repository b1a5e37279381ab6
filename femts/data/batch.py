"""Input of models: a batch of windows with everything known about them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from femts.data.raw import Raw


@dataclass(frozen=True, eq=False)
class Batch:
    """B windows with L steps of look-back and a horizon of P steps, in scaled units.

    Attributes:
        past: (B, L, C), look-backs with gaps filled.
        past_observed: (B, L, C) bool, mask of observed values; None if nothing is missing.
        known: (B, L + P, K), future covariates and calendar features over look-back and horizon; None if there are none
            or the model does not read them.
        static: (B, E), static covariates of the series of each window; None without them.
        future: (B, P, C), targets; None for a forecast.
        future_observed: (B, P, C) bool, mask of observed targets; None if nothing is missing.
        raw: unscaled look-backs, for models that read them; otherwise None.
        series: (B,) int64, series number of each window; None for windows outside a dataset.
        number: (B,) int64, number of each window; None for windows outside a dataset.
    """

    past: Tensor
    past_observed: Tensor | None = None
    known: Tensor | None = None
    static: Tensor | None = None
    future: Tensor | None = None
    future_observed: Tensor | None = None
    raw: Raw | None = None
    series: Tensor | None = None
    number: Tensor | None = None

    @property
    def target(self) -> Tensor:
        """Targets of windows for training or scoring."""
        assert self.future is not None, "a batch to forecast from has no targets"
        return self.future

    def some(self, windows: Tensor) -> Batch:
        """Select windows by number (n,), an index on the CPU."""
        index = windows.to(self.past.device)
        names = ("past", "past_observed", "known", "static", "future", "future_observed", "series", "number")
        given = {name: getattr(self, name) for name in names}
        raw = self.raw
        if raw is not None:
            raw = Raw(raw.values[windows], *(each[windows] if len(each) > 1 else each for each in raw[1:]))
        return replace(self, raw=raw, **{name: each[index] for name, each in given.items() if each is not None})

    def of_channels(self, channels: Tensor) -> Batch:
        """Select channels (D,) of all windows."""
        names = ("past", "past_observed", "future", "future_observed")
        given = {name: getattr(self, name) for name in names}
        return replace(self, **{name: each[..., channels] for name, each in given.items() if each is not None})

    def after(self, forecast: Tensor) -> Batch:
        """Extend the look-backs by the forecast steps `forecast` (B, S, C), for recursive forecasts; without
        targets."""
        steps, length = forecast.shape[1], self.past.shape[1]
        past, seen = torch.cat([self.past, forecast.to(self.past.dtype)], dim=1)[:, -length:], self.past_observed
        if seen is not None:
            seen = torch.cat([seen, torch.ones_like(forecast, dtype=torch.bool)], dim=1)[:, -length:]
        return Batch(past, seen, known=None if self.known is None else self.known[:, steps:], static=self.static)

    def recent(self, steps: int, inputs: int) -> Batch:
        """Keep only the last `steps` of the look-backs, and the first known `inputs`."""
        known = self.known
        if known is not None:
            known = known[:, self.past.shape[1] - steps :, :inputs]
        raw = None if self.raw is None else self.raw._replace(values=self.raw.values[:, -steps:])
        seen = None if self.past_observed is None else self.past_observed[:, -steps:]
        return replace(self, past=self.past[:, -steps:], past_observed=seen, known=known, raw=raw)

    def known_to(self, steps: int) -> Tensor | None:
        """Future covariates (B, L + steps, K); the last values are repeated if they are too short."""
        if self.known is None:
            return None
        missing = self.past.shape[1] + steps - self.known.shape[1]
        if missing <= 0:
            return self.known[:, : self.past.shape[1] + steps]
        return torch.cat([self.known, self.known[:, -1:].expand(-1, missing, -1)], dim=1)
