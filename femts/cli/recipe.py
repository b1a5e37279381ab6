"""Recipe of a training: the configuration file and, over it, the flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from femts.config.model import SHAPE
from femts.config.values import check_plain, read_yaml, whole_number
from femts.data.protocols import HORIZONS
from femts.errors import UsageError, suggest
from femts.text import shown

SECTIONS = ("model", "training")
_ROLES = ("target", "past", "future", "calendar")
_BUDGETS = {"training.max_steps", "training.max_epochs"}  # two ways to say one thing
_KEYS = ("dataset", "na", "columns", *_ROLES, "model", "pred_len", "seq_len", "protocol", "training")


@dataclass(frozen=True)
class Recipe:
    """One `femts train` call, before the data are seen.

    Attributes:
        dataset: a name of the catalogue or the path of a CSV file.
        model: registered name.
        pred_lens: horizons, one run each.
        seq_len: look-back; None leaves it to the protocol.
        protocol: named protocol.
        settings: dotted keys (`model.components`, `training.lr`) -> value or text.
        reading: how the data are read, arguments of `load_dataset`.
    """

    dataset: str
    model: str
    pred_lens: tuple[int, ...]
    seq_len: int | None
    protocol: str
    settings: Mapping[str, Any]
    reading: Mapping[str, Any]

    @property
    def default_name(self) -> str:
        """Name of the run folder where none is given."""
        horizons = "all" if self.pred_lens == HORIZONS else "-".join(map(str, self.pred_lens))
        return f"{Path(self.dataset).stem}-{self.model}-{horizons}"


def make_recipe(config: Path | None, flags: Mapping[str, Any], assignments: Sequence[str]) -> Recipe:
    """Merge defaults, the YAML file `config`, `--set` assignments and the flags that were given, in rising order.

    Args:
        config: a recipe, or the `config.yaml` of a run.
        flags: `training.*` and the keys of the file; None where a flag was not given.
        assignments: texts `key=value`.

    Raises:
        UsageError: a fault in any of them, in one sentence.
    """
    given = {"model": "fem_sm", "pred_len": "96", "seq_len": "auto", "protocol": "paper"}
    settings: dict[str, Any] = {}
    if config is not None:
        top, settings = _read_config(config)
        given |= top
    said = {name: value for name, value in flags.items() if value is not None}
    given |= {name: value for name, value in said.items() if "." not in name}
    for more in (dict(map(parse_assignment, assignments)), {name: value for name, value in said.items() if "." in name}):
        if _BUDGETS & more.keys():  # what says how long goes before what said it in another way
            settings = {name: value for name, value in settings.items() if name not in _BUDGETS}
        settings |= more
    if "dataset" not in given:
        raise UsageError("No dataset is named; add --dataset NAME (see 'femts datasets list') or --dataset FILE.csv.")
    return Recipe(
        dataset=given["dataset"],
        model=given["model"],
        pred_lens=parse_horizons(given["pred_len"]),
        seq_len=_seq_len(given["seq_len"]),
        protocol=given["protocol"],
        settings=settings,
        reading=parse_reading(given),
    )


def parse_reading(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `load_dataset` from what was given for `na`, `columns`, `target`, `past`, `future` and `calendar`; those
    that say nothing are left out.

    Raises:
        UsageError: one cannot be read.
    """
    reading = {"na": _na(given.get("na")), "columns": _columns(given.get("columns")), **_roles(given)}
    return {key: value for key, value in reading.items() if value}


def parse_horizons(value: object) -> tuple[int, ...]:
    """`96`, `96,192`, `[96, 192]` or `all` as a tuple of distinct horizons, in the order given."""
    if str(value).strip().lower() == "all":
        return HORIZONS
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    horizons = tuple(dict.fromkeys(whole_number(part, "Horizon") for part in parts))
    numbers = tuple(number for number in horizons if number is not None and number >= 1)
    if not horizons or len(numbers) < len(horizons):
        raise UsageError(f"Horizon '{shown(value)}' is not a number of steps; write --pred-len 96, 96,192 or all.")
    return numbers


