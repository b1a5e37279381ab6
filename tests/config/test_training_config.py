"""Validation of the training configuration and parsing of durations."""

import pytest

from femts.config.training import TrainingConfig, parse_span
from femts.errors import UsageError


def test_durations_are_parsed() -> None:
    for text, seconds in [
        ("90s", 90),
        ("9m", 540),
        ("1h30m", 5400),
        ("45", 45),
        ("1h", 3600),
        ("1.5m", 90),
        ("1h2m3s", 3723),
        (" 2M ", 120),
    ]:
        assert parse_span(text) == seconds


def test_invalid_durations_are_refused() -> None:
    for text in ["", "soon", "9 minutes", "0s", "-5m", "5d", "m", "1m1h", "nan"]:
        with pytest.raises(UsageError, match=f"'{text}' cannot be read; write it as 90s, 9m or 1h30m"):
            parse_span(text)


def test_out_of_range_values_are_refused() -> None:
    for field, value in [
        ("batch_size", 0),
        ("accumulate", 0),
        ("max_epochs", 0),
        ("max_steps", 0),
        ("channels", 0),
        ("val_windows", 0),
        ("val_every", 0),
        ("patience", 0),
        ("devices", 0),
        ("lr", 0.0),
        ("lr", float("nan")),
        ("clip", -1.0),
        ("weight_decay", -0.1),
        ("ema", 1.0),
        ("warm_up", 1.0),
        ("betas", (0.9, 1.0)),
        ("seed", -1),
        ("max_time", "later"),
    ]:
        with pytest.raises(UsageError, match="later" if field == "max_time" else f"training.{field}"):
            TrainingConfig(**{field: value})  # type: ignore[arg-type]


def test_epoch_decay_bounds() -> None:
    for decay in (0.0, 1.5):
        with pytest.raises(UsageError, match=rf"training.epoch_decay' takes .* not {decay}"):
            TrainingConfig(epoch_decay=decay)


def test_steps_and_epochs_are_mutually_exclusive() -> None:
    with pytest.raises(UsageError, match=r"max_steps' \(200\) and 'training.max_epochs' \(3\).*give only one"):
        TrainingConfig(max_steps=200, max_epochs=3)
    assert TrainingConfig().steps(50) == 1000
    assert TrainingConfig(max_steps=7).steps(50) == 7
    assert TrainingConfig(max_epochs=3).steps(50) == 150
