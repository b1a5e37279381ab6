from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from femts.data.protocols import PROTOCOLS, default_seq_len
from femts.errors import UsageError


@pytest.mark.parametrize(
    ("protocol", "lengths"), [("paper", (1024, 2048, 2048, 4096)), ("lookback96", (96, 96, 96, 96))]
)
def test_look_back_of_the_published_horizons(protocol: str, lengths: tuple[int, ...]) -> None:
    assert tuple(default_seq_len(protocol, pred_len, 8640) for pred_len in (96, 192, 336, 720)) == lengths


def test_look_back_is_halved_on_little_data() -> None:
    assert default_seq_len("paper", 96, 1000) == 256
    assert default_seq_len("lookback96", 24, 150) == 48


@given(st.sampled_from(PROTOCOLS), st.integers(1, 2000), st.integers(0, 100_000))
def test_look_back_leaves_room_or_is_one_step(protocol: str, pred_len: int, train_rows: int) -> None:
    seq_len = default_seq_len(protocol, pred_len, train_rows)
    assert seq_len == 1 or seq_len + pred_len <= 0.6 * train_rows


def test_unknown_protocol_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"Unknown protocol 'papers'; did you mean 'paper'"):
        default_seq_len("papers", 96, 8640)
