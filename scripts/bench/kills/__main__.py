"""Kill commands at changes of the file system, look at what they left, and repeat them.

    python -m scripts.bench.kills                    # 200 kills; about half an hour on a busy core
    python -m scripts.bench.kills --cases overwrite,calibrate --kills 50
    python -m scripts.bench.kills --loads 10000      # load a run while it is overwritten and calibrated

The candidates of `auto` are few, to be fast. The exit status is 1 if a run was lost, swapped or unusable, if a repeated command ended with anything else than without a
kill, or if a traceback was printed or files were left behind.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from femts.training.select import run as select
from femts.training.select.candidates import Candidate
from scripts.bench.kills.cases import CASES, try_case
from scripts.bench.kills.loads import load_beside


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 if a promise was broken."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench.kills", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.name for case in CASES]
    parser.add_argument("--cases", default=",".join(names), help=f"names of cases: {', '.join(names)}")
    parser.add_argument("--kills", type=int, help="kills of each case and process, instead of 200 in all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the changes at which commands are killed")
    parser.add_argument(
        "--loads", type=int, help="load a run so often beside overwrites and calibrations, and kill nothing"
    )
    options = parser.parse_args(argv)
    torch.set_num_threads(1)  # commands run in forks of this process
    select.shortlist = lambda *_: (Candidate("naive"), Candidate("ridge"), Candidate("dlinear"))  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        if options.loads is not None:
            return load_beside(Path(folder), options.loads)
        faulty, total = False, 0
        for case in CASES:
            if case.name not in options.cases.split(","):
                continue
            began = time.monotonic()
            turns = None if options.kills is None else dict.fromkeys(case.roles, options.kills)
            found = try_case(case, Path(folder) / "case", turns, np.random.default_rng(options.seed))
            total, faulty = total + found.kills, faulty or bool(found.faults)
            kept = (
                "" if not case.before else f", {found.kept[0]} times the old run and {found.kept[1]} times the new one"
            )
            orphans = f", child processes ended after {found.orphaned:.1f} s at most" if len(case.roles) > 1 else ""
            seconds = time.monotonic() - began
            print(
                f"{case.name}: {found.kills} kills at {found.changes} changes{kept}{orphans} ({seconds:.0f} s)",
                flush=True,
            )
            for kind, where in found.faults.items():
                for each in where:
                    print(f"  {kind}: {each}", flush=True)
        print(f"{total} kills")
    return int(faulty)


if __name__ == "__main__":
    sys.exit(main())
