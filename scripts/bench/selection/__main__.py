"""Small selection tasks: each mixer compared with its prior alone, on the same samples, steps and width.

    python -m scripts.bench.selection                                     # all; an hour and a half on a busy core
    python -m scripts.bench.selection --tasks recall --set length=128     # records of their own
    python -m scripts.bench.selection --show                              # only print the tables
    python -m scripts.bench.selection --verify results/selection/*/*.json     # train records again and compare

Every finished training run is a record in --out; running the command again, also after an interruption, continues with
the remaining ones. The exit status is 1 if a training run failed or a record does not verify.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import joblib

from femts.environment import cores
from femts.errors import UsageError
from scripts.bench.selection import TASKS
from scripts.bench.selection.records import make_cells, read, run_and_keep, tables, verify


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench.selection",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sizes = sorted({each.name for task in TASKS.values() for each in fields(task)})
    parser.add_argument(
        "--tasks", nargs="+", default=tuple(TASKS), choices=TASKS, metavar="NAME", help=", ".join(TASKS)
    )
    parser.add_argument(
        "--mixers", nargs="+", default=("fem_sm", "sm", "fem_gla", "gla"), help="names from `femts models`"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=(42, 1, 2), help="random seeds, one training run each")
    parser.add_argument("--set", nargs="+", dest="settings", default=(), metavar="SIZE=VALUE", help=", ".join(sizes))
    parser.add_argument("--out", type=Path, default=Path("results/selection"), help="folder of the records")
    parser.add_argument("--jobs", type=int, default=cores(), help="training runs in parallel; by default one per core")
    parser.add_argument("--device", default="cpu", help="device to train on")
    parser.add_argument("--show", action="store_true", help="only print the tables of existing records")
    parser.add_argument("--verify", nargs="+", type=Path, metavar="RECORD", help="train records again and compare")
    options = parser.parse_args(argv)
    options.settings = dict(text.partition("=")[::2] for text in options.settings)
    if unknown := options.settings.keys() - set(sizes):
        parser.error(f"no size is called {min(unknown)!r}; choose from {', '.join(sizes)}")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 when a training failed or a record does not hold, 2 for a mistake."""
    options, failed = _options(argv), False
    try:
        if options.verify:
            for path, record in [(path, read(path)) for path in options.verify]:
                holds, words = verify(record, options.device)
                print(f"{path}: {words}", flush=True)
                failed |= not holds
            return int(failed)
        cells = make_cells(options.tasks, options.mixers, options.seeds, options.settings)
        if not options.show:
            left = [cell for cell in cells if not (options.out / cell.path).exists()]
            runs = (joblib.delayed(run_and_keep)(cell, options.out, options.device) for cell in left)
            for words, finished in joblib.Parallel(options.jobs, return_as="generator_unordered")(runs):
                print(words, file=sys.stderr, flush=True)
                failed |= not finished
        print(tables(cells, options.out))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
