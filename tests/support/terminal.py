"""A stream that claims to be a terminal."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True
