"""Ways of damaging a run folder: single bits, and forged files whose hashes are right."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.numpy import load, save

import femts
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import FORMAT, sealed

FILES = ("config.yaml", "preprocess.json", "model.safetensors", "intervals.safetensors", "metrics.json", "metrics.csv")


def flipped(content: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """`content` with one bit changed, at `count` places drawn by `seed`."""
    for place in random.Random(seed).sample(range(8 * len(content)), min(count, 8 * len(content))):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        yield bytes(changed)


def all_of(forecaster: Forecaster) -> dict[str, Any]:
    """All that a forecaster was loaded with, in values that compare."""
    return {
        "config": forecaster.config,
        "preprocess": forecaster.preprocess_record(),
        "weights": {name: value.tolist() for name, value in forecaster.model.state_dict().items()},
        "metrics": forecaster.metrics,
        "history": forecaster.validations,
        "intervals": None if forecaster.intervals is None else forecaster.intervals.to_bytes(),
    }


def loaded(folder: Path) -> dict[str, Any]:
    return all_of(femts.load(folder))


def reseal(folder: Path) -> None:
    """Make every hash of the folder right, as somebody who knows how may."""
    path = folder / "metrics.json"
    metrics = json.loads(path.read_text())
    if not isinstance(metrics, dict):
        return
    if isinstance(metrics.get("files"), dict):
        for name in metrics["files"]:
            metrics["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    path.write_bytes(sealed(metrics))


def rebind(folder: Path) -> None:
    """Make the weights say that they belong to the preprocessing as it is now."""
    from femts.config.rules import fingerprint

    path = folder / "model.safetensors"
    path.write_bytes(
        save(load(path.read_bytes()), {"preprocess": fingerprint(json.loads((folder / "preprocess.json").read_text()))})
    )


def edit(folder: Path, name: str, change: Callable[[Any], Any]) -> None:
    """Put what `change` makes of the content of a file in its place, or of its tensors."""
    path = folder / name
    if name.endswith(".safetensors"):
        content = path.read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        path.write_bytes(save(change(load(content)), header.get("__metadata__")))
    elif name.endswith(".yaml"):
        path.write_text(yaml.safe_dump(change(yaml.safe_load(path.read_text())), sort_keys=False))
    else:
        path.write_text(json.dumps(change(json.loads(path.read_text()))))


def checkpoint_with(path: Path, change: Callable[[dict[str, Any]], Any], number: int = FORMAT) -> None:
    """Change a checkpoint and make its hash right."""
    import io

    content = torch.load(io.BytesIO(path.read_bytes().partition(b"\n")[2]), weights_only=True)
    written = io.BytesIO()
    torch.save(change(content), written)
    digest = hashlib.sha256(written.getvalue()).hexdigest()
    path.write_bytes(f"femts checkpoint {number} {digest}\n".encode() + written.getvalue())
