"""Text that `femts table` prints of its entries."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from femts.evaluation.verdict import EVEN
from femts.experiments.table import NAIVE
from femts.text import csv_text, part_of, sentence, shown, table

if TYPE_CHECKING:
    from femts.experiments.table import Entry

COLUMNS = (
    "dataset",
    "model",
    "pred_len",
    "seq_len",
    "seeds",
    "mse",
    "mse_sd",
    "mae",
    "published_mse",
    "naive_mse",
    "skill",
    "mase",
    "windows",
    "missing",
    "chosen",
)
MISSING, ROLLED = "-", " r"


def as_csv(entries: Sequence[Entry]) -> str:
    """One row a horizon and one with `pred_len` = `mean`, numbers in full; empty where there is none."""
    rows = []
    for entry in entries:
        row = {name: getattr(entry, name) for name in COLUMNS}
        row |= {"pred_len": entry.pred_len or "mean", "seeds": " ".join(map(str, entry.seeds))}
        row["chosen"] = _chosen(entry)
        rows.append(row.values())
    return csv_text(COLUMNS, rows)


Row = list[tuple[str, bool]]  # texts, and whether each is the best of its row


def dataset_tables(entries: Sequence[Entry]) -> Iterator[tuple[list[str], list[Row]]]:
    """Header and rows for each dataset, a column for each model: MSE of every horizon and of their
    mean with its deviation over seeds, and what is missing or not scored; below them what is
    published for the last row, and the gap to it, then skill over the seasonal naive forecast and
    MASE. That forecast has the last column where it is no model of the table. A cell of fewer
    windows than others of its row is never the best."""
    for dataset in dict.fromkeys(entry.dataset for entry in entries):
        own = [entry for entry in entries if entry.dataset == dataset]
        models = list(dict.fromkeys(entry.model for entry in own))
        beside = NAIVE not in models and any(entry.naive_mse is not None for entry in own)
        rows = [
            _row([e for e in own if e.pred_len == p], models, beside) for p in dict.fromkeys(e.pred_len for e in own)
        ]
        last = {entry.model: entry for entry in own if entry.pred_len == own[-1].pred_len}
        if any(entry.published_mse for entry in last.values()):
            published = [last[model].published_mse for model in models]
            texts = ["published", *(MISSING if value is None else f"{value:.3f}" for value in published)]
            rows.append(_below(texts, beside))
            rows.append(_below(["gap", *(_gap(last[model]) for model in models)], beside))
        for name, form in (("skill", "{:.1%}"), ("mase", "{:.2f}")):
            values = [getattr(last[model], name) for model in models]
            if any(value is not None for model, value in zip(models, values, strict=True) if model != NAIVE):
                texts = [name, *(MISSING if value is None else form.format(value + 0.0) for value in values)]
                rows.append(_below(texts, beside))
        yield [dataset, *models, *([NAIVE] if beside else [])], rows


def worse_than_naive(entries: Sequence[Entry]) -> list[str]:
    """Warnings on models that are worse than the seasonal naive forecast by their squared error, with the horizons."""
    worse = dict[tuple[str, str], list[str]]()
    for e in entries:
        if e.skill is not None and e.skill < -EVEN and e.pred_len is not None:
            worse.setdefault((e.dataset, e.model), []).append(str(e.pred_len))
    return [
        f"{dataset} {model} is worse than the seasonal naive forecast by its squared error at {', '.join(at)} steps"
        for (dataset, model), at in worse.items()
    ]


def _below(texts: Sequence[str], beside: bool) -> Row:
    return [(text, False) for text in (*texts, *([MISSING] if beside else []))]


def as_text(entries: Sequence[Entry], markdown: bool = False) -> str:
    """The tables, the lowest of a row marked, and why cells failed; as text also what validation chose."""
    parts = []
    for header, rows in dataset_tables(entries):
        if markdown:
            body = [[f"**{as_markdown(text)}**" if best else as_markdown(text) for text, best in row] for row in rows]
            parts.append(markdown_table([as_markdown(name) for name in header], body))
        else:
            parts.append(table(header, [[f"{text}*" if best else text for text, best in row] for row in rows]))
    failed = [
        f"failed: {e.dataset} {e.model} {e.pred_len} seed {s}: {why}" for e in entries for s, why in e.failures.items()
    ]
    chosen = [f"chosen: {e.dataset} {e.model} {e.pred_len} {_chosen(e)}" for e in entries if e.chosen]
    return "\n\n".join(
        [*parts, *("\n".join(map(sentence, lines)) for lines in (() if markdown else chosen, failed) if lines)]
    )


def _chosen(entry: Entry) -> str:
    return "; ".join(f"seed {seed}: {what}" for seed, what in entry.chosen.items())


def _row(entries: Sequence[Entry], models: Sequence[str], beside: bool) -> Row:
    by_model = {entry.model: entry for entry in entries}
    most = max(entry.windows for entry in entries)
    done = [entry.mse for entry in entries if entry.mse is not None and entry.windows == most]
    cells: Row = [(str(entries[0].pred_len or "mean"), False)]
    for model in models:
        entry = by_model[model]
        if entry.mse is None:
            cells.append((MISSING, False))
            continue
        deviation = f"+-{entry.mse_sd:.3f}" if entry.mse_sd is not None else ""
        fewer = entry.windows < most
        best = len(done) > 1 and not fewer and f"{entry.mse:.3f}" == f"{min(done):.3f}"
        marks = f"{ROLLED if entry.rolled else ''}{f' ({entry.windows} windows)' if fewer else ''}{lacking(entry)}"
        cells.append((f"{entry.mse:.3f}{deviation}{marks}", best))
    if beside:
        naive = next((entry.naive_mse for entry in entries if entry.windows == most), None)
        cells.append((MISSING if naive is None else f"{naive:.3f}", False))
    return cells


def lacking(entry: Entry) -> str:
    """Words of an entry that lacks seeds which were asked for, or choices of validation; none where all are there."""
    seeds = part_of(len(entry.seeds), len(entry.asked), "seeds")
    return f"{seeds}{part_of(entry.choices - entry.missing, entry.choices, 'choices')}"


def _gap(entry: Entry) -> str:
    if entry.mse is None or entry.published_mse is None:
        return MISSING
    return f"{100 * (entry.mse / entry.published_mse - 1):+.1f}%"


def as_markdown(text: str) -> str:
    """Text as it stands in a cell of Markdown, where a bar ends the cell and HTML would be HTML."""
    return html.escape(shown(text), quote=False).replace("\\", "\\\\").replace("|", "\\|")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, of texts that are fit for it."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
