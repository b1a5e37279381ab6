"""Parts that the pages of femts share: colours for light and dark, and the frame of an HTML file."""

from __future__ import annotations

import html

from femts.text import printable

# Of Okabe and Ito's palette, lighter where the page is dark; every text colour has a contrast of 4.5 or more.
PALETTE = """:root {
  color-scheme: light dark;
  --ink: #1b2430; --quiet: #5f6b76; --line: #d8dde3; --page: #fff; --truth: #0072b2; --forecast: #c84e00;
}
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8ecf1; --quiet: #9aa7b4; --line: #36424e; --page: #12181f; --truth: #56b4e9; --forecast: #f08a3c; }
}
"""


def whole_page(title: str, style: str, body: str, head: str = "") -> str:
    """An HTML file; `title` is text, the others are HTML and CSS."""
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">{head}
<title>{html.escape(printable(title))}</title><style>{PALETTE}{style}</style>
{body}
</html>
"""
