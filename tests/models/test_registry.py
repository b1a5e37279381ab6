"""The registry of models."""

from __future__ import annotations

import subprocess
import sys

import pytest
from model_cases import check_card

import femts
from femts.models.base import ForecastModel
from femts.models.fem import SegmentConfig
from femts.models.registry import build_config, model_names, register


def test_documented_models_are_registered() -> None:
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


def test_user_setting_overrides_the_variant() -> None:
    def components(**settings: str) -> str:
        config = build_config("sm", seq_len=8, pred_len=4, n_channels=1, settings=settings)
        assert isinstance(config, SegmentConfig)
        return config.components

    assert components() == "" and components(components="CL") == "CL"


def test_duplicate_name_is_refused() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        register("naive", "again")(ForecastModel)


def test_optional_libraries_are_imported_lazily() -> None:
    heavy = {"statsforecast", "chronos", "transformers"}
    code = f"import sys, femts; femts.models(); assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_models_are_listed_by_what_they_are_for() -> None:
    use = femts.models().set_index("name")["use"]
    assert use[["fem_zero", "seasonal_naive"]].eq("without training").all()
    assert use[["fem_zero_tuned", "ridge", "fem_sm"]].eq("fitted to your table").all()
    assert use["dotm"].startswith("classical") and use[["sm", "fem_sm_no_c", "sm_ridge"]].str.contains("alone").all()
