"""A new command needs one file and one registration."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from checkout import Checkout
from pages import ROOT

from femts.cli import command, commands, main
from femts.cli.command import app, load_commands

_FILE = '''
from typing import Annotated

import typer

from femts.cli.command import command
from femts.errors import UsageError


@command(ORDER)
def count_rows(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CSV file.")],
    header: Annotated[bool, typer.Option("--header", help="Count the header, too.")] = False,
) -> int:
    """Count the rows of a file."""
    with open(file) as lines:
        rows = sum(1 for _ in lines) - (not header)
    if rows < 1:
        raise UsageError(f"File {file} has no rows; bring some.")
    print(rows)
    return 0
'''
_GROUP = '''
from femts.cli.command import command_group

rows = command_group("rows", "Count and list rows.", 1)


@rows.command()
def twice(number: int) -> None:
    """Print twice a number."""
    print(2 * number)
'''
ORDER = (
    "demo forecast train tune evaluate predict totals calibrate update explain export backtest check compare audit report table "
    "verify models doctor datasets"
).split()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that counts as part of the commands package."""
    place = tmp_path / "commands"
    place.mkdir()
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(place)])
    monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])
    monkeypatch.setattr(app, "registered_groups", [*app.registered_groups])
    with patch.dict(command._ORDER):
        yield place
    for path in place.glob("*.py"):
        sys.modules.pop(f"{commands.__name__}.{path.stem}", None)


def _listed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Command names in the order of `femts --help`."""
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.partition("Commands:\n")[2].splitlines()
    return [line.split()[0] for line in lines]


@pytest.mark.parametrize(("order", "place"), [("", 21), ("35", 7)])
def test_help_lists_new_command_in_order(
    folder: Path, order: str, place: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _listed(capsys) == ORDER
    (folder / "rows_for_test.py").write_text(_FILE.replace("ORDER", order))
    load_commands()
    assert _listed(capsys) == [*ORDER[:place], "count-rows", *ORDER[place:]]


def test_reference_page_has_each_command_as_help_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.partition("Commands:\n")[2].splitlines()
    shown = re.findall(
        r"^\| `femts (\S+)` \| (.*?) \|", (ROOT / "docs/reference/commands.md").read_text(), re.MULTILINE
    )
    assert [line.split(maxsplit=1) for line in lines] == [list(each) for each in shown]
    assert not any(line.endswith("...") for line in lines), "a sentence is too long for a line"


def test_new_command_runs_and_reports_errors(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "rows_for_test.py").write_text(_FILE.replace("ORDER", ""))
    load_commands()
    (tmp_path / "two.csv").write_text("a\n1\n2\n")
    (tmp_path / "none.csv").write_text("a\n")
    assert main(["count-rows", str(tmp_path / "two.csv")]) == 0
    assert main(["count-rows", str(tmp_path / "two.csv"), "--header"]) == 0
    assert capsys.readouterr().out.split() == ["2", "3"]
    assert main(["count-rows", str(tmp_path / "none.csv")]) == 2
    assert capsys.readouterr().err == f"femts: File {tmp_path / 'none.csv'} has no rows; bring some.\n"
    assert main(["count-rows", "--headr", "x"]) == 2
    assert "No such option: --headr" in capsys.readouterr().err


def test_command_groups(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "group_for_test.py").write_text(_GROUP)
    load_commands()
    assert _listed(capsys) == ["rows", *ORDER]
    assert main(["rows", "twice", "21"]) == 0
    assert capsys.readouterr().out == "42\n"


def test_duplicate_command_is_refused() -> None:
    with pytest.raises(ValueError, match="'train' is registered twice"):
        command.command_group("train", "Again.")


def test_command_file_is_discovered(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path)
    checkout.add("cli/commands/count_rows.py", _FILE.replace("ORDER", ""))
    (tmp_path / "two.csv").write_text("a\n1\n2\n")
    assert checkout.run("count-rows", "two.csv") == "2\n"
    assert "\n  count-rows  Count the rows of a file.\n" in checkout.run("--help")
