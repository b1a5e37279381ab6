"""Damaged run folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from run_damage import FILES, flipped, loaded
from small_tables import small_table

import femts
from femts.errors import UsageError
from femts.training.train import train

FLIPS = 24


@pytest.fixture(scope="module")
def intact_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A refitted run with a future covariate."""
    folder = tmp_path_factory.mktemp("damage")
    small_table(columns=("load", "heat", "open")).to_csv(folder / "past.csv", index=False)
    data = femts.load_dataset(folder / "past.csv", future_covariates=["open"])
    for name, seed in (("run", 0), ("other", 1)):
        settings = {"training.batch_size": 100, "training.max_steps": 4, "training.seed": seed}
        train(data, "dlinear", 12, seq_len=24, out=folder / name, settings=settings, device="cpu", refit=True)
    return folder / "run"


@pytest.fixture
def run(intact_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(intact_run, tmp_path / "run"))


@pytest.mark.parametrize(
    "name", [*FILES, "scored/preprocess.json", "scored/metrics.json", "scored/intervals.safetensors"]
)
def test_flipped_bit_is_detected_or_harmless(run: Path, name: str) -> None:
    path, before, noticed = run / name, loaded(run), 0
    for changed in flipped(path.read_bytes(), FLIPS):
        path.write_bytes(changed)
        try:
            assert loaded(run) == before
        except UsageError as error:
            assert "\n" not in str(error) and str(run) in str(error)
            noticed += 1
    assert noticed == (0 if name.endswith("metrics.csv") else FLIPS)
    path.unlink()
    if name.endswith("metrics.csv"):
        assert loaded(run) == before
    else:
        with pytest.raises(UsageError, match=r"lacks|has no|is not a femts run"):
            femts.load(run)


@pytest.mark.parametrize("name", FILES[:-1])
def test_replaced_file_is_refused(run: Path, name: str) -> None:
    for content in (b"", b"[" * 100_000, b"\xff" * 64, b"{}", b"9" * 5000, b"- &a [*a]"):
        (run / name).write_bytes(content)
        with pytest.raises(UsageError, match=rf"Run .*{name}.*; ") as caught:
            femts.load(run)
        assert "\n" not in str(caught.value)


def test_mixed_run_folders_are_refused(intact_run: Path, run: Path) -> None:
    shutil.rmtree(run / "scored")
    shutil.copytree(intact_run.parent / "other" / "scored", run / "scored")
    with pytest.raises(UsageError, match=r"scored/metrics.json does not match"):
        femts.load(run)
