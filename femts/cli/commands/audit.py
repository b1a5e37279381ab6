"""`femts audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.command import command
from femts.cli.options import DataRoot
from femts.cli.run_options import Moved, Run, load_scored
from femts.cli.streams import say
from femts.text import strict_json, table

if TYPE_CHECKING:
    from femts.analysis.audit.conventions import ConventionScore

_RESULT = {True: "passed", False: "FAILED", None: "-"}


@command(80)
def audit(
    run: Run,
    dataset: Moved = None,
    data_root: DataRoot = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Check a run for data leakage and dropped windows.

    Perturbs what must not affect forecasts (future rows, other channels, order, batch size), refits
    scalers and the like, counts the windows, and prints the test score under each common
    convention. The exit status is 1 if a check fails.
    """
    from femts.analysis.audit.run import audit as audit_run

    result = audit_run(load_scored(run, "cpu", dataset), data_root=data_root)
    if as_json:
        say(strict_json({"run": str(run), **result.to_dict()}))
    else:
        say(table(("check", "result", "what was found"), [(c.name, _RESULT[c.passed], c.says) for c in result.checks]))
        say()
        say(table(("convention", "units", "windows", "mse", "mae"), [_cells(score) for score in result.scores]))
    for check in result.failed:
        say(f"femts: The audit of {run} failed at '{check.name}': {check.says}.", error=True)
    return 1 if result.failed else 0


def _cells(score: ConventionScore) -> tuple[object, ...]:
    """A row of the second table; conventions may differ beyond the four digits printed elsewhere."""
    return score.convention, score.units, score.windows, f"{score.mse:.6f}", f"{score.mae:.6f}"
