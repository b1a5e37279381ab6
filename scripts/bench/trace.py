"""How many functions and modules of femts a value passes on its way from a file to a forecast.

    python -m scripts.bench.trace

A CSV of 3,000 rows is loaded, `dlinear` is trained on it for ten steps, and its last rows are forecast. Each line has the
number of different functions that were entered, of the modules they are in, and of entries into a module that was left
before.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np
import pandas as pd

import femts

Result = TypeVar("Result")
ROOT = str(Path(femts.__file__).parent)


class Trace:
    """Functions of femts that were entered, in order."""

    def __init__(self) -> None:
        self.functions = dict[tuple[str, int, str], None]()
        self.modules = list[str]()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """See `sys.setprofile`."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT) or code.co_name.startswith("<"):
            return
        self.functions[code.co_filename, code.co_firstlineno, code.co_name] = None
        if self.modules[-1:] != [code.co_filename]:
            self.modules.append(code.co_filename)

    def __str__(self) -> str:
        different = set(self.modules)
        return (
            f"{len(self.functions)} functions, {len(different)} modules, {len(self.modules) - len(different)} returns"
        )


def traced(name: str, work: Callable[[], Result]) -> Result:
    """The result of `work`, after printing what was entered during its second run, when everything is imported."""
    work()
    trace = Trace()
    sys.setprofile(trace)
    try:
        made = work()
    finally:
        sys.setprofile(None)
    print(f"{name}: {trace}")
    return made


def main() -> None:
    """Print a line each for loading, training and prediction."""
    rows = np.arange(3000)
    table = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=3000, freq="h")})
    for number, name in enumerate("abc"):
        table[name] = np.sin(2 * np.pi * rows / 24 + number) + 0.01 * np.random.default_rng(number).normal(size=3000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mine.csv"
        table.to_csv(path, index=False)
        data = traced("load", lambda: femts.load_dataset(path))
    options: dict[str, Any] = {"seq_len": 96, "pred_len": 24, "max_steps": 10, "device": "cpu"}
    model = traced("train", lambda: femts.train(data, "dlinear", **options))
    traced("predict", lambda: model.predict(table.tail(200)))


if __name__ == "__main__":
    main()
