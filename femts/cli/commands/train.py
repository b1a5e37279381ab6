"""`femts train`."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import DataRoot, option
from femts.cli.output import (
    choice_table,
    final_note,
    judgements,
    mean_scores,
    say_intervals,
    say_notes,
    say_warnings,
    scores_table,
)
from femts.cli.recipe import Recipe, RecipeOptions, TrainingOptions, make_recipe
from femts.cli.started import started
from femts.cli.streams import say
from femts.data.describe import count as counted
from femts.environment import launched_nodes
from femts.errors import AccuracyWarning, RunFailure, UsageError
from femts.files import write_file
from femts.forecaster.run_folder import METRICS, check_new_folder, check_replaceable, clear_run, runs_within
from femts.forecaster.saved_run import read_metrics
from femts.text import printable, strict_json

if TYPE_CHECKING:
    from femts.data.dataset import Dataset

_DEFAULT_PLACE = Path("runs")
REPORTING = 0.5  # seconds of a time limit for printing the scores


@command(10)
@grouped
def train(
    recipe: RecipeOptions,
    *,
    data_root: DataRoot = None,
    out: Annotated[Path | None, option("Folder of the run; by default runs/DATASET-MODEL-HORIZON.", "DIR")] = None,
    training: TrainingOptions,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run if it exists, or start it.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Overwrite the run in the folder; other files are kept.")
    ] = False,
) -> None:
    """Train a model and print its test scores.

    With --resume, the command starts a run, continues an interrupted one, or prints the scores of a finished one, so
    it can be repeated until it exits with 0. With --overwrite, the new run replaces the existing one in one move once it
    is complete, so neither a mistake nor an interruption loses anything; repeating the command continues it.
    """
    _take_part()
    plan = make_recipe(recipe, training)
    if resume and overwrite:
        raise UsageError("--resume and --overwrite cannot be combined; remove one of them.")
    if out is not None and not resume:
        (check_replaceable if overwrite else check_new_folder)(out)
    data = plan.load(data_root)
    with _folder(out, plan, data, resume, overwrite) as folder:
        records = _train_all(plan, data, folder, resume, overwrite, started())
    scores = {pred_len: record["test"] for pred_len, record in records.items()}
    from femts.training.evaluate import accuracy_notes

    where = {pred_len: f"{counted(pred_len, 'step')}: " if len(records) > 1 else "" for pred_len in records}
    say_warnings(where[p] + note for p, record in records.items() for note in accuracy_notes(record))
    say(f"run: {printable(folder)}")
    for pred_len, record in records.items():
        if "auto" in record:
            say(f"{choice_table(record['auto'], where[pred_len])}\n")
    say(scores_table(scores))
    for line in judgements(scores)[1]:
        say(line)
    say_notes(dict.fromkeys(final_note(record) for record in records.values() if "refit" in record))
    for pred_len, record in records.items():
        say_intervals(record["intervals"], where[pred_len])


def _take_part() -> None:
    """Take part in the training of another process and exit, if a launcher started both; without one, a table that is
    refused is not worth the seconds of importing torch."""
    if launched_nodes() is None:
        return
    from femts.training.loop import launch
    from femts.training.nodes import take_part

    take_part(launch)


@contextmanager
def _folder(out: Path | None, recipe: Recipe, data: Dataset, resume: bool, overwrite: bool) -> Iterator[Path]:
    """Folder of the run: `out`, the last folder of its name with `resume` or `overwrite`, or a new one reserved for
    this run."""
    if out is not None:
        yield out
        return
    first = _DEFAULT_PLACE / replace(recipe, pred_lens=_horizons(recipe, data)).default_name
    taken = list(takewhile(Path.exists, _numbered(first))) if resume or overwrite else []
    if taken:
        yield taken[-1]
        return
    folder = next(filter(_made, _numbered(first)))
    if folder != first:
        say(f"{printable(first)} exists, so this run goes to {printable(folder)}")
    try:
        yield folder
    except BaseException:
        with suppress(OSError):  # the folder is not empty
            folder.rmdir()
            folder.parent.rmdir()
        raise


def _numbered(first: Path) -> Iterator[Path]:
    return (first if n == 1 else Path(f"{first}-{n}") for n in count(1))


def _made(folder: Path) -> bool:
    """Create `folder`; False if it exists, even if another process was faster."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise RunFailure(f"Could not write {folder}: {error.strerror}; name another folder with --out.") from error
    return True


def _horizons(recipe: Recipe, data: Dataset) -> tuple[int, ...]:
    """Horizons of the recipe, or the default one for the frequency of the data."""
    from femts.training.resolve import horizon

    return recipe.pred_lens or (horizon(data, None).steps,)


