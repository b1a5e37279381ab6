"""A new dataset needs one file and one registration."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from small_tables import small_table

import femts
from femts.cli import main
from femts.data import catalog
from femts.errors import UsageError
from femts.plugins import import_all

_FILE = """
from femts.data.catalog.registry import DatasetCard, register_dataset

register_dataset(
    DatasetCard(
        name="Boiler",
        filename="boiler.csv",
        rows=300,
        channels=2,
        freq="h",
        season=24,
        description="Load and heat of a boiler.",
        url="{url}",
        sha256="{sha256}",
    )
)
"""
_BUILT_IN = """
import pandas as pd

from femts.data.catalog.registry import DatasetCard, register_dataset


def _make():
    return pd.DataFrame({"up": range(100), "down": range(100, 0, -1)}, dtype="float64")


register_dataset(
    DatasetCard(name="Slopes", make=_make, rows=ROWS, channels=2, freq="h", season=24, description="Up and down.")
)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that counts as part of the catalogue package."""
    place = tmp_path / "catalog"
    place.mkdir()
    monkeypatch.setattr(catalog, "__path__", [*catalog.__path__, str(place)])
    with patch.dict(catalog.CATALOG):
        yield place
    for path in place.glob("*.py"):
        del sys.modules[f"{catalog.__name__}.{path.stem}"]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Source of a card whose file is served on 127.0.0.1."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("FEMTS_DATA", str(tmp_path / "data"))
    published = tmp_path / "published"
    published.mkdir()
    small_table().to_csv(published / "boiler.csv", index=False)
    sha256 = hashlib.sha256((published / "boiler.csv").read_bytes()).hexdigest()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=published)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield _FILE.format(url=f"http://127.0.0.1:{server.server_address[1]}/boiler.csv", sha256=sha256)
        server.shutdown()
        thread.join()


@pytest.fixture
def boiler(folder: Path, source: str) -> str:
    """Name of a dataset in its own file."""
    (folder / "boiler_for_test.py").write_text(source)
    import_all("femts.data.catalog")
    return "Boiler"


def _listed(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Row of a dataset in `femts datasets list`."""
    assert main(["datasets", "list"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    return next((row for row in rows if row[0] == name), [])


def test_new_dataset_is_listed_fetched_and_verified(
    boiler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _listed(boiler, capsys) == ["Boiler", "300", "2", "h", "no"]
    assert main(["datasets", "fetch", "boiler"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "data" / "boiler.csv")
    assert _listed(boiler, capsys) == ["Boiler", "300", "2", "h", "yes"]
    assert main(["datasets", "verify", "boiler"]) == 0
    assert main(["datasets", "info", "boiler"]) == 0
    assert "Load and heat of a boiler." in capsys.readouterr().out


def test_new_dataset_is_trained_on_by_name(boiler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    command = ["--model", "dlinear", "--horizon", "12", "--seq-len", "24", "--max-steps", "2", "--out", str(run)]
    assert main(["train", "--dataset", "boiler", *command]) == 0
    loaded = femts.load(run)
    assert loaded.config.source == boiler
    assert loaded.evaluate("test") == loaded.metrics["test"]


def test_generated_dataset_needs_no_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "slopes_for_test.py").write_text(_BUILT_IN.replace("ROWS", "100"))
    import_all("femts.data.catalog")
    assert _listed("Slopes", capsys) == ["Slopes", "100", "2", "h", "built-in"]
    data = femts.load_dataset("slopes")
    assert data.values.shape == (100, 2) and data.stamps is None and data.split.test.tolist() == [[80, 100]]
    assert data.notes == ("it has no dates, so neither do its forecasts",)


def test_generated_data_must_match_the_card(folder: Path) -> None:
    (folder / "slopes_for_test.py").write_text(_BUILT_IN.replace("ROWS", "90"))
    import_all("femts.data.catalog")
    with pytest.raises(
        UsageError, match="The generated table has 100 rows of 2 values, but Slopes has 90 of 2; correct its card"
    ):
        femts.load_dataset("Slopes")


def test_invalid_cards_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="'etth1' is registered twice"):
        catalog.register_dataset(catalog.DatasetCard(**{**vars(catalog.CATALOG["ETTh1"]), "name": "etth1"}))
    with pytest.raises(ValueError, match="either a file or made"):
        catalog.DatasetCard(name="x", rows=1, channels=1, freq="h", season=24, description="Nothing.")


@pytest.mark.parametrize(
    ("freq", "step", "says"),
    [
        ("15min", "15min", None),
        ("D", "24h", None),
        ("hourly", "h", "The card of odd has the step 'hourly', which is not a pandas frequency; write h"),
        (
            "h",
            "15min",
            "has the step 'h', but its time stamps go from 2024-01-01 00:00:00 to 2024-01-01 00:15:00; correct the card",
        ),
    ],
)
def test_card_frequency_must_match_the_stamps(folder: Path, freq: str, step: str, says: str | None) -> None:
    dates = pd.date_range("2024-01-01", periods=60, freq=step)
    make = partial(pd.DataFrame, {"date": dates, "x": np.arange(60.0)})
    catalog.register_dataset(
        catalog.DatasetCard(name="odd", freq=freq, make=make, rows=60, channels=1, season=1, description="x")
    )
    if says is None:
        assert femts.load_dataset("odd").freq == freq
        return
    with pytest.raises(UsageError, match=says):
        femts.load_dataset("odd")


def test_catalogue_holds_only_published_datasets() -> None:
    assert list(catalog.CATALOG) == ["ETTh1", "ETTh2", "ETTm1", "ETTm2", "Solar", "synthetic", "Weather"]
