"""Comparison tables as text, Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from femts.analysis.report.render import render
from femts.data.describe import count as counted
from femts.evaluation.constants import EVEN
from femts.experiments.cell import Cell
from femts.experiments.results import Store
from femts.experiments.summary import ALL, NAIVE, PAIRS, PUBLISHED, TABLE, own_columns
from femts.text import part_of, quote, sentence, spreadsheet_safe, table

MISSING, ROLLED, SEEN = "-", " r", " (seen)"
LEAST_DIGITS = 3
SIZE = WIDE, HIGH = 520, 130  # of a chart, in pixels
MARGIN = 8
_LATEX = str.maketrans(
    {char: f"\\{char}" for char in "&%$#_{}"}
    | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
)


class Lowest(str):
    """A cell marked as the lowest."""


class Shown(NamedTuple):
    """A table as texts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def to_csv(frame: pd.DataFrame) -> str:
    """Tables, pairs or published means as CSV for spreadsheets: full precision, empty cells for missing values, and
    `mean` for the horizon of a mean."""
    columns = next(names for names in (PUBLISHED, list(PAIRS), list(TABLE)) if set(names) <= set(frame.columns))
    of_scores = columns == list(TABLE)
    frame = frame[[*columns, *own_columns(frame)] if of_scores else columns].astype(object)
    if of_scores:
        frame["pred_len"] = frame["pred_len"].where(frame["pred_len"].notna(), "mean")
    return str(frame.map(_csv_cell).to_csv(index=False))


def _csv_cell(value: Any) -> Any:
    if isinstance(value, Mapping):
        value = _by_seed(value)
    return spreadsheet_safe(" ".join(map(str, value)) if isinstance(value, tuple) else value)


def to_text(frame: pd.DataFrame, form: str = "text") -> str:
    """The same for display, in one of `FORMS`: rounded numbers, with the lowest of a row marked."""
    lines: list[str] = []
    if "first" in frame.columns:
        tables, lines = pair_tables(frame), _seen_in_pairs(frame)
    elif "ours" in frame.columns:
        tables, lines = published_tables(frame), _seen_before(frame[frame["ours"]])
    else:
        tables, lines = score_tables(frame), _remarks(frame, chosen=form == "text")
    remarks = ["% " + line.replace("\n", "\n% ") for line in lines] if form == "latex" else lines
    return "\n\n".join([*(FORMS[form](*each) for each in tables), *remarks])


def as_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, with bars and HTML escaped."""
    cells = [[f"**{_escaped(cell)}**" if isinstance(cell, Lowest) else _escaped(cell) for cell in row] for row in rows]
    lines = [[_escaped(name) for name in header], ["---"] * len(header), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    return html.escape(quote(text), quote=False).replace("\\", "\\\\").replace("|", "\\|")


def as_latex(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in LaTeX with the rules of the package booktabs."""
    cells = [
        [f"\\textbf{{{_in_latex(cell)}}}" if isinstance(cell, Lowest) else _in_latex(cell) for cell in row]
        for row in rows
    ]
    head, *lines = [f"{' & '.join(line)} \\\\" for line in ([_in_latex(name) for name in header], *cells)]
    begin = f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}"
    return "\n".join([begin, "\\toprule", head, "\\midrule", *lines, "\\bottomrule", "\\end{tabular}"])


def _in_latex(text: str) -> str:
    return quote(text).translate(_LATEX).replace("+-", "$\\pm$")


def as_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return table(header, [[f"{cell}*" if isinstance(cell, Lowest) else cell for cell in row] for row in rows])


FORMS = {"text": as_text, "md": as_markdown, "latex": as_latex}


def _number(value: Any, form: str) -> str:
    return MISSING if pd.isna(value) else form.format(value + 0.0)  # no -0.0


