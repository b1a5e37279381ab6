"""Widths of a layer: every variant has as many weights as a softmax attention block, 4 D^2 (section 2.3.3, appendix
H.7).

As in the paper, the conditioner is additional: 5 to 9 percent from D = 128 on, 11 at D = 64, 22 at D = 32. A variant
without C has correspondingly fewer; for a comparison at equal weights, give it a larger `fem_dim`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from femts.errors import UsageError
from femts.mixers.config import FreeEnergyMixerConfig
from femts.mixers.priors.registry import prior_class

ALIGNED = 4  # widths whose rows are whole vectors; a product of odd width takes twice as long


@dataclass(frozen=True)
class Widths:
    """Attributes: fem_dim: E over all heads; qk_dim: width of q (and k) over all heads, 0 if there are none;
    conv_hidden: width of the conditioner."""

    fem_dim: int
    qk_dim: int
    conv_hidden: int


def weight_count(config: FreeEnergyMixerConfig, fem_dim: int, qk_dim: int) -> int:
    """Weights of the linear maps, without biases, norms and conditioner (appendix H.7: 4Dd + Ddr)."""
    d, e = config.n_embd, fem_dim
    maps = 2 + config.use_temperature + config.use_outer_gate  # value and output, then the gates
    return maps * d * e + prior_class(config.prior_type).weight_count(config, e, qk_dim)


def resolve_widths(config: FreeEnergyMixerConfig) -> Widths:
    """Fill in the widths that the configuration leaves open so that `weight_count` is closest to 4 D^2.

    Both are chosen jointly: q and k stay close to D and E close to 2 D / (number of maps), both multiples of the heads;
    for softmax with all gates, these are the paper's `fem_ratio` 1/2 and `p_t_to_fem_ratio` 4. For priors without q and
    k, only E is chosen, as a multiple of 4 unless it is small.

    Raises:
        UsageError: A given width is not divisible by the heads, or not even with rotary positions.
    """
    d, heads, target = config.n_embd, config.heads, 4 * config.n_embd**2
    has_qk = weight_count(config, 0, 1) > weight_count(config, 0, 0)
    e_step, qk_step = heads, config.n_head * (2 if config.use_rope else 1)
    e_given = config.fem_dim or (config.fem_ratio and max(e_step, round(config.fem_ratio * d / e_step) * e_step))
    if e_given and e_given % heads:
        raise UsageError(f"fem_dim={e_given} is not a multiple of n_head={heads}; choose a multiple.")
    qk_given = config.qk_dim
    if qk_given is None and config.p_t_to_fem_ratio and has_qk:
        if not e_given:
            raise UsageError(
                f"p_t_to_fem_ratio={config.p_t_to_fem_ratio} is relative to fem_dim; give fem_dim or fem_ratio too."
            )
        qk_given = max(qk_step, round(config.p_t_to_fem_ratio * e_given / 2 / qk_step) * qk_step)
    if has_qk and qk_given and qk_given % qk_step:
        raise UsageError(
            f"qk_dim={qk_given} is not a multiple of {qk_step} (n_head, twice with rope); choose a multiple."
        )
    if not has_qk:
        per_e = weight_count(config, 1, 0) - weight_count(config, 0, 0)
        room = (target - weight_count(config, 0, 0)) / per_e
        unit = math.lcm(ALIGNED, heads)
        e = e_given or max(heads, round(room / unit) * unit if room > 8 * unit else round(room / heads) * heads)
        return Widths(e, 0, _conv_hidden(config, e))
    maps = 2 + config.use_temperature + config.use_outer_gate
    e_choices = [e_given] if e_given else _near(2 * d / maps, e_step)
    qk_choices = [qk_given] if qk_given else _near(d, qk_step)
    e, qk = min(
        ((e, qk) for e in e_choices for qk in qk_choices),
        key=lambda w: (abs(weight_count(config, *w) - target), abs(w[1] - d)),
    )
    return Widths(e, qk, _conv_hidden(config, e))


def _conv_hidden(config: FreeEnergyMixerConfig, fem_dim: int) -> int:
    return config.conv_hidden or max(4, fem_dim // 16)


def _near(width: float, step: int) -> list[int]:
    middle = round(width / step)
    return [step * n for n in (middle - 1, middle, middle + 1) if n > 0]
