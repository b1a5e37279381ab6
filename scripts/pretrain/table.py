"""Print the reports of trainings as a Markdown table: the last one of each, or all with `--every`.

python -m scripts.pretrain.table results/pretrained/designs
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scripts.pretrain.loop import Recipe, recipe_of
from scripts.pretrain.network import Network

HEAD = ("recipe", "weights", "hours", "steps", "series", "real: MASE", "SQL", "synthetic: MASE", "SQL")


def main(argv: Sequence[str]) -> int:
    """Print the table that `argv` asks for."""
    parser = argparse.ArgumentParser(prog="python -m scripts.pretrain.table", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("logs", type=Path, help="a log of reports, or a folder of them")
    parser.add_argument("--every", action="store_true", help="a row for each report instead of the last")
    options = parser.parse_args(argv)
    logs = sorted(options.logs.glob("*.jsonl")) if options.logs.is_dir() else [options.logs]
    print("| " + " | ".join(HEAD) + " |")
    print("|---" * len(HEAD) + "|")
    for log in logs:
        reports = [json.loads(line) for line in log.read_text().splitlines()]
        for report in reports if options.every else reports[-1:]:
            print(_row(report))
    return 0


def _row(report: dict[str, Any]) -> str:
    recipe = recipe_of(report["recipe"])
    weights = sum(parameter.numel() for parameter in Network(recipe.network).parameters())
    cells = [_changes(recipe), f"{weights:,}", f"{report['cpu_hours']:.2f}", f"{report['steps']:,}"]
    cells += [f"{report['series']:,}"]
    cells += [f"{value:.3f}" for kind in ("real", "synthetic") for value in report["scores"][kind]]
    return "| " + " | ".join(cells) + " |"


def _changes(recipe: Recipe) -> str:
    """The settings of `recipe` that are not the default ones."""
    given, default = (_flat(asdict(r)) for r in (recipe, Recipe()))
    changed = [f"`{name}={json.dumps(value)}`" for name, value in given.items() if value != default[name]]
    return ", ".join(changed) or "default"


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv[1:]))
