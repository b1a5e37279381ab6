"""Other forecasting tools on lists of tasks, each in an environment of its own with pinned versions, on one core.

    python -m scripts.peers --tools mlforecast                        # the tasks of docs/measured/peers.md
    python -m scripts.peers --tools mlforecast --only wineind --out runs/peers    # repeat a row
    python -m scripts.peers --show                                    # only print the tables

Every tool is trained on the rows before the first window of a task, as models of femts are, unless it is fitted anew
before each window anyway, and its forecasts are scored by the same function. Each pair is a record in --out, also one
that failed; existing records are skipped. Environments are made below `.peers` with pip. A tool is a file of
scripts/peers/tools, or the path of another one, which runs in this environment.
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
import venv
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from femts.config.training import parse_span
from femts.data.cutoffs import rolling_cutoffs
from femts.data.dataset import Dataset
from femts.errors import UsageError
from femts.experiments.tasks import Task, read_tasks, resolve_source, score_forecasts
from scripts.peers.exchange import COLUMNS, KEYS
from scripts.peers.records import LISTS, PARTS, ROOT, TOOLS, kind_of, read, record_path, tables

HERE, ENVIRONMENTS = Path(__file__).resolve().parent, ROOT / ".peers"
UNDATED = {1: "YS", 4: "QS", 7: "D", 12: "MS", 24: "h", 52: "W"}  # by season, for rows without dates
THREADS = ("OMP", "MKL", "OPENBLAS", "NUMBA", "NUMEXPR")


def python_of(tool: str) -> tuple[Path, Path]:
    """The interpreter and script of a tool; its environment is made if there is none, or if its versions changed."""
    if tool.endswith(".py"):
        return Path(sys.executable), Path(tool).resolve()
    folder, pinned = ENVIRONMENTS / tool, HERE / "requirements" / f"{tool}.txt"
    python, made = folder / "bin" / "python", folder / "requirements.txt"
    if not made.is_file() or made.read_text() != pinned.read_text():
        print(f"installing {tool} in {folder}", file=sys.stderr, flush=True)
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(pinned)]
        subprocess.run(pip, check=True)
        made.write_text(pinned.read_text())
    return python, HERE / "tools" / f"{tool}.py"


def write_windows(data: Dataset, task: Task, limit: float, folder: Path) -> pd.DataFrame:
    """Write what a tool reads, and return the rows that are scored: `window`, `series`, `column`, `KEYS` and `actual`."""
    season, covariates, freq, stamps = task.season or data.season, data.schema.roles.future, data.freq, data.stamps
    if isinstance(stamps, pd.DatetimeIndex):
        stamps = stamps.tz_localize(None)
    else:
        freq = UNDATED[season]
        dates = pd.date_range("1700-01-01", periods=data.rows, freq=freq)
        stamps = dates[np.concatenate([np.arange(length) for length in data.lengths])]
    rows = pd.DataFrame(data.covariates, columns=list(covariates)).assign(ds=stamps, window=0, scored=False)
    rows["series"] = np.repeat(np.array(data.series, dtype=object), data.lengths)
    for fewest, name in ((1, "window"), (season, "scored")):
        for cutoff in rolling_cutoffs(data.lengths, task.windows, task.horizon, task.horizon, fewest):
            first = (data.spans[cutoff.series, 0] + cutoff.rows)[:, None]
            rows.loc[(first + np.arange(task.horizon)).ravel(), name] = cutoff.window if name == "window" else True
    columns = enumerate(data.columns[: data.n_targets])
    table = pd.concat([rows.assign(column=name, y=data.values[:, n]) for n, name in columns], ignore_index=True)
    table["unique_id"] = table["series"] + "|" + table["column"]
    wanted = table[table["scored"]].rename(columns={"y": "actual"})
    table.loc[table["window"] == task.windows, "y"] = np.nan
    table[[*KEYS, "y", *covariates, "window"]].to_csv(folder / "rows.csv", index=False)
    about = {"horizon": task.horizon, "windows": task.windows, "season": season, "freq": freq, "time_limit": limit}
    (folder / "task.json").write_text(json.dumps({**about, "covariates": covariates}))
    return wanted[["window", "series", "column", *KEYS, "actual"]]


def run_tool(python: Path, script: Path, folder: Path, limit: int) -> dict[str, Any]:
    """Run a tool on one core, for at most `limit` seconds.

    Returns:
        `cpu_seconds`, `wall_seconds` and `memory_mib`, the highest, of the process and those that it started, and the
        `error` if it failed.
    """

    def alone() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        signal.alarm(limit)  # ends the process

    threads = {f"{name}_NUM_THREADS": "1" for name in THREADS}
    environment = os.environ | threads | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    command, began = [str(python), "-P", str(script), str(folder)], time.monotonic()
    with (folder / "said.txt").open("w") as said:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=said, stderr=said, preexec_fn=alone, start_new_session=True
        )
        _, status, used = os.wait4(process.pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what it started
    process.returncode = code = os.waitstatus_to_exitcode(status)
    spent = {"cpu_seconds": used.ru_utime + used.ru_stime, "wall_seconds": time.monotonic() - began}
    spent |= {"memory_mib": used.ru_maxrss / 1024}
    if code == 0:
        return spent
    lines = (folder / "said.txt").read_text(errors="replace").strip().splitlines()
    why = lines[-1][:300] if code > 0 and lines else f"ended by signal {-code}"
    return {**spent, "error": f"stopped after {limit} seconds" if code == -signal.SIGALRM else why}


def run(tool: str, task: Task, listed: Path, root: str | None, limit: int) -> dict[str, Any]:
    """The record of a tool on a task."""
    python, script = python_of(tool)
    data = [task.load(resolve_source(source, listed.parent, root), root) for source in task.data]
    record = dict[str, Any](format="peers-1", task=task.to_dict(), tool=Path(tool).stem, kind=kind_of(data, task))
    record["sha256"] = [each.fingerprint() for each in data]
    record |= dict.fromkeys(("cpu_seconds", "wall_seconds", "memory_mib"), 0.0)
    training, made = parse_span(task.time_limit or "2m"), list[dict[str, pd.DataFrame]]()
    try:
        for each in data:
            with tempfile.TemporaryDirectory() as name:
                wanted = write_windows(each, task, training, Path(name))
                spent = run_tool(python, script, Path(name), limit)
                record["memory_mib"] = max(record["memory_mib"], spent["memory_mib"])
                record |= {key: record[key] + spent[key] for key in ("cpu_seconds", "wall_seconds")}
                if "error" in spent:
                    raise RuntimeError(spent["error"])
                record |= json.loads((Path(name) / "about.json").read_text())
                made.append(_matched(pd.read_csv(Path(name) / "forecasts.csv", parse_dates=["ds"]), wanted))
        record["scores"] = {
            model: score_forecasts([each[model] for each in made], data, task)[["mase", "sql"]].mean().to_dict()
            for model in made[0]
        }
    except RuntimeError as error:
        record["error"] = str(error)
    return record


def _matched(forecasts: pd.DataFrame, wanted: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Forecasts by model in the form of `score_forecasts`; RuntimeError if one is missing."""
    frames = dict[str, pd.DataFrame]()
    for model, own in forecasts.groupby("model", sort=False):
        joined = wanted.merge(own, on=KEYS, how="left", validate="one_to_one")
        if missing := int(joined[COLUMNS].isna().any(axis=1).sum()):
            raise RuntimeError(f"{missing} of {len(joined)} forecasts of {model} are missing")
        frames[str(model)] = joined
    return frames


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 1 if a run failed, 2 for a mistake."""
    parser = argparse.ArgumentParser(prog="python -m scripts.peers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--tasks", nargs="+", type=Path, default=LISTS, metavar="LIST", help="YAML lists of tasks")
    parser.add_argument("--only", nargs="+", metavar="TASK", help="names of some of the tasks")
    parser.add_argument("--tools", nargs="+", default=TOOLS, metavar="TOOL", help=", ".join(TOOLS))
    parser.add_argument("--limit", type=int, default=900, help="seconds after which a tool is stopped on a dataset")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "peers", help="folder of the records")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="folder of the records of femts")
    parser.add_argument("--data-root", help="folder with the data; FEMTS_DATA without it")
    parser.add_argument("--part", default="board", choices=PARTS, help="table to print")
    parser.add_argument("--show", action="store_true", help="only print the tables of existing records")
    options, failed = parser.parse_args(argv), False
    try:
        tasks = [each for each in read_tasks(options.tasks) if not options.only or each[0].name in options.only]
        for task, listed in [] if options.show else tasks:
            for tool in options.tools:
                path = record_path(options.out, task, Path(tool).stem)
                if read(path, task) is None:
                    record = run(tool, task, listed, options.data_root, options.limit)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(json.dumps(record, indent=1) + "\n")
                    failed |= "error" in record
                    scores = {name: f"{each['mase']:.4f}" for name, each in record.get("scores", {}).items()}
                    said = record.get("error", scores)
                    print(f"{task.name} {tool}: {said}, {record['cpu_seconds']:.0f} s", file=sys.stderr, flush=True)
        print(tables([task for task, _ in tasks], options.out, options.results, options.part))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
