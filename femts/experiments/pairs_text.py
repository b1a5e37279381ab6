"""Text that `femts table --pairs` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from femts.experiments.pairs import Pair
from femts.experiments.table_text import MISSING, as_markdown, markdown_table
from femts.text import csv_text, table

COLUMNS = (
    "dataset",
    *("first", "second"),
    "pred_len",
    "seeds",
    *("first_mse", "second_mse"),
    *("difference", "difference_sd"),
    *("low", "high", "why"),
    *("seeds_lower", "windows_lower"),
    *("first_seconds", "second_seconds"),
)
_NONE = (None, None)


def as_row(pair: Pair) -> tuple[object, ...]:
    """Values of a pair by `COLUMNS`, None where there is none."""
    return (
        *(pair.dataset, *pair.models, pair.pred_len, pair.seeds),
        *(*(pair.mse or _NONE), pair.difference, pair.deviation, *(pair.interval or _NONE), pair.why),
        *(pair.seeds_lower, pair.windows_lower, *(pair.seconds or _NONE)),
    )


def as_csv(pairs: Sequence[Pair]) -> str:
    """One row a data set, pair and horizon, numbers in full; empty where there is none."""
    rows = ([" ".join(map(str, value)) if isinstance(value, tuple) else value for value in as_row(p)] for p in pairs)
    return csv_text(COLUMNS, rows)


def as_text(pairs: Sequence[Pair], markdown: bool = False) -> str:
    """A table for each data set and pair, a row a horizon, and a last one of all pairs: at how many horizons the first
    is lower, and at how many the interval leaves 0 out."""
    parts = [_table(header, rows, markdown) for header, rows in (*_tables(pairs), _wins(pairs))]
    return "\n\n".join(parts)


def _tables(pairs: Sequence[Pair]) -> Iterator[tuple[list[str], list[list[str]]]]:
    for dataset, models in _groups(pairs):
        rows = [_row(pair) for pair in pairs if (pair.dataset, pair.models) == (dataset, models)]
        first, second = models
        yield (
            [dataset, first, second, "difference", "95 %", "seeds lower", "windows lower", "seconds"],
            rows,
        )


def _groups(pairs: Sequence[Pair]) -> list[tuple[str, tuple[str, str]]]:
    return list(dict.fromkeys((pair.dataset, pair.models) for pair in pairs))


def _row(pair: Pair) -> list[str]:
    if pair.mse is None or pair.difference is None or pair.seconds is None:
        return [str(pair.pred_len), *[MISSING] * 3, pair.why, *[MISSING] * 3]
    deviation = "" if pair.deviation is None else f"+-{pair.deviation:.4f}"
    return [
        str(pair.pred_len),
        *(f"{mse:.3f}" for mse in pair.mse),
        f"{pair.difference:+.4f}{deviation}",
        pair.why if pair.interval is None else f"{pair.interval[0]:+.4f} to {pair.interval[1]:+.4f}",
        f"{pair.seeds_lower} of {len(pair.seeds)}",
        MISSING if pair.windows_lower is None else f"{pair.windows_lower:.0%}",
        " / ".join(f"{seconds:.0f}" for seconds in pair.seconds),
    ]


def _wins(pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the wins: horizons that are measured, then at how many the first is lower, and so on."""
    rows = []
    for dataset, models in _groups(pairs):
        own = [p for p in pairs if (p.dataset, p.models) == (dataset, models) and p.difference is not None]
        ends = [pair.interval for pair in own if pair.interval is not None]
        lower = sum(pair.difference < 0 for pair in own if pair.difference is not None)
        below, above = sum(high < 0 for _, high in ends), sum(low > 0 for low, _ in ends)
        rows.append([dataset, *models, *map(str, (len(own), lower, len(ends), below, above))])
    return ["", "first", "second", "horizons", "first lower", "with interval", "below 0", "above 0"], rows


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], markdown: bool) -> str:
    if not markdown:
        return table(header, rows)
    return markdown_table([*map(as_markdown, header)], [[*map(as_markdown, row)] for row in rows])
