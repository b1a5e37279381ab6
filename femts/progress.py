"""The line on a terminal that says how far something is and how long it will take."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress_line(shown: bool = True) -> Iterator[Callable[[float, str], None]]:
    """Yield a function that shows a part done, in [0, 1], and words on it; it does nothing where stderr is no terminal.

    The line has a bar and the time left, is drawn five times a second, and is gone at the end.
    """
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield lambda part, words: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(20),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("left  {task.description}", markup=False),
    )
    console = Console(stderr=True)
    # What is printed to stdout meanwhile must not end on stderr. The speed is one of an hour: some parts take minutes.
    options: dict[str, Any] = {
        "transient": True,
        "redirect_stdout": False,
        "refresh_per_second": 5,
        "speed_estimate_period": 3600,
    }
    with Progress(*columns, console=console, **options) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda part, words: progress.update(task, completed=part, description=words)
