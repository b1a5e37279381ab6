#!/usr/bin/env python
"""Write a long table of random series with weekly seasonality, to measure panels with.

python scripts/panel_table.py mixed.csv                              # 500 series of 40 to 2,000 rows, with gaps
python scripts/panel_table.py many.csv --series 20000 --rows 200     # 20,000 series of 200 rows
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

LENGTHS = (40, 2000)


def drawn(number: int, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
    """Return one series of `rows` rows; if None, of random length and end, with 2% of its rows missing."""
    mixed, begin = rows is None, 0
    if rows is None:
        rows, begin = int(np.exp(rng.uniform(*np.log(LENGTHS)))), int(rng.integers(0, 1500))
    wave = 2 + np.sin(2 * np.pi * np.arange(rows) / 7 + rng.uniform(0, 6)) + 0.2 * rng.normal(size=rows)
    dates = pd.date_range("2018-01-01", periods=begin + rows)[begin:]
    table = pd.DataFrame({"unique_id": f"s{number}", "ds": dates, "y": rng.lognormal(3) * wave})
    return table[rng.uniform(size=rows) > 0.02] if mixed else table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--series", type=int, default=500)
    parser.add_argument("--rows", type=int)
    asked = parser.parse_args()
    generator = np.random.default_rng(0)
    pd.concat([drawn(k, asked.rows, generator) for k in range(asked.series)]).to_csv(asked.file, index=False)
