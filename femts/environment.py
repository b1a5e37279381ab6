"""Hardware, library versions and commit of a run; and imports of libraries without side effects on disk."""

from __future__ import annotations

import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femts._version import __version__

if TYPE_CHECKING:
    from lightning_fabric.plugins.environments import ClusterEnvironment

LIBRARIES = (
    "femts",
    "torch",
    "pytorch-lightning",
    "numpy",
    "pandas",
    "scikit-learn",
    "triton",
    "fla-core",
    "mamba-ssm",
)

# Variables that only torchrun and srun set; a batch script of SLURM has other ones.
TORCHRUN, SRUN = "TORCHELASTIC_RUN_ID", "SLURM_STEP_NUM_TASKS"


@dataclass(frozen=True)
class Nodes:
    """Processes that a launcher started with the same command.

    Attributes:
        rank: index of this process.
        processes: number of processes on all nodes.
        nodes: number of nodes.
        slurm: whether srun started them instead of torchrun.
    """

    rank: int
    processes: int
    nodes: int
    slurm: bool

    @property
    def per_node(self) -> int:
        """Number of processes on each node."""
        return self.processes // self.nodes

    @property
    def environment(self) -> ClusterEnvironment:
        """The same for Fabric."""
        from lightning_fabric.plugins.environments import SLURMEnvironment, TorchElasticEnvironment

        return SLURMEnvironment(auto_requeue=False) if self.slurm else TorchElasticEnvironment()


def launched_nodes() -> Nodes | None:
    """The processes of a launcher that started several; None if this process was started alone."""
    slurm = TORCHRUN not in os.environ
    if slurm and SRUN not in os.environ:
        return None
    names = ("SLURM_PROCID", SRUN, "SLURM_STEP_NUM_NODES") if slurm else ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
    rank, processes, third = (int(os.environ[name]) for name in names)
    nodes = third if slurm else processes // third
    return Nodes(rank, processes, nodes, slurm) if processes > 1 else None


def unlaunched() -> dict[str, str]:
    """The environment for a process that is not one of those that a launcher started."""
    return {name: value for name, value in os.environ.items() if name not in (TORCHRUN, SRUN)}


@contextmanager
def without_traces() -> Iterator[None]:
    """Context in which Lightning or torch's compiler is imported without writing files.

    Lightning imports torchmetrics only to check its version, and torchmetrics imports matplotlib, which takes seconds
    and writes its font cache. torch's compiler creates its temporary folder before there is anything to compile.
    """
    unseen, folder = "torchmetrics", "TORCHINDUCTOR_CACHE_DIR"
    hidden, named = unseen not in sys.modules, folder not in os.environ
    if hidden:
        sys.modules[unseen] = None  # type: ignore[assignment]  # how Python marks what cannot be imported
    if named:
        os.environ[folder] = tempfile.gettempdir()
    try:
        yield
    finally:
        if hidden:
            del sys.modules[unseen]
        if named:
            del os.environ[folder]


def machine(device: str) -> dict[str, object]:
    """Hardware and versions that determine the results: `device`, its `name`, CPU `threads`, `torch` and `femts`."""
    import torch

    name = torch.cuda.get_device_name() if device == "cuda" else _cpu_name()
    return {
        "device": device,
        "name": name,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "femts": __version__,
    }


def cores() -> int:
    """Number of CPU cores available to this process; `taskset` and containers may allow fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_seconds() -> float:
    """Processor time of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def available_memory(root: Path = Path("/")) -> int:
    """Memory in bytes that this process can still allocate: the least of free memory, the limits of its control groups
    (as in containers) and the shell's limit (`ulimit -v`). `root` is the root of the file system."""
    rooms = [*_group_rooms(root)]
    free = re.search(r"^MemAvailable:\s*(\d+) kB", _facts(root / "proc/meminfo"), re.MULTILINE)
    page = os.sysconf("SC_PAGE_SIZE")
    rooms.append(int(free[1]) << 10 if free else page * os.sysconf("SC_PHYS_PAGES"))
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit not in (resource.RLIM_INFINITY, -1):
        rooms.append(limit - page * int((_facts(root / "proc/self/statm").split() or ["0"])[0]))
    return max(0, min(rooms))


def _group_rooms(root: Path) -> Iterator[int]:
    """Memory left under each limit of the process's control group and its parents, for cgroup v1 and v2."""
    for line in _facts(root / "proc/self/cgroup").splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        top = root / "sys/fs/cgroup" / ("memory" if kinds else "")
        most, used = ("limit_in_bytes", "usage_in_bytes") if kinds else ("max", "current")
        group = top / path.strip("/")
        for folder in (group, *group.parents):
            limit, taken = _facts(folder / f"memory.{most}").strip(), _facts(folder / f"memory.{used}").strip()
            if limit.isdecimal() and taken.isdecimal():
                cache = re.search(r"^inactive_file (\d+)", _facts(folder / "memory.stat"), re.MULTILINE)
                yield int(limit) - int(taken) + (int(cache[1]) if cache else 0)
            if folder == top:
                break


def _facts(path: Path) -> str:
    """Content of a system file; empty if it does not exist."""
    try:
        return path.read_text()
    except OSError:
        return ""


@contextmanager
def cpu_threads(count: int | None = None) -> Iterator[None]:
    """Context in which torch uses `count` threads; None leaves the number unchanged."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _cpu_name() -> str:
    model = re.search(r"^model name\s*:\s*(.+)$", _facts(Path("/proc/cpuinfo")), re.MULTILINE)
    return model[1].strip() if model else platform.processor() or platform.machine()


def run_environment(device: str, precision: str) -> dict[str, Any]:
    """Hardware and library versions that determine results down to the last bit."""
    return {
        **{name: value for name, value in machine(device).items() if name in ("device", "name", "threads")},
        "precision": precision,
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": {name: installed for name in LIBRARIES if (installed := _version(name))},
    }


def _version(name: str) -> str | None:
    if name == "torch":
        import torch

        return torch.__version__
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Commit of the checkout that femts runs from, with `+` if there are uncommitted changes; None outside a
    checkout."""
    root = Path(__file__).resolve().parents[1]
    if not (root / "setup.cfg").is_file():  # an installed femts may be inside another project's checkout
        return None
    try:
        head, changes = (
            subprocess.run(
                ["git", *args], cwd=root, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}
            )
            for args in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+" if changes.stdout.strip() else "")


def process_began() -> float:
    """`time.monotonic()` when this process was started, before anything was imported."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):  # not Linux
        age = time.process_time()  # less if it waited for something
    return time.monotonic() - age
