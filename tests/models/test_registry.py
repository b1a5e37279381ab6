"""Models by name."""

from __future__ import annotations

import pytest
from model_cases import check_card

from femts.errors import UsageError
from femts.models.base import ForecastModel
from femts.models.fem import SegmentConfig
from femts.models.registry import build_config, model_card, model_names, register


def test_every_name_of_the_interface_is_there() -> None:
    expected = "fem_sm fem_gla fem_mamba fem_aft fem_linear sm gla mamba aft linear lintrans"
    assert {
        *expected.split(),
        "itransformer",
        "patchtst",
        "dlinear",
        "tide",
        "nhits",
        "naive",
        "seasonal_naive",
    } <= set(model_names())


def test_model_card_describes_the_model_and_its_settings() -> None:
    for name in model_names():
        check_card(name)


def test_an_unknown_name_gets_the_nearest_right_one() -> None:
    with pytest.raises(UsageError, match="Unknown model 'fem_gal'; did you mean 'fem_gla'"):
        model_card("fem_gal")


def test_an_override_of_the_name_yields_to_the_users_setting() -> None:
    def components(**settings: str) -> str:
        config = build_config("sm", seq_len=8, pred_len=4, n_channels=1, settings=settings)
        assert isinstance(config, SegmentConfig)
        return config.components

    assert components() == "" and components(components="CL") == "CL"


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        register("naive", "again")(ForecastModel)
