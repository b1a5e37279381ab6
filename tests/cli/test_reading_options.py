"""Options for reading tables on the command line and in configuration files."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

import pytest

from femts.cli.commands.table import table
from femts.cli.commands.train import train
from femts.cli.reading_options import READING, ReadingOptions
from femts.errors import UsageError


@pytest.mark.parametrize("command", [train, table])
def test_commands_have_every_reading_option(command: Callable[..., object]) -> None:
    assert set(READING) <= set(signature(command).parameters)


def test_config_file_lists_equal_command_line_text() -> None:
    values = {
        "na": [-9999],
        "columns": {"time": "when"},
        "target": ["a", "b"],
        "calendar": True,
        "past": None,
        "model": "x",
    }
    reading = {"na": [-9999.0], "columns": {"time": "when"}, "target": ["a", "b"], "calendar": True}
    assert ReadingOptions.of(values).reading() == reading
    assert ReadingOptions("-9999", "time=when", "a,b", calendar=True).reading() == reading
    assert ReadingOptions().reading() == {}


def test_layout_of_a_file() -> None:
    reading = {"sheet": "Data", "skip_rows": 3, "drop": ["a, b", "c"]}
    assert ReadingOptions(sheet="Data", skip_rows="3", drop='"a, b",c').reading() == reading
    assert ReadingOptions.of({"sheet": "Data", "skip_rows": 3, "drop": ["a, b", "c"]}).reading() == reading
    with pytest.raises(UsageError, match="takes a number of lines from 0 to 10000, not 'x'"):
        ReadingOptions(skip_rows="x").reading()
