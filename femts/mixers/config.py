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
_Size = Annotated[int, Bounds("no size; give a number above 0", above=0)]
_NO_WIDTH = Bounds("no width; give a number above 0, or None for the budget's", above=0)
_Width = Annotated[int, _NO_WIDTH]
_Ratio = Annotated[float, _NO_WIDTH]
# A gradient of the read can reach exp(2 cap), which float32 holds up to 44; sums over tokens take the rest.
_Cap = Annotated[float, Bounds("no cap that float32 bears; give a number above 0, at most 40", above=0, at_most=40)]
# Products of three of them stay normal numbers of float32.
_Floor = Annotated[float, Bounds("not above 0 by what float32 needs; give 1e-12 or more", at_least=1e-12)]
_AboveZero = Annotated[float, Bounds("not above 0; give a positive number", above=0)]
_WHOLE = ("n_embd", "n_head", "fem_dim", "qk_dim", "conv_hidden", "ssm_rank")
_REAL = ("fem_ratio", "p_t_to_fem_ratio", "dropout", "value_logexp_cap", "eps", "rope_theta")


@dataclass(frozen=True)
class FreeEnergyMixerConfig:
    """Everything that fixes one layer; `None` leaves a width to the budget rule of `femts.mixers.budget`.

    Attributes:
        n_embd: model width D.
        n_head: heads H of the prior; priors with one weight per channel use a single head.
        prior_type: how `p_t(i)` is made (appendix H): a name of `femts.mixers.priors.registry`.
        fem_dim: width E of the value path; over `fem_ratio` when both are given.
        fem_ratio: E as a part of D, rounded to a multiple of the heads.
        qk_dim: width of q and of k over all heads; over `p_t_to_fem_ratio` when both are given.
        p_t_to_fem_ratio: width of q and k together as a part of E.
        use_conv: C, the time-decay conditioner (appendix I).
        use_lse: L, the log-sum-exp read (eq. 4).
        use_temperature: T, the inner gate (eq. 10); needs L.
        use_outer_gate: G, the outer gate (eq. 11).
        softmax_backend: `auto` takes torch's scaled-dot-product attention as it comes, `flash`
            insists on its flash kernel and is refused where that cannot run.
        dropout: on the read, before the output projection; never on `p_t`.
        causal: False lets every token see every other, in the conditioner too.
        bias: biases in the linear maps.
        value_logexp_cap: largest `|beta * v|` inside the exponential, at most 40, beyond which
            gradients overflow float32; the mean always sees the true v. A value beyond it is read
            by L as one at the cap and gets no gradient through L, so none at all without T;
            standardised tokens stay far below it.
        eps: floor under what must stay positive, at least 1e-12: features of `linear` and `gla`, the
            system of `mamba`, the outer gate.
        use_rope: rotary positions on q and k of `softmax`, `linear`, `gla`; the other priors have
            no q and k. The weights of `softmax` then depend on `t - i` alone. Those of `linear` and
            `gla`, which take their features after the rotation (appendix H.2), also depend on t, counted
            from the first token that the mask keeps. Where a shifted series must be read alike,
            choose False (`gla` still fades by distance) or another prior.
        rope_theta: base of the rotary frequencies.
        conv_hidden: width of the conditioner.
        conv_norm_first: LayerNorm before the conditioner.
        conv_bidirectional: a two-sided conditioner; only without `causal`, where it is two-sided anyway.
        ssm_rank: states per channel of `mamba`.
        mamba_normalize: must be True: without it the impulse response is no distribution and the
            read no free energy. It is there for callers of the authors' layer, who write it.
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
        """Heads of the read: `n_head`, or 1 for priors that weigh each channel by itself."""
        return 1 if self.per_channel else self.n_head

    @property
    def per_channel(self) -> bool:
        """True where the prior has a weight for each channel instead of one for each head."""
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
        UsageError: a letter other than C, L, T, G, a letter twice, or T without L.
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
