"""Figures show the data of the records; no pixels are compared."""

from __future__ import annotations

import json
import re
import runpy
import statistics
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / f"{name}.py"))


@pytest.fixture(scope="module")
def free_energy() -> dict[str, Any]:
    return script("free_energy_picture")


def test_posterior_is_the_exponentially_tilted_prior(free_energy: dict[str, Any]) -> None:
    reading = free_energy["computed"]()
    assert float(reading.prior.sum()) == pytest.approx(1)
    for beta, posterior in reading.posteriors.items():
        tilted = reading.prior[:, None] * (beta * reading.values).exp()
        torch.testing.assert_close(posterior, tilted / tilted.sum(0))


def test_free_energy_rises_from_mean_to_maximum(free_energy: dict[str, Any]) -> None:
    reading = free_energy["computed"]()
    mean, most = reading.prior @ reading.values, reading.values.amax(0)
    assert (reading.reads.diff(dim=0) > 0).all()
    assert ((reading.reads[0] - mean).abs() < 0.02).all() and ((most - reading.reads[-1]).abs() < 0.06).all()
    assert ((mean < reading.reads) & (reading.reads < most)).all()
    for beta, read in reading.marked.items():
        torch.testing.assert_close(read, (reading.prior @ (beta * reading.values).exp()).log() / beta)


def test_free_energy_figure_is_up_to_date(free_energy: dict[str, Any]) -> None:
    plotted_points = free_energy["plain"](free_energy["computed"]())
    assert script("picture_theme")["stale"](free_energy["PICTURE"], plotted_points) == [], (
        "run scripts/free_energy_picture.py"
    )


def test_figure_records_its_data(tmp_path: Path) -> None:
    theme = script("picture_theme")
    path, plotted_points = tmp_path / "pictures" / "empty", {"a": [0.1 + 0.2, 1]}
    assert theme["stale"](path, plotted_points) == ["empty-light.png", "empty-dark.png"]
    theme["write_both"](path, lambda _: theme["figure_of"](2, 1), plotted_points)
    assert theme["stale"](path, {"a": [0.3, 1]}) == [] and len(theme["stale"](path, {"a": [0.3001, 1]})) == 2


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return script("results_pictures")


def recorded(results: dict[str, Any]) -> dict[tuple[str, str], dict[int, dict[str, Any]]]:
    """Recursively scored records of 96 steps by dataset, model and seed."""
    records: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for path in sorted((ROOT / "results" / "paper").glob("*/*-96-seed*.json")):
        record = json.loads(path.read_text())
        cell = record["cell"]
        if record["rolled"] and cell["model"] in results["LOOKS"]:
            records.setdefault((cell["dataset"], cell["model"]), {})[cell["seed"]] = record
    return records


def errors(record: dict[str, Any]) -> list[float]:
    return [record["test"]["mse"], *(each["test"]["mse"] for each in record["rolled"].values())]


def plotted_points(results: dict[str, Any], picture: str) -> dict[tuple[str, str], list[list[float]]]:
    """Positions of the points of a figure by axes title and model."""
    theme = script("picture_theme")["LIGHT"]
    figure = results["PICTURES"][picture](theme, results["measured"]())
    return {
        (panel.get_title(loc="left"), dots.get_gid()): dots.get_offsets().tolist()
        for panel in figure.axes
        for dots in panel.collections
        if dots.get_gid()
    }


def test_plotted_means_and_seeds_match_the_records(results: dict[str, Any]) -> None:
    dots = plotted_points(results, "means")
    for (dataset, model), seeds in recorded(results).items():
        means = [statistics.fmean(errors(record)) for record in seeds.values()]
        assert sorted(x for x, _ in dots[dataset, f"seeds {model}"]) == pytest.approx(sorted(means))
        assert dots[dataset, f"mean {model}"][0][0] == pytest.approx(statistics.fmean(means))
    assert len(dots) >= 2 * len(recorded(results)) > 0


def test_result_figures_are_up_to_date(results: dict[str, Any]) -> None:
    rows = results["plain"](results["measured"]())
    old = [name for title in results["PICTURES"] for name in results["stale"](results["FOLDER"] / title, rows)]
    assert old == [], "run scripts/results_pictures.py"


def test_readme_bars_are_means_of_the_records(results: dict[str, Any]) -> None:
    readme, records = script("readme_picture"), recorded(results)
    means = {row.model: row.means for row in results["measured"]() if row.dataset == readme["TABLE"]}
    bars = readme["bars"]()
    assert list(bars.values()) == sorted(bars.values())
    for model, mean in bars.items():
        own = records.get((readme["TABLE"], model))
        seeds = [statistics.fmean(errors(record)) for record in own.values()] if own else means[model].values()
        assert mean == pytest.approx(statistics.fmean(seeds))
    words = readme["COMMAND"].replace("\\", "").split()
    assert words[words.index("--models") + 1].split(",") == list(readme["BARS"])[:-1]
    assert readme["stale"](readme["PICTURE"], bars) == [], "run scripts/readme_picture.py"


def test_every_referenced_image_exists() -> None:
    for page in {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/*.md")}:
        for source in re.findall(r'(?:src|srcset)="([^":]+)"', page.read_text(encoding="utf-8")):
            assert (page.parent / source).is_file(), f"{page}: {source}"
