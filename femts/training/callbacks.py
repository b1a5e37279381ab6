"""What happens around the steps: loss checks, validation, best weights, stopping, and the one file that keeps it all."""

from __future__ import annotations

import importlib.util
import math
import sys
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from femts.data.windows import Windows
from femts.errors import RunFailure
from femts.evaluation.evaluator import evaluate
from femts.evaluation.quantiles import PinballSums
from femts.runs import CHECKPOINT, HISTORY, atomic_write, history_csv
from femts.training.averaging import RunningAverage
from femts.training.module import ForecastModule
from femts.training.state import TrainState
from femts.training.stopping import Deadline, StopSignals

CHECK_EVERY = 50  # batches between two looks at the losses; each look waits for the device
AGREE_EVERY = 10  # steps between two agreements of several processes to stop
_FORWARD_SHARE = 0.4  # of a training step; a guess that holds until the first validation is timed
_FEW = 5  # steps; a guess from fewer may come from one that the machine held up, and would end a run that has time


class Recorder(pl.Callback):
    """Keeps `state` true, on disk after every epoch, and decides when to stop.

    Args:
        state: where training starts; changed in place.
        folder: the run folder; process 0 writes `checkpoints/last.ckpt`, `metrics.csv` and, where TensorBoard is
            installed and `events` is true, `tensorboard/`.
        val: the validation windows.
        deadline, signals: reasons to stop from outside.
        events: whether TensorBoard events are wanted.
    """

    def __init__(
        self, state: TrainState, folder: Path, val: Windows, deadline: Deadline, signals: StopSignals, events: bool
    ) -> None:
        self.state, self.folder, self.val = state, folder, val
        self.deadline, self.signals = deadline, signals
        self.events = events and importlib.util.find_spec("tensorboard") is not None
        self._writer: Any = None
        self._reason: str | None = None
        self._seconds_before = state.seconds
        self._began = self._epoch_began = self._batch_end = 0.0
        self._fastest, self._timed = math.inf, False

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Put the optimiser and the average where they were, and take the signals back from Lightning."""
        assert isinstance(pl_module, ForecastModule)
        self.signals.claim()
        self.val = self.val.to(pl_module.device)
        if self.state.optimizer:
            trainer.optimizers[0].load_state_dict(self.state.optimizer)
            trainer.lr_scheduler_configs[0].scheduler.load_state_dict(self.state.scheduler)
        steps = self.state.scheduler.get("last_epoch", 0)
        self._average = RunningAverage(pl_module.model, pl_module.training_config.ema, self.state.average, steps)
        if self.events and trainer.is_global_zero:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self.folder / "tensorboard"))
        self._began = time.monotonic()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin an epoch."""
        self._epoch_began = time.monotonic()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Look at the losses now and then, and at the clock and the signals after every optimiser step."""
        assert isinstance(pl_module, ForecastModule)
        done, accumulate = pl_module.next_batch, pl_module.training_config.accumulate
        now = time.monotonic()
        if batch_idx > 0:  # the first step warms up and may take many times as long as the others
            self._fastest = min(self._fastest, now - self._batch_end)
        self._batch_end = now
        if done % CHECK_EVERY == 0:
            self._take_losses(trainer, pl_module)
        if done % accumulate and done < pl_module.batches.count:
            return  # between two batches of one step
        self._average.update()
        if done == pl_module.batches.count:
            return  # the end of the epoch has its own look
        if not self._timed and batch_idx >= _FEW:
            self.deadline.seconds_per_window = _FORWARD_SHARE * self._fastest / pl_module.training_config.batch_size
        reason = self._wants_to_stop(trainer, done // accumulate)
        if reason is not None:
            self._reason, trainer.should_stop = reason, True

    def _wants_to_stop(self, trainer: pl.Trainer, step: int) -> str | None:
        if trainer.world_size > 1 and step % AGREE_EVERY:
            return None
        if trainer.strategy.reduce_boolean_decision(self.signals.received > 0, all=False):
            return "interrupted"
        return "max_time" if trainer.strategy.reduce_boolean_decision(self.deadline.passed(), all=False) else None

    def _take_losses(self, trainer: pl.Trainer, module: ForecastModule) -> None:
        """Move the losses of the last batches to `state`; RunFailure, in every process alike, when one is no number."""
        if not module.losses:
            return
        values = torch.stack(module.losses).float()
        sums = trainer.strategy.reduce(values * values.new_tensor(module.counts), reduce_op="sum")
        assert isinstance(sums, Tensor)
        module.losses.clear()
        module.counts.clear()
        for value in sums.tolist():
            if not math.isfinite(value):
                raise RunFailure(
                    f"The training loss became {value} in epoch {module.epoch + 1} at step {len(self.state.losses) + 1}; "
                    f"lower training.lr (it is {module.training_config.lr:g}) or look for extreme values in the data."
                )
            self.state.losses.append(value)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Validate a whole epoch; keep a broken-off one as it is; save either."""
        assert isinstance(pl_module, ForecastModule)
        self._take_losses(trainer, pl_module)
        if pl_module.next_batch < pl_module.batches.count:
            self.state.batch, self.state.stopped = pl_module.next_batch, self._reason
        else:
            self._validate(trainer, pl_module)
            self._decide(trainer, pl_module)
            pl_module.next_batch = 0
        self._save(trainer, pl_module)

    def _validate(self, trainer: pl.Trainer, module: ForecastModule) -> None:
        state, began = self.state, time.monotonic()
        learned = module.model.quantiles
        pinball = PinballSums(learned, module.device) if learned else None

        def reduce(sums: Tensor) -> Tensor:
            return trainer.strategy.reduce(sums, reduce_op="sum")  # type: ignore[return-value]

        scores = evaluate(
            self._average.model,
            self.val,
            module.training_config.eval_batch_size,
            rank=trainer.global_rank,
            world=trainer.world_size,
            reduce=reduce,
            also=() if pinball is None else [pinball],
        )
        if pinball is not None:
            pinball.sums = reduce(pinball.sums)
            scores["pinball"] = pinball.mean
        now = time.monotonic()
        self.deadline.seconds_per_window, self._timed = (now - began) / len(self.val), True
        if not math.isfinite(scores["mse"]):
            raise RunFailure(
                f"The validation MSE became {scores['mse']} after epoch {module.epoch + 1}, step {len(state.losses)}; "
                f"lower training.lr (it is {module.training_config.lr:g}) or look for extreme values in the data."
            )
        row = {
            "epoch": module.epoch + 1,
            "train_loss": math.fsum(state.losses) / len(module.windows),
            "val_mse": scores["mse"],
            "val_mae": scores["mae"],
            **({} if pinball is None else {"val_pinball": scores["pinball"]}),
            "lr": trainer.optimizers[0].param_groups[0]["lr"],
            "seconds": round(now - self._epoch_began, 3),
        }
        state.history.append(row)
        state.epoch, state.batch, state.losses = module.epoch + 1, 0, []
        if scores.get("pinball", scores["mse"]) < state.best_loss:
            state.best_epoch, state.best_val = state.epoch, scores
            state.best = {name: value.detach().cpu().clone() for name, value in self._average.model.state_dict().items()}

    def _decide(self, trainer: pl.Trainer, module: ForecastModule) -> None:
        state, config = self.state, module.training_config
        assert state.best_epoch is not None
        if state.epoch - state.best_epoch >= config.patience:
            state.stopped = "early"
        elif state.epoch >= config.max_epochs:
            state.stopped = "max_epochs"
        else:
            state.stopped = self._wants_to_stop(trainer, 0)
        trainer.should_stop = state.stopped is not None

    def _save(self, trainer: pl.Trainer, module: ForecastModule) -> None:
        if not trainer.is_global_zero:
            return
        state = self.state
        state.model = module.model.state_dict()
        state.average = self._average.model.state_dict()
        state.optimizer = trainer.optimizers[0].state_dict()
        state.scheduler = trainer.lr_scheduler_configs[0].scheduler.state_dict()
        state.seconds = self._seconds_before + time.monotonic() - self._began
        state.save(self.folder / CHECKPOINT)
        atomic_write(self.folder / HISTORY, history_csv(state.history))
        if self._writer is not None and state.batch == 0:
            for name, value in state.history[-1].items():
                if name not in ("epoch", "seconds"):
                    self._writer.add_scalar(name, value, state.epoch)

    def teardown(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Close the event file, also after a failure."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class ProgressLine(pl.Callback):
    """One line on a terminal's stderr that counts batches and shows the scores, at most five times a second."""

    def __init__(self, state: TrainState) -> None:
        self.state = state
        self._shown = 0.0

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Redraw the line when it is old enough; nothing is read from the device."""
        assert isinstance(pl_module, ForecastModule)
        now = time.monotonic()
        if now - self._shown < 0.2 or not trainer.is_global_zero:
            return
        self._shown = now
        done, count = pl_module.next_batch, pl_module.batches.count
        bar = "#" * (20 * done // count)
        text = f"epoch {pl_module.epoch + 1} [{bar:<20}] {done}/{count}"
        if self.state.history:
            last, best = self.state.history[-1]["val_mse"], self.state.best_mse
            text += f"  val MSE {last:.4f}, best {best:.4f} in epoch {self.state.best_epoch}"
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Clear the line."""
        if trainer.is_global_zero:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
