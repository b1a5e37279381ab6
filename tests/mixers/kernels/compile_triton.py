"""Compile every Triton kernel for a Hopper GPU, which needs none: prints a line of JSON for each,
of its registers and spills.

A script of its own, because a process that interprets kernels cannot compile them.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from femts.mixers.kernels import read_triton, scan_triton, selective_scan_triton

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
ROWS = {"width": 384, "head": 32, "height": 4, "padded": 512}  # the read of GPT-2's block: D = 768, 12 heads
SSM = {"length": 1024, "time": selective_scan_triton.TIME, "channels": selective_scan_triton.WIDTH, "states": 16}
SCAN = {"length": 1024, "time": scan_triton.TIME, "channels": scan_triton.WIDTH}
GATES = {"with_lam": True, "with_gate": True}

# Kernel, arguments that are one number, constants, warps, and the pointers that are to bfloat16.
CASES = [
    *(
        (
            read_triton._before_kernel,
            {"rows": "i32", "row_stride": "i32", "cap": "fp32"},
            {**ROWS, "gradient": back},
            4,
            {"v"},
        )
        for back in (False, True)
    ),
    *(
        (
            read_triton._after_kernel,
            {"rows": "i32", "lam_stride": "i32", "gate_stride": "i32", "eps": "fp32"},
            {**ROWS, **GATES, "gradient": back},
            4,
            {"mixed", "lam_pre", "gate_pre", "out"},
        )
        for back in (False, True)
    ),
    *(
        (
            scan_triton._scan_kernel,
            dict.fromkeys(("stacks", "width", "g_batch", "g_time", "g_stack", "g_width"), "i32"),
            {**SCAN, "backwards": back, "with_grad_g": back},
            4,
            set(),
        )
        for back in (False, True)
    ),
    *(
        (kernel, dict.fromkeys(("stacks", "width", "n_states"), "i32"), SSM, selective_scan_triton.WARPS, set())
        for kernel in (selective_scan_triton._forward_kernel, selective_scan_triton._backward_kernel)
    ),
]

for kernel, numbers, constants, warps, narrow in CASES:
    pointers = {
        name: "*bf16" if name in narrow else "*fp32"
        for name in kernel.arg_names
        if name not in {**numbers, **constants}
    }
    signature = {**pointers, **numbers, **dict.fromkeys(constants, "constexpr")}
    source = ASTSource(fn=kernel, signature={n: signature[n] for n in kernel.arg_names}, constexprs=constants)
    built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(built.asm["cubin"])
        command = [str(TOOLS / "cuobjdump"), "-res-usage", file.name]
        usage = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack = (int(re.search(rf"{what}:(\d+)", usage).group(1)) for what in ("REG", "STACK"))  # type: ignore[union-attr]
    print(json.dumps({"kernel": kernel.__name__, "constants": constants, "registers": registers, "stack": stack}))
