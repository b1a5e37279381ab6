"""Check two promises of `femts train --model auto` on tables of twelve shapes.

    python -m scripts.bench.auto limits --limits 30 120      # is a time limit kept and used? half an hour on idle cores
    python -m scripts.bench.auto kills                       # without one, are two runs and one that is killed equal?

`limits` prints the seconds of the whole command, its peak memory, the models it took and its error over that of the
seasonal naive forecast. With `--processor`, the limit and the seconds are those of the processor on one thread, which
other processes do not slow down: femts then reads the processor's clock for every other one. `kills` runs each of six
tables twice without interruption and once killed thrice, and compares every file without its durations.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TRAIN = "train --model auto --dataset {} --out {}"
ON_PROCESSOR = """
import sys, time
time.monotonic = time.process_time
import femts.cli.started
femts.cli.started.process_began = lambda: 0.0
sys.argv = ["femts", *sys.argv[1:]]
from femts.cli import main
sys.exit(main())
"""


def _values(series: int, rows: int, period: int) -> np.ndarray:
    """(rows, series): a season with a phase of its own, a random walk and noise."""
    rng, step = np.random.default_rng(0), np.arange(rows)[:, None]
    season = 10 * np.sin(2 * np.pi * step / period + rng.uniform(0, 2 * np.pi, series))
    walk = np.cumsum(rng.normal(size=(rows, series)) * 0.2, axis=0)
    return np.asarray((50 + season + walk + rng.normal(size=(rows, series)) * 2).round(3))


def wide(rows: int, columns: int, freq: str, period: int) -> pd.DataFrame:
    """A table with one column for each series."""
    table = pd.DataFrame(_values(columns, rows, period), columns=[f"c{n}" for n in range(columns)])
    table.insert(0, "date", pd.date_range("2015-01-01", periods=rows, freq=freq))
    return table


def long(rows: int, series: int, freq: str, period: int) -> pd.DataFrame:
    """A table with one row for each series and step."""
    dates = pd.date_range("2015-01-01", periods=rows, freq=freq)
    names = np.repeat([f"s{n}" for n in range(series)], rows)
    return pd.DataFrame({"series": names, "date": np.tile(dates, series), "y": _values(series, rows, period).T.ravel()})


SHAPES: dict[str, Callable[[], pd.DataFrame]] = {
    "120 months": partial(wide, 120, 1, "MS", 12),
    "700 days": partial(wide, 700, 1, "D", 7),
    "2,000 hours x 3": partial(wide, 2000, 3, "h", 24),
    "30 series x 200": partial(long, 200, 30, "D", 7),
    "20,000 hours": partial(wide, 20000, 1, "h", 24),
    "300 series x 100": partial(long, 100, 300, "W", 52),
    "5,000 hours x 28": partial(wide, 5000, 28, "h", 24),
    "60,000 quarters of an hour x 7": partial(wide, 60000, 7, "15min", 96),
    "1,500 days x 1,000": partial(wide, 1500, 1000, "D", 7),
    "500,000 minutes": partial(wide, 500_000, 1, "min", 1440),
    "3,000 series x 120": partial(long, 120, 3000, "MS", 12),
    "100,000 series x 12": partial(long, 12, 100_000, "MS", 12),
}
FEW = tuple(SHAPES)[:4]  # small enough for the usual work to take a minute
EQUAL = {name: SHAPES[name] for name in FEW} | {
    "80 years": partial(wide, 80, 1, "YS", 9),
    "4 series x 90": partial(long, 90, 4, "MS", 12),
}


def limits(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows of the table: one for each shape and limit."""
    for name in options.shapes or SHAPES:
        for limit in options.limits:
            with tempfile.TemporaryDirectory() as folder:
                table, run = Path(folder, "table.parquet"), Path(folder, "run")
                SHAPES[name]().to_parquet(table)
                start = ["-c", ON_PROCESSOR] if options.processor else ["-m", "femts"]
                command = [sys.executable, *start, *TRAIN.format(table, run).split(), "--time-limit", f"{limit}s"]
                one = {"OMP_NUM_THREADS": "1"} if options.processor else {}
                began = time.monotonic()
                child = subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ | one
                )
                said = child.stderr.read().decode() if child.stderr else ""
                _, status, used = os.wait4(child.pid, 0)
                wall, processor = time.monotonic() - began, used.ru_utime + used.ru_stime
                row = {"shape": name, "limit": limit, "wall": round(wall, 1), "processor": round(processor, 1)}
                row["MiB"] = used.ru_maxrss // 1024
                if status:
                    yield row | {"failed": said.strip().splitlines()[-1:]}
                    continue
                metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
                test = metrics["test"]
                tried = sum("error" in each for each in metrics["auto"]["tried"])
                yield row | {
                    "models": "+".join(metrics["auto"]["taken"]),
                    "tried": tried,
                    "windows": test["windows"],
                    "skill": test.get("skill"),
                }


