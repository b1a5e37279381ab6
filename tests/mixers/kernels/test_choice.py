"""Selection of kernels."""

from __future__ import annotations

import pytest
import torch
from mixer_cases import make_input, make_layer

from femts.errors import UsageError
from femts.mixers import kernels
from femts.mixers.kernels import OPERATIONS, Kernel, choice, chosen, recorded, requested, using

CPU = torch.device("cpu")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_cpu_uses_torch_and_reports_reasons(operation: str) -> None:
    name, reasons = choice(operation, CPU)
    assert name == "torch"
    assert list(reasons) == [kernel.name for kernel in OPERATIONS[operation][:-1]]
    assert all(reasons.values())


def test_cuda_uses_the_first_available_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    cannot, can = Kernel("a", lambda *_: "it is broken"), Kernel("b", lambda *_: None)
    torch_form = OPERATIONS["scan"][-1]
    monkeypatch.setitem(OPERATIONS, "scan", (cannot, can, torch_form))
    assert choice("scan", torch.device("cuda")) == ("b", {"a": "it is broken"})


def test_unavailable_kernels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with using(linear="fla"), pytest.raises(UsageError, match="Kernel 'linear=fla' cannot run because"):
        chosen("linear", CPU)
    monkeypatch.setattr(kernels, "installed", lambda name: False)
    with using(scan="triton"), pytest.raises(UsageError, match="Triton is not installed"):
        make_layer("rnn_decay", "")(make_input(length=3))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", {}),
        ("torch", dict.fromkeys(OPERATIONS, "torch")),
        (" read=torch, scan=triton ", {"read": "torch", "scan": "triton"}),
    ],
)
def test_environment_variable_selects_a_kernel(
    text: str, answer: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEMTS_KERNELS", text)
    assert requested() == answer
    with using():
        assert choice("scan", CPU)[0] == "torch", "`using` comes before the environment"


@pytest.mark.parametrize(
    ("text", "message"),
    [("scn=torch", "did you mean 'scan'"), ("scan=tritn", "did you mean 'triton'"), ("scan", "Unknown kernel 'scan='")],
)
def test_unknown_names_are_refused(text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEMTS_KERNELS", text)
    with pytest.raises(UsageError, match=message):
        requested()


def test_record_lists_the_kernels_that_ran() -> None:
    with recorded() as ran:
        make_layer("mamba", "CLTG")(make_input(length=3))
    assert ran == {"scan": "torch", "selective_scan": "torch", "read": "torch"}
    chosen("linear", CPU)
    assert "linear" not in ran, "what runs afterwards"
