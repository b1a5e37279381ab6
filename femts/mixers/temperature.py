"""The hidden temperature and the posterior: diagnostics from the dense prior, O(T^2) in memory (appendix G.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from femts.errors import UsageError


def hidden_selection(p: Tensor, v: Tensor, beta_max: Tensor, lam: Tensor, cap: float) -> tuple[Tensor, Tensor]:
    """The posterior (B, Q, T, H, d_v) of eq. 5 at the hidden temperature, and this temperature, (B, Q, H, d_v).

    Args:
        p, v, beta_max, lam: as in `find_hidden_temperature`.
        cap: largest `|beta_max v|` in the exponential of the read.

    Raises:
        UsageError: No temperature gives the read, because the mean of values beyond the cap lies outside the range of
            their free energy.
    """
    if not p.numel():
        return p.expand(*p.shape[:4], v.shape[-1]), torch.zeros_like(lam)
    tilting = tilting_values(p, v, beta_max, cap)
    beta = find_hidden_temperature(p, v, beta_max, lam, tilting)
    if bool(beta.isnan().any()) and bool(v.isfinite().all()):
        raise UsageError(
            f"No inverse temperature gives the read where |beta v| reaches {(beta_max * v).abs().max().item():.3g}, "
            f"beyond value_logexp_cap={cap:g}; scale down the inputs of the layer."
        )
    q = torch.softmax(p.log() + beta.unsqueeze(2) * tilting, dim=2)
    return torch.nan_to_num(q), beta  # rows that see nothing select nothing


def tilting_values(p: Tensor, v: Tensor, beta_max: Tensor, cap: float) -> Tensor:
    """The values whose free energy is the computed log-sum-exp: `v`, or `v` capped if the cap changes the read.

    Args:
        p, v, beta_max: as in `find_hidden_temperature`.
        cap: largest `|beta_max v|` in the exponential.

    Returns:
        (B, Q or 1, T, H, d_v).
    """
    tilt = (beta_max * v).unsqueeze(1)
    capped = tilt.clamp(-cap, cap)
    if torch.equal(tilt, capped):
        return v.unsqueeze(1)
    exact, read = (torch.logsumexp(p.log() + each, dim=2, keepdim=True) for each in (tilt, capped))
    # Such as a single value far below the others.
    unchanged = (exact - read).abs() <= _rounding(v) * read.abs().clamp_min(1.0)
    return torch.where(unchanged, v.unsqueeze(1), capped / beta_max)


def find_hidden_temperature(
    p: Tensor, v: Tensor, beta_max: Tensor, lam: Tensor, tilting: Tensor | None = None
) -> Tensor:
    """The beta* in [0, beta_max] whose free energy is the gated read (proposition G.2), by bisection, as F is
    increasing.

    If a channel is constant over the support, every beta is a solution; the lowest is returned.

    Args:
        p: dense prior of Q tokens over T, (B, Q, T, H, d_v or 1); v: (B, T, H, d_v); lam: (B, Q, H, d_v); beta_max:
            broadcastable to it.
        tilting: result of `tilting_values`; None means that nothing is capped.

    Returns:
        beta* (B, Q, H, d_v), to the precision of the dtype. If the cap applies, the read mixes the mean of `v` with the
        free energy of the capped values, and NaN marks reads outside the range of the latter.
    """
    high = beta_max.expand_as(lam).clone()
    values = v.unsqueeze(1) if tilting is None else tilting
    mu = (p * values).sum(2)
    away = values - mu.unsqueeze(2)

    def gain(beta: Tensor) -> Tensor:
        """F(beta) - mu without cancellation, which resolves small gates."""
        tilt = beta.unsqueeze(2) * away
        top = tilt.masked_fill(p == 0, -torch.inf).amax(2).clamp_min(0.0)
        small = (p * torch.expm1(tilt.clamp_max(1.0))).sum(2).log1p()
        return torch.where(top < 1.0, small, torch.logsumexp(p.log() + tilt, dim=2)) / beta

    largest, most = high.clone(), gain(high)
    target = lam * most
    if tilting is not None:
        target = target + (1 - lam) * (p * (v.unsqueeze(1) - values)).sum(2)
    low, steps = torch.zeros_like(high), 60 if v.dtype == torch.float64 else 30
    for _ in range(steps):
        middle = (low + high) / 2
        below = gain(middle) < target
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    beta = torch.where(lam >= 1, largest, torch.where(target <= 0, 0.0, (low + high) / 2))
    slack = _rounding(v) * (mu.abs() + most)
    return beta.masked_fill((target < -slack) | (target > most + slack), torch.nan)


def _rounding(x: Tensor) -> float:
    return 64 * torch.finfo(x.dtype).eps
