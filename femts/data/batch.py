"""What a model is given: some windows, with all that is known of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from femts.data.raw import Raw


@dataclass(frozen=True, eq=False)
class Batch:
    """B windows of L steps of look-back and P steps to forecast, in scaled units.

    Attributes:
        past: (B, L, C), gaps filled.
        past_observed: (B, L, C) bool, which of these values are real; None where all are.
        known: (B, L + P, K), columns known for the steps to come and marks of the calendar, over the look-back and the
            forecast; None where there are none, or the model does not read them.
        static: (B, E), what describes the series of each window; None where nothing does.
        future: (B, P, C), what followed; None where it is to be forecast.
        future_observed: (B, P, C) bool, which of these values are real; None where all are.
        raw: the look-backs before scaling, for a model that reads them so; else None.
        series: (B,) int64, number of the series of each window; None where they are of no data set.
        number: (B,) int64, number of each window; None likewise.
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
        """What followed, of windows that are learned from or scored."""
        assert self.future is not None, "a batch to forecast from has no targets"
        return self.future

    def some(self, windows: Tensor) -> Batch:
        """Some of the windows by number (n,), an index on the CPU."""
        index = windows.to(self.past.device)
        names = ("past", "past_observed", "known", "static", "future", "future_observed", "series", "number")
        given = {name: getattr(self, name) for name in names}
        raw = self.raw
        if raw is not None:
            raw = Raw(raw.values[windows], *(each[windows] if len(each) > 1 else each for each in raw[1:]))
        return replace(self, raw=raw, **{name: each[index] for name, each in given.items() if each is not None})

    def of_channels(self, channels: Tensor) -> Batch:
        """The same windows with some of the channels (D,)."""
        names = ("past", "past_observed", "future", "future_observed")
        given = {name: getattr(self, name) for name in names}
        return replace(self, **{name: each[..., channels] for name, each in given.items() if each is not None})

    def after(self, forecast: Tensor) -> Batch:
        """The look-backs after the steps `forecast` (B, S, C), which count as history; without what followed."""
        steps, length = forecast.shape[1], self.past.shape[1]
        past, seen = torch.cat([self.past, forecast.to(self.past.dtype)], dim=1)[:, -length:], self.past_observed
        if seen is not None:
            seen = torch.cat([seen, torch.ones_like(forecast, dtype=torch.bool)], dim=1)[:, -length:]
        return Batch(past, seen, known=None if self.known is None else self.known[:, steps:], static=self.static)

    def recent(self, steps: int) -> Batch:
        """The same with the last `steps` of the look-backs."""
        known = self.known
        if known is not None:
            known = known[:, self.past.shape[1] - steps :]
        raw = None if self.raw is None else self.raw._replace(values=self.raw.values[:, -steps:])
        seen = None if self.past_observed is None else self.past_observed[:, -steps:]
        return replace(self, past=self.past[:, -steps:], past_observed=seen, known=known, raw=raw)

    def known_to(self, steps: int) -> Tensor | None:
        """Known columns (B, L + steps, K), the last of them repeated where they do not reach that far."""
        if self.known is None:
            return None
        missing = self.past.shape[1] + steps - self.known.shape[1]
        if missing <= 0:
            return self.known[:, : self.past.shape[1] + steps]
        return torch.cat([self.known, self.known[:, -1:].expand(-1, missing, -1)], dim=1)


torch.export.register_dataclass(Batch)
