"""The naive baselines."""

import pytest
import torch

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.naive import Naive, SeasonalNaive, SeasonalNaiveConfig


def test_naive_repeats_the_last_value() -> None:
    x = torch.arange(12.0).view(1, 6, 2)
    assert torch.equal(Naive(ModelConfig(6, 3, 2))(Batch(x)), torch.tensor([[[10.0, 11.0]] * 3]))


def test_seasonal_naive_repeats_the_last_season() -> None:
    for season, steps, expected in [
        (3, 2, [3, 4]),  # cut inside the season
        (3, 7, [3, 4, 5, 3, 4, 5, 3]),  # more than two seasons
        (1, 2, [5, 5]),
        (6, 6, [0, 1, 2, 3, 4, 5]),  # the whole look-back
    ]:
        model = SeasonalNaive(SeasonalNaiveConfig(6, steps, 1, season))
        assert model(Batch(torch.arange(6.0).view(1, 6, 1))).flatten().tolist() == expected


def test_invalid_season_is_refused() -> None:
    for season in [0, -1, 7]:
        with pytest.raises(UsageError, match=rf"season of {season} steps .* look-back of 6.*model\.season"):
            SeasonalNaiveConfig(6, 3, 1, season)


def test_seasonal_naive_requires_a_season() -> None:
    with pytest.raises(UsageError, match=r"model\.season"):
        SeasonalNaive(SeasonalNaiveConfig(6, 3, 1))(Batch(torch.zeros(1, 6, 1)))
