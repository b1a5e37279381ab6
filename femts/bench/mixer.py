"""Cost of a mixing layer: each prior with and without the components, by length, and computed by its definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from femts.bench.measure import Measured, peak_bytes, take_turns
from femts.errors import UsageError, suggest
from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig, component_flags
from femts.mixers.config import COMPONENTS
from femts.mixers.priors.registry import prior_class
from femts.mixers.reference import plain_forward
from femts.models.fem import SegmentConfig
from femts.training.device import Place

ALONE, NAIVE = "alone", "naive"
LARGEST_NAIVE = 2**30  # bytes of one (B, T, T, E) tensor; the naive form holds several of them


def layer_config(prior: str, case: str, d_model: int, n_heads: int) -> FreeEnergyMixerConfig:
    """The layer of `prior` as the forecasting host makes it, with the component set `case`, `alone` or `naive`.

    Raises:
        UsageError: an unknown prior or component set, or sizes that no layer can have.
    """
    prior_class(prior)
    components = {ALONE: "", NAIVE: COMPONENTS}.get(case, case)
    if (not components and case != ALONE) or set(components.upper()) - set(COMPONENTS):
        raise UsageError(f"Unknown component set '{case}'{suggest(case, (ALONE, 'L', 'LT', 'LTG', COMPONENTS, NAIVE))}")
    component_flags(components)
    return SegmentConfig(1, 1, 1, prior, components, d_model=d_model, n_heads=n_heads).mixer_config()  # type: ignore[arg-type]


@dataclass(frozen=True)
class MixerBench:
    """Settings of the benchmark; see `layer_config` for the layers.

    Attributes:
        priors: names of selection priors.
        lengths: tokens T of a sequence.
        cases: component sets, `alone` (the prior without any) or `naive` (all components, through a dense p and a
            log-sum-exp over it); `alone`, which the others are compared with, is measured in any case.
        tokens: tokens of a batch, which has `tokens // T` sequences and at least 1.
        d_model: width of a token.
        n_heads: heads of the prior.
        repeats: turns, at least 1.

    Raises:
        UsageError: an unknown prior or component set, or sizes that no layer can have.
    """

    priors: tuple[str, ...]
    lengths: tuple[int, ...]
    cases: tuple[str, ...]
    tokens: int
    d_model: int
    n_heads: int
    repeats: int

    def __post_init__(self) -> None:
        for prior in self.priors:
            for case in self.cases:
                layer_config(prior, case, self.d_model, self.n_heads)


@dataclass(frozen=True)
class MixerRow:
    """One layer at one length; all but the first four are None where the naive form would not fit.

    Attributes:
        prior, length, batch, case: what was measured, on (batch, length, d_model).
        forward: without gradients.
        step: forward pass and the gradients of input and weights.
        peak_bytes: of a step, beyond the weights and the input.
        peak_ratio: the same over that of the prior alone.
    """

    prior: str
    length: int
    batch: int
    case: str
    forward: Measured | None = None
    step: Measured | None = None
    peak_bytes: int | None = None
    peak_ratio: float | None = None


class _Case:
    """A layer and its input."""

    def __init__(self, config: FreeEnergyMixerConfig, naive: bool, x: Tensor, place: Place) -> None:
        self.layer = FreeEnergyMixer(config).to(place.device)
        self.naive, self.x, self.place = naive, x.requires_grad_(), place
        self.gradient = torch.randn_like(x)

    def fits(self) -> bool:
        """Tell whether the naive form's largest tensor is small enough to try."""
        batch, length, _ = self.x.shape
        # The dense weights of `mamba` come out of a scan that keeps the states of every key.
        states = self.layer.config.ssm_rank if self.layer.config.prior_type == "mamba" else 1
        return not self.naive or 4 * batch * length**2 * self.layer.widths.fem_dim * states <= LARGEST_NAIVE

    def _run(self) -> Tensor:
        with torch.autocast(self.place.device, torch.bfloat16, enabled=self.place.precision == "bf16"):
            return plain_forward(self.layer, self.x) if self.naive else self.layer(self.x)

    @torch.no_grad()
    def forward(self) -> None:
        self._run()

    def step(self) -> None:
        y = self._run()
        torch.autograd.grad(y, [self.x, *self.layer.parameters()], self.gradient.to(y.dtype))


def bench_mixer(bench: MixerBench, place: Place) -> Iterator[MixerRow]:
    """The rows of `bench`, prior by prior, each length as soon as it is measured."""
    for prior in bench.priors:
        for length in bench.lengths:
            yield from _bench_length(bench, place, prior, length)


def _bench_length(bench: MixerBench, place: Place, prior: str, length: int) -> Iterator[MixerRow]:
    batch = max(1, bench.tokens // length)
    x = torch.randn(batch, length, bench.d_model, device=place.device)
    names = dict.fromkeys((ALONE, *bench.cases))
    cases = {
        name: _Case(layer_config(prior, name, bench.d_model, bench.n_heads), name == NAIVE, x, place) for name in names
    }
    fitting = {name: case for name, case in cases.items() if case.fits()}
    for case in fitting.values():
        case.layer.eval()
    forward = take_turns({name: case.forward for name, case in fitting.items()}, bench.repeats, place.device)
    for case in fitting.values():
        case.layer.train()
    step = take_turns({name: case.step for name, case in fitting.items()}, bench.repeats, place.device)
    peak = {name: peak_bytes(case.step, place.device) for name, case in fitting.items()}
    for name in cases:
        if name not in fitting:
            yield MixerRow(prior, length, batch, name)
            continue
        whole, read = Measured.of(step[name], step[ALONE]), Measured.of(forward[name], forward[ALONE])
        yield MixerRow(prior, length, batch, name, read, whole, peak[name], peak[name] / peak[ALONE])
