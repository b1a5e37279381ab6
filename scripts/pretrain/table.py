"""Print the reports of trainings as a Markdown table: the last one of each, or all with `--every`. A row has the
settings in which its recipe differs from most.

python -m scripts.pretrain.table results/pretrained/designs
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scripts.pretrain.loop import recipe_of

HEAD = ("recipe", "weights", "hours", "steps", "series", "real: MASE", "SQL", "synthetic: MASE", "SQL")


def main(argv: Sequence[str]) -> int:
    """Print the table that `argv` asks for."""
    parser = argparse.ArgumentParser(prog="python -m scripts.pretrain.table", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("logs", type=Path, help="a log of reports, or a folder of them")
    parser.add_argument("--every", action="store_true", help="a row for each report instead of the last")
    options = parser.parse_args(argv)
    logs = sorted(options.logs.glob("*.jsonl")) if options.logs.is_dir() else [options.logs]
    reports = []
    for log in logs:
        lines = log.read_text().splitlines()
        reports += [json.loads(line) for line in (lines if options.every else lines[-1:])]
    recipes = [_settings(asdict(recipe_of(report["recipe"]))) for report in reports]
    base = {name: Counter(json.dumps(r[name]) for r in recipes).most_common(1)[0][0] for name in recipes[0]}
    print("| " + " | ".join(HEAD) + " |")
    print("|---" * len(HEAD) + "|")
    for recipe, report in zip(recipes, reports, strict=True):
        changed = [f"`{n}={json.dumps(v)}`" for n, v in recipe.items() if json.dumps(v) != base[n]]
        print(_row(", ".join(changed) or "base", report))
    return 0


def _row(name: str, report: dict[str, Any]) -> str:
    weights, steps, series = (f"{report[key]:,}" for key in ("weights", "steps", "series"))
    cells = [name, weights, f"{report['cpu_hours']:.2f}", steps, series]
    cells += [f"{value:.3f}" for kind in ("real", "synthetic") for value in report["scores"][kind]]
    return "| " + " | ".join(cells) + " |"


def _settings(recipe: dict[str, Any]) -> dict[str, Any]:
    """The settings of a recipe under the names that `--set` takes."""
    own = {f"training.{name}": value for name, value in recipe.items() if name != "network"}
    return own | {f"network.{name}": value for name, value in recipe["network"].items()}


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
