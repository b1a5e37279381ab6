"""Renders the HTML pages of femts from the templates in this folder; all values are escaped."""

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
    """Render the page with the name of a template; control characters other than newlines are removed."""
    return printable_lines(PAGES.get_template(page).render(values))
