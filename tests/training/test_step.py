"""The training step on tensors of fixed addresses: equal to a plain loop to the bit, and without reads from the device."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from small_runs import TRAIN, essence, small_run
from small_steps import CONFIG, MODELS, STEPS, Trained, network, trained, trainer, windows
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from femts.config.training import TrainingConfig
from femts.errors import RunFailure
from femts.mixers.weight_decay import undecayed
from femts.models.base import ForecastModel
from femts.training import accelerator
from femts.training import loop as loops
from femts.training.accelerator import Accelerator, seed_device
from femts.training.batches import Share, StepBatches, derive_seed, drawn_channels
from femts.training.constants import WARM_UP
from femts.training.ema import RunningAverage
from femts.training.graph import CudaGraph
from femts.training.optimizer import adamw
from femts.training.schedule import learning_rate
from femts.training.step import Step

CPU = torch.device("cpu")
CASES = [(name, CONFIG) for name in MODELS] + [
    ("fem_sm", replace(CONFIG, channels=2, accumulate=2, batch_size=10)),
    ("dlinear", replace(CONFIG, ema=0.0, accumulate=3, schedule="linear", loss="mae")),
]
IDS = [*MODELS, "fem_sm-channels-accumulated", "dlinear-mae-accumulated"]
every_model = pytest.mark.parametrize("name", MODELS)


@cache
def plain(name: str, config: TrainingConfig) -> Trained:
    """The training as a plain loop, with a number as learning rate and as weight of the average."""
    model, data = network(name).train(), windows()
    model.absolute = config.loss == "mae"
    average, without = copy.deepcopy(model), undecayed(model)
    groups: list[dict[str, Any]] = [
        {"params": [each for key, each in model.named_parameters() if key not in without]},
        {"params": [each for key, each in model.named_parameters() if key in without], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.lr,
        betas=config.betas,
        weight_decay=config.weight_decay,
        fused=True,
    )
    batches = StepBatches(len(data), config.batch_size, config.accumulate, config.seed)
    losses: list[float] = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(config, step / STEPS, step // batches.epoch)
        seed_device(CPU, derive_seed("step", config.seed, step, 0))
        channels = None if config.channels is None else drawn_channels(config.channels, 3, config.seed, step)
        for share in batches.of(step):
            loss = model.loss(data.batch(share.windows), channels)
            (loss if share.weight == 1.0 else loss * share.weight).backward()
            losses.append((loss.detach() * share.real).item())
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        optimizer.zero_grad()
        mean, current = ([each.detach() for each in one.parameters()] for one in (average, model))
        torch._foreach_lerp_(mean, current, 1 - min(config.ema, (1 + step) / (10 + step)))
    return Trained(list(model.state_dict().values()), list(average.state_dict().values()), losses)


def assert_equal(one: Trained, other: Trained) -> None:
    assert one.losses == other.losses and len(one.losses) >= STEPS
    for some, others in ((one.weights, other.weights), (one.average, other.average)):
        assert all(torch.equal(a, b) for a, b in zip(some, others, strict=True))


@pytest.mark.parametrize(("name", "config"), CASES, ids=IDS)
def test_resumed_training_equals_a_plain_loop_to_the_bit(name: str, config: TrainingConfig, tmp_path: Path) -> None:
    made, replayed = trained(name, config, tmp_path)
    assert_equal(made, plain(name, config))
    assert replayed == 0


class Rerun:
    """What `CudaGraph` does, on a CPU: a replay calls the step again, which sees nothing but the tensors either."""

    def __init__(self, device: torch.device) -> None:
        self._step: Callable[[], None] | None = None
        self.beside = nullcontext

    @property
    def captured(self) -> bool:
        return self._step is not None

    def capture(self, step: Callable[[], None], parameters: list[Tensor]) -> None:
        assert all(each.grad is None for each in parameters), "a capture allocates the gradients"
        self._step = step

    def replay(self) -> None:
        assert self._step is not None
        self._step()


@pytest.mark.parametrize(("name", "config"), CASES[4:], ids=IDS[4:])
def test_whole_batches_are_replayed_and_others_are_not(
    name: str, config: TrainingConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(loops, "CudaGraph", Rerun)
    made, replayed = trained(name, config, tmp_path, graph=True)
    assert_equal(made, plain(name, config))
    size, epoch = config.batch_size * config.accumulate, StepBatches(147, config.batch_size, config.accumulate, 0).epoch
    whole = sum((step % epoch + 1) * size <= 147 for step in range(STEPS))
    assert replayed == whole - 2 * WARM_UP, "each process warms up"


class Recorded:
    """A CUDA graph that computes what is captured, and knows the generators registered before."""

    def __init__(self) -> None:
        self.generators: list[object] = []
        self.register_generator_state = self.generators.append

    @contextmanager
    def __call__(self, graph: object, stream: object) -> Iterator[None]:
        assert graph is self and self.generators == ["of device 1"] and stream == "beside"
        yield


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> CudaGraph:
    """A `CudaGraph` on a machine without CUDA."""
    graph = Recorded()
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: "beside")
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "default_generators", ("of device 0", "of device 1"))
    return CudaGraph(torch.device("cpu", 1))


def test_capture_keeps_gradients_and_caches_no_weights(recorded: CudaGraph) -> None:
    weights = torch.ones(2, requires_grad=True)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            assert not torch.is_autocast_cache_enabled()
        weights.sum().backward()

    recorded.capture(step, [weights])
    gradient, weights.grad = weights.grad, None
    assert recorded.captured and recorded._gradients[0] is gradient is not None


def test_capture_that_fails_names_the_setting(recorded: CudaGraph) -> None:
    def fails() -> None:
        raise RuntimeError("operation not permitted\nand more")

    with pytest.raises(RunFailure, match=r"a CUDA graph \(operation not permitted\); set training.graph=off\.$"):
        recorded.capture(fails, [])
    assert not recorded.captured


def test_metrics_count_replayed_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    eager = small_run(max_epochs=2)
    monkeypatch.setattr(loops, "CudaGraph", Rerun)
    monkeypatch.setattr(accelerator, "_replays", lambda *arguments: True)
    replayed = small_run(max_epochs=2)
    whole = 2 * (TRAIN // 125)
    assert (eager.metrics["replayed"], replayed.metrics["replayed"]) == (0, whole - WARM_UP)
    assert essence(replayed) == essence(eager)


def test_average_by_a_tensor_off_the_cpu_is_an_interpolation() -> None:
    torch.manual_seed(0)
    model = network("fem_sm")
    averages = [RunningAverage(model, 0.998, {}, 0) for _ in range(2)]
    averages[1]._weight = _Elsewhere(averages[1]._weight)  # type: ignore[assignment]
    for _ in range(5):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        for average in averages:
            average.update()
    for one, other in zip(*(average.model.parameters() for average in averages), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


class _Elsewhere(Tensor):
    """A tensor of the CPU that says that it is not."""

    is_cpu = False  # type: ignore[assignment]
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


READS: dict[str, Callable[[Tensor], object]] = {
    "item": Tensor.item,
    "bool": bool,
    "equal": lambda x: torch.equal(x, x),
    "nonzero": lambda x: x[None].nonzero(),
    "masked": lambda x: x[None][x[None] > 0],
    "cpu": Tensor.cpu,
    "tolist": Tensor.tolist,
    "numpy": lambda x: x.detach().numpy(),
}
ON_CPU = ("item", "bool", "equal", "nonzero", "masked")  # the others read memory of a CPU without any operator
aten = torch.ops.aten


class NoReads(TorchDispatchMode):
    """Fails on operators whose result the host waits for."""

    FORBIDDEN = (
        aten._local_scalar_dense,
        *(aten.equal, aten.is_nonzero, aten.item, aten.nonzero, aten.masked_select),
        *(aten._unique2, aten.unique_dim, aten.unique_consecutive),
    )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        masks = func.overloadpacket is aten.index and any(
            each is not None and each.dtype is torch.bool for each in args[1]
        )
        assert not masks and func.overloadpacket not in self.FORBIDDEN, f"the step waits for the device in {func}"
        return func(*args, **(kwargs or {}))


def reading(loss: Callable[..., Tensor], read: Callable[[Tensor], object]) -> Callable[..., Tensor]:
    """`loss` with a read put into it."""

    def read_too(*args: Any) -> Tensor:
        value = loss(*args)
        read(value)
        return value

    return read_too


@every_model
def test_step_reads_nothing_from_the_device(name: str) -> None:
    made = trainer(name, replace(CONFIG, accumulate=2))
    made.step()  # the optimiser makes its state
    with NoReads():
        made._step._take(made._step._whole)


@pytest.mark.parametrize("read", ON_CPU)
def test_read_in_the_loss_is_noticed(read: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer("dlinear", CONFIG)
    made.step()
    monkeypatch.setattr(made.model, "loss", reading(made.model.loss, READS[read]))
    with NoReads(), pytest.raises(AssertionError, match="waits for the device"):
        made._step._take(made._step._whole)


@pytest.mark.parametrize("name", ["step", "apply"])
def test_read_after_the_gradients_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trainer("dlinear", CONFIG)
    made.step()
    part: Any = made.average if name == "apply" else made.optimizer
    whole = getattr(part, name)
    monkeypatch.setattr(part, name, lambda: (whole(), made.average.current[0].sum().item()))
    with NoReads(), pytest.raises(AssertionError, match="waits for the device"):
        made._step._take(made._step._whole)


@contextmanager
def nothing(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


def step_without_values(model: ForecastModel) -> tuple[Step, list[Share]]:
    """A step on tensors that have no values to read, which takes the same branches as one on a GPU, and its batches."""
    meta, data = torch.device("meta"), windows()
    loop = SimpleNamespace(model=model, train=data, config=CONFIG, accelerator=Accelerator("cpu", "32", 1))
    loss = loops._Loss(loop, CPU)  # type: ignore[arg-type]
    loss.windows.resident = data.resident.to(meta)
    loss.windows.rows = loss.windows.resident.values
    for name in ("spans", "ends", "_offsets", "_steps"):
        setattr(loss.windows, name, getattr(data, name).to(meta))
    model.to(meta).train()
    fabric: Any = SimpleNamespace(device=meta, no_backward_sync=nothing, backward=Tensor.backward)
    average = RunningAverage(model, CONFIG.ema, {}, 0)
    step = Step(fabric, loss, adamw(model, CONFIG, meta), average, CONFIG, CONFIG.batch_size)
    return step, [Share(torch.zeros(CONFIG.batch_size, dtype=torch.int64, device=meta), 1.0, CONFIG.batch_size)]


@every_model
def test_step_needs_no_values(name: str) -> None:
    step, shares = step_without_values(network(name))
    for _ in range(2):
        assert step(shares, 1e-3, None) is False


@pytest.mark.parametrize("read", READS)
def test_any_read_needs_values(read: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = network("dlinear")
    monkeypatch.setattr(model, "loss", reading(model.loss, READS[read]))
    step, shares = step_without_values(model)
    with pytest.raises((RuntimeError, TypeError), match=r"(?i)meta"):
        step(shares, 1e-3, None)