def _train_all(
    recipe: Recipe, data: Dataset, folder: Path, resume: bool, overwrite: bool, began: float
) -> dict[int, dict[str, Any]]:
    """Train one model per horizon and return their records. With several horizons, each gets its own folder, and a
    summary is written."""
    single = len(recipe.pred_lens) <= 1
    if not single:
        _check_horizons(recipe, data)
    if single or not overwrite:
        return _train_each(recipe, data, folder, folder, resume, overwrite, began)
    from femts.training.run import overwriting

    check_replaceable(folder)
    with overwriting(folder) as new:
        clear_run(new)  # of a single horizon
        for run in runs_within(new):
            if int(run.name) not in recipe.pred_lens:
                shutil.rmtree(run)
        return _train_each(recipe, data, folder, new, True, True, began)


def _train_each(
    recipe: Recipe, data: Dataset, out: Path, folder: Path, resume: bool, overwrite: bool, began: float
) -> dict[int, dict[str, Any]]:
    """As `_train_all`, in `folder`, which is `out` or will replace it."""
    from femts.config.settings import read_setting
    from femts.config.training import TrainingConfig, parse_span
    from femts.training.train import train as fit

    single = len(recipe.pred_lens) <= 1
    limit = read_setting(TrainingConfig, "max_time", recipe.settings.get("training.max_time"), "training")
    runs = {pred_len: folder if single else folder / str(pred_len) for pred_len in _horizons(recipe, data)}
    records, settings = dict[int, dict[str, Any]](), dict(recipe.settings)

    def train_one(pred_len: int, run: Path) -> None:
        begun = run.exists()
        try:
            train_in(pred_len, run)
        except UsageError:
            if single or not overwrite or not begun:
                raise
            shutil.rmtree(run)  # of another call with --overwrite, which was interrupted
            train_in(pred_len, run)

    def train_in(pred_len: int, run: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)  # the command prints them with the scores
            fit(
                data,
                recipe.model,
                pred_len if recipe.pred_lens else None,
                seq_len=recipe.seq_len,
                protocol=recipe.protocol,
                out=run,
                resume=resume,
                overwrite=overwrite and single,
                refit=recipe.refit,
                settings=settings,
                progress=True,
            )

    finished = [p for p, run in runs.items() if not single and resume and (run / METRICS).is_file()]
    for pred_len in finished:  # check finished runs before spending hours on the others
        train_one(pred_len, runs[pred_len])  # raises if their settings or data differ
    left = [p for p in runs if p not in finished]
    for pred_len, run in runs.items():
        if pred_len in left:
            if limit is not None:  # unused time is available to later runs
                rest = began + parse_span(limit) - REPORTING - time.monotonic()
                settings["training.max_time"] = f"{max(1.0, rest / len(left)):.1f}s"
            left.remove(pred_len)
            train_one(pred_len, run)
        record, where = read_metrics(run), out / run.relative_to(folder)
        records[pred_len] = record
        if "known" in record:
            parts = ", ".join(f"{name} {100 * part:.0f} %" for name, part in record["known"].items())
            say_notes([f"share of seasonal differences explained by future covariates: {parts}"])
        if record["stopped"] == "max_time":
            say_notes(
                [
                    f"{where} reached the time limit after {counted(record['steps'], 'step')}, over which the learning rate decayed to zero"
                ]
            )
        if "thinned" in record:
            counts = " and ".join(f"{record[part]['windows']} of {n} {part}" for part, n in record["thinned"].items())
            say_notes(
                [
                    f"{where} scored {counts} windows, evenly spaced, "
                    + ("as their forecasts are fits" if limit is None else "within the time limit")
                    + "; a longer --time-limit scores more"
                ]
            )
    if not single:
        scores = {pred_len: record["test"] for pred_len, record in records.items()}
        summary: dict[str, Any] = {"pred_len": {str(p): s for p, s in scores.items()}, "mean": mean_scores(scores)}
        write_file(folder / METRICS, (strict_json(summary, indent=2) + "\n").encode())
    return records


def _check_horizons(recipe: Recipe, data: Dataset) -> None:
    """Raise UsageError for a horizon that does not fit, before hours are spent on the others."""
    from femts.training.request import FitRequest
    from femts.training.resolve import Lengths

    request = FitRequest.of(recipe.model, {}, recipe.settings, 0.0)
    for pred_len in recipe.pred_lens:
        request.check_fits(data.for_horizon(pred_len), Lengths(pred_len, recipe.seq_len, recipe.protocol))