def _columns(value: object) -> dict[str, str]:
    """`time=when,value=sales`, the same as a mapping, or nothing."""
    if isinstance(value, Mapping):
        return {str(key): str(name) for key, name in value.items() if name is not None}
    pairs = dict(part.partition("=")[::2] for part in str(value).split(",")) if value is not None else {}
    for key, name in pairs.items():
        if key not in ("time", "series", "value") or not name:
            raise UsageError(f"Columns '{shown(value)}' cannot be read; write --columns time=NAME,series=NAME,value=NAME.")
    return pairs


def _roles(given: Mapping[str, Any]) -> dict[str, Any]:
    """Names as a list, or as text with commas between them; `calendar` as a flag or a YAML boolean."""
    names = {}
    for role in ("target", "past", "future"):
        value = given.get(role)
        parts = value if isinstance(value, list | tuple) else [] if value is None else str(value).split(",")
        names[role] = tuple(str(part) for part in parts)
        if "" in names[role]:
            raise UsageError(f"Columns '{shown(value)}' cannot be read; write --{role} NAME or --{role} NAME,NAME.")
    calendar = given.get("calendar") or False
    if not isinstance(calendar, bool):
        raise UsageError(f"Setting 'calendar' takes true or false, not {shown(calendar)}.")
    return {**names, "calendar": calendar}


def _na(value: object) -> tuple[float, ...]:
    """`-9999`, `-9999,0`, `[-9999]` or nothing as numbers."""
    parts = value if isinstance(value, list | tuple) else [] if value is None else str(value).split(",")
    try:
        return tuple(float(str(part)) for part in parts)
    except ValueError as error:
        raise UsageError(f"Sentinel '{shown(value)}' is not a number; write --na -9999 or --na -9999,0.") from error


def _seq_len(value: object) -> int | None:
    if value is None or str(value).strip().lower() == "auto":
        return None
    steps = whole_number(value, "Look-back")
    if steps is None or steps < 1:
        raise UsageError(f"Look-back '{shown(value)}' is not a number of steps; write --seq-len 512 or auto.")
    return steps


def parse_assignment(text: str, option: str = "--set") -> tuple[str, str]:
    """`section.name=value`, as `option` was given it, as key and value."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{option} '{shown(text)}' has no value; write it as {shown(text) or 'training.lr'}=VALUE.")
    section, dot, name = key.strip().partition(".")
    if section not in SECTIONS or not dot or not name:
        raise UsageError(f"Unknown setting '{shown(key)}'; write model.NAME=VALUE or training.NAME=VALUE.")
    return key.strip(), value.strip()


def _read_config(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Top-level values and dotted settings of a YAML file."""
    content = read_yaml(path, "Configuration")
    check_plain(content, f"Configuration {path}")
    if not isinstance(content, dict):
        raise UsageError(f"Configuration {path} is not a list of 'key: value' lines; see the files in configs/.")
    top = {str(key): value for key, value in content.items() if key != "format"}
    for key in top:
        if key not in _KEYS:
            raise UsageError(f"Configuration {path} has the unknown key '{shown(key)}'{suggest(key, _KEYS)}")
    return _flatten(top, path)


def _flatten(top: dict[str, Any], path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    settings: dict[str, Any] = {}
    if isinstance(top.get("dataset"), dict):  # the form of a run's own config.yaml
        top |= {key: top["dataset"].get(key) for key in ("na", "columns")} | (top["dataset"].get("roles") or {})
        top["dataset"] = top["dataset"].get("source") or top["dataset"].get("name")
    model = top.pop("model", None)
    if isinstance(model, dict):
        model = {str(key): value for key, value in model.items()}
        settings |= {f"model.{key}": value for key, value in model.items() if key not in ("name", *SHAPE)}
        model = model.get("name")
    training = top.pop("training", {})
    if not isinstance(training, dict):
        raise UsageError(f"Configuration {path} has 'training: {shown(training)}'; give it indented lines such as 'lr: 1e-4'.")
    settings |= {f"training.{key}": value for key, value in training.items()}
    if model is not None:
        top["model"] = model
    for key in ("dataset", "model", "protocol"):
        if not isinstance(top.get(key, ""), str):
            raise UsageError(f"Configuration {path} has '{key}: {shown(top[key])}', which is not a name.")
    return top, settings