def score_tables(scores: pd.DataFrame) -> list[Shown]:
    """A table for each dataset with one column per model: MSE at every horizon and its mean, with standard deviations
    over seeds, and what is missing or not scored. Below follow the published value for the last row and the gap to it,
    then skill relative to the seasonal naive forecast, MASE, WAPE, bias and registered metrics. The seasonal naive
    forecast has the last column if it is not a model of the table. A cell with fewer windows than others in its row, or of a model that was
    pretrained on the dataset, is never marked as the lowest."""
    tables = []
    for dataset, own in scores.groupby("dataset", sort=False):
        models = list(own["model"].unique())
        beside = int(NAIVE not in models and own["naive_mse"].notna().any())
        rows, last = list[list[str]](), own
        for _, last in own.groupby("pred_len", dropna=False, sort=False):
            rows.append(_score_row(last, beside))
        gap = last["mse"] / last["published_mse"] - 1
        own_skill = last["model"] != NAIVE
        for name, values, form, given in (
            ("published", last["published_mse"], "{:.3f}", last["published_mse"].notna()),
            ("gap", gap, "{:+.1%}", last["published_mse"].notna()),
            ("skill", last["skill"], "{:.1%}", last["skill"].notna() & own_skill),
            ("mase", last["mase"], "{:.2f}", last["mase"].notna() & own_skill),
            ("wape", last["wape"], "{:.1%}", last["wape"].notna() & own_skill),
            ("bias", last["bias"], "{:+.1%}", last["bias"].notna() & own_skill),
            *((name, last[name], "{:.3f}", last[name].notna()) for name in own_columns(own)),
        ):
            if given.any():
                rows.append([name, *(_number(value, form) for value in values), *[MISSING] * beside])
        tables.append(Shown([dataset, *models, *[NAIVE] * beside], rows))
    return tables


def _score_row(row: pd.DataFrame, beside: int) -> list[str]:
    most = row["windows"].max()
    whole = row[row["windows"] == most]
    done, pred_len = whole.loc[~whole["seen"], "mse"].dropna(), row["pred_len"].iloc[0]
    cells = ["mean" if pd.isna(pred_len) else str(pred_len)]
    for each in row.itertuples():
        fewer = f" ({counted(each.windows, 'window')})" if each.windows < most else ""
        text = _number(each.mse, "{:.3f}")
        if each.seeds:
            deviation = "" if pd.isna(each.mse_sd) else f"+-{each.mse_sd:.3f}"
            lowest = len(done) > 1 and not fewer and not each.seen and text == f"{done.min():.3f}"
            text += f"{deviation}{ROLLED * each.rolled}{SEEN * each.seen}{fewer}{_lacking(each)}"
            text = Lowest(text) if lowest else text
        cells.append(text)
    return [*cells, *[_number(whole["naive_mse"].iloc[0], "{:.3f}")] * beside]


def leaderboard_tables(board: pd.DataFrame, scores: pd.DataFrame) -> list[Shown]:
    """A table of models over all tasks, with intervals, and one of MASE, scaled quantile loss and registered metrics by
    task, with the lowest MASE of each task marked."""
    header = ["model", "MASE skill", "SQL skill", "win rate", "tasks", "train s", "cpu s", "failed", "seen"]
    rows = [
        [
            row.model,
            _with_bounds(row.mase_skill, row.mase_low, row.mase_high),
            _with_bounds(row.sql_skill, row.sql_low, row.sql_high),
            _with_bounds(row.win_rate, row.win_low, row.win_high),
            str(row.tasks),
            *(_number(seconds, "{:.0f}") for seconds in (row.train_seconds, row.cpu_seconds)),
            *(str(count or MISSING) for count in (row.failed, row.seen)),
        ]
        for row in board.itertuples()
    ]
    models, tasks, cells = list(board["model"]), list(scores["task"].unique()), dict[tuple[str, str], str]()
    shown = ("mase", "sql", *own_columns(scores))
    for task, own in scores.groupby("task"):
        least = f"{own.loc[~own['seen'], 'mase'].min():.3f}"
        for each in own.to_dict("records"):
            numbers = [_number(each[name], "{:.3f}") for name in shown]
            cell = " / ".join(numbers) + SEEN * each["seen"]
            cells[task, each["model"]] = Lowest(cell) if numbers[0] == least and not each["seen"] else cell
    corner = " / ".join(map(str.upper, shown))
    if len(models) > len(tasks):
        by_task = Shown([corner, *tasks], [[m, *(cells.get((t, m), MISSING) for t in tasks)] for m in models])
    else:
        by_task = Shown([corner, *models], [[t, *(cells.get((t, m), MISSING) for m in models)] for t in tasks])
    return [Shown(header, rows), by_task]


def _with_bounds(value: float, low: float, high: float) -> str:
    if pd.isna(value):
        return MISSING
    low, high = (round(100 * each) for each in (low, high))
    return f"{100 * value + 0.0:.1f}% ({low} to {high})"


def _lacking(row: Any) -> str:
    """Note on a row that lacks requested seeds or choices of validation; empty if it is complete."""
    seeds = part_of(len(row.seeds), len(row.asked), "seeds")
    return f"{seeds}{part_of(row.choices - row.missing, row.choices, 'choices')}"


