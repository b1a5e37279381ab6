"""The training loop, on Lightning Fabric: steps, validations and checkpoints."""

from __future__ import annotations

import copy
import importlib.util
import math
import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from femts.config.training import VALIDATIONS, TrainingConfig
from femts.data.windows import Windows
from femts.environment import without_traces
from femts.evaluation.evaluator import Share, evaluate
from femts.evaluation.validation import chosen_by, validation_sums
from femts.files import write_file
from femts.forecaster.run_folder import CHECKPOINT, EVENTS, ROWS, validations_csv
from femts.mixers.ops.precision import low_precision_products
from femts.models.base import ForecastModel
from femts.models.losses import find_loss
from femts.progress import progress_line
from femts.training.accelerator import Accelerator, seed_device
from femts.training.batches import StepBatches, derive_seed, drawn_channels
from femts.training.checkpoint import TrainState
from femts.training.constants import AGREE_EVERY, VALIDATING, VALIDATION_GROWTH, VALIDATION_TIMED
from femts.training.ema import RunningAverage
from femts.training.graph import CudaGraph
from femts.training.nodes import joined_nodes, together
from femts.training.optimizer import adamw, load_state, state_of
from femts.training.processes import InProcess, launched
from femts.training.run import Run
from femts.training.schedule import Budget, Chosen, learning_rate
from femts.training.step import Step
from femts.training.stopping import Diverged, StopSignals, asked_to_stop

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def run_steps(run: Run, budget: Budget, val: Windows | None = None, chosen: Chosen | None = None) -> TrainState:
    """Train from the state of `run` until a reason to stop; return the final state.

    Several devices run as spawned processes, which works from the command line and from a script alike; the caller's
    code after training runs once. Under a launcher such as torchrun, the other processes take part (`nodes.take_part`).

    Args:
        run: run with the model, training windows and folder.
        budget: steps and time.
        val: validation windows.
        chosen: step at which to stop if an earlier training chose it, instead of `val`.

    Raises:
        RunFailure: The loss became NaN or infinite, the disk is full, or a process died.
        KeyboardInterrupt: A second Ctrl-C was received.
    """
    state, folder = run.state, run.folder
    assert state is not None
    loop = Loop(
        run.model, run.module.windows["train"], val, run.config.training, run.accelerator, state, folder, budget,
        run.progress, chosen,
    )  # fmt: skip
    with together(loop):
        launch(loop)
    return TrainState.load(folder / CHECKPOINT) if _spawns(run.accelerator) and folder is not None else state


def _spawns(accelerator: Accelerator) -> bool:
    """Return whether a training starts its own processes, because no launcher did."""
    return accelerator.devices > 1 and joined_nodes() is None


@dataclass
class Loop:
    """Everything that each process of a training needs: plain values, tensors and the model, which are sent to it.

    Attributes:
        model: the forecaster.
        train, val: training and validation windows.
        config, accelerator: the recipe; device, precision and number of processes.
        state: state to start from.
        folder: run folder, for `checkpoints/last.ckpt` and `metrics.csv`; optional for a single process.
        budget, progress: steps and time; whether to show a progress line on a terminal.
        chosen: step at which to stop if an earlier training chose it, instead of `val`.
    """

    model: ForecastModel
    train: Windows
    val: Windows | None
    config: TrainingConfig
    accelerator: Accelerator
    state: TrainState
    folder: Path | None
    budget: Budget
    progress: bool = False
    chosen: Chosen | None = None


def launch(loop: Loop) -> None:
    """Train in this process, in spawned ones if `loop` has several devices, or with the others of a launcher."""
    with without_traces():  # imported here, because it takes seconds, and only networks need it
        from lightning_fabric import Fabric
        from lightning_fabric.loggers import TensorBoardLogger
        from lightning_fabric.strategies import DDPStrategy

    accelerator, nodes, spawned = loop.accelerator, joined_nodes(), _spawns(loop.accelerator)
    strategy: Any = "auto" if accelerator.devices == 1 else DDPStrategy(start_method="spawn" if spawned else "popen")
    events = loop.folder is not None and importlib.util.find_spec("tensorboard") is not None
    with launched(several=spawned):
        fabric = Fabric(
            accelerator=accelerator.device,
            devices=accelerator.devices if nodes is None else nodes.per_node,
            num_nodes=1 if nodes is None else nodes.nodes,
            strategy=strategy,
            plugins=None if nodes is None else nodes.environment,
            precision="bf16-mixed" if accelerator.precision == "bf16" and accelerator.device != "cpu" else "32-true",
            loggers=[TensorBoardLogger(str(loop.folder), name=EVENTS, version="")] if events else [],
        )
        run = partial(_train, loop)
        with StopSignals() if spawned else nullcontext():  # handled by the waiting process
            fabric.launch(InProcess(run) if spawned else run)


