"""Configuration of the Free Energy Mixer layer."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Literal, TypedDict, get_args

from femts.config.bounds import Bounds, check_bounds
from femts.errors import UsageError, suggest
from femts.mixers.priors.registry import prior_class

COMPONENTS = "CLTG"
SoftmaxBackend = Literal["auto", "flash"]
BACKENDS: tuple[str, ...] = get_args(SoftmaxBackend)
_Size = Annotated[int, Bounds("not positive; give a number above 0", above=0)]
_NO_WIDTH = Bounds("not positive; give a number above 0, or None for the budget rule", above=0)
_Width = Annotated[int, _NO_WIDTH]
_Ratio = Annotated[float, _NO_WIDTH]
# A gradient of the read can reach exp(2 cap), which float32 represents up to a cap of 44; sums over tokens use the
# rest.
_Cap = Annotated[float, Bounds("not supported in float32; give a number above 0, at most 40", above=0, at_most=40)]
# Products of three of them stay normal numbers of float32.
_Floor = Annotated[float, Bounds("too small for float32; give 1e-12 or more", at_least=1e-12)]
_AboveZero = Annotated[float, Bounds("not above 0; give a positive number", above=0)]
_WHOLE = ("n_embd", "n_head", "fem_dim", "qk_dim", "conv_hidden", "ssm_rank")
_REAL = ("fem_ratio", "p_t_to_fem_ratio", "dropout", "value_logexp_cap", "eps", "rope_theta")


@dataclass(frozen=True)
class FreeEnergyMixerConfig:
    """Configuration of one layer; widths that are None follow from the budget rule of `femts.mixers.budget`.

    Attributes:
        n_embd: model width D.
        n_head: number H of heads of the prior; priors with one weight per channel use a single head.
        prior_type: selection prior that defines `p_t(i)` (appendix H): a name in `femts.mixers.priors.registry`.
        fem_dim: width E of the value path; takes precedence over `fem_ratio`.
        fem_ratio: E relative to D, rounded to a multiple of the heads.
        qk_dim: width of q and of k over all heads; takes precedence over `p_t_to_fem_ratio`.
        p_t_to_fem_ratio: width of q and k together relative to E.
        use_conv: C, the time-decay conditioner (appendix I).
        use_lse: L, the log-sum-exp read (eq. 4).
        use_temperature: T, the inner gate (eq. 10); needs L.
        use_outer_gate: G, the outer gate (eq. 11).
        softmax_backend: `auto` lets torch's scaled dot product attention choose; `flash` requires its flash kernel and
            raises if that cannot run.
        dropout: on the read, before the output projection; never on `p_t`.
        causal: False lets every token see every other, in the conditioner too.
        bias: biases in the linear maps.
        value_logexp_cap: largest `|beta * v|` inside the exponential, at most 40, beyond which gradients overflow
            float32; the mean always uses the true v. L reads larger values as if at the cap, without a gradient, so
            without T they get no gradient at all; standardised tokens stay far below it.
        eps: lower bound of quantities that must stay positive, at least 1e-12: features of `linear` and `gla`, the
            system of `mamba`, the outer gate.
        use_rope: rotary positions on q and k of `softmax`, `linear` and `gla`; the other priors have no q and k. The
            weights of `softmax` then depend on `t - i` alone. Those of `linear` and `gla`, whose features are computed
            after the rotation (appendix H.2), also depend on t, counted from the first token that the mask keeps. If
            the layer must be shift-invariant, choose False (`gla` still decays with distance) or another prior.
        rope_theta: base of the rotary frequencies.
        conv_hidden: width of the conditioner.
        conv_norm_first: LayerNorm before the conditioner.
        conv_bidirectional: a two-sided conditioner; only without `causal`, in which case it is two-sided anyway.
        ssm_rank: states per channel of `mamba`.
        mamba_normalize: must be True: otherwise the impulse response is not a distribution and the read not a free
            energy. Kept for compatibility with calls of the authors' layer.
    """

    n_embd: _Size
    n_head: _Size
    prior_type: str = "softmax"
    fem_dim: _Width | None = None
    fem_ratio: _Ratio | None = None
    qk_dim: _Width | None = None
    p_t_to_fem_ratio: _Ratio | None = None
    use_conv: bool = True
    use_lse: bool = True
    use_temperature: bool = True
    use_outer_gate: bool = True
    softmax_backend: SoftmaxBackend = "auto"
    dropout: Annotated[float, Bounds("not in [0, 1); choose a smaller share", at_least=0, below=1)] = 0.0
    causal: bool = True
    bias: bool = True
    value_logexp_cap: _Cap = 40.0
    eps: _Floor = 1e-6
    use_rope: bool = True
    rope_theta: _AboveZero = 10000.0
    conv_hidden: _Width | None = None
    conv_norm_first: bool = True
    conv_bidirectional: bool = False
    ssm_rank: _Width = 16
    mamba_normalize: bool = True

    def __post_init__(self) -> None:
        prior_class(self.prior_type)
        if self.use_temperature and not self.use_lse:
            raise UsageError(
                "use_temperature=True (T) needs use_lse=True (L): the gate mixes the mean with the log-sum-exp."
            )
        self._check_numbers()
        check_bounds(self, "", "{name}={value} is {words}.")
        if self.n_embd % self.n_head:
            raise UsageError(
                f"n_embd={self.n_embd} is not a multiple of n_head={self.n_head}; choose sizes that divide."
            )
        if self.conv_bidirectional and self.causal:
            raise UsageError(
                "conv_bidirectional=True would leak the future into a causal layer; set causal=False as well."
            )
        if self.softmax_backend not in BACKENDS:
            raise UsageError(
                f"Unknown softmax_backend '{self.softmax_backend}'{suggest(self.softmax_backend, BACKENDS)}"
            )
        if not self.mamba_normalize:
            raise UsageError(
                "mamba_normalize=False is not a selection prior (its weights do not sum to 1); leave it True."
            )

    def _check_numbers(self) -> None:
        for names, kind, words in ((_WHOLE, Integral, "a whole number"), (_REAL, Real, "a number")):
            for name in names:
                value = getattr(self, name)
                left_open = value is None and getattr(type(self), name, 0) is None
                if not left_open and (isinstance(value, bool) or not isinstance(value, kind)):
                    raise UsageError(f"{name}={value!r} is not {words}; give one.")

    @property
    def heads(self) -> int:
        """Heads of the read: `n_head`, or 1 for priors with one weight per channel."""
        return 1 if self.per_channel else self.n_head

    @property
    def per_channel(self) -> bool:
        """Whether the prior has one weight per channel instead of one per head."""
        return prior_class(self.prior_type).per_channel


class ComponentFlags(TypedDict):
    """The switches of `FreeEnergyMixerConfig` for C, L, T and G."""

    use_conv: bool
    use_lse: bool
    use_temperature: bool
    use_outer_gate: bool


def component_flags(components: str) -> ComponentFlags:
    """The four switches for a name such as `CLTG`, `CL` or the empty string (the prior alone).

    Raises:
        UsageError: There is a letter other than C, L, T, G, a repeated letter, or T without L.
    """
    letters = components.upper()
    if set(letters) - set(COMPONENTS) or len(set(letters)) != len(letters):
        raise UsageError(
            f"Component set '{components}' is unknown; write each of C, L, T, G at most once, such as CLTG or CL."
        )
    if "T" in letters and "L" not in letters:
        raise UsageError(f"Component set '{components}' has T without L; add L, as in '{components}L', or drop T.")
    return {
        "use_conv": "C" in letters,
        "use_lse": "L" in letters,
        "use_temperature": "T" in letters,
        "use_outer_gate": "G" in letters,
    }
