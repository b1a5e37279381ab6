"""`femts doctor`: versions, devices and kernels."""

from __future__ import annotations

import platform
import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version

from femts.cli.command import command
from femts.cli.streams import say
from femts.data.describe import count
from femts.text import table


@command(130)
def doctor() -> None:
    """Show versions, devices and kernels.

    Lists the kernel used by each prior, by the conditioner and by the read, and why a faster library is not used.
    """
    import torch

    from femts._version import __version__
    from femts.mixers.priors.registry import prior_class, prior_names

    versions = [("femts", __version__), ("python", platform.python_version())]
    versions += [(name, _version(name) + also) for name, also in _requirements().items()]
    say(table(("package", "version"), versions))
    say()
    say(table(("device", "state"), _devices(torch)))
    say()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parts = {name: prior_class(name).operation for name in prior_names()} | {"conditioner": "scan", "read": "read"}
    rows = [(part, *_kernel(operation, torch.device(device))) for part, operation in parts.items()]
    say(table(("part", f"computed on {device} by", "why not faster"), rows))


def _requirements() -> dict[str, str]:
    """Dependencies of the installed femts, with a suffix that names the extra they belong to; none in a mere
    checkout."""
    packages, lines = dict[str, str](), list[str]()
    with suppress(PackageNotFoundError):
        lines = requires("femts") or []
    for line in lines:
        name, extra = re.split(r"[^\w.-]", line)[0], re.search(r"extra == .(\w+)", line)
        if extra is None or extra[1] != "dev":
            packages.setdefault(name, "" if extra is None else f" (of the extra {extra[1]})")
    return packages


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _devices(torch) -> list[tuple[str, str]]:  # type: ignore[no-untyped-def]
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        bf16 = "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "32"
        cuda = f"{', '.join(names)}; precision auto is {bf16}; {_compilation('cuda')}"
        cuda += "; training.graph=on replays training steps, auto does not"
    elif torch.version.cuda is None:
        cuda = "not available: this torch is built without CUDA"
    else:
        cuda = f"not available: torch is built for CUDA {torch.version.cuda}, but finds no device or driver"
    mps = "available" if torch.backends.mps.is_available() else "not available: no Apple GPU, or torch without MPS"
    cpu = f"{count(torch.get_num_threads(), 'thread')}; precision auto is 32; {_compilation('cpu')}"
    cpu += "; training steps are not replayed"
    return [("cpu", cpu), ("cuda", cuda), ("mps", mps)]


def _compilation(device: str) -> str:
    from femts.training.accelerator import missing_compiler

    missing = missing_compiler(device)
    return "training.compile works" if missing is None else f"training.compile does not work: {missing}"


def _kernel(operation: str | None, device) -> tuple[str, str]:  # type: ignore[no-untyped-def]
    """Kernel used for an operation, and why nothing faster is."""
    from femts.mixers.kernels import ASKED, choice, requested

    if operation is None:
        return "torch scaled_dot_product_attention", "flash_attn is not used: torch has its kernel (softmax_backend)"
    name, reasons = choice(operation, device)
    if operation in requested():
        reason = f", but {reasons[name]}" if name in reasons else ""
        return name, f"selected by {ASKED}{reason}"
    return name, "; ".join(
        f"{other} is not used: {reason}" for other, reason in reasons.items()
    ) or "no faster kernel exists"
