"""Commands to kill, and what holds afterwards."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

import femts
from femts.errors import UsageError
from femts.forecaster.forecaster import Forecaster
from scripts.bench.kills.process import Ended, import_for, run, was_killed

HIDDEN = (".new", ".ready", ".done", ".calibrated", ".work", "candidates")
NOTES = "notes.txt"
AUTO = ["--horizon", "6", "--max-steps", "12"]
SHORT = ["--horizon", "6", "--seq-len", "24", "--max-epochs", "3", "--set", "training.batch_size=64"]
DLINEAR = ["--model", "dlinear", *SHORT]


def train(data: str, *options: str) -> list[str]:
    """`femts train` on a small table."""
    return ["train", "--dataset", f"{data}.csv", "--out", "run", *options]


@dataclass(frozen=True)
class Case:
    """A command to kill.

    Attributes:
        name: what it does.
        command: its words.
        again: words of the command that continues it; empty repeats it.
        before: commands that run before it.
        other: words of a command on other data in the same folder, which after every third kill must replace what the killed
            one left; empty for none.
        results: names of files and folders with its results.
        roles: processes to kill.
        kills: number of kills.
    """

    name: str
    command: Sequence[str]
    again: Sequence[str] = ()
    before: Sequence[Sequence[str]] = ()
    other: Sequence[str] = ()
    results: Sequence[str] = ("run",)
    roles: Sequence[str] = ("main",)
    kills: int = 20


TABLE = (
    "table --datasets a.csv --models naive,dlinear --horizons 6 --seq-len 24 --jobs 2 --device cpu --results results"
)
TASKS = "table --tasks tasks.yaml --models ridge --jobs 2 --device cpu --results results"
OVER = "--overwrite"
CASES = (
    Case("train", train("a", *DLINEAR, "--no-refit"), train("a", *DLINEAR, "--no-refit", "--resume"),
         other=train("b", *DLINEAR, "--no-refit", OVER)),
    Case("refit", train("a", *DLINEAR, "--refit"), train("a", *DLINEAR, "--refit", "--resume"),
         other=train("b", *DLINEAR, "--refit", OVER)),
    Case("auto", train("a", *AUTO), train("a", *AUTO, "--resume"),
         other=train("b", *AUTO, OVER)),
    Case("horizons", train("a", *DLINEAR, "--horizon", "6,8", "--no-refit"),
         train("a", *DLINEAR, "--horizon", "6,8", "--no-refit", "--resume"), results=("run/6", "run/8"), kills=10),
    Case("overwrite", train("a", *DLINEAR, "--refit", OVER), other=train("b", *DLINEAR, "--no-refit", OVER),
         before=[train("a", "--model", "ridge", "--horizon", "6", "--seq-len", "24", "--refit")], kills=30),
    Case("overwrite by auto", train("a", *AUTO, OVER), other=train("b", *AUTO, OVER),
         before=[train("a", *DLINEAR, "--refit")]),
    Case("overwrite horizons", train("a", *DLINEAR, "--horizon", "6,8", "--no-refit", OVER),
         before=[train("a", *DLINEAR, "--horizon", "6,10", "--no-refit")], results=("run/6", "run/8"),
         other=train("b", *DLINEAR, "--horizon", "8,6", "--no-refit", OVER), kills=10),
    Case("calibrate", ["calibrate", "run", "--horizon", "9"], before=[train("a", *DLINEAR, "--refit")],
         other=train("b", *DLINEAR, "--refit", OVER)),
    Case("tune", ["tune", "--dataset", "a.csv", *DLINEAR[:6], "--max-steps", "8", "--trials", "3", "--out", "study"],
         results=("study",)),
    Case("table", TABLE.split(), results=("results",), roles=("main", "cell"), kills=16),
    Case("tasks", TASKS.split(), results=("results",), roles=("main", "cell"), kills=16),
)  # fmt: skip


def make_tables(folder: Path) -> None:
    """Write two tables of the same form, and a list of tasks."""
    dates = pd.date_range("2024-01-01", periods=260, freq="h")
    for number, name in enumerate("ab"):
        noise = np.random.default_rng(number).normal(size=(len(dates), 2))
        values = 5 + np.sin(np.arange(len(dates)) / 24 * 2 * np.pi)[:, None] + 0.2 * noise
        values = values.round(4)
        frame = pd.DataFrame({"date": dates, "x": values[:, 0], "y": values[:, 1]})
        frame.to_csv(folder / f"{name}.csv", index=False)
    task = {"name": "hours", "data": "a.csv", "horizon": 6, "windows": 2}
    (folder / "tasks.yaml").write_text(yaml.safe_dump({"tasks": [task]}))


@dataclass
class Found:
    """What was found after the kills of a case; each fault names the number of the change.

    Attributes:
        changes: number of changes of the whole command.
        kills: number of kills.
        kept: how often the run of before was the one that is read, and how often the new one.
        lost: the run of before was not readable.
        swapped: something was read that is neither.
        unusable: a command that should have replaced or continued it was refused.
        different: it ended with something else than without a kill.
        traces: a command ended with a traceback.
        left: files were left behind.
        orphaned: longest time in seconds for which child processes went on.
    """

    changes: int = 0
    kills: int = 0
    kept: list[int] = field(default_factory=lambda: [0, 0])
    lost: list[str] = field(default_factory=list)
    swapped: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    orphaned: float = 0.0

    @property
    def faults(self) -> dict[str, list[str]]:
        """Faults by kind."""
        names = ("lost", "swapped", "unusable", "different", "traces", "left")
        return {name: found for name in names if (found := getattr(self, name))}


def try_case(case: Case, folder: Path, turns: Mapping[str, int] | None, random: np.random.Generator) -> Found:
    """Kill a case at random changes, and look at what is left each time.

    Args:
        case: the case.
        folder: an empty folder.
        turns: number of kills by role; None takes those of the case.
        random: source of the changes.
    """
    clean, found = folder / "clean", Found()
    clean.mkdir(parents=True)
    make_tables(clean)
    import_for(case.command, _copy(clean, folder / "imported"))
    for command in case.before:
        _must(run(command, clean))
    first = clean / case.results[0].partition("/")[0]
    before = prints(_copy(clean, folder / "copy"), case.results) if case.before else {}  # with the paths of a copy
    if case.before:
        (first / NOTES).write_text("mine")
    wanted, others = _results(case, case.command, clean, folder / "whole"), {}
    if case.other:
        others = _results(case, case.other, clean, folder / "other", fresh=True)
    kills = turns or {role: case.kills // len(case.roles) for role in case.roles}
    for role, count in kills.items():
        counted = _copy(clean, folder / "counted")
        changes = run(case.command, counted, role=role).changes
        found.changes += changes
        for turn in sorted(random.choice(np.arange(1, changes + 1), min(count, changes), replace=False).tolist()):
            _kill(case, clean, folder / "killed", int(turn), role, (before, wanted, others), found)
    shutil.rmtree(folder)
    return found


def _kill(
    case: Case,
    clean: Path,
    place: Path,
    turn: int,
    role: str,
    results: tuple[dict[str, str], dict[str, str], dict[str, str]],
    found: Found,
) -> None:
    before, wanted, others = results
    where = f"{case.name}, {role}, change {turn}"
    killed = run(case.command, _copy(clean, place), turn, role)
    if role == "main" and not was_killed(killed):
        return  # in this run, there were fewer changes
    found.kills, found.orphaned = found.kills + 1, max(found.orphaned, killed.orphaned)
    now = prints(place, case.results)
    found.traces += [f"{where}: {text}" for text in now.values() if text.startswith("traceback")]
    for name, text in now.items() if case.results[0].startswith("run") else ():
        if not text.startswith("refused") and text not in (before.get(name), wanted[name]):
            found.swapped.append(f"{where}: {name} {text}")
        if text.startswith("refused") and not before.get(name, text).startswith("refused"):
            found.lost.append(f"{where}: {name} {text}")
    found.kept[int(now == wanted)] += 1
    if case.other and not found.kills % 3:
        copy = _copy(place, place.with_name("copied"))
        _compare(case.other, copy, others, case, f"{where}, then other data", found)
    _compare(case.again or case.command, place, wanted, case, where, found)


def _compare(command: Sequence[str], place: Path, wanted: dict[str, str], case: Case, where: str, found: Found) -> None:
    ended = run(command, place)
    if "Traceback" in ended.said:
        found.traces.append(f"{where}: {ended.said[-300:]}")
    elif ended.status:
        found.unusable.append(f"{where}: {ended.said.strip().splitlines()[-1:]}")
    elif prints(place, case.results) != wanted:
        found.different.append(where)
    elif left := leftovers(place):
        found.left.append(f"{where}: {left}")
    if case.before and (place / case.results[0].partition("/")[0] / NOTES).read_text() != "mine":
        found.lost.append(f"{where}: {NOTES}")


def leftovers(folder: Path) -> list[str]:
    """Names of temporary files and folders in `folder`."""
    names = [path for path in folder.rglob("*") if path.name in HIDDEN or path.suffix in (".part", ".lock")]
    return [str(path.relative_to(folder)) for path in names]


def _results(case: Case, command: Sequence[str], clean: Path, place: Path, fresh: bool = False) -> dict[str, str]:
    """Results of a command that is not killed."""
    _copy(clean, place)
    if fresh:
        shutil.rmtree(place / case.results[0].partition("/")[0], ignore_errors=True)
    _must(run(command, place))
    return prints(place, case.results)


def _must(ended: Ended) -> None:
    if ended.status:
        raise AssertionError(ended.said)


def _copy(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target


def prints(place: Path, results: Sequence[str]) -> dict[str, str]:
    """Hashes of all that runs, studies or records in `place` hold, except durations; or why they are refused."""
    return {name: _print_of(place / name, place) for name in results}


def _print_of(folder: Path, place: Path) -> str:
    if (folder / "study.db").exists() or folder.name in ("study", "results"):
        content: Any = {str(path.relative_to(folder)): _text(path) for path in _kept(folder)}
    else:
        try:
            content = all_of(femts.load(folder))
        except UsageError as error:
            return f"refused: {error}"
        except Exception as error:
            return f"traceback: {error!r}"
    text = json.dumps(_timeless(content), sort_keys=True, default=str).replace(str(place), "")
    return hashlib.sha256(text.encode()).hexdigest()


def _kept(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".json", ".csv", ".yaml") and ".work" not in path.parts:
            yield path


def _text(path: Path) -> Any:
    if path.suffix == ".csv":
        return pd.read_csv(path, float_precision="round_trip").drop(columns="seconds").to_csv()
    return json.loads(path.read_text()) if path.suffix == ".json" else path.read_text()


def all_of(forecaster: Forecaster) -> dict[str, Any]:
    """Everything in a forecaster, in plain types."""
    return {
        "config": forecaster.config.to_dict(),
        "preprocess": forecaster.preprocess_record(),
        "weights": {name: value.tolist() for name, value in forecaster.model.state_dict().items()},
        "metrics": dict(forecaster.metrics),
        "history": list(forecaster.validations),
        "intervals": None if forecaster.intervals is None else forecaster.intervals.to_bytes().hex(),
        "scored": None if forecaster.scored is None else all_of(forecaster.scored),
    }


def _timeless(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _timeless(each) for key, each in value.items() if not str(key).endswith("seconds")}
    return [_timeless(each) for each in value] if isinstance(value, list | tuple) else value
