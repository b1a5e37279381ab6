"""Posterior of the Free Energy Mixer: which past segments each channel selected for its forecast, and how sharply.

The forecast of a channel is computed from its last token. In each layer that token reads the past through a prior p(i)
over the tokens i, and each component j of the read tilts it by its own values, to the posterior of eq. 5 of the paper,

    q_j(i) = p_j(i) exp(beta_j v_ij) / sum_r p_j(r) exp(beta_j v_rj),

at the hidden temperature beta_j in [0, beta_max] at which the free energy of that component equals the layer's read
(proposition G.2). The components differ, which is the point of the mixer, so a single number per token requires a mean
over them. The read enters the token as sum_j g_j F_j W_j, with the outer gate g (eq. 11) and the columns W_j of the
output projection: a unit read by component j moves the token by g_j |W_j|. Normalised by its sum, this is the weight of
j in all means here.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from femts.data.batch import Batch
from femts.errors import UsageError
from femts.mixers import FreeEnergyMixer
from femts.mixers.ops.precision import full_precision
from femts.models.base import ForecastModel
from femts.models.fem import SegmentForecaster
from femts.models.mean import MeanModel

TOKENS = ("context", "main")  # each segment of a channel is preceded by a mixture of all channels
OF_CHANNEL = ("hidden_temperature", "effective_segments", "prior_segments")
LAST = slice(-1, None)
MOST_CELLS = 2**24  # dense weights in memory at once, so that many channels take time rather than memory


class Explained(NamedTuple):
    """Read of the forecast token of each of C channels in one layer, over N segments of two tokens (`TOKENS`); float64.

    Attributes:
        posterior: q (C, N, 2), sums to 1 over a channel's tokens.
        prior: p (C, N, 2), likewise.
        temperature: hidden temperature beta* (C,), an inverse temperature: 0 reads the mean, larger values select more
            sharply.
        segments: effective number of segments under q, (C,): from 1 to N.
        prior_segments: the same under p.
    """

    posterior: Tensor
    prior: Tensor
    temperature: Tensor
    segments: Tensor
    prior_segments: Tensor


def explainable(model: ForecastModel, name: str) -> SegmentForecaster:
    """`model` if it reads segments through a log-sum-exp; otherwise raise UsageError with its `name`."""
    if isinstance(model, MeanModel):
        members = ", ".join(f"'{member.model}'" for member in model.config.members)
        raise UsageError(f"Model '{name}' is the mean of {members}; explain one of its members.")
    if not isinstance(model, SegmentForecaster):
        raise UsageError(
            f"Model '{name}' has no attention over past segments to show; use one that has, such as fem_sm, or see "
            "which inputs matter (femts explain RUN, or importance())."
        )
    if "L" not in model.config.components.upper():
        raise UsageError(
            f"Model '{name}' with the components '{model.config.components}' has no log-sum-exp read (L) and thus no "
            "posterior to show; train one that has, such as fem_sm."
        )
    return model


def explained(model: SegmentForecaster, batch: Batch) -> list[Explained]:
    """Reads behind the forecast of a single window, in scaled units, by layer."""
    inputs, thread = list[Tensor](), threading.get_ident()
    layers = cast(list[FreeEnergyMixer], [block.mixer for block in model.blocks])

    def record(_: torch.nn.Module, args: tuple[Tensor, ...]) -> None:
        if threading.get_ident() == thread:  # other threads may use the same model
            inputs.append(args[0])

    hooks = [layer.register_forward_pre_hook(record) for layer in layers]
    model.eval()
    try:
        with torch.no_grad(), full_precision(batch.past.device.type):
            model(batch)
            return [_explained(layer, tokens) for layer, tokens in zip(layers, inputs, strict=True)]
    finally:
        for hook in hooks:
            hook.remove()


def explanation(model: SegmentForecaster, batch: Batch, columns: Sequence[str], steps: pd.Index) -> pd.DataFrame:
    """Table of the reads behind the forecast of a single window, in scaled units; see `Forecaster.explain`.

    For models that read segments through a Free Energy Mixer (`fem_*` with component L). In each layer, the last token
    of a channel reads N segments of P steps, each as two tokens: `main`, the channel's own, and `context`, mixed from
    all channels. Layers above the first read tokens that already contain earlier ones. `fem_*_ridge` is explained by
    its mixer, which gives one half of the forecast.

    Args:
        columns: names of the C channels.
        steps: stamps or numbers of the L steps.

    Returns:
        One row for each channel, layer (1 is the lowest), segment (oldest first) and token:
        `start`, `end`: first and last stamp of the segment, or step numbers that end where those of `predict` begin.
        `weight`: posterior weight of the token (eq. 5 of the paper at the hidden temperature, proposition G.2),
        averaged over the components of the read in proportion to their effect on the token (`femts.explain.posterior`);
        sums to 1 over the 2 N tokens of a channel and layer.
        `prior`: the same for the prior, which the keys determine without the values.
        Repeated in all rows of a channel and layer: `hidden_temperature`, the mean beta*, an inverse temperature that
        is 0 for reading the mean; `effective_segments`, exp of the mean entropy of the components' posteriors over
        segments, from 1 (each component reads one) to N (uniform); `prior_segments`, the same for their priors.
    """
    layers = explained(model, batch)
    chosen = Explained(*(torch.stack(values, dim=1) for values in zip(*layers, strict=True)))  # (C, layers, ...)
    segments, length = model.config.n_segments, model.config.segment
    stops = len(steps) - length * np.arange(segments)[::-1]
    starts = np.maximum(stops - length, 0)  # padding of the oldest segment is not part of the user's data
    names = ["channel", "layer", "segment", "token"]
    rows = pd.MultiIndex.from_product([columns, range(1, len(layers) + 1), range(segments), TOKENS], names=names)
    frame = rows.to_frame(index=False)
    segment = frame.pop("segment").to_numpy()
    frame["start"], frame["end"] = steps[starts][segment], steps[stops - 1][segment]
    frame["weight"], frame["prior"] = chosen.posterior.flatten().numpy(), chosen.prior.flatten().numpy()
    for name, values in zip(OF_CHANNEL, (chosen.temperature, chosen.segments, chosen.prior_segments), strict=True):
        frame[name] = values.flatten().repeat_interleave(2 * segments).numpy()
    return frame


def _explained(layer: FreeEnergyMixer, tokens: Tensor) -> Explained:
    """The selection of one layer, given its input (C, 2N, d)."""
    rows = max(1, MOST_CELLS // (tokens.shape[1] ** 2 * layer.widths.fem_dim))
    pieces = [_read_out(layer, part) for part in tokens.split(rows)]
    return Explained(*(torch.cat(values) for values in zip(*pieces, strict=True)))


def _read_out(layer: FreeEnergyMixer, tokens: Tensor) -> Explained:
    chosen = layer.selection(tokens, queries=LAST)
    beta, q = (part[:, 0].flatten(-2).double().cpu() for part in (chosen.beta, chosen.posterior))  # (C, E), (C, 2N, E)
    p = chosen.prior[:, 0].expand_as(chosen.posterior[:, 0]).flatten(-2).double().cpu()

    reach = layer.out_proj.weight.norm(dim=0)
    gate = layer.read(tokens).gate
    if gate is not None:
        reach = reach * gate[:, -1].flatten(1)
    share = (reach / reach.sum(-1, keepdim=True)).double().cpu().expand_as(beta)  # (C, E)

    def over_tokens(weights: Tensor) -> Tensor:
        return torch.einsum("cte,ce->ct", weights, share).unflatten(1, (-1, 2))

    def effective(weights: Tensor) -> Tensor:
        """exp of the mean entropy over segments, with both tokens of a segment pooled."""
        of_segment = weights.unflatten(1, (-1, 2)).sum(2)
        return (torch.special.entr(of_segment).sum(1) * share).sum(-1).exp()

    return Explained(over_tokens(q), over_tokens(p), (beta * share).sum(-1), effective(q), effective(p))
