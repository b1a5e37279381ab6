"""Execution of the guides in `docs/how-to/`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest
from checkout import Checkout
from pages import ROOT, Reader, cells_in_this_process, compare, less

from femts.cluster import connected
from femts.data.catalog import CATALOG
from femts.data.scaler import SCALERS
from femts.evaluation.conformal import INTERVALS
from femts.evaluation.metric import METRICS
from femts.mixers.priors.registry import PRIORS, prior_names
from femts.models.losses import LOSSES
from femts.models.registry import MODELS, model_names

pytestmark = pytest.mark.slow

HOW_TO = ROOT / "docs" / "how-to"
GUIDES = sorted(page.stem for page in HOW_TO.glob("*.md"))
TABLES = ("benchmark", "python")  # which show tables; many-machines is about their processes
NEEDS = {
    "choose": ["statsforecast"],
    "many-machines": ["ray"],
    "mlflow": ["mlflow"],
    "serving": ["fastapi", "onnxruntime"],
    "short-series": ["openpyxl"],
    "tune": ["optuna"],
}


@pytest.mark.parametrize("guide", GUIDES)
def test_guide_reproduces_its_output(guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS.get(guide, []):
        pytest.importorskip(package, reason=f"this guide needs {package}")
    for name in ("FEMTS_DATA", "MLFLOW_TRACKING_URI"):  # what a guide needs it makes itself
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    model_names()  # what is loaded now stays when the patches end
    prior_names()
    checkout = guide == "extend"
    if checkout:
        Checkout.make(tmp_path)
    with ExitStack() as untouched:
        for registry in (MODELS, PRIORS, CATALOG, LOSSES, METRICS, SCALERS, INTERVALS):
            untouched.enter_context(patch.dict(registry))
        if guide in TABLES:
            untouched.enter_context(cells_in_this_process())
        if guide == "many-machines":
            ray = sys.modules["ray"]  # one worker, because each imports femts for seconds
            untouched.enter_context(patch.object(ray, "init", partial(ray.init, num_cpus=1)))
            monkeypatch.setenv("RAY_worker_niceness", "0")  # other tests would leave it no time at its own, 15
            untouched.enter_context(connected())  # once for both commands that use Ray
        steps = 100 if guide == "train" else 8  # enough for the verdict that it shows
        Reader(tmp_path, less(max_steps=steps), checkout).read(HOW_TO / f"{guide}.md")


def test_compare_detects_differing_output() -> None:
    compare("mse  windows\n0.1234  7", "mse  windows\n0.12341  7\n", figures=True)
    compare("...\nrun: x\n0.5 in 3 s", "noise\nmore\nrun: x\n0.5 in 9 s", figures=True)
    compare("check ...\n0.1", "check what was found\n0.9", figures=False)
    for shown, printed, figures in (
        ("0.1234", "0.1240", True),
        ("mse 0.1", "mae 0.1", False),
        ("a\nb", "a", False),
        ("a b", "a b c", False),
        ("...\nb", "a\nc", False),
    ):
        with pytest.raises(AssertionError):
            compare(shown, printed, figures)
