"""Records of plain JSON values: reading, and errors for invalid ones."""

from __future__ import annotations

import hashlib
import json
import reprlib
from pathlib import Path
from typing import Any

MOST_BYTES = 2**28
MISSING = object()


class RecordError(ValueError):
    """A record has an invalid value; the message names the field, the value and what is expected."""

    def __init__(self, name: str, value: object, right: str) -> None:
        fault = "is missing" if value is MISSING else f"is {reprlib.repr(value)}, not {right}"
        super().__init__(f"{name or 'its content'} {fault}")


def read_json(path: Path) -> Any:
    """Read a JSON file; raises RecordError if it is invalid and OSError if it cannot be read."""
    with open(path, "rb") as file:
        return parse_json(file.read(MOST_BYTES + 1))


def parse_json(content: bytes) -> Any:
    """Values of a JSON file with this `content`; raises RecordError if it is invalid."""
    if len(content) > MOST_BYTES:
        raise RecordError("", f"more than {MOST_BYTES} bytes", "of a size that femts writes")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RecordError("", content[:30], "JSON") from error


def fingerprint(content: Any) -> str:
    """SHA-256 hash of plain values, independent of how they are formatted."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
