"""results/README.md says what the records say."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_table_of_the_page_is_what_its_command_prints() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "results_page.py"))
    page = (ROOT / "results" / "README.md").read_text()
    commands = re.findall(r"^`femts table", page, re.MULTILINE)
    assert len(commands) == len(script["TABLES"].findall(page)) >= 3
    emptied = re.sub(r"^\|.*\n", "", page, flags=re.MULTILINE)
    assert emptied != page and script["rewritten"](emptied) == page, "run scripts/results_page.py"
