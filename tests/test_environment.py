"""Description of the machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from pages import ROOT


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin a process to a core")
def test_cores_respect_cpu_affinity() -> None:
    pinned = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    code = f"{pinned}; from femts.environment import cores; print(cores())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "1"
