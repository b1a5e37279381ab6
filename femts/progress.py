"""Progress bar on a terminal or in a notebook."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from femts.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress


_EVERY = 0.2  # seconds between updates in a notebook


@contextmanager
def progress_line(shown: bool = True) -> Iterator[Callable[[float, str], None]]:
    """Yield a function that shows a completed fraction, in [0, 1], and a text.

    The bar shows the remaining time and disappears at the end. If stderr is neither a terminal nor a notebook, the
    function does nothing.
    """
    if not shown or sys.stderr is None or not (_in_notebook() or sys.stderr.isatty()):
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
    # stdout must not be redirected to stderr. Speed is estimated over an hour, because some steps take minutes.
    options: dict[str, Any] = {
        "transient": True,
        "redirect_stdout": False,
        "refresh_per_second": 5,
        "speed_estimate_period": 3600,
    }
    if _in_notebook():
        silent = Console(file=io.StringIO(), force_terminal=False, force_jupyter=False, width=100)
        with _displayed(Progress(*columns, console=silent, auto_refresh=False, **options)) as show:
            yield show
        return
    with Progress(*columns, console=Console(stderr=True), **options) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda part, words: progress.update(task, completed=part, description=printable(words))


def _in_notebook() -> bool:
    """Return whether the output goes to a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def _displayed(progress: Progress) -> Iterator[Callable[[float, str], None]]:
    """The bar as a replaceable cell output; rich's own notebook support needs widgets that are rarely installed."""
    from IPython.display import Pretty, display

    task, drawn = progress.add_task("", total=1.0), -_EVERY
    output = display(Pretty(""), display_id=True)

    def show(part: float, words: str) -> None:
        nonlocal drawn
        progress.update(task, completed=part, description=printable(words))
        if time.monotonic() - drawn >= _EVERY:
            drawn = time.monotonic()
            with progress.console.capture() as text:
                progress.console.print(progress.get_renderable())
            output.update(Pretty(text.get().rstrip()))

    try:
        yield show
    finally:
        output.update(Pretty(""))
