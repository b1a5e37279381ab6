"""`femts table --format html`: the table and, for each cell, its curve and forecasts, on one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from femts.analysis.report.shell import whole_page
from femts.analysis.report.tables import escape
from femts.experiments.grid import Cell
from femts.experiments.store import Store
from femts.experiments.table import Entry
from femts.experiments.table_text import dataset_tables

WIDE, HIGH, MARGIN = 520, 130, 8
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); }
body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0 1.5rem; }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--page); }
td.best { font-weight: 700; }
.quiet, tr.quiet td { color: var(--quiet); }
details { border-bottom: 1px solid var(--line); padding: .4rem 0; } summary { cursor: pointer; }
figure { display: inline-block; margin: .5rem 1rem .5rem 0; max-width: 100%; }
figcaption { color: var(--quiet); font-size: .85em; }
svg { max-width: 100%; height: auto; } polyline { fill: none; stroke-width: 1.4; vector-effect: non-scaling-stroke; }
.past { stroke: var(--quiet); } .truth { stroke: var(--truth); } .forecast { stroke: var(--forecast); }
b.truth { color: var(--truth); } b.forecast { color: var(--forecast); }
"""


def as_html(entries: Sequence[Entry], cells: Sequence[Cell], store: Store) -> str:
    """The whole page: the tables of `entries`, then every cell of `cells` that is finished or failed."""
    parts = [
        "<h1>Forecasting table</h1>",
        "<p class=quiet>Test MSE over all windows in scaled units; the lowest of a row is bold.</p>",
    ]
    for header, rows in dataset_tables(entries):
        head = "".join(f"<th>{escape(name)}</th>" for name in header)
        body = "".join(
            f"<tr{' class=quiet' if row[0][0] in ('published', 'gap') else ''}>"
            + "".join(f"<td{' class=best' if best else ''}>{escape(text)}</td>" for text, best in row)
            + "</tr>"
            for row in rows
        )
        parts.append(f"<div class=scroll><table><tr>{head}</tr>{body}</table></div>")
    parts.append(
        "<h2>Cells</h2><p class=quiet>The past, <b class=truth>what happened</b>, <b class=forecast>the forecast</b>.</p>"
    )
    parts += filter(None, (_cell(cell, store.readable(cell), _trouble(cell, store)) for cell in cells))
    missing = sum(not store.finished(cell) and store.failure(cell) is None for cell in cells)
    if missing:
        parts.append(f"<p class=quiet>{missing} of {len(cells)} cells are not run.</p>")
    return whole_page("Forecasting table", STYLE, "\n".join(parts))


def _trouble(cell: Cell, store: Store) -> str | None:
    damage, failure = store.damage(cell), store.failure(cell)
    return damage or (None if failure is None else f"failed: {failure}")


def _cell(cell: Cell, record: Mapping[str, Any] | None, trouble: str | None) -> str:
    """Facts of a cell; nothing for one that is not run."""
    settings = "".join(f", {key}={value}" for key, value in cell.settings.items())
    name = escape(f"{cell.dataset}, {cell.model}, horizon {cell.pred_len}, seed {cell.seed}{settings}")
    if record is None:
        return f"<p>{name} <span class=quiet>{escape(trouble)}</span></p>" if trouble else ""
    place, data = record["place"], record["data"]
    facts = (
        f"look-back {record['config']['seq_len']}, {_steps(record)}"
        f"{record['seconds']:.0f} s on {place['name']} ({place['device']}, {place['precision']}), "
        f"torch {place['libraries']['torch']}, "
        f"commit {(record['commit'] or 'unknown')[:12]}, data {data['sha256'][:12]}"
    )
    figures = [_curve(record["history"])] if record["history"] else []
    figures += [_sample(sample) for sample in record["samples"]]
    return (
        f"<details><summary>{name} <b>{record['test']['mse']:.4f}</b></summary>"
        f"<p class=quiet>{escape(facts)}</p>{''.join(figures)}</details>"
    )


def _steps(record: Mapping[str, Any]) -> str:
    return f"weights of step {record['kept_step']} of {record['steps']}, " if record["steps"] else ""


def _curve(history: Sequence[Mapping[str, Any]]) -> str:
    validation, last = [row["val_mse"] for row in history], history[-1]["step"]
    return _figure({"truth": (0, validation)}, f"validation MSE, up to step {last}: lowest {min(validation):.4f}")


def _sample(sample: Mapping[str, Any]) -> str:
    begins = len(sample["past"])
    lines = {"past": (0, sample["past"]), "truth": (begins, sample["truth"]), "forecast": (begins, sample["forecast"])}
    return _figure(lines, f"{sample['channel']} from row {sample['row']}: past, what happened, forecast")


def _figure(lines: Mapping[str, tuple[int, Sequence[float | None]]], caption: str) -> str:
    """Lines by class, each from its own first place on."""
    values = [value for _, series in lines.values() for value in series if value is not None]
    low, span = min(values), (max(values) - min(values)) or 1.0
    last = max(first + len(series) for first, series in lines.values()) - 1 or 1
    drawn = []
    for kind, (first, series) in lines.items():
        there = [(first + i, value) for i, value in enumerate(series) if value is not None]  # a line leads over gaps
        across = [MARGIN + (WIDE - 2 * MARGIN) * at / last for at, _ in there]
        down = [HIGH - MARGIN - (HIGH - 2 * MARGIN) * (value - low) / span for _, value in there]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
        drawn.append(f'<polyline class={kind} points="{points}"/>')
    said = escape(caption)
    picture = f'<svg viewBox="0 0 {WIDE} {HIGH}" width={WIDE} height={HIGH} role=img aria-label="{said}">{"".join(drawn)}</svg>'
    return f"<figure>{picture}<figcaption>{said}</figcaption></figure>"
