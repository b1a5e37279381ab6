"""Pictures of forecasts: which panels and lines there are, and what cannot be drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_tables import small_table

from femts.errors import RunFailure, UsageError
from femts.plotting import plot_forecast

PNG = b"\x89PNG"


@pytest.mark.parametrize("count", [1, 2, 7, 20])
def test_any_number_of_channels(tmp_path: Path, count: int) -> None:
    table = small_table(60, tuple(f"channel {i}" for i in range(count)))
    path = plot_forecast(table.head(48), table.tail(12), tmp_path / "p.png")
    assert path.read_bytes().startswith(PNG)
    assert [p.name for p in tmp_path.iterdir()] == ["p.png"]


def test_what_happened_is_drawn_when_known(tmp_path: Path) -> None:
    table = small_table(60)
    past, future = table.head(48), table.tail(12)
    without = plot_forecast(past, future, tmp_path / "a.svg").read_text()
    with_truth = plot_forecast(past, future, tmp_path / "b.svg", actual=future).read_text()
    assert with_truth.count("#0072b2") > without.count("#0072b2") == 0
    assert without.count("#d55e00") > 0


def test_data_without_dates_and_names_with_dollars(tmp_path: Path) -> None:
    table = small_table(60, ("cost $a", "b$")).drop(columns="date")
    path = plot_forecast(table.head(48), table.tail(12), tmp_path / "p.png")
    assert path.read_bytes().startswith(PNG)


def test_the_same_columns_as_asked_for(tmp_path: Path) -> None:
    table = small_table(60)
    one = plot_forecast(table.head(48), table.tail(12), tmp_path / "a.svg", columns=["heat"]).read_text()
    assert "<!-- heat -->" in one
    assert "<!-- load -->" not in one
    with pytest.raises(UsageError, match="'hat'; did you mean 'heat'"):
        plot_forecast(table.head(48), table.tail(12), tmp_path / "b.svg", columns=["hat"])


def test_unwritable_pictures(tmp_path: Path) -> None:
    table = small_table(60)
    with pytest.raises(UsageError, match=r"p.bmp'; name it .png"):
        plot_forecast(table.head(48), table.tail(12), tmp_path / "p.bmp")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailure, match="Could not write"):
        plot_forecast(table.head(48), table.tail(12), tmp_path / "file" / "p.png")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
