"""Numbers as people read them, and the HTML of the tables of a report."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

from pandas.tseries.frequencies import to_offset

from femts.text import printable_lines

NONE = "\u2013"
_SECONDS = {"s": 1, "min": 60, "h": 3600, "D": 86400, "W": 7 * 86400}
_MONTHS = {"MS": 1, "ME": 1, "QS": 3, "QE": 3, "YS": 12, "YE": 12}


class Markup(str):
    """Text that is HTML already."""


def scaled(value: float) -> str:
    """A score in scaled units, with four digits as on the command line."""
    return NONE if math.isnan(value) else f"{value:.4f}"


def raw(value: float) -> str:
    """A number in raw units, which may have any size."""
    if math.isnan(value):
        return NONE
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}" if abs(value) < 1e9 else f"{value:.3e}"


def percent(part: float, sign: str = "") -> str:
    """A part of 1 in percent; `sign` as in a format, such as `+`."""
    return NONE if math.isnan(part) else minus(f"{100 * part:{sign}.1f} %")


def minus(text: str) -> str:
    """A number with the sign that is as wide as a plus."""
    return text.replace("-", "\u2212")


def lasting(seconds: float) -> str:
    """Seconds in the largest unit that fits."""
    sizes = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
    name, size = next(((n, s) for n, s in sizes.items() if seconds >= s), ("second", 1))
    count = f"{seconds / size:.3g}"
    return f"{count} {name}" if count == "1" else f"{count} {name}s"


def span(freq: str | None, steps: int) -> str | None:
    """Time that `steps` of a pandas frequency last; None where that has no one answer (business days, whole numbers)."""
    if not freq or freq.isdecimal():
        return None
    offset = to_offset(freq)
    base, times = offset.rule_code.split("-")[0], offset.n * steps
    if base in _MONTHS:
        months = _MONTHS[base] * times
        return f"{months} month{'s' if months > 1 else ''}"
    return lasting(_SECONDS[base] * times) if base in _SECONDS else None


def steps_lasting(freq: str | None, steps: int) -> str:
    """`96 steps (4 days)`."""
    long = span(freq, steps)
    return f"{steps} step{'s' if steps > 1 else ''}" + (f" ({long})" if long else "")


def escape(text: object) -> Markup:
    """Text as HTML, without control characters, which no page may hold; what is HTML already stays."""
    return text if isinstance(text, Markup) else Markup(html.escape(printable_lines(text)))


def breaking(name: object) -> Markup:
    """A name that may go on in the next line after an underscore."""
    return Markup(escape(name).replace("_", "_<wbr>"))


def table(header: Sequence[object], rows: Iterable[Sequence[object]], caption: str, kind: str = "") -> Markup:
    """A table that scrolls by itself where the page is too narrow; the first cell of a row names it."""
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in header)
    body = "".join(
        f"<tr><th scope=row>{breaking(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return Markup(
        f'<p class=caption>{escape(caption)}</p><div class=scroll role=region tabindex=0 aria-label="{escape(caption)}">'
        f"<table{f' class={kind}' if kind else ''}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """List facts by name."""
    rows = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return Markup(f"<dl class=facts>{''.join(rows)}</dl>")


def folded(summary: str, content: str) -> Markup:
    """Something to unfold."""
    return Markup(f"<details><summary>{escape(summary)}</summary>{content}</details>")


def bar(part: float, text: str) -> Markup:
    """A number over a bar of `part` of the cell's width."""
    if math.isnan(part):
        return escape(text)
    return Markup(f'<span class=bar style="--part:{part:.3f}">{escape(text)}</span>')
