"""Groups of options: what a command gets of them, and what its help shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from femts.cli.commands.table import table
from femts.cli.commands.train import train
from femts.cli.option_groups import given, grouped
from femts.cli.reading_options import READING, ReadingOptions


@dataclass(frozen=True)
class Width:
    width: Annotated[str, typer.Option(metavar="N", help="How wide.")] = "5"
    flat: Annotated[bool, typer.Option("--flat", help="Without relief.")] = False


@dataclass(frozen=True)
class Shape:
    height: Annotated[str | None, typer.Option(help="How high.")] = None
    base: Width = Width()
    marks: Annotated[list[str] | None, typer.Option("--mark", help="Each a mark.")] = None


def told(*arguments: str) -> str:
    """What a command with groups prints when it is called with `arguments`."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False)

    @app.command()
    @grouped
    def build(
        name: Annotated[str, typer.Argument()],
        *,
        loud: Annotated[bool, typer.Option("--loud")] = False,
        shape: Shape,
        last: Annotated[str, typer.Option()] = "z",
    ) -> None:
        """Build a thing."""
        print(name, loud, shape, last)

    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output.strip()


def test_the_fields_of_a_group_arrive_in_it() -> None:
    everything = "thing --loud --height 3 --width 7 --flat --mark a --mark b --last y".split()
    assert told("thing") == f"thing False {Shape()} z"
    assert told(*everything) == f"thing True {Shape('3', Width('7', True), ['a', 'b'])} y"


def test_the_help_has_the_options_where_the_group_stands() -> None:
    lines = told("--help").splitlines()
    order = [word for line in lines for word in line.split() if word.startswith("--") and word != "--help"]
    assert "Build a thing." in told("--help") and "[default: 5]" in told("--help")
    assert order == ["--loud", "--height", "--width", "--flat", "--mark", "--last"]


def test_given_leaves_out_what_nobody_gave() -> None:
    assert given(Shape()) == {"width": "5"}
    assert given(Shape("3", Width("7", True), ["a"])) == {"height": "3", "width": "7", "flat": True, "marks": ["a"]}
    assert given(Shape("")) == {"height": "", "width": "5"}


def test_two_options_of_one_name_are_refused() -> None:
    def build(shape: Shape, width: str) -> None: ...

    with pytest.raises(ValueError, match="duplicate parameter name: 'width'"):
        grouped(build)


@pytest.mark.parametrize("command", [train, table])
def test_all_reading_options_are_options_of_what_reads_a_table(command: Callable[..., object]) -> None:
    assert set(READING) <= set(signature(command).parameters)


def test_a_configuration_file_may_hold_lists_where_the_command_line_has_text() -> None:
    values = {
        "na": [-9999],
        "columns": {"time": "when"},
        "target": ["a", "b"],
        "calendar": True,
        "past_covariates": None,
        "model": "x",
    }
    reading = {"na": [-9999.0], "columns": {"time": "when"}, "target": ["a", "b"], "calendar": True}
    assert ReadingOptions.of(values).reading() == reading
    assert ReadingOptions("-9999", "time=when", "a,b", calendar=True).reading() == reading
    assert ReadingOptions().reading() == {}
