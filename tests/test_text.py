"""Escaping for terminals, HTML, SVG and spreadsheets, and strict JSON."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pictures import plot_forecast
from small_tables import small_table

import femts
from femts.analysis.report.render import PAGES, render
from femts.cli.output import details_table, say_unfinished, scores_table
from femts.data.describe import are, count
from femts.errors import FemtsError, UsageError, suggest
from femts.experiments.tables import as_markdown
from femts.text import MOST, quote, rough, spreadsheet_safe, strict_json, table

EVIL = "a\x1b]0;owned\x07\u202eb"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("größe 温度", "größe 温度"),
        ("\x1b[2J", r"\x1b[2J"),
        ("two\nlines", r"two\nlines"),
        ("\u202eturned", r"\u202eturned"),
        (None, "None"),
        (10**30, "1" + "0" * 30),
        pytest.param(10**5000, "a number of about 5001 digits", id="digits"),
    ],
)
def test_control_characters_are_escaped(value: object, text: str) -> None:
    assert quote(value) == text


def test_long_values_are_abbreviated() -> None:
    text = quote("begin" + "x" * 200_000 + "end")
    assert len(text) <= MOST and text.startswith("beginx") and text.endswith("xend") and "..." in text


def test_every_error_is_one_printable_sentence() -> None:
    error = UsageError(f"Column '{EVIL}'\nis {'long ' * 10_000}; rename it.")
    assert str(error).isprintable() and len(str(error)) < 2000 and str(error).endswith("rename it.")
    assert len(str(FemtsError(suggest("nothing", [f"column {i}" for i in range(100_000)])))) < 2000


def test_terminal_tables_are_printable() -> None:
    text = table(("name", EVIL), [(EVIL, 1.5), (None, "x" * 100_000)])
    assert text.replace("\n", "").isprintable() and len(text) < 3000


def test_json_writes_nan_as_null() -> None:
    found = strict_json({"a": [float("nan"), float("inf"), 1.5], "b": {"c": float("-inf")}, "d": (1, "x")})
    assert json.loads(found, parse_constant=pytest.fail) == {"a": [None, None, 1.5], "b": {"c": None}, "d": [1, "x"]}


def test_missing_scores_are_printed() -> None:
    nothing: dict[str, Any] = {
        "mse": None,
        "mae": None,
        "windows": 3,
        "season": 1,
        "skill": None,
        "mase": None,
        "baselines": {},
    }
    assert scores_table({1: nothing, 2: nothing}).splitlines()[-1].split() == [
        *("mean", "nan", "nan", "-", *"----", "nan", "nan")
    ]


def test_spreadsheet_formulas_are_escaped() -> None:
    for cell, safe in [
        ("=1+1", "'=1+1"),
        ("@x", "'@x"),
        ("+x", "'+x"),
        ("-x", "'-x"),
        ("-1.5", "-1.5"),
        ("+2", "+2"),
        (-1.5, -1.5),
        ("a=b", "a=b"),
    ]:
        assert spreadsheet_safe(cell) == safe


def test_score_tables_are_escaped() -> None:
    assert as_markdown(["=cmd|<b>"], [["naive"]]).splitlines()[0] == r"| =cmd\|&lt;b&gt; |"
    scores = pd.DataFrame({"channel": ["=cmd"], "mse": [1.0]})
    assert details_table({12: scores}, {}, "csv").splitlines()[1] == "12,'=cmd,1.0"


def test_forecast_keeps_column_names() -> None:
    names = ("=1+1", "-load")
    frame = small_table(columns=names)
    forecast = femts.train(frame, "naive", 12, seq_len=24).predict(frame)
    assert tuple(forecast.columns) == ("date", *names)


def test_svg_escapes_column_names(tmp_path: Path) -> None:
    history = small_table(columns=(EVIL, "b<&>"))
    picture = plot_forecast(history, history.tail(12), tmp_path / "forecast.svg")
    text = picture.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert "\x1b" not in text


def test_html_is_escaped() -> None:
    assert render(PAGES.from_string("{{ text }}"), text="<a>\x1b\nb") == "&lt;a&gt;\\x1b\nb"


def test_a_single_thing_is_singular(capsys: pytest.CaptureFixture[str]) -> None:
    assert [count(number, "data row") for number in (0, 1, 2)] == ["0 data rows", "1 data row", "2 data rows"]
    of_pandas: Any = np.int64(2)
    assert count(of_pandas, "row") == "2 rows"
    assert [are(number) for number in (0, 1, 2)] == ["are", "is", "are"]
    for missing, said in ((1, "1 of 4 cells is unfinished"), (2, "2 of 4 cells are unfinished")):
        say_unfinished(missing, 4, shown_only=False)
        assert said in capsys.readouterr().err


def test_rough_numbers_have_two_digits() -> None:
    assert [rough(number) for number in (0.274, 8.16, 141.0)] == ["0.27", "8.2", "140"]
