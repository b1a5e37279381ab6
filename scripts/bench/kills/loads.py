"""Loads a run again and again while other processes overwrite and calibrate it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

from scripts.bench.kills.cases import DLINEAR, OVER, make_tables, prints, train
from scripts.bench.kills.process import run

COMMANDS = (
    train("a", *DLINEAR, "--refit", OVER),
    ["calibrate", "run", "--horizon", "9"],
    train("b", *DLINEAR, "--refit", OVER),
    ["calibrate", "run", "--horizon", "8"],
)


def load_beside(folder: Path, loads: int) -> int:
    """Load a run `loads` times, and print how often each of the whole runs was read; exit status 1 for anything else."""
    place = folder / "loads"
    place.mkdir()
    make_tables(place)
    whole = dict[str, str]()
    for command in COMMANDS:
        ended = run(command, place)
        if ended.status:
            raise AssertionError(ended.said)
        whole[prints(place, ("run",))["run"]] = " ".join(command)
    writer = os.fork()
    if not writer:
        os.setpgid(0, 0)
        rounds = folder / "rounds"
        while True:
            for command in COMMANDS:
                if run(command, place).status:
                    os._exit(1)
                with rounds.open("a") as file:
                    file.write("x")
    read = Counter[str]()
    try:
        for _ in range(loads):
            read[prints(place, ("run",))["run"]] += 1
    finally:
        ended_early, _ = os.waitpid(writer, os.WNOHANG)
        if not ended_early:
            os.killpg(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
    written = (folder / "rounds").stat().st_size
    print(f"{loads} loads beside {written} overwrites and calibrations, which {'failed' if ended_early else 'held'}")
    faulty = bool(ended_early)
    for result, count in read.most_common():
        known = whole.get(result)
        faulty = faulty or (known is None and not result.startswith("refused"))
        print(f"  {count}: {known or result}")
    shutil.rmtree(place, ignore_errors=True)
    sys.stdout.flush()
    return int(faulty)
