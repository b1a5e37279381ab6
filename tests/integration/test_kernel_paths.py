"""Every available kernel gives the same forecast."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from small_tables import small_table

import femts
from femts.mixers import kernels
from femts.mixers.kernels import OPERATIONS, recorded, using

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
MODELS = {
    "fem_sm": "read",
    "fem_gla": "linear",
    "fem_linear": "linear",
    "fem_aft": "scan",
    "fem_mamba": "selective_scan",
}
# Of horizon 12, and where libraries run at full speed of horizon 1 too: more than 128 tokens, which
# are no dense product.
CASES = [(model, 12) for model in MODELS] + [(model, 1) for model in MODELS if DEVICE.type == "cuda"]
TINY = {"model.d_model": 16, "model.n_layers": 1, "model.n_heads": 2, "training.lr": 1e-2}


@pytest.fixture(scope="module", params=CASES, ids=str)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int, Path]:
    """A model, its horizon, and its run."""
    model, steps = request.param
    folder = tmp_path_factory.mktemp("saved") / model
    data = femts.load_dataset(small_table())
    femts.train(
        data, model, steps, seq_len={12: 48, 1: 140}[steps], max_epochs=1, device="cpu", settings=TINY, out=folder
    )
    return model, steps, folder


def paths() -> Iterator[tuple[str, str]]:
    for operation, available in OPERATIONS.items():
        for kernel in available:
            if kernel.why_not(DEVICE, torch.float32) is None:
                yield operation, kernel.name


def dense(model: str, steps: int) -> bool:
    """Whether torch's dense product is used for so few tokens."""
    return MODELS[model] == "linear" and steps == 12


def forecast(folder: Path) -> np.ndarray:
    forecaster = femts.load(folder).to(DEVICE)
    return forecaster.predict(small_table())[list(forecaster.columns)].to_numpy()


def test_every_kernel_gives_the_same_forecast(saved: tuple[str, int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    model, steps, folder = saved
    with using(**dict.fromkeys(OPERATIONS, "torch")):
        expected = forecast(folder)
    tried = set()
    for operation, name in paths():
        with using(**{**dict.fromkeys(OPERATIONS, "torch"), operation: name}), recorded() as ran:
            found = forecast(folder)
        assert ran.get(operation, name) == name
        tried |= set(ran.items())
        np.testing.assert_allclose(found, expected, rtol=5e-5, atol=5e-5, err_msg=f"{operation}={name}")
    assert ("read", "triton") in tried or not kernels.installed("triton")
    assert MODELS[model] in dict(tried) or dense(model, steps), "a path that was never taken proves nothing"
    # And with none of the libraries on this machine.
    monkeypatch.setattr(kernels, "installed", lambda name: False)
    np.testing.assert_allclose(forecast(folder), expected, rtol=5e-5, atol=5e-5)


def test_run_records_its_kernels(saved: tuple[str, int, Path]) -> None:
    model, steps, folder = saved
    ran = femts.load(folder).metrics["kernels"]
    assert ran["read"] == "torch"
    assert MODELS[model] in ran or dense(model, steps)