def _train(loop: Loop, fabric: Fabric) -> None:
    """The loop of each process."""
    if fabric.world_size > 1:
        loop.model = copy.deepcopy(loop.model)  # tensors sent to several processes are shared memory
    config, state = loop.config, loop.state
    state.stopped = None
    with progress_line(loop.progress and fabric.is_global_zero) as show, StopSignals() as signals:
        trainer = Trainer(fabric, loop)
        began, before, checked = time.monotonic(), state.seconds, time.monotonic()
        while not state.complete and state.stopped is None:
            started = time.monotonic()
            trainer.step()
            loop.budget.note_step((time.monotonic() - started) / (config.batch_size * config.accumulate))
            show(state.progress / trainer.until.share, state.words)
            due = trainer.spend()
            if due:
                trainer.validate(time.monotonic() - checked)
                checked = time.monotonic()
            if not state.complete and trainer.agreed(signals.received > 0 or asked_to_stop(state.validations)):
                state.stopped = "interrupted"
            if due or state.stopped is not None:
                state.seconds = before + time.monotonic() - began
                trainer.save()


class _Loss(nn.Module):
    """Loss of windows by index, as a module, because DDP synchronises in the forward pass."""

    def __init__(self, loop: Loop, device: torch.device) -> None:
        super().__init__()
        self.model, self.windows = loop.model, loop.train.to(device)
        self.windows.checks = False  # `StepBatches` numbers them within range, and a step must not wait for the device
        self.model.absolute, self.model.own_loss = loop.config.loss == "mae", find_loss(loop.config.loss)
        self._low = loop.accelerator.precision == "bf16"
        self._compiled = torch.compile(loop.model.loss, dynamic=False) if loop.config.compile else None

    def forward(self, index: Tensor, channels: Tensor | None, whole: bool) -> Tensor:
        """Mean loss of the windows `index` (B,); only `whole` batches use the compiled model, since each other size
        would recompile."""
        loss = self._compiled if self._compiled is not None and whole else self.model.loss
        batch = self.windows.batch(index)
        with low_precision_products(self._low):  # on a CPU, autocast over everything loses what the products gain
            value: Tensor = loss(batch, channels)
        return value


