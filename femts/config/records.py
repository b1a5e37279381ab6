"""Records of plain values, as JSON holds them: reading them, and what is said of one that is not as it should be."""

from __future__ import annotations

import hashlib
import json
import reprlib
from pathlib import Path
from typing import Any

MOST_BYTES = 2**28
MISSING = object()


class RecordError(ValueError):
    """A value that a rule refuses; its text names the field, the value and what would be right."""

    def __init__(self, name: str, value: object, right: str) -> None:
        fault = "is missing" if value is MISSING else f"is {reprlib.repr(value)}, not {right}"
        super().__init__(f"{name or 'its content'} {fault}")


def read_json(path: Path) -> Any:
    """Read what the file `path` holds; a RecordError when that is no JSON, an OSError when the system refuses."""
    with open(path, "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise RecordError("", f"more than {MOST_BYTES} bytes", "of a size that femts writes")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RecordError("", content[:30], "JSON") from error


def fingerprint(content: Any) -> str:
    """SHA-256 of plain values; the same for equal ones, however they are written."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
