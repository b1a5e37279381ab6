"""The pages of femts, made of the templates beside this file: every value in them is text, whatever it holds."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from femts.analysis.report import numbers
from femts.text import printable_lines

PAGES = Environment(
    loader=PackageLoader("femts.analysis.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
PAGES.filters.update({f.__name__: f for f in (numbers.scaled, numbers.raw, numbers.percent, numbers.points)})
PAGES.filters.update({f.__name__: f for f in (numbers.lasting, numbers.span, numbers.steps)})
PAGES.tests["missing"] = numbers.missing
PAGES.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}


def render(page: str | Template, **values: Any) -> str:
    """A page, by the name of its template; it holds no control characters but the ends of its lines."""
    return printable_lines(PAGES.get_template(page).render(values))
