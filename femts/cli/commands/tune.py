"""`femts tune`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import DataRoot, count, option
from femts.cli.recipe import Recipe, RecipeOptions, TrainingOptions, each_once, make_recipe, parse_assignment
from femts.cli.streams import say
from femts.config.model import DEFAULT_MODEL
from femts.data.describe import count as counted
from femts.errors import UsageError
from femts.text import printable, quote, table

if TYPE_CHECKING:
    from femts.analysis.tune import TuningResult


@dataclass(frozen=True)
class StudyOptions:
    """Size and search space of a study."""

    trials: Annotated[
        str | None, option("Number of trials; by default 30, or as many as fit into --time-limit.", "N")
    ] = None
    time_limit: Annotated[str | None, option("Time limit, such as 10m.", "SPAN")] = None
    search: Annotated[
        list[str] | None,
        option("Search space of a setting, or of seq_len, instead of the model's default.", "KEY=A,B|LOW..HIGH"),
    ] = None
    origins: Annotated[
        str | None, option("Number of validation origins to average over; by default 1, the validation split.", "N")
    ] = None


@dataclass(frozen=True)
class TrialOptions:
    """Fields of `TrainingConfig` with flags of their own in this command."""

    seed: Annotated[str | None, option("Random seed of the trials and of each training; by default 42.", "N")] = None
    max_steps: Annotated[str | None, option("Optimiser steps per trial; by default 1000.", "N")] = None
    max_epochs: Annotated[str | None, option("Training budget in epochs instead of steps.", "N")] = None
    device: Annotated[str | None, option("Device to train on.", "auto|cpu|cuda|mps")] = None
    precision: Annotated[str | None, option("Numeric precision.", "auto|32|bf16")] = None


@command(15)
@grouped
def tune(
    recipe: RecipeOptions,
    study: StudyOptions,
    trial: TrialOptions,
    *,
    data_root: DataRoot = None,
    out: Annotated[
        Path | None, option("Folder of the study; by default runs/DATASET-MODEL-HORIZON-tune.", "DIR")
    ] = None,
) -> None:
    """Tune the settings of a model on the validation split.

    These include the look-back and the training recipe. The test split is never used. Running the same
    command again, also after an interruption, resumes the study in the folder. Pass its recipe.yaml to `femts train --config`.
    """
    plan = make_recipe(recipe, TrainingOptions(**vars(trial)), DEFAULT_MODEL)
    if len(plan.pred_lens) > 1:
        raise UsageError(
            f"Only one horizon can be tuned at a time, not {len(plan.pred_lens)}; pass a single --horizon."
        )
    search = each_once(map(_parse_search, study.search or []), "--search")
    trials = None if study.trials is None else count("--trials", study.trials)
    origins = 1 if study.origins is None else count("--origins", study.origins)
    data = plan.load(data_root)
    from femts.analysis.search_space import import_optuna  # imports torch, which a refused table does not need
    from femts.analysis.tune import tune as run_study
    from femts.training.resolve import horizon

    import_optuna()
    steps = plan.pred_lens[0] if plan.pred_lens else horizon(data, None).steps
    settings = dict(plan.settings)
    tuned = run_study(
        data,
        plan.model,
        steps,
        seq_len=plan.seq_len,
        protocol=plan.protocol,
        out=out or Path("runs") / f"{Path(plan.dataset).stem}-{plan.model}-{steps}-tune",
        trials=trials,
        time_limit=study.time_limit,
        search=search,
        origins=origins,
        seed=_seed(settings.pop("training.seed", 42)),
        settings=settings,
    )
    _print(tuned, plan)


def _parse_search(text: str) -> tuple[str, str]:
    """Parse `model.ridge=0.1,1` or `seq_len=168,336` into key and values."""
    key, equals, values = text.partition("=")
    return ("seq_len", values.strip()) if equals and key.strip() == "seq_len" else parse_assignment(text, "--search")


def _seed(value: Any) -> int:
    from femts.config.settings import read_setting
    from femts.config.training import TrainingConfig

    return int(read_setting(TrainingConfig, "seed", value, "training"))


def _print(tuned: TuningResult, plan: Recipe) -> None:
    states = tuned.trials["state"].value_counts()
    others = ", ".join(f"{states[state]} {state}" for state in ("pruned", "failed") if state in states)
    say(f"{counted(len(tuned.trials), 'trial')}{f', {others}' if others else ''}")
    rows: list[list[object]] = [["seq_len", tuned.seq_len]]
    rows += [[key, _value(tuned.settings[key])] for key in tuned.trials.columns if key in tuned.settings]
    say(table(("setting", "best"), rows))
    default = tuned.default_score
    without = "" if default is None else f", {default:.4f} without tuning ({100 * (tuned.score / default - 1):+.1f} %)"
    say(f"validation error {tuned.score:.4f}{without}")
    say(f"recipe: {printable(tuned.folder)}/recipe.yaml")


def _value(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else quote(str(value).lower())
