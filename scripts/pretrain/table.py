"""Print the last reports of trainings as a Markdown table.

python -m scripts.pretrain.table results/pretrained/designs/*.jsonl
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scripts.pretrain.loop import Recipe, recipe_of
from scripts.pretrain.network import Network

HEAD = ("", "weights", "hours", "steps", "series", "real: MASE", "SQL", "synthetic: MASE", "SQL")


def row(name: str, report: dict[str, Any]) -> str:
    """One row of the table, of a report of `train` with its recipe."""
    recipe = recipe_of(report["recipe"])
    weights = sum(parameter.numel() for parameter in Network(recipe.network).parameters())
    scores = [f"{value:.3f}" for kind in ("real", "synthetic") for value in report["scores"][kind]]
    cells = [name, f"{weights:,}", f"{report['cpu_hours']:.2f}", f"{report['steps']:,}", f"{report['series']:,}"]
    return "| " + " | ".join([*cells, *scores]) + " |"


def differences(recipe: Recipe) -> str:
    """The settings of `recipe` that are not the default ones."""
    given, default = (_flat(asdict(r)) for r in (recipe, Recipe()))
    changed = [f"`{name}={json.dumps(value)}`" for name, value in given.items() if value != default[name]]
    return ", ".join(changed) or "default"


def table(paths: list[Path], every: bool = False) -> str:
    """A row for the last report in each of `paths`, or for `every` report."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    for path in paths:
        reports = [json.loads(line) for line in path.read_text().splitlines()]
        lines += [row(differences(recipe_of(r["recipe"])), r) for r in (reports if every else reports[-1:])]
    return "\n".join(lines)


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


if __name__ == "__main__":
    print(table([Path(name) for name in sys.argv[1:] if name != "--every"], "--every" in sys.argv))
