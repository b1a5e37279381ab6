"""Checks of output files before a command starts working."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from femts.errors import UsageError
from femts.files import check_target
from femts.forecaster.run_folder import RUN_FILES

STDOUT = Path("-")


def to_file(out: Path | None) -> Path | None:
    """`out`, or None for standard output, also if given as `-`."""
    return None if out == STDOUT else out


def check_targets(
    outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None] | None = None, run: Path | None = None
) -> None:
    """Check files that a command will write, by the option that names them.

    Args:
        outputs: files to write.
        inputs: files to read.
        run: run folder whose files must not be overwritten.

    Raises:
        UsageError: A folder is missing or in place of a file; an option needs a file but names standard output; an
            output is also another output or an input; or the format given to `--plot` is not supported.
    """
    given = {option: path for option, path in outputs.items() if path is not None}
    for option, path in given.items():
        if path == STDOUT:
            raise UsageError(f"Option {option} requires a file, not standard output; give the path of a file.")
        check_target(path)
    for (option, path), (other, second) in combinations(given.items(), 2):
        if _same_file(path, second):
            raise UsageError(f"Options {option} and {other} both name {path}; name two files.")
    protected = {f"{label} {path}": path for label, path in (inputs or {}).items() if path is not None}
    protected |= {} if run is None else {f"{name} of the run {run}": run / name for name in RUN_FILES}
    for path in given.values():
        for label, taken in protected.items():
            if _same_file(path, taken):
                raise UsageError(f"Output {path} would replace {label}; name another file.")
    if given.get("--plot") is not None:
        from femts.plotting import picture_format

        picture_format(given["--plot"])


def _same_file(a: Path, b: Path) -> bool:
    """Return whether both are the same file; terminals and devices do not count, as they may be given twice."""
    if a.exists() and not a.is_file():
        return False
    return os.path.realpath(a) == os.path.realpath(b) or (a.exists() and b.exists() and os.path.samefile(a, b))
