"""Available devices and precisions for training."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass

import torch

from femts.config.settings import apply_settings
from femts.config.training import TrainingConfig
from femts.errors import UsageError
from femts.mixers.kernels import chosen, requested
from femts.text import arguments
from femts.training.nodes import joined_nodes


@dataclass(frozen=True)
class Accelerator:
    """An available device (`cpu`, `cuda`, `mps`), a precision (`32`, `bf16`), the number of processes, and whether
    training steps are replayed from a CUDA graph."""

    device: str
    precision: str
    devices: int
    graph: bool = False


def find_accelerator(training: TrainingConfig) -> Accelerator:
    """Resolve device and precision; `auto` means CUDA, with bf16 if the card supports it, or else the CPU in float32.

    Raises:
        UsageError: A requested device, precision, kernel, compilation or graph is not available.
    """
    device = training.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    needed = {"cuda": (torch.cuda, "CUDA device"), "mps": (torch.backends.mps, "Apple GPU")}
    if device in needed and not needed[device][0].is_available():
        absent = f"{device.upper()} is not available (torch finds no {needed[device][1]})"
        text = f"{absent}; use {arguments({'device': 'cpu'})} or leave it at auto."
        raise UsageError(text, argument="device", value=device, remedy={"device": None})
    nodes = joined_nodes()
    if nodes is not None and training.devices not in (1, nodes.processes):
        raise UsageError(
            f"Setting 'training.devices' requests {training.devices} processes, but {nodes.processes} were launched; remove "
            "it."
        )
    devices, here = (training.devices,) * 2 if nodes is None else (nodes.processes, nodes.per_node)
    available = {"cuda": torch.cuda.device_count(), "mps": 1}.get(device)
    if available is not None and here > available:
        asked = "Setting 'training.devices' requests" if nodes is None else "The launcher started processes for"
        raise UsageError(f"{asked} {here} devices of '{device}', but only {available} are available; lower it.")
    # Emulated bf16 on an older card is slower than float32.
    native = device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    if training.precision == "bf16" and device == "cuda" and not native:
        absent = "Precision 'bf16' is not supported by this CUDA device"
        text = f"{absent}; use {arguments({'precision': '32'})} or leave it at auto."
        raise UsageError(text, argument="precision", value="bf16", remedy={"precision": None})
    for operation, name in requested().items():
        chosen(operation, torch.device(device))
        if training.compile and name != "torch":
            raise UsageError(
                f"Kernel '{operation}={name}' does not support compilation; set training.compile=false, or do not "
                f"choose a kernel for {operation}."
            )
    if training.compile and training.precision == "bf16" and device == "cpu":
        raise UsageError("On a CPU, 'training.compile' requires precision 32; remove one of the two settings.")
    if training.compile:
        missing = missing_compiler(device)
        if missing:
            raise UsageError(f"Setting 'training.compile' is not supported because {missing}; leave it at false.")
    precision = ("bf16" if native else "32") if training.precision == "auto" else training.precision
    return Accelerator(device, precision, devices, _replays(training, device, devices))


def _replays(training: TrainingConfig, device: str, devices: int) -> bool:
    """Whether steps are replayed from a CUDA graph; raise UsageError if that is requested and cannot be."""
    if (
        training.graph != "on"
    ):  # `auto` is off until it is measured on a device that replayed steps are right and faster
        return False
    need = None
    if device != "cuda":
        need = f"a CUDA device, not '{device}'"
    elif devices > 1:
        need = f"a single process, not {devices}"
    elif training.compile:
        need = "training.compile=false"
    if need is not None:
        text = f"Setting 'training.graph=on' requires {need}; leave it at auto."
        raise UsageError(text, argument="training.graph", value="on", remedy={"settings": {"training.graph": "auto"}})
    return True


def named_accelerator(device: str) -> Accelerator:
    """Resolve a `device` name with default training settings; raises as `find_accelerator`."""
    return find_accelerator(apply_settings(TrainingConfig(), {"device": device}, where="training"))


def missing_compiler(device: str) -> str | None:
    """Reason why `torch.compile` cannot work on `device`, or None if it can."""
    if device == "cuda":
        return None if importlib.util.find_spec("triton") else "Triton is not installed"
    if device == "cpu":
        has_compiler = any(map(shutil.which, (os.environ.get("CXX", "g++"), "clang++")))
        return None if has_compiler else "there is no C++ compiler (CXX, g++ or clang++)"
    return f"femts does not support it on '{device}'"


def seed_device(device: torch.device, seed: int) -> None:
    """Seed the generators that a step on `device` uses.

    `torch.manual_seed` would seed every possible backend, taking a millisecond per call, and record each call for
    backends that are not available.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)