def _remarks(scores: pd.DataFrame, chosen: bool) -> list[str]:
    """Paragraphs on what validation has `chosen`, if asked for, why cells failed, and pretraining on a dataset."""
    selected, failed = list[str](), list[str]()
    for row in scores.itertuples():
        where = f"{row.dataset} {row.model} {row.pred_len}"
        if row.chosen and chosen:
            selected.append(sentence(f"chosen: {where} {_by_seed(row.chosen)}"))
        failed += [sentence(f"failed: {where} seed {seed}: {why}") for seed, why in row.failures.items()]
    return ["\n".join(lines) for lines in (selected, failed, _seen_before(scores)) if lines]


def _seen_before(scores: pd.DataFrame) -> list[str]:
    """Lines on models that were pretrained on a dataset, matching the marks of their scores."""
    marked = scores.loc[scores["seen"].astype(bool), ["dataset", "model"]].drop_duplicates()
    return [_seen_line(dataset, model) for dataset, model in marked.itertuples(index=False)]


def _seen_in_pairs(pairs: pd.DataFrame) -> list[str]:
    both = dict.fromkeys((row.dataset, model) for row in pairs.itertuples() for model in row.seen)
    return [_seen_line(dataset, model) for dataset, model in both]


def _seen_line(dataset: str, model: str) -> str:
    return sentence(
        f"seen: {model} was pretrained on {dataset}, so its scores there do not reflect performance on unseen data"
    )


def _by_seed(chosen: Mapping[int, str]) -> str:
    return "; ".join(f"seed {seed}: {what}" for seed, what in chosen.items())


def worse_than_naive(scores: pd.DataFrame) -> list[str]:
    """Warnings about models with a higher squared error than the seasonal naive forecast, with the horizons."""
    worse = scores[(scores["skill"] < -EVEN) & scores["pred_len"].notna()]
    return [
        f"{dataset} {model} is worse than the seasonal naive forecast by its squared error at "
        f"{', '.join(map(str, own['pred_len']))} steps"
        for (dataset, model), own in worse.groupby(["dataset", "model"], sort=False)
    ]


def pair_tables(pairs: pd.DataFrame) -> list[Shown]:
    """A table for each dataset and pair with one row per horizon, and a summary of all pairs: the number of horizons
    at which the first is lower, and at which the interval excludes 0."""
    tables, wins = list[Shown](), []
    for (dataset, first, second), own in pairs.groupby(["dataset", "first", "second"], sort=False):
        names = ["difference", "95 %", "seeds lower", "windows lower", "seconds"]
        tables.append(Shown([dataset, first, second, *names], [_pair_row(row) for row in own.itertuples()]))
        measured, with_interval = own["difference"].notna(), own["low"].notna()
        counts = (measured, own["difference"] < 0, with_interval, own["high"] < 0, own["low"] > 0)
        wins.append([dataset, first, second, *(str(count.sum()) for count in counts)])
    head = ["", "first", "second", "horizons", "first lower", "with interval", "below 0", "above 0"]
    return [*tables, Shown(head, wins)]


def _pair_row(row: Any) -> list[str]:
    if not row.seeds:
        return [str(row.pred_len), *[MISSING] * 3, row.why, *[MISSING] * 3]
    deviation = "" if pd.isna(row.difference_sd) else f"+-{row.difference_sd:.4f}"
    return [
        str(row.pred_len),
        f"{row.first_mse:.3f}",
        f"{row.second_mse:.3f}",
        f"{row.difference:+.4f}{deviation}",
        row.why or f"{row.low:+.4f} to {row.high:+.4f}",
        f"{row.seeds_lower} of {len(row.seeds)}",
        _number(row.windows_lower, "{:.0%}"),
        f"{row.first_seconds:.0f} / {row.second_seconds:.0f}",
    ]


