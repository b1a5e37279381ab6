"""`femts doctor`: versions, devices, and which kernels run."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from femts.cli.output import table

PACKAGES = (
    "torch",
    "pytorch-lightning",
    "numpy",
    "pandas",
    "scikit-learn",
    "safetensors",
    "typer",
    "pooch",
    "matplotlib",
)
# Prior, what computes it, and the library that could do so faster on a CUDA device.
KERNELS = (
    ("softmax", "torch scaled_dot_product_attention; a dense product when short, on a CPU", "flash_attn"),
    ("linear", "torch, (T, T) product when short, chunks when long", "fla"),
    ("gla", "torch, (T, T) product when short, chunks when long", "fla"),
    ("rnn_softmax", "torch, chunked scan", None),
    ("rnn_decay", "torch, chunked scan", None),
    ("mamba", "torch, chunked scan", "mamba_ssm"),
)


def doctor() -> None:
    """Show versions, devices and kernels.

    Says for each prior what computes it, and why a faster library does not.
    """
    import torch

    import femts

    versions = [("femts", femts.__version__), ("python", platform.python_version())]
    versions += [(name, _version(name)) for name in PACKAGES]
    print(table(("package", "version"), versions))
    print()
    print(table(("device", "state"), _devices(torch)))
    print()
    rows = [(prior, kernel, _accelerator(library)) for prior, kernel, library in KERNELS]
    print(table(("prior", "kernel in use", "accelerator"), rows))


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
    elif torch.version.cuda is None:
        cuda = "not available: this torch is built without CUDA"
    else:
        cuda = f"not available: torch is built for CUDA {torch.version.cuda}, but finds no device or driver"
    mps = "available" if torch.backends.mps.is_available() else "not available: no Apple GPU, or torch without MPS"
    cpu = f"{torch.get_num_threads()} threads; precision auto is 32; {_compilation('cpu')}"
    return [("cpu", cpu), ("cuda", cuda), ("mps", mps)]


def _compilation(device: str) -> str:
    from femts.training.device import missing_compiler

    missing = missing_compiler(device)
    return "training.compile works" if missing is None else f"training.compile does not work: {missing}"


def _accelerator(library: str | None) -> str:
    return "none exists for this prior" if library is None else f"{library} is not used: femts has no path through it yet"
