"""The autoregressive segment forecaster, which hosts any mixer (the protocol of Lu & Yang, 2025, Table 4 of the paper).

The look-back is cut into segments of `patch_len` steps, by default the length of the forecast. The segments of each
channel become tokens, each preceded by a context token mixed across channels. A causal pre-norm stack predicts the
steps after every segment; the last prediction is the forecast. The models registered here differ only in the mixer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.bounds import Count, Natural, UpTo1
from femts.config.model import ModelConfig, check_heads
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig, component_flags
from femts.mixers.config import COMPONENTS
from femts.mixers.ops.dropout import Dropout
from femts.mixers.ops.norm import RMSNorm
from femts.mixers.ops.precision import mlp
from femts.models.base import ForecastModel, Supports
from femts.models.parts.lintrans import UnnormalisedLinearAttention
from femts.models.registry import register

MAIN = slice(1, None, 2)  # main tokens among [context, main, context, ...]
LAST = slice(-1, None)  # the last main token
DECODER_UNITS, NARROW = (
    64,
    4,
)  # hidden units per known step, and width of the known inputs of a step in a token
AT_ONCE = 512  # channels forecast at once: more use more memory and are not faster


@dataclass(frozen=True)
class SegmentConfig(ModelConfig):
    """Configuration of `SegmentForecaster`.

    Attributes:
        prior: selection prior of the mixer, or `lintrans`.
        components: enabled components, among C, L, T, G; empty for the prior alone.
        d_model: width of a token; None for `32 int(sqrt(C))`.
        n_layers: number of blocks.
        n_heads: number of heads of the prior.
        mlp_ratio: hidden width of a block's MLP relative to `d_model`.
        dropout: dropout on tokens, reads and MLP outputs.
        rope: rotary positions in the prior, in addition to the learned embedding.
        n_states: states per channel of the `mamba` prior.
        patch_len: steps per segment; None for the length of the forecast.
        window_std: share of the look-back's own variance in the variance that it is scaled by; the rest is that of the
            training rows. 1 scales by its deviation, 0 not at all. Its level is always subtracted.
        n_static: number of static inputs, which follows from the static covariates.
        n_known: number of future covariates and calendar features; follows from `--future-covariates` and `--calendar`.
    """

    SEARCH: ClassVar[Mapping[str, str]] = {"d_model": "none,32,128", "n_layers": "1..3", "dropout": "0..0.3"}

    prior: str = "softmax"
    components: str = COMPONENTS
    d_model: Count | None = None
    n_layers: Count = 3
    n_heads: Count = 8
    mlp_ratio: Count = 4
    dropout: float = 0.1
    rope: bool = False
    n_states: Count = 8
    patch_len: Count | None = None
    window_std: UpTo1 = 1.0
    n_static: Natural = 0
    n_known: Natural = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior == "lintrans" and self.components:
            raise UsageError(
                f"lintrans is not a selection prior and does not support components ('{self.components}'); use prior "
                "linear instead."
            )
        check_heads(self.width, self.n_heads)
        self.mixer_config()  # raises if no mixer can be built

    @property
    def width(self) -> int:
        """Resolved `d_model`."""
        return self.d_model if self.d_model is not None else 32 * math.isqrt(self.n_channels)

    @property
    def segment(self) -> int:
        """Resolved `patch_len`."""
        return self.patch_len if self.patch_len is not None else self.pred_len

    @property
    def n_segments(self) -> int:
        """Number of segments in the padded look-back."""
        return -(-self.seq_len // self.segment)

    def mixer_config(self) -> FreeEnergyMixerConfig:
        """Configuration of the layer in each block; `lintrans` shares its widths and dropout."""
        return FreeEnergyMixerConfig(
            n_embd=self.width,
            n_head=self.n_heads,
            prior_type="linear" if self.prior == "lintrans" else self.prior,
            dropout=self.dropout,
            use_rope=self.rope,
            ssm_rank=self.n_states,
            **component_flags(self.components),
        )

    def make_mixer(self) -> nn.Module:
        """A mixer with this configuration, (B, T, d_model) -> (B, T, d_model)."""
        if self.prior == "lintrans":
            return UnnormalisedLinearAttention(self.width, self.n_heads, self.dropout)
        return FreeEnergyMixer(self.mixer_config())


class Block(nn.Module):
    """Pre-norm block: mixer, then MLP, each with a residual; only the tokens `rows` are computed and returned."""

    def __init__(self, config: SegmentConfig) -> None:
        super().__init__()
        width, hidden = config.width, config.mlp_ratio * config.width
        self.mixer_norm, self.mixer = RMSNorm(width, eps=1e-5), config.make_mixer()
        self.mlp_norm = RMSNorm(width, eps=1e-5)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width), Dropout(config.dropout))

    def forward(self, x: Tensor, rows: slice = slice(None)) -> Tensor:
        x = x[:, rows] + self.mixer(self.mixer_norm(x), rows=rows)
        *layers, dropout = self.mlp
        y: Tensor = x + dropout(mlp(self.mlp_norm(x), layers))
        return y


class KnownDecoder(nn.Module):
    """Adjusts the forecasts of the P steps after a segment by the known inputs of each step: a network of these inputs,
    the token and the forecast itself adds a correction, so that, for example, rain can halve a morning peak."""

    def __init__(self, config: SegmentConfig, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.known = nn.Linear(config.n_known, DECODER_UNITS)
        self.token = nn.Linear(config.width, DECODER_UNITS, bias=False)
        self.forecast = nn.Linear(outputs, DECODER_UNITS, bias=False)
        self.out = nn.Linear(DECODER_UNITS, outputs)

    def forward(self, predicted: Tensor, token: Tensor, known: Tensor) -> Tensor:
        """Adjust forecasts (B, C, N, P outputs) given their tokens (B, C, N, d) and the known inputs of their steps (B,
        N, P, K)."""
        steps = predicted.unflatten(-1, (-1, self.outputs))
        hidden = self.known(known)[:, None] + self.token(token)[..., None, :] + self.forecast(steps)
        changed: Tensor = (steps + self.out(F.gelu(hidden))).flatten(-2)
        return changed


class KnownTokens(nn.Module):
    """Embeds the known inputs of each segment and of the P steps after it, for its two tokens: (B, L + P, K) ->
    (B, 1, 2 N, d)."""

    def __init__(self, config: SegmentConfig) -> None:
        super().__init__()
        self.config = config
        self.narrow = nn.Linear(config.n_known, min(config.n_known, NARROW))
        steps = config.segment + config.pred_len
        self.out = nn.Linear(steps * self.narrow.out_features, config.width)

    def forward(self, known: Tensor) -> Tensor:
        size, count = self.config.segment, self.config.n_segments
        narrow = F.pad(self.narrow(known), (0, 0, size * count - self.config.seq_len, 0))
        around = narrow.unfold(1, size + self.config.pred_len, size).flatten(2)[:, :count]  # (B, N, r (S + P))
        tokens: Tensor = self.out(around).repeat_interleave(2, dim=1)[:, None]
        return tokens


@register("fem_sm", "Free Energy Mixer on softmax attention, with C, L, T and G", prior="softmax")
@register("fem_gla", "Free Energy Mixer on gated linear attention", prior="gla")
@register("fem_aft", "Free Energy Mixer on AFT's exponential weights", prior="rnn_softmax")
@register("fem_mamba", "Free Energy Mixer on a positive selective state space", prior="mamba")
@register("fem_linear", "Free Energy Mixer on linear attention", prior="linear")
@register("fem_sm_no_c", "`fem_sm` without C, the time-decay conditioner", prior="softmax", components="LTG")
@register("fem_sm_no_l", "`fem_sm` without L, the log-sum-exp, and so without T", prior="softmax", components="CG")
@register("fem_sm_no_t", "`fem_sm` without T, the inner gate", prior="softmax", components="CLG")
@register("fem_sm_no_g", "`fem_sm` without G, the outer gate", prior="softmax", components="CLT")
@register("sm", "Softmax attention without the mixer", prior="softmax", components="")
@register("gla", "Gated linear attention without the mixer", prior="gla", components="")
@register("aft", "Attention Free Transformer without the mixer", prior="rnn_softmax", components="")
@register("mamba", "A positive selective state space without the mixer", prior="mamba", components="")
@register("linear", "Normalised linear attention without the mixer", prior="linear", components="")
@register("lintrans", "Linear attention without normaliser and mixer", prior="lintrans", components="")
class SegmentForecaster(ForecastModel):
    """Forecasts each channel from its segments and a mix of all channels, by a stack of mixers.

    Shapes: B windows, C channels, N segments of S steps, forecasts of P steps, K known inputs, d = `config.width`.
    Without dropout, the forecast is equivariant to a shift of the window and, by default, to its scale.

    Known inputs enter twice. Those of a segment and of the steps after it are added to the tokens of the segment, so
    that the past that a channel selects can depend on the future covariates. In addition, a small network of the known
    inputs of each step, the last token and the forecast itself adjusts the forecast of that step, like the temporal
    decoder of TiDE, since effects are rarely linear and depend on the level of a channel. Both are initialised to zero,
    so training starts from the model without them. Static inputs are added to both tokens of a segment.
    """

    Config: ClassVar[type] = SegmentConfig
    # After 60 to 100 steps, the validation error is lower than with 1e-3 on six panels and a table with covariates.
    short_training_defaults: ClassVar[Mapping[str, Any]] = {"lr": 3e-3}
    supports = Supports(known=True, static=True, recursive=True, quantiles=True, subsampling=True)

    def __init__(self, config: SegmentConfig, quantiles: Sequence[float] = ()) -> None:
        super().__init__(config, quantiles)
        channels, width, tokens = config.n_channels, config.width, 2 * config.n_segments
        self.main_in = nn.Linear(config.segment, width)
        self.main_norm = RMSNorm(width, eps=1e-5)
        self.context_channels = nn.Linear(channels, channels)
        self.context_in = nn.Linear(config.segment, width)
        self.context_norm = RMSNorm(width, eps=1e-5)
        self.position = nn.Parameter(torch.empty(tokens, width))
        self.channel_position = nn.Parameter(torch.empty(channels, tokens, width))
        self.static_in = nn.Linear(config.n_static, width) if config.n_static else None
        self.dropout = Dropout(config.dropout)
        self.token_norm = RMSNorm(width, eps=1e-5)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.out_norm = RMSNorm(width, eps=1e-5)
        self.out = nn.Linear(width, config.pred_len * self.n_outputs)
        self.known_in = KnownTokens(config) if config.n_known else None
        self.known_decoder = KnownDecoder(config, self.n_outputs) if config.n_known else None
        self._initialise()

    def _initialise(self) -> None:
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear) and ".prior." not in name and ".conditioner." not in name:
                residual = name.endswith((".mixer.out_proj", ".mlp.2"))
                std = 0.02 / math.sqrt(2 * self.config.n_layers) if residual else 0.02
                nn.init.normal_(module.weight, std=std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        nn.init.normal_(self.position, std=0.02)
        nn.init.normal_(self.channel_position, std=0.02)
        if self.known_decoder is not None and self.known_in is not None:
            decoder = self.known_decoder
            for layer in (decoder.known, decoder.token, decoder.forecast):
                nn.init.normal_(layer.weight, std=1 / math.sqrt(layer.in_features))
            nn.init.zeros_(decoder.out.weight)
            nn.init.zeros_(self.known_in.out.weight)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P n_outputs, C) of the windows `batch`."""
        added, known = self._added(batch), self._known_after(batch)
        segments, mean, std = self._segments(batch.past)
        if segments.shape[1] <= AT_ONCE:
            predicted = self._predict(segments, LAST, added=added, known=known)
        else:
            some = torch.arange(segments.shape[1], device=segments.device).split(AT_ONCE)
            predicted = torch.cat([self._predict(segments, LAST, each, added, known) for each in some], dim=1)
        return self._forecast(predicted[:, :, -1], mean, std)

    def loss(self, batch: Batch, channels: Tensor | None = None) -> Tensor:
        """Training loss: of the forecast in scaled units, and of the steps after each earlier segment in
        window-normalised units.

        Args:
            batch: windows with their futures; missing values do not count.
            channels: indices of the channels to compute the loss on; None means all.

        Returns:
            A scalar.
        """
        added, known = self._added(batch), self._known_after(batch)
        segments, mean, std = self._segments(batch.past)
        predicted = self._predict(segments, channels=channels, added=added, known=known)
        if channels is not None:
            segments, mean, std = segments[:, channels], mean[:, channels], std[:, channels]
            batch = batch.of_channels(channels)
        assert batch.future is not None, "a loss is of windows with their future"
        y, future = batch.future, batch.future_observed
        loss = self.error(self._forecast(predicted[:, :, -1], mean, std), y, future)
        if segments.shape[2] > 1:
            following = self._following(segments, (y.mT - mean) / std)
            seen = None
            if batch.past_observed is not None and future is not None:
                seen = self._following(self._cut(batch.past_observed.mT), future.mT)
            loss = loss + self.error(predicted[:, :, :-1], following, seen, dim=-1)
        return loss

    def _known_after(self, batch: Batch) -> Tensor | None:
        """Known inputs of the P steps after each segment, (B, N, P, K); None if there are none."""
        if self.known_decoder is None:
            return None
        known, size, count = batch.known_to(self.config.pred_len), self.config.segment, self.config.n_segments
        assert known is not None, "a model that reads future covariates receives them"
        padded = F.pad(known, (0, 0, size * count - self.config.seq_len, 0))
        return padded[:, size:].unfold(1, self.config.pred_len, size)[:, :count].transpose(2, 3)

    def _added(self, batch: Batch) -> Tensor | None:
        """Embeddings added to the tokens of a segment, (B, 1, 1, d) or (B, 1, 2 N, d), for static and known inputs;
        None if there are neither."""
        added = None
        if self.static_in is not None:
            added = self.static_in(batch.static)[:, None, None]
        if self.known_in is not None:
            known = self.known_in(batch.known_to(self.config.pred_len))
            added = known if added is None else added + known
        return added

    def _segments(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Normalised, padded and cut look-back (B, C, N, S), with the subtracted level and the divisor (B, C, 1)."""
        x = x.transpose(1, 2).contiguous()  # sums along time are several times faster over contiguous values
        mean = x[..., -self.config.pred_len :].mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True, correction=0)
        if self.config.window_std < 1:  # the training rows are scaled, so their variance is 1
            std = (self.config.window_std * std**2 + (1 - self.config.window_std)).sqrt()
        std = std + 1e-5
        return self._cut((x - mean) / std), mean, std

    def _cut(self, x: Tensor) -> Tensor:
        """Look-backs (B, C, L), padded on the left and cut: (B, C, N, S)."""
        x = F.pad(x, (self.config.n_segments * self.config.segment - x.shape[-1], 0))
        return x.unflatten(-1, (self.config.n_segments, self.config.segment))

    def _following(self, segments: Tensor, future: Tensor) -> Tensor:
        """The P steps after each segment except the last: (B, C, N, S), (B, C, P) -> (B, C, N - 1, P)."""
        size, steps = segments.shape[-1], future.shape[-1]
        if size == steps:
            return segments[:, :, 1:]
        return torch.cat([segments.flatten(2), future], dim=-1)[..., size:].unfold(-1, steps, size)[:, :, :-1]

    def _predict(
        self,
        segments: Tensor,
        rows: slice = MAIN,
        channels: Tensor | None = None,
        added: Tensor | None = None,
        known: Tensor | None = None,
    ) -> Tensor:
        """Predict the steps after each segment, or with `rows` after the last: (B, C, N, S) -> (B, C, N or 1, P
        n_outputs).

        With `channels` (D,), only these are predicted, (B, D, ...); their context still comes from all channels.
        `added` is added to the tokens; `known` is `_known_after`.
        """
        drawn = slice(None) if channels is None else channels
        context = torch.einsum("bcnp,dc->bdnp", segments, self.context_channels.weight[drawn])
        context = context + self.context_channels.bias[drawn, None, None]
        segments = segments[:, drawn]
        tokens = torch.stack(
            [self.context_norm(self.context_in(context)), self.main_norm(self.main_in(segments))], dim=3
        ).flatten(2, 3)  # (B, C, 2N, d): context before main
        tokens = self.dropout(tokens) + self.position + self.channel_position[drawn]
        tokens = tokens if added is None else tokens + added
        hidden = self.token_norm(tokens).flatten(0, 1)
        for block in self.blocks[:-1]:
            hidden = block(hidden)
        main = self.blocks[-1](hidden, rows)
        main = self.out_norm(main).unflatten(0, segments.shape[:2])
        predicted: Tensor = self.out(main)
        if self.known_decoder is None or known is None:
            return predicted
        return self.known_decoder(predicted, main, known[:, -predicted.shape[2] :])  # type: ignore[no-any-return]

    @staticmethod
    def _forecast(predicted: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        return (predicted * std + mean).transpose(1, 2)
