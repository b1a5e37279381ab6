"""Text that `femts table --published` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from femts.experiments.literature import ALL, PUBLICATIONS, Publication
from femts.experiments.standing import LEAST_DIGITS, Standing, make_standings
from femts.experiments.table import Entry
from femts.experiments.table_text import MISSING, ROLLED, as_markdown, lacking, markdown_table
from femts.text import csv_text, table

COLUMNS = ("dataset", "model", "mse", "mse_sd", "seeds", "scored", "look_back", "source", "secondary")
OWN_SOURCE = "records of femts"
SECONDARY, ONE_SEED = " (secondary)", " (one seed)"
Marked = tuple[str, bool]  # a text, and whether it is the lowest of all windows


def as_csv(entries: Sequence[Entry]) -> str:
    """One row a mean, ours first, numbers in full; empty where there is none."""
    rows = list[tuple[object, ...]]()
    for e in _means(entries):
        seeds, look_back = " ".join(map(str, e.seeds)), _look_back([e]) if e.look_backs else None
        rows.append((e.dataset, e.model, e.mse, e.mse_sd, seeds, ALL, look_back, OWN_SOURCE, False))
    for dataset in dict.fromkeys(e.dataset for e in entries):
        for row in PUBLICATIONS:
            if dataset in row.means:
                of_row = (None, None, row.scored, row.look_back, row.source, dataset in row.secondary)
                rows.append((dataset, row.model, row.means[dataset], *of_row))
    return csv_text(COLUMNS, rows)


def as_text(entries: Sequence[Entry], markdown: bool = False) -> str:
    """A table of our means and the published ones, the lowest of all windows marked on each data set, and one of how
    ours stand to the lowest."""
    standings = make_standings(entries)
    best = {standing.dataset: _text(_least(standing)) for standing in standings}
    rows = [*_our_rows(entries, best), *_published_rows(list(best), best)]
    beside = ["model", *best, "scored", "look-back", "source"]
    head = ["", "lowest of all windows", "of", "ours below it", "ours equal to it", "lower, not known to be of all"]
    if markdown:
        body = [[f"**{as_markdown(text)}**" if lowest else as_markdown(text) for text, lowest in row] for row in rows]
        stand = [[", ".join(map(as_markdown, cell)) for cell in _stands(standing)] for standing in standings]
        return f"{markdown_table(beside, body)}\n\n{markdown_table(head, stand)}"
    body = [[f"{text}*" if lowest else text for text, lowest in row] for row in rows]
    stand = [[", ".join(cell) for cell in _stands(standing)] for standing in standings]
    return f"{table(beside, body)}\n\n{table(head, stand)}"


def _our_rows(entries: Sequence[Entry], best: dict[str, str]) -> Iterator[list[Marked]]:
    means = {(e.dataset, e.model): e for e in _means(entries)}
    for model in dict.fromkeys(model for _, model in means):
        own = [means[dataset, model] for dataset in best if (dataset, model) in means]
        cells = [_own(means.get((dataset, model)), best[dataset]) for dataset in best]
        yield [(model, False), *cells, (ALL, False), (_look_back(own), False), (OWN_SOURCE, False)]


def _look_back(entries: Sequence[Entry]) -> str:
    every = sorted(steps for entry in entries for steps in entry.look_backs)
    return " to ".join(map(str, dict.fromkeys((every[0], every[-1])))) if every else MISSING


def _published_rows(datasets: Sequence[str], best: dict[str, str]) -> Iterator[list[Marked]]:
    for row in PUBLICATIONS:
        if any(dataset in row.means for dataset in datasets):
            cells = [_others(row, dataset, best[dataset]) for dataset in datasets]
            yield [(row.model, False), *cells, (row.scored, False), (row.look_back, False), (row.source, False)]


def _own(entry: Entry | None, best: str) -> Marked:
    if entry is None or entry.mse is None:
        return MISSING, False
    text = _text(entry.mse)
    deviation = "" if entry.mse_sd is None else f"+-{entry.mse_sd:.3f}"
    return f"{text}{deviation}{ROLLED if entry.rolled else ''}{_lacking(entry)}", text == best


def _others(row: Publication, dataset: str, best: str) -> Marked:
    if dataset not in row.means:
        return MISSING, False
    text = _text(row.means[dataset])
    return f"{text}{SECONDARY * (dataset in row.secondary)}", row.scored == ALL and text == best


def _stands(standing: Standing) -> list[list[str]]:
    """Parts of each cell in a row of the second table."""
    lowest, dataset = standing.lowest, standing.dataset
    if lowest is None:
        return [[dataset], *[[MISSING]] * 5]
    protocols = dict.fromkeys(row.scored for row in standing.elsewhere)
    least = {name: min(row.means[dataset] for row in standing.elsewhere if row.scored == name) for name in protocols}
    return [
        [dataset],
        [_text(lowest)],
        [row.model for row in standing.leaders],
        *([_beside(entry, lowest) for entry in own] or ["none"] for own in (standing.below, standing.level)),
        [f"{_text(mean)} {name}" for name, mean in least.items()] or ["none"],
    ]


def _beside(entry: Entry, lowest: float) -> str:
    assert entry.mse is not None
    return f"{entry.model} {entry.mse / lowest - 1:+.1%}{_lacking(entry)}"


def _lacking(entry: Entry) -> str:
    return lacking(entry) or (ONE_SEED if entry.mse_sd is None else "")


def _least(standing: Standing) -> float:
    own = [e.mse for e in (*standing.below, *standing.level) if e.mse is not None]
    return min([*own, *([] if standing.lowest is None else [standing.lowest])], default=float("nan"))


def _text(mean: float | None) -> str:
    """A mean in three digits, or in four where it is published so."""
    if mean is None:
        return MISSING
    return f"{mean:.4f}" if len(str(mean).partition(".")[2]) == LEAST_DIGITS + 1 else f"{mean:.3f}"


def _means(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.pred_len is None]
