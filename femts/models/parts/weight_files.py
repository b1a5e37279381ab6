"""Files of pretrained weights: their location, `config.json` and hash."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

from femts.errors import UsageError, reads
from femts.text import Blank, arguments, quote

CONFIG = "config.json"
WEIGHT_FILES = "*.safetensors"  # never a pickle
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


class WeightsConfig(NamedTuple):
    """Contents of the `config.json` next to the weights.

    Attributes:
        architecture: class of the network.
        quantiles: levels that it forecasts.
    """

    architecture: str
    quantiles: tuple[float, ...]


@reads("model.weights")
def find_weights(weights: str | None, revision: str | None = None, download: bool = False) -> Path:
    """Folder of the `weights`, given as a folder or a hub name.

    Raises:
        UsageError: The weights are not given, do not exist, or could not be downloaded.
    """
    if not weights:
        raise UsageError(
            "A pretrained model needs weights, which femts never downloads by default; set their folder, or their "
            f"name on the Hugging Face hub, with {arguments({'settings': {'model.weights': Blank('FOLDER')}})}."
        )
    if os.path.isdir(weights):
        if revision is not None:
            text = "Setting 'model.revision' applies to names on the hub, but model.weights is a folder; remove it."
            raise UsageError(text, argument="model.revision", value=revision)
        return Path(weights)
    if not HUB_NAME.fullmatch(weights):
        raise UsageError(
            f"The weights folder '{quote(weights)}' does not exist; restore it, or give another with "
            f"{arguments({'settings': {'model.weights': Blank('FOLDER')}})}."
        )
    from huggingface_hub import snapshot_download

    at = f"'{weights}'" if revision is None else f"'{weights}' at revision '{quote(revision)}'"
    wanted = [CONFIG, WEIGHT_FILES]
    try:
        return Path(snapshot_download(weights, revision=revision, allow_patterns=wanted, local_files_only=not download))
    except (OSError, ValueError) as error:
        if download:
            raise UsageError(
                f"Weights {at} could not be downloaded from the Hugging Face hub ({type(error).__name__}); check the "
                "network and the name, or give a folder."
            ) from error
        raise UsageError(
            f"Weights {at} are neither a folder nor in the local cache of the Hugging Face hub; give a folder, or "
            f"download them with {arguments({'settings': {'model.download': True}})}."
        ) from error


def read_weights_config(folder: Path) -> WeightsConfig:
    """Read the `config.json` in `folder`; raise UsageError unless it belongs to Chronos-2 or Chronos-Bolt."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
        return WeightsConfig(config["architectures"][0], tuple(map(float, config["chronos_config"]["quantiles"])))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UsageError(
            f"Folder {folder} holds no weights of Chronos-2 or Chronos-Bolt: its {CONFIG} is missing, or belongs to "
            "another model; give the folder of one of these models."
        ) from error


def check_hash(folder: Path, expected: str | None = None) -> str:
    """Hash of the configuration and weights in `folder`; raise UsageError if files are missing or it differs from
    `expected`."""
    files = [folder / CONFIG, *sorted(folder.glob(WEIGHT_FILES))]
    lines = list[str]()
    try:
        for path in files:
            with path.open("rb") as file:
                lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    except OSError as error:
        raise UsageError(f"Folder {folder} lacks a readable {path.name}; provide the folder of the weights.") from error
    if len(files) < 2:
        raise UsageError(f"Folder {folder} has no {WEIGHT_FILES}; provide weights in this format.")
    found = hashlib.sha256("".join(lines).encode()).hexdigest()
    if expected not in (None, found):
        raise UsageError(
            f"Weights in {folder} have the hash {found[:12]}, not {quote(expected)[:12]} as requested or used in "
            "training; restore the original weights, or train again."
        )
    return found