class Trainer:
    """Training steps, validations and checkpoints."""

    def __init__(self, fabric: Fabric, loop: Loop) -> None:
        self.fabric, self.loop, self.state, self.config = fabric, loop, loop.state, loop.config
        self.model, self.device = loop.model, fabric.device
        self.state.metric = chosen_by(self.config)
        if loop.state.model:
            loop.model.load_state_dict(loop.state.model)
        self.loss = fabric.setup_module(_Loss(loop, fabric.device))
        loop.model.train()
        self.val = None if loop.val is None else loop.val.within_scale().to(self.device)
        optimizer = adamw(loop.model, loop.config, self.device)
        if loop.state.optimizer:
            load_state(optimizer, loop.state.optimizer)
        self.optimizer: Any = fabric.setup_optimizers(optimizer)
        self.average = RunningAverage(loop.model, loop.config.ema, loop.state.average, loop.state.step)
        sizes = (len(loop.train), self.config.batch_size, self.config.accumulate)
        self.batches = StepBatches(*sizes, self.config.seed, (fabric.global_rank, fabric.world_size), self.device)
        self.until = loop.chosen or Chosen(loop.budget.steps, loop.budget.steps, self.batches.epoch)
        # number of windows of each validation, fixed so that scores are comparable
        self._validated: tuple[int | None] | None = None
        whole = len(range(fabric.global_rank, self.config.batch_size, fabric.world_size))
        # models that read raw rows read them on the CPU, so their steps cannot be captured
        graph = CudaGraph(self.device) if loop.accelerator.graph and not loop.model.supports.raw else None
        self._step = Step(fabric, self.loss, self.optimizer, self.average, self.config, whole, graph)
        self._batches: list[tuple[int, int]] = []  # windows and step of each loss that was not yet taken

    def step(self) -> None:
        """One optimiser step; its random numbers depend on (seed, step, process), so a resumed run draws the same
        ones."""
        state, config = self.state, self.config
        rate = learning_rate(config, state.progress, state.step // self.until.epoch)
        channels = None
        if config.channels is not None:
            channels = drawn_channels(config.channels, self.loop.train.rows.shape[1], config.seed, state.step)
        shares = self.batches.of(state.step)
        seed_device(self.device, derive_seed("step", config.seed, state.step, self.fabric.global_rank))
        state.replayed += self._step(shares, rate, channels)
        state.step += 1
        self._batches += [(share.real, state.step) for share in shares]
        if self._step.full:
            self.take_losses()

    def spend(self) -> bool:
        """Advance the progress, by steps or by time if that is shorter, and return whether a validation is due."""
        config, budget, state, before = self.config, self.loop.budget, self.state, self.state.progress
        spent = state.step / budget.steps
        if budget.seconds is not None:
            passed = self.fabric.broadcast(budget.time_spent())  # the same in all processes
            spent, state.stopped = max(spent, passed * self.until.share, before), "max_time" if passed >= 1 else None
        state.progress = min(1.0, spent)
        if state.step >= self.until.step:
            state.stopped = "max_steps"
        if state.complete or (state.step == 1 and self.model.supports.fine_tuned):
            return True
        if config.val_every is not None or config.max_epochs is not None:
            return state.step % (config.val_every or self.until.epoch) == 0
        return int(VALIDATIONS * state.progress) > int(VALIDATIONS * before)

    def agreed(self, here: bool) -> bool:
        """Return whether the condition holds in any process; checked only now and then, since processes wait for each
        other."""
        if self.fabric.world_size == 1:
            return here
        if self.state.step % AGREE_EVERY:
            return False
        return bool(self._summed(torch.tensor(float(here), device=self.device)))

    def _summed(self, values: Tensor) -> Tensor:
        summed: Any = self.fabric.all_reduce(values, reduce_op="sum")
        return summed  # type: ignore[no-any-return]

    def take_losses(self) -> None:
        """Add the losses of the last batches to the state; raise RunFailure, in all processes alike, if one is not
        finite."""
        if not self._batches:
            return
        counts, steps = zip(*self._batches, strict=True)
        self._batches.clear()
        means = self._step.losses()
        windows = means.new_tensor(counts)
        sums, total = self._summed(torch.stack([means * windows, windows])).tolist()
        for value, step in zip(sums, steps, strict=True):
            if not math.isfinite(value):
                raise Diverged(f"The training loss became {value} at step {step}; {self._remedy}")
        self.state.losses.extend(sums)
        self.state.windows += int(sum(total))

    @property
    def _remedy(self) -> str:
        return f"lower training.lr (it is {self.config.lr:g}) or look for extreme values in the data."

    def validate(self, seconds: float) -> None:
        """Score the averaged weights, append a row and decide whether to stop, `seconds` after the last validation;
        without validation windows, only check the losses."""
        self.take_losses()
        state, config, fabric = self.state, self.config, self.fabric
        if self.val is None:
            state.losses, state.windows = [], 0
            return
        began, named = time.monotonic(), validation_sums(config, self.model)
        if self._validated is None:
            self._validated = (self._validation_windows(self.val),)
        scores = evaluate(
            self.average.model,
            self.val,
            config.eval_batch_size,
            some=self._validated[0],
            share=Share(fabric.global_rank, fabric.world_size, self._summed),
            also=named,
        )
        for metric in named:
            metric.sums = self._summed(metric.sums)
            scores |= metric.compute()
        took = time.monotonic() - began
        self.loop.budget.note_scoring(took / scores["windows"])
        for name in ("mse", state.metric):
            if not math.isfinite(scores[name]):
                raise Diverged(
                    f"The validation {name.upper()} became {scores[name]} after step {state.step}; {self._remedy}"
                )
        state.validations.append(
            {
                "step": state.step,
                "train_loss": math.fsum(state.losses) / state.windows,
                **{f"val_{name}": value for name, value in scores.items() if name != "windows"},
                "lr": learning_rate(config, state.progress, state.step // self.until.epoch),
                "seconds": round(seconds + took, 3),
            }
        )
        self.fabric.log_dict(
            {name: value for name, value in state.validations[-1].items() if name != "seconds"}, state.step
        )
        state.losses, state.windows = [], 0
        if scores[state.metric] < state.best_loss:
            state.best_step, state.best_val = state.step, scores
            state.best = {name: value.detach().cpu().clone() for name, value in self.average.model.state_dict().items()}
        if not state.complete and state.worse_for(config.keep) >= config.patience:
            state.stopped = "early"

    def _validation_windows(self, val: Windows) -> int | None:
        """Number of validation windows, equal in all processes; with a time limit, a few are timed first, and more are
        used as long as they take a small share of it."""
        budget, most, some = self.loop.budget, self.config.val_windows, VALIDATION_TIMED
        if budget.seconds is None:
            return most
        seconds, whole = VALIDATING * budget.seconds, len(val.subsample(most))
        while True:
            began = time.monotonic()
            timed = int(evaluate(self.average.model, val, self.config.eval_batch_size, some=some)["windows"])
            took = time.monotonic() - began
            if timed >= whole or took > seconds / VALIDATION_GROWTH:
                break
            some *= VALIDATION_GROWTH
        budget.note_scoring(took / timed)
        fitting: int = self.fabric.broadcast(max(1, int(seconds * timed / took)))
        return most if fitting >= whole else fitting

    def save(self) -> None:
        """Complete the state and, if there is a folder, write it from one process."""
        self.take_losses()
        if not self.fabric.is_global_zero:
            return
        state = self.state
        state.model, state.average = self.model.state_dict(), self.average.model.state_dict()
        state.optimizer = state_of(self.optimizer)
        if self.loop.folder is not None:
            state.save(self.loop.folder / CHECKPOINT)
            write_file(self.loop.folder / ROWS, validations_csv(state.validations))