def _run(table: Path, run: Path, until: int | None = None) -> bool:
    """Train, and kill the process as soon as `until` trials have begun; return whether it finished."""
    command = [sys.executable, "-m", "femts", *TRAIN.format(table, run).split(), "--resume"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while child.poll() is None:
        if until is not None and len(list(run.glob("candidates/*/*/config.yaml"))) >= until:
            child.send_signal(signal.SIGKILL)
            child.wait()
            return False
        time.sleep(0.02)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} exited with {child.returncode}")
    return True


def untimed(record: Any) -> Any:
    """A record without durations and hashes of files that have some."""
    if isinstance(record, dict):
        timed = ("seconds", "sha256", "metrics.csv", "metrics.json", "scored/metrics.json")
        return {key: untimed(value) for key, value in record.items() if key not in timed}
    return [untimed(each) for each in record] if isinstance(record, list) else record


def contents(run: Path) -> dict[str, Any]:
    """The files of a run by name, without durations."""
    found = dict[str, Any]()
    for path in sorted(each for each in run.rglob("*") if each.is_file() and each.suffix != ".lock"):
        name = str(path.relative_to(run))
        if path.suffix == ".json":
            found[name] = untimed(json.loads(path.read_text(encoding="utf-8")))
        elif path.suffix == ".csv":
            found[name] = pd.read_csv(path).drop(columns="seconds", errors="ignore").to_csv()
        elif "events" not in path.parts:
            found[name] = path.read_bytes()
    return found


def kills(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows of the table: one for each of six tables."""
    for name in options.shapes or EQUAL:
        with tempfile.TemporaryDirectory() as folder:
            table, runs = Path(folder, "table.parquet"), [Path(folder, f"run{n}") for n in range(3)]
            EQUAL[name]().to_parquet(table)
            began = time.monotonic()
            for run in runs[:2]:
                _run(table, run)
            killed = [not _run(table, runs[2], until) for until in (2, 4, 6)]
            _run(table, runs[2])
            one, *others = map(contents, runs)
            metrics = one["metrics.json"]
            yield {
                "table": name,
                "wall": round(time.monotonic() - began, 1),
                "kills": sum(killed),
                "equal": [other == one for other in others],
                "differ": sorted({key for other in others for key in one if one[key] != other.get(key)}),
                "models": "+".join(metrics["auto"]["taken"]),
                "windows": metrics["test"]["windows"],
            }


def main() -> int:
    """Run one of the checks and print its rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    checks = parser.add_subparsers(required=True)
    limited, killed = checks.add_parser("limits"), checks.add_parser("kills")
    limited.set_defaults(check=limits)
    limited.add_argument("--limits", nargs="+", type=int, default=(30, 120), help="seconds")
    limited.add_argument("--processor", action="store_true", help="measure and limit processor time")
    limited.add_argument("--shapes", nargs="+", choices=SHAPES)
    killed.set_defaults(check=kills)
    killed.add_argument("--shapes", nargs="+", choices=EQUAL)
    options = parser.parse_args()
    for row in options.check(options):
        print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
