"""Pictures of the pages: the data drawn are those of femts and of the records; no pixel is compared."""

from __future__ import annotations

import json
import re
import runpy
import shutil
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


def test_posteriors_are_the_prior_tilted_by_each_channel(free_energy: dict[str, Any]) -> None:
    reading = free_energy["computed"]()
    assert float(reading.prior.sum()) == pytest.approx(1)
    for beta, posterior in reading.posteriors.items():
        tilted = reading.prior[:, None] * (beta * reading.values).exp()
        torch.testing.assert_close(posterior, tilted / tilted.sum(0))


def test_the_read_rises_from_the_mean_to_the_maximum(free_energy: dict[str, Any]) -> None:
    reading = free_energy["computed"]()
    mean, most = reading.prior @ reading.values, reading.values.amax(0)
    assert (reading.reads.diff(dim=0) > 0).all()
    assert ((reading.reads[0] - mean).abs() < 0.02).all() and ((most - reading.reads[-1]).abs() < 0.06).all()
    assert ((mean < reading.reads) & (reading.reads < most)).all()
    for beta, read in reading.marked.items():
        torch.testing.assert_close(read, (reading.prior @ (beta * reading.values).exp()).log() / beta)


def test_the_picture_of_the_free_energy_is_of_these_numbers(free_energy: dict[str, Any]) -> None:
    drawn = free_energy["plain"](free_energy["computed"]())
    assert script("picture_theme")["stale"](free_energy["PICTURE"], drawn) == [], "run scripts/free_energy_picture.py"


def test_picture_records_the_data_it_was_drawn_from(tmp_path: Path) -> None:
    theme = script("picture_theme")
    path, drawn = tmp_path / "pictures" / "empty", {"a": [0.1 + 0.2, 1]}
    assert theme["stale"](path, drawn) == ["empty-light.png", "empty-dark.png"]
    theme["write_both"](path, lambda _: theme["figure_of"](2, 1), drawn)
    assert theme["stale"](path, {"a": [0.3, 1]}) == [] and len(theme["stale"](path, {"a": [0.3001, 1]})) == 2


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return script("results_pictures")


def recorded(results: dict[str, Any]) -> dict[tuple[str, str], dict[int, dict[str, Any]]]:
    """Records of models of 96 steps that are rolled out, as JSON, by dataset, model and seed."""
    records: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for path in sorted((ROOT / "results" / "paper").glob("*/*-96-seed*.json")):
        record = json.loads(path.read_text())
        cell = record["cell"]
        if record["rolled"] and cell["model"] in results["LOOKS"]:
            records.setdefault((cell["dataset"], cell["model"]), {})[cell["seed"]] = record
    return records


def errors(record: dict[str, Any]) -> list[float]:
    return [record["test"]["mse"], *(each["test"]["mse"] for each in record["rolled"].values())]


def drawn(results: dict[str, Any], picture: str) -> dict[tuple[str, str], list[list[float]]]:
    """Places of the dots in a picture, by the title of their panel and the mark of their model."""
    theme = script("picture_theme")["LIGHT"]
    figure = results["PICTURES"][picture](theme, results["measured"]())
    return {
        (panel.get_title(loc="left"), dots.get_gid()): dots.get_offsets().tolist()
        for panel in figure.axes
        for dots in panel.collections
        if dots.get_gid()
    }


def test_means_and_seeds_drawn_are_those_of_the_records(results: dict[str, Any]) -> None:
    dots = drawn(results, "means")
    for (dataset, model), seeds in recorded(results).items():
        means = [statistics.fmean(errors(record)) for record in seeds.values()]
        assert sorted(x for x, _ in dots[dataset, f"seeds {model}"]) == pytest.approx(sorted(means))
        assert dots[dataset, f"mean {model}"][0][0] == pytest.approx(statistics.fmean(means))
    assert len(dots) >= 2 * len(recorded(results)) > 0


def test_horizons_drawn_are_those_of_the_records(results: dict[str, Any]) -> None:
    dots = drawn(results, "horizons")
    for (dataset, model), seeds in recorded(results).items():
        naive = [ROOT / "results" / "paper" / dataset / f"seasonal_naive-{p}-seed42.json" for p in (96, 192, 336, 720)]
        beside = [json.loads(path.read_text())["test"]["mse"] for path in naive]
        means = [statistics.fmean(each) for each in zip(*map(errors, seeds.values()), strict=True)]
        parts = [mean / each for mean, each in zip(means, beside, strict=True)]
        assert [y for _, y in dots[dataset, f"horizons {model}"]] == pytest.approx(parts)


def test_times_drawn_are_those_of_the_records(results: dict[str, Any]) -> None:
    dots = drawn(results, "times")
    for (dataset, model), seeds in recorded(results).items():
        places = sorted((record["seconds"] / 60, statistics.fmean(errors(record))) for record in seeds.values())
        assert sorted(map(tuple, dots[dataset, f"times {model}"])) == [pytest.approx(place) for place in places]


def test_the_pictures_of_the_results_are_of_these_records(results: dict[str, Any]) -> None:
    rows = results["plain"](results["measured"]())
    old = [name for title in results["PICTURES"] for name in results["stale"](results["FOLDER"] / title, rows)]
    assert old == [], "run scripts/results_pictures.py"


def test_few_records_and_none_of_a_horizon_are_drawn_as_far_as_they_go(tmp_path: Path, results: dict[str, Any]) -> None:
    source, folder = ROOT / "results" / "paper" / "ETTh1", tmp_path / "paper" / "ETTh1"
    folder.mkdir(parents=True)
    for name in ("ridge-96-seed42", "dlinear-96-seed42", "seasonal_naive-96-seed42"):
        shutil.copy(source / f"{name}.json", folder)
    rows = results["measured"](tmp_path)
    assert [(row.model, list(row.means)) for row in rows] == [("ridge", [42]), ("dlinear", []), ("seasonal_naive", [])]
    theme = script("picture_theme")["DARK"]
    for picture in ("means", "times"):
        (panel,) = results["PICTURES"][picture](theme, rows).axes
        assert panel.get_title(loc="left") == "ETTh1"
    assert results["measured"](tmp_path / "none") == []


def test_the_bars_of_the_readme_are_means_of_the_records_beside_their_command(results: dict[str, Any]) -> None:
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


def test_pictures_of_pages_are_there_in_light_and_dark() -> None:
    for page in {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("results/*.md")}:
        for source in re.findall(r'(?:src|srcset)="([^":]+)"', page.read_text(encoding="utf-8")):
            assert (page.parent / source).is_file(), f"{page}: {source}"
