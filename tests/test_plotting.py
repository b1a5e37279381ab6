"""Plots of forecasts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from pictures import plot_forecast
from small_tables import small_table

from femts.errors import RunFailure, UsageError

PNG = b"\x89PNG"


def test_any_number_of_channels(tmp_path: Path) -> None:
    for count in [1, 20]:
        table = small_table(60, tuple(f"channel {i}" for i in range(count)))
        path = plot_forecast(table.head(48), table.tail(12), tmp_path / "p.png")
        assert path.read_bytes().startswith(PNG)
        assert [p.name for p in tmp_path.iterdir()] == ["p.png"]


def test_actual_values_are_drawn(tmp_path: Path) -> None:
    table = small_table(60)
    past, future = table.head(48), table.tail(12)
    without = plot_forecast(past, future, tmp_path / "a.svg").read_text()
    with_truth = plot_forecast(past, future, tmp_path / "b.svg", actual=future).read_text()
    assert with_truth.count("#0072b2") > without.count("#0072b2") == 0
    assert without.count("#d55e00") > 0


def test_undated_data_and_dollar_signs(tmp_path: Path) -> None:
    table = small_table(60, ("cost $a", "b$")).drop(columns="date")
    path = plot_forecast(table.head(48), table.tail(12), tmp_path / "p.png")
    assert path.read_bytes().startswith(PNG)


def test_column_selection(tmp_path: Path) -> None:
    table = small_table(60)
    one = plot_forecast(table.head(48), table.tail(12), tmp_path / "a.svg", columns=["heat"]).read_text()
    assert "<!-- heat -->" in one
    assert "<!-- load -->" not in one
    with pytest.raises(UsageError, match="'hat'; did you mean 'heat'"):
        plot_forecast(table.head(48), table.tail(12), tmp_path / "b.svg", columns=["hat"])


def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *args: Any, **options: Any) -> Any:
    """The saved figure of `plot_forecast`."""
    figures: list[Figure] = []
    save = Figure.savefig

    def keep(figure: Figure, *given: Any, **also: Any) -> None:
        figures.append(figure)
        save(figure, *given, **also)

    monkeypatch.setattr(Figure, "savefig", keep)
    plot_forecast(args[0], args[1], tmp_path / "p.png", *args[2:], **options)
    return figures[0]


def test_interval_bands_and_legend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small_table(60)
    past, future = table.head(48), table.tail(12)
    for level, width in (("80", 1.0), ("95", 2.0)):
        future = future.assign(
            **{f"load-lo-{level}": future["load"] - width, f"load-hi-{level}": future["load"] + width}
        )
    future = future.assign(**{"load-lo-x": 0.0, "load-hi-x": 0.0})  # no level
    figure = drawn(tmp_path, monkeypatch, past, future)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["history", "forecast", "80 % interval", "95 % interval"]
    assert legend.get_title().get_text() == "Forecast of 12 steps after 2024-01-02 23:00:00"
    for band in figure.axes[0].collections:
        corners = band.get_paths()[0].vertices
        first = corners[corners[:, 0] == corners[:, 0].min()]
        np.testing.assert_allclose(first[:, 1], past["load"].iloc[-1])
    narrow, wide = (patch.get_alpha() for patch in legend.get_patches())
    assert narrow > wide


def test_ended_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small_table(60)
    past, future = table.head(48).copy(), table.tail(12).assign(heat=np.nan)
    past.loc[40:, "heat"] = np.nan
    figure = drawn(tmp_path, monkeypatch, past, future)
    for panel, end in zip(figure.axes, (47, 39), strict=True):
        assert panel.lines[1].get_xdata()[-1] == past["date"][end]
    for empty, says in (
        ((past.head(0), future), "history has no rows"),
        ((past, future.head(0)), "forecast has no rows"),
    ):
        with pytest.raises(UsageError, match=says):
            plot_forecast(*empty, tmp_path / "e.png")


def test_unwritable_plot_is_refused(tmp_path: Path) -> None:
    table = small_table(60)
    with pytest.raises(UsageError, match=r"p.bmp'; name it .png"):
        plot_forecast(table.head(48), table.tail(12), tmp_path / "p.bmp")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailure, match="Could not write"):
        plot_forecast(table.head(48), table.tail(12), tmp_path / "file" / "p.png")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_long_ended_column_keeps_the_time_axis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = small_table(200)
    past, future = table.head(188).copy(), table.tail(12).assign(heat=np.nan)
    past.loc[90:, "heat"] = np.nan
    figure = drawn(tmp_path, monkeypatch, past, future)
    load, heat = figure.axes
    assert load.get_xlim() == heat.get_xlim() and load.lines[1].get_xdata()[0] == past["date"][164]
    assert [text.get_text() for text in heat.texts] == ["no value in the last 24 steps, so no forecast"]
    assert load.yaxis.get_visible() and not heat.yaxis.get_visible() and not load.texts
