"""Proposals of Optuna: the values of the next trial, and whether one that runs is worth its time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from femts.analysis.tune.space import Space, combinations
from femts.analysis.tune.study import COMPLETE, FAILED, PRUNED, Trial
from femts.errors import UsageError
from femts.training.batches import derive_seed

if TYPE_CHECKING:
    import optuna

RANDOM = 6  # trials before the sampler begins to learn, the first among them
PRUNE_AFTER, PRUNE_FROM = 4, 2  # complete trials, and validations of one, before any is pruned


def check_optuna() -> None:
    """UsageError where Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ImportError as error:
        raise UsageError("Tuning needs Optuna, which is not installed; run pip install optuna.") from error


def propose(space: Space, trials: Sequence[Trial], seed: int) -> tuple[dict[str, Any], optuna.Trial] | None:
    """Values of the next trial after `trials`, and the trial as Optuna has it; None where all have been tried.

    It follows from the arguments alone, so that a study that was broken off goes on as it would have.
    """
    import optuna

    every = combinations(space)
    tried = [dict(trial.values) for trial in trials]
    untried = None if every is None else [values for values in every if values not in tried]
    if untried == []:
        return None
    with _quiet():
        study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(
                seed=derive_seed("trial", seed, len(trials)) % 2**32, n_startup_trials=RANDOM, multivariate=True
            ),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=PRUNE_AFTER, n_warmup_steps=PRUNE_FROM),
        )
        distributions = {key: dimension.distribution() for key, dimension in space.items()}
        for trial in trials:
            if all(space[key].takes(value) for key, value in trial.values.items()):
                study.add_trial(_as_optuna(trial, distributions))
        asked = study.ask(distributions)
    values = {key: asked.params[key] for key in space}
    if untried is not None and values not in untried:
        values = untried[derive_seed("untried", seed, len(trials)) % len(untried)]
    return values, asked


def _as_optuna(trial: Trial, distributions: Mapping[str, Any]) -> optuna.trial.FrozenTrial:
    import optuna

    states = optuna.trial.TrialState
    return optuna.trial.create_trial(
        state={COMPLETE: states.COMPLETE, PRUNED: states.PRUNED, FAILED: states.FAIL}[trial.state],
        value=trial.score,
        params=dict(trial.values),
        distributions=dict(distributions),
        intermediate_values=dict(enumerate(trial.validations)),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna's own lines off the terminal."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
