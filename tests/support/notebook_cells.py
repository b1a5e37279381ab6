"""Execution of the cells of a notebook in this process: `python notebook_cells.py CELLS` reads a list of cells and prints
the outputs of each, pairs of kind and text, as JSON. It is meant for a process of `forks`, whose imports it shares; a
kernel of Jupyter would take seconds for them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets import Type

Output = tuple[str, str]  # an image has no text


class Shown(DisplayHook):
    """Publishes the value of the last line of a cell, as notebooks do, instead of printing it."""

    def __call__(self, result: object = None) -> None:
        if result is not None and not self.quiet():
            self.shell.display_pub.publish(self.shell.display_formatter.format(result)[0])


class Shell(InteractiveShell):
    """Shows figures below their cells, as notebooks do, and in no window."""

    displayhook_class = Type(Shown)

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing."""


def kind_and_text(data: dict[str, Any]) -> Output:
    """Kind and text of an output that is shown, by its data of each MIME type."""
    return ("image", "") if "image/png" in data else ("table", str(data.get("text/plain", "")))


def executed(cells: list[str]) -> list[list[Output]]:
    """Run `cells` one after the other, as a notebook does; AssertionError with the traceback of one that fails."""
    shell = Shell.instance()
    shell.enable_matplotlib("inline")
    pd.set_option("display.width", 80, "display.max_columns", 20)  # a notebook is no terminal
    made = []
    for source in cells:
        with capture_output() as captured:
            done = shell.run_cell(source, store_history=True)
        assert done.success, captured.stdout
        streams = {"stdout": captured.stdout, "stderr": captured.stderr}
        printed = [(name, text) for name, text in streams.items() if text]
        made.append([*printed, *(kind_and_text(output.data) for output in captured.outputs)])
    return made


if __name__ == "__main__":
    print(json.dumps(executed(json.loads(Path(sys.argv[1]).read_text()))))
