"""Tables of results match the records."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["README.md", "pairs.md"])
def test_tables_match_the_output_of_their_commands(name: str) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "results_page.py"))
    assert ROOT / "results" / name in script["PAGES"]
    page = (ROOT / "results" / name).read_text()
    commands = re.findall(r"^`femts table", page, re.MULTILINE)
    assert len(commands) == len(script["TABLES"].findall(page)) >= 3
    emptied = script["TABLES"].sub(lambda table: f"`{table[1]}`\n\n", page)  # other tables are typed
    for block in ("TIMES", "IN_SHORT", "OF_PANELS"):
        emptied = script[block].sub(lambda table: f"{table[1]}\n\n", emptied)
    assert emptied != page and script["rewritten"](emptied) == page, "run scripts/results_page.py"


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("docs/measured/peers.md", 8),
        ("docs/measured/selection.md", 1),
        ("docs/measured/tasks.md", 2),
        ("results/pretrained.md", 2),
    ],
)
def test_other_tables_match_the_output_of_their_commands(name: str, tables: int) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "results_page.py"))
    page = (ROOT / name).read_text()
    assert len(script["TABLES"].findall(page)) == tables
    emptied = script["TABLES"].sub(lambda table: f"`{table[1]}`\n\n", page)  # other tables there are typed
    assert emptied != page and script["rewritten"](emptied) == page, "run scripts/results_page.py"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("naive-96-seed42.json", '{"format": 1}', "does not run: note: Record {path} is damaged: cell is missing"),
        (
            "naive-96-seed42.failed.json",
            '{"reason": "boom"}',
            "prints more than tables: failed: ETTh1 naive 96 .*: boom",
        ),
    ],
)
def test_failing_table_command_stops_the_page(name: str, text: str, says: str, tmp_path: Path) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "results_page.py"))
    path = tmp_path / "paper" / "ETTh1" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    command = f"femts table --datasets ETTh1 --models naive --horizons 96 --results {tmp_path} --show --format md"
    with pytest.raises(SystemExit, match=says.format(path=path)):
        script["rewritten"](f"`{command}`\n\n| 1 |\n")