def published_tables(means: pd.DataFrame) -> list[Shown]:
    """A table of our means and published ones, with the lowest over all windows marked for each dataset, and a
    comparison with the lowest: ours below it, ours equal to its digits, and publications on other or unknown windows
    that are lower than all of them; models pretrained on a dataset do not count."""
    datasets = list(means.loc[means["ours"], "dataset"].unique())
    beside, stand, best = list[list[str]](), list[list[str]](), dict[str, str]()
    for dataset in datasets:
        own = means[(means["dataset"] == dataset) & means["mse"].notna() & ~means["seen"]]
        theirs, ours = own[~own["ours"]], own[own["ours"]].sort_values(["mse", "model"])
        lowest, least = theirs.loc[theirs["scored"] == ALL, "mse"].min(), own.loc[own["scored"] == ALL, "mse"].min()
        best[dataset] = _mean(least)
        digits = max(LEAST_DIGITS, len(str(lowest).partition(".")[2]))
        below, level = ours[ours["mse"].round(digits) < lowest], ours[ours["mse"].round(digits) == lowest]
        lower = theirs[(theirs["scored"] != ALL) & (theirs["mse"] < least)].groupby("scored", sort=False)["mse"].min()
        parts = [
            theirs.loc[(theirs["scored"] == ALL) & (theirs["mse"] == lowest), "model"],
            [f"{each.model} {each.mse / lowest - 1:+.1%}{_few_seeds(each)}" for each in below.itertuples()],
            [f"{each.model} {each.mse / lowest - 1:+.1%}{_few_seeds(each)}" for each in level.itertuples()],
            [f"{_mean(mse)} {scored}" for scored, mse in lower.items()],
        ]
        stand.append([dataset, _mean(lowest), *(", ".join(part) or "none" for part in parts)])
    for (ours, model), own in means.groupby([~means["ours"], "model"], sort=False):
        by_name = {row.dataset: row for row in own.itertuples()}
        cells = [_published_cell(by_name.get(dataset), best[dataset]) for dataset in datasets]
        row, look_back = own.iloc[0], own["look_back"].iloc[0]
        if not ours:
            steps = sorted(n for each in own["look_backs"] for n in each)
            look_back = " to ".join(map(str, dict.fromkeys((steps[0], steps[-1])))) if steps else MISSING
        beside.append([model, *cells, row["scored"], look_back, row["source"]])
    head = ["", "lowest of all windows", "of", "ours below it", "ours equal to it", "lower, not known to be of all"]
    return [Shown(["model", *datasets, "scored", "look-back", "source"], beside), Shown(head, stand)]


def _published_cell(row: Any, best: str) -> str:
    if row is None or pd.isna(row.mse):
        return MISSING
    text = _mean(row.mse)
    whole = f"{text} (secondary)" if row.secondary else text
    if row.ours:
        deviation = "" if pd.isna(row.mse_sd) else f"+-{row.mse_sd:.3f}"
        whole = f"{text}{deviation}{ROLLED * row.rolled}{SEEN * row.seen}{_few_seeds(row)}"
    return Lowest(whole) if row.scored == ALL and text == best and not row.seen else whole


def _few_seeds(row: Any) -> str:
    return _lacking(row) or (" (one seed)" if pd.isna(row.mse_sd) else "")


def _mean(mean: float) -> str:
    """A mean with three digits, or with four if it is published with four."""
    return _number(mean, "{:.4f}" if len(str(mean).partition(".")[2]) == LEAST_DIGITS + 1 else "{:.3f}")


def to_html(scores: pd.DataFrame, cells: Sequence[Cell], store: Store) -> str:
    """A self-contained page with the tables of `scores`, then the learning curve and forecasts of every finished cell,
    and the reasons why others failed."""
    return render(
        "table.html",
        tables=[
            (header, [[(cell, isinstance(cell, Lowest)) for cell in row] for row in rows])
            for header, rows in score_tables(scores)
        ],
        cells=cells,
        records=[store.readable(cell) for cell in cells],
        troubles=[_trouble(cell, store) for cell in cells],
        left=sum(not store.finished(cell) and store.failure(cell) is None for cell in cells),
        polylines=_polylines,
        size=SIZE,
    )


def _trouble(cell: Cell, store: Store) -> str | None:
    damage, failure = store.damage(cell), store.failure(cell)
    return damage or (None if failure is None else f"failed: {failure}")


def _polylines(lines: Mapping[str, tuple[int, Sequence[float | None]]]) -> dict[str, str]:
    """Points of each line in a chart of `SIZE`; lines have their own first index and bridge gaps."""
    values = [value for _, series in lines.values() for value in series if value is not None]
    low, span = min(values), (max(values) - min(values)) or 1.0
    last = max(first + len(series) for first, series in lines.values()) - 1 or 1
    across, down = (WIDE - 2 * MARGIN) / last, (HIGH - 2 * MARGIN) / span
    return {
        kind: " ".join(
            f"{MARGIN + across * place:.1f},{HIGH - MARGIN - down * (value - low):.1f}"
            for place, value in enumerate(series, start=first)
            if value is not None
        )
        for kind, (first, series) in lines.items()
    }
