"""Named look-back lengths, so that numbers can be laid beside either literature."""

from __future__ import annotations

from femts.errors import UsageError, suggest

HORIZONS: tuple[int, ...] = (96, 192, 336, 720)
"""Steps to forecast in the literature's tables."""
PROTOCOLS: tuple[str, ...] = ("paper", "lookback96")


def default_seq_len(protocol: str, pred_len: int, train_rows: int) -> int:
    """Look-back in steps for forecasts of `pred_len` steps.

    `paper` takes 1024 steps up to 96, 2048 up to 336 and 4096 beyond; `lookback96` always takes 96. Where look-back and
    forecast would fill more than 60% of the training rows (small data of one's own) the look-back is halved until they
    do not, because too few windows would be left to learn from.

    Raises:
        UsageError: no such protocol.
    """
    if protocol not in PROTOCOLS:
        raise UsageError(f"Unknown protocol '{protocol}'{suggest(protocol, PROTOCOLS)}")
    seq_len = 96 if protocol == "lookback96" else 1024 if pred_len <= 96 else 2048 if pred_len <= 336 else 4096
    while seq_len > 1 and seq_len + pred_len > 0.6 * train_rows:
        seq_len //= 2
    return seq_len
