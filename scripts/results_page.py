#!/usr/bin/env python
"""Update the tables of results/README.md, results/pairs.md, results/pretrained.md, and of peers.md, selection.md and
tasks.md in docs/measured, each below the command that prints it. The prose stays as it is.

python scripts/results_page.py            # after new records
python scripts/results_page.py --check    # writes nothing; status 1 if a page is out of date
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

from femts.cli import main  # noqa: E402
from scripts.bench.selection.__main__ import main as selection  # noqa: E402
from scripts.peers.__main__ import main as peers  # noqa: E402
from scripts.pretrain.table import main as pretrained  # noqa: E402

PAGES = (
    *(ROOT / "results" / name for name in ("README.md", "pairs.md", "pretrained.md")),
    *(ROOT / "docs" / "measured" / name for name in ("peers.md", "selection.md", "tasks.md")),
)
COMMANDS = {
    "femts": main,
    "python -m scripts.bench.selection": selection,
    "python -m scripts.peers": peers,
    "python -m scripts.pretrain.table": pretrained,
}
TABLES = re.compile(
    r"^`(?=[^`\n]*--show(?: --format md)?`|python -m scripts\.pretrain\.table)"
    r"((femts|python -m scripts\.(?:bench\.selection|peers|pretrain\.table)) ([^`\n]*))`\n(?:\n|\|.*\n)*",
    re.MULTILINE,
)

DATASETS = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather")
OF_PANELS = re.compile(r"^(<!-- pairs-of-panels.csv -->)\n(?:\n|\|.*\n)*", re.MULTILINE)
IN_SHORT = re.compile(r"^(<!-- pairs in short -->)\n(?:\n|\|.*\n)*", re.MULTILINE)
SUMMARY = re.compile(r"^\| (\w+) \| (\w+) \| (\w+) \| (\d+) \| (\d+) \| \d+ \| (\d+) \| (\d+) \|$", re.MULTILINE)
TIMES = re.compile(r"^(<!-- times of the records -->)\n(?:\n|\|.*\n)*", re.MULTILINE)


def rewritten(page: str) -> str:
    """`page` with the tables below its commands updated from the records of this checkout."""
    page = TABLES.sub(lambda found: f"`{found[1]}`\n\n{_printed(found[2], found[3])}\n", page).rstrip("\n") + "\n"
    page = TIMES.sub(lambda found: f"{found[1]}\n\n{_times()}\n\n", page)
    page = IN_SHORT.sub(lambda found: f"{found[1]}\n\n{_in_short(page)}\n\n", page)
    return OF_PANELS.sub(lambda found: f"{found[1]}\n\n{_of_panels()}\n\n", page)


def _times() -> str:
    """Markdown table of the number of records per dataset and the hours they took."""
    seconds: dict[str, list[float]] = {name: [] for name in DATASETS}
    for path in sorted((ROOT / "results").glob("paper*/*/*.json")):
        seconds[path.parent.name].append(json.loads(path.read_bytes())["seconds"])
    seconds["all"] = [each for several in seconds.values() for each in several]
    lines = [f"| {name} | {len(each)} | {sum(each) / 3600:.1f} |" for name, each in seconds.items()]
    return "\n".join(["| dataset | records | hours |", "|---|---|---|", *lines])


def _in_short(page: str) -> str:
    """Markdown table of the summaries below the pairs of `page`; if a pair occurs twice, of the first one."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for dataset, first, second, horizons, lower, below, above in SUMMARY.findall(page):
        intervals = [f"{count} {side}" for count, side in ((below, "below"), (above, "above")) if count != "0"]
        cell = "; ".join([f"{lower} of {horizons}", *([", ".join(intervals)] if intervals else [])])
        cells.setdefault((first, second), {}).setdefault(dataset, cell)
    lines = [f"| first | second | {' | '.join(DATASETS)} |", "|---" * (2 + len(DATASETS)) + "|"]
    for pair, row in cells.items():
        names = (f"`{model}`" for model in pair)
        lines.append(f"| {' | '.join([*names, *(row.get(name, '-') for name in DATASETS)])} |")
    return "\n".join(lines)


def _of_panels() -> str:
    """Markdown table of results/pairs-of-panels.csv, the output of `femts table --pairs ... --format csv`."""
    lines = [
        "| panel | steps | first | second | MSE | MSE | difference | 95 % | seeds lower | series lower | seconds |"
    ]
    lines.append("|---" * 11 + "|")
    with (ROOT / "results" / "pairs-of-panels.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            names = (row["dataset"], row["pred_len"], f"`{row['first']}`", f"`{row['second']}`")
            errors = (f"{float(row[name]):.3f}" for name in ("first_mse", "second_mse"))
            difference = f"{float(row['difference']):+.4f}+-{float(row['difference_sd']):.4f}"
            interval = f"{float(row['low']):+.4f} to {float(row['high']):+.4f}"
            lower = f"{row['seeds_lower']} of {len(row['seeds'].split())}", f"{float(row['windows_lower']):.0%}"
            seconds = " / ".join(f"{float(row[name]):.0f}" for name in ("first_seconds", "second_seconds"))
            lines.append(f"| {' | '.join([*names, *errors, difference, interval, *lower, seconds])} |")
    return "\n".join(lines)


def _printed(program: str, arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(ROOT):
        status = COMMANDS[program](shlex.split(arguments))
    if status != 0:
        said = (
            line for line in err.getvalue().splitlines() if not line.endswith("run the same command again to continue")
        )
        raise SystemExit(f"'{program} {arguments}' does not run: {next(said, '')}")
    if odd := [line for line in out.getvalue().splitlines() if line and not line.startswith("|")]:
        raise SystemExit(f"'{program} {arguments}' prints more than tables: {odd[0]}")
    return out.getvalue()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a page is out of date")
    check = parser.parse_args().check
    for path in PAGES:
        before = path.read_text(encoding="utf-8")
        now = rewritten(before)
        if not check:
            path.write_text(now, encoding="utf-8")
        elif now != before:
            sys.exit(f"{path} is out of date; run scripts/results_page.py.")
