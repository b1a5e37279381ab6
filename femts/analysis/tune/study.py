"""The file of a study: what is searched, and every trial that has ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femts.config.rules import Misfit, anything, entries, fields, maybe, number, one_of, read_json, several, text, whole
from femts.errors import UsageError
from femts.files import write_file
from femts.text import shown, strict_json

if TYPE_CHECKING:
    import pandas as pd

STUDY, FORMAT = "study.json", 1
COMPLETE, PRUNED, FAILED = "complete", "pruned", "failed"


@dataclass(frozen=True)
class Trial:
    """One recipe that was tried.

    Attributes:
        number: from 0, which is the recipe as it is without tuning.
        values: of the searched settings by key.
        state: `complete`, `pruned` (it was worse than most on the way) or `failed`.
        scores: validation error at each origin; empty unless it is complete.
        validations: those on the way, at the first origin.
        seconds: time it took.
        reason: of a failure.
    """

    number: int
    values: Mapping[str, Any]
    state: str
    scores: tuple[float, ...] = ()
    validations: tuple[float, ...] = ()
    seconds: float = 0.0
    reason: str = ""

    @property
    def score(self) -> float | None:
        """Mean of the scores; None without some."""
        return sum(self.scores) / len(self.scores) if self.scores else None


_TRIAL = fields(
    {
        "number": whole(),
        "values": entries(anything),
        "state": one_of(COMPLETE, PRUNED, FAILED),
        "scores": several(number()),
        "validations": several(number()),
        "seconds": number(0),
        "reason": text,
    }
)
_FILE = fields({"format": whole(), "question": entries(maybe(anything)), "trials": several(_TRIAL)})


def write_study(folder: Path, question: Mapping[str, Any], trials: Sequence[Trial]) -> None:
    """Write the file, whole or not at all; RunFailure when the disk refuses."""
    content = {"format": FORMAT, "question": question, "trials": [asdict(trial) for trial in trials]}
    write_file(folder / STUDY, (strict_json(content, indent=1) + "\n").encode())


def read_study(folder: Path, question: Mapping[str, Any]) -> list[Trial]:
    """Trials of the study in `folder`, none where it has not begun.

    Raises:
        UsageError: the file is damaged, or of a study that asked something else.
    """
    path = folder / STUDY
    try:
        content = read_json(path)
        _FILE(content, "")
        if content["format"] != FORMAT or [each["number"] for each in content["trials"]] != list(
            range(len(content["trials"]))
        ):
            raise Misfit("trials", content["format"], "a whole study of this femts")
    except FileNotFoundError:
        return []
    except (Misfit, OSError) as error:
        raise UsageError(f"Study {path} cannot be read: {error}; choose another folder with --out.") from error
    before, now = content["question"], json.loads(strict_json(question))
    for key in before | now:
        if before.get(key) != now.get(key):
            raise UsageError(
                f"Study {path} was begun with {key} {shown(before.get(key))}, not {shown(now.get(key))}; go on with "
                "that, or choose another folder with --out."
            )
    return [
        Trial(**{**each, "scores": tuple(each["scores"]), "validations": tuple(each["validations"])})
        for each in content["trials"]
    ]


def trials_frame(trials: Sequence[Trial], keys: Sequence[str]) -> pd.DataFrame:
    """One row a trial: `trial`, `state`, `score` (NaN without one), scores by origin where there
    are several, the settings `keys`, `seconds` and `reason`."""
    import pandas as pd

    origins = max((len(trial.scores) for trial in trials), default=1)
    columns: dict[str, list[Any]] = {
        "trial": [trial.number for trial in trials],
        "state": [trial.state for trial in trials],
        "score": [trial.score for trial in trials],
    }
    for k in range(origins) if origins > 1 else ():
        columns[f"origin_{k + 1}"] = [trial.scores[k] if trial.scores else None for trial in trials]
    columns |= {key: [trial.values[key] for trial in trials] for key in keys}
    columns |= {"seconds": [trial.seconds for trial in trials], "reason": [trial.reason for trial in trials]}
    kinds = {"score": "float64"} | {key: object for key in keys if None in columns[key]}  # None is a value of its own
    return pd.DataFrame({key: pd.Series(values, dtype=kinds.get(key)) for key, values in columns.items()})
