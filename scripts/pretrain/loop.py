"""The training loop: Muon and AdamW at a flat rate, which resumes to the same numbers, and a last part at a falling rate."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor

from femts.files import write_file
from femts.mixers.ops.precision import low_precision_products
from femts.mixers.weight_decay import undecayed
from femts.models.fem_zero import read_weights
from femts.models.parts.expert_network import Network, NetworkConfig
from femts.models.parts.experts import NAMES
from femts.models.parts.zero_shot import NAIVE_FLOOR, SeriesBatch, mean_loss
from femts.training.ema import RunningAverage
from scripts.pretrain.corpus import Corpus
from scripts.pretrain.scores import score

# Whether the CPU has products in bfloat16. Where they are emulated, a step with them takes seven times as long.
NATIVE = any(torch.cpu.get_capabilities().get(name, False) for name in ("amx_bf16", "avx512_bf16"))


def orthogonal(grad: Tensor, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float) -> Tensor:
    """As torch's Newton-Schulz iteration of Muon, which is always in bfloat16, in the type of `grad`."""
    a, b, c = ns_coefficients
    x = grad.T if grad.shape[0] > grad.shape[1] else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(ns_steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if grad.shape[0] > grad.shape[1] else x


if not NATIVE:
    torch.optim._muon._zeropower_via_newtonschulz = orthogonal


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    Attributes:
        network: sizes and parts of the network.
        share: of real series in a batch, where there are enough of its season.
        gaps: share of series with missing readings.
        lengths: longest histories of batches.
        size: series of a batch, which share their season, length and horizon.
        batches: of a step.
        relative: whether the loss of a batch is divided by that of the seasonal naive forecast.
        lr: learning rate, constant after `warmup` steps; see `Training.cool`.
        warmup: steps over which the rate rises from 0.
        weight_decay: of matrices.
        muon: whether Muon instead of AdamW trains the matrices inside.
        average: share of the running average that remains after a step.
        seed: of weights and batches.
        grown: share of synthetic series whose growth varies, of the seasons of which this is said.
    """

    network: NetworkConfig = field(default_factory=NetworkConfig)
    share: float = Corpus.share
    gaps: float = Corpus.gaps
    lengths: tuple[int, ...] = Corpus.lengths
    size: int = Corpus.size
    batches: int = 2
    relative: bool = True
    lr: float = 1e-3
    warmup: int = 100
    weight_decay: float = 0.05
    muon: bool = True
    average: float = 0.9995
    seed: int = 0
    grown: float = 0.35


@dataclass(frozen=True)
class Progress:
    """What a training has used so far; `skipped` are steps without effect, because a gradient was not finite."""

    steps: int = 0
    series: int = 0
    cpu_hours: float = 0.0
    skipped: int = 0


class Training:
    """A network in training.

    Args:
        recipe: how it is trained.
        weights: to start from, from `save_weights`; random ones by default.
        progress: of the training that gave `weights`.
    """

    def __init__(
        self, recipe: Recipe, weights: dict[str, Tensor] | None = None, progress: Progress | None = None
    ) -> None:
        self.recipe, self.progress = recipe, progress or Progress()
        self.first = self.progress.steps
        torch.manual_seed(recipe.seed)
        self.network = Network(recipe.network)
        if weights is not None:
            self.network.load_state_dict({name: value.float() for name, value in weights.items()})
        self.optimizers = _optimizers(self.network, recipe)
        # Weights to start from are an average already, which the first steps should not replace.
        self.average = RunningAverage(self.network, recipe.average, {}, self.first)
        self.cooling: tuple[int, int] | None = None

    def cool(self, steps: int) -> None:
        """Let the rate fall to 0 over the next `steps` steps, with an average over a twentieth of them. It ends there;
        a training that is to go on needs the state from before."""
        self.cooling = self.progress.steps, self.progress.steps + steps
        self.average = RunningAverage(self.network, self._kept(), {}, 0)

    def _kept(self) -> float:
        """Share of the running average that remains after a step."""
        if self.cooling is None:
            return self.recipe.average
        first, last = self.cooling
        return min(self.recipe.average, max(0.0, 1 - 20 / (last - first)))

    def _rate(self) -> float:
        done = self.progress.steps
        rate = self.recipe.lr * min(1.0, (done - self.first + 1) / self.recipe.warmup)
        if self.cooling is None:
            return rate
        first, last = self.cooling
        return rate * max(0.0, (last - done) / (last - first))

    def step(self, batches: Sequence[SeriesBatch]) -> tuple[float, float]:
        """Train on some batches at once.

        Returns:
            Their mean quantile loss, and that of the seasonal naive forecast.
        """
        rate = self._rate()
        for group in (group for optimizer in self.optimizers for group in optimizer.param_groups):
            group["lr"] = rate
        self.network.zero_grad()
        quantile, naive = 0.0, 0.0
        for batch in batches:
            with low_precision_products(NATIVE):
                loss, reference = mean_loss(self.network, batch)
            scale = reference.clamp(min=NAIVE_FLOOR) if self.recipe.relative else 1.0
            (loss / scale / len(batches)).backward()
            quantile += float(loss.detach()) / len(batches)
            naive += float(reference) / len(batches)
        usable = bool(torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0).isfinite())
        if usable:
            for optimizer in self.optimizers:
                optimizer.step()
            self.average.update()
        p, series = self.progress, sum(batch.x.shape[1] for batch in batches)
        self.progress = replace(p, steps=p.steps + 1, series=p.series + series, skipped=p.skipped + (not usable))
        return quantile, naive

    def save(self, path: Path) -> None:
        """Write all that is needed to resume to `path`, at once."""
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"average.{name}": value for name, value in self.average.model.state_dict().items()}
        for k, optimizer in enumerate(self.optimizers):
            for index, state in optimizer.state_dict()["state"].items():
                tensors |= {f"optimizer.{k}.{index}.{name}": value for name, value in state.items()}
        facts = {"first": self.first, "averaged": self.average.steps, "progress": asdict(self.progress)}
        facts["cooling"] = self.cooling
        _write(tensors, {"recipe": json.dumps(asdict(self.recipe)), "facts": json.dumps(facts)}, path)

    @classmethod
    def resume(cls, path: Path) -> Training:
        """The training that `save` wrote to `path`; it goes on to the same numbers."""
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
        facts = json.loads(metadata["facts"])

        def part(prefix: str) -> dict[str, Tensor]:
            return {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}

        training = cls(recipe_of(json.loads(metadata["recipe"])), part("network."), Progress(**facts["progress"]))
        training.first = facts["first"]
        if facts["cooling"] is not None:
            first, last = facts["cooling"]
            training.cooling = first, last
        average = RunningAverage(training.network, training._kept(), part("average."), facts["averaged"])
        training.average = average
        for k, optimizer in enumerate(training.optimizers):
            state: dict[int, dict[str, Tensor]] = {}
            for name, value in part(f"optimizer.{k}.").items():
                index, _, key = name.partition(".")
                state.setdefault(int(index), {})[key] = value
            optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        return training


def _optimizers(network: Network, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """AdamW, without decay for what opts out, and Muon for the large matrices inside if the recipe has it."""
    without = undecayed(network)
    inner: list[Tensor] = []
    decayed: list[Tensor] = []
    plain: list[Tensor] = []
    for name, parameter in network.named_parameters():
        large = parameter.dim() == 2 and min(parameter.shape) >= 32 and not name.startswith(("head.", "shortcut."))
        (plain if name in without else inner if recipe.muon and large else decayed).append(parameter)
    decay = recipe.weight_decay
    groups: list[dict[str, Any]] = [{"params": decayed}, {"params": plain, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=recipe.lr, betas=(0.9, 0.98), weight_decay=decay, fused=True)
    if not inner:
        return [adamw]
    return [adamw, torch.optim.Muon(inner, lr=recipe.lr, weight_decay=decay, adjust_lr_fn="match_rms_adamw")]


def recipe_of(values: dict[str, Any]) -> Recipe:
    """The recipe that `asdict` gave `values` of."""
    return Recipe(**{**values, "network": NetworkConfig(**values["network"]), "lengths": tuple(values["lengths"])})


def save_weights(
    training: Training, path: Path, scores: dict[str, tuple[float, float]], sources: dict[str, int]
) -> None:
    """Write the averaged weights in half precision to `path`, with a card: the recipe, the progress, `scores`, the number
    of real series trained on by file as `sources`, and the names of the experts."""
    tensors = {name: value.half() for name, value in training.average.model.state_dict().items()}
    progress = asdict(training.progress)
    card = {"recipe": asdict(training.recipe), "progress": progress, "scores": scores, "sources": sources}
    _write(tensors, {"card": json.dumps(card | {"experts": NAMES})}, path)


def load_weights(path: Path) -> tuple[Recipe, dict[str, Tensor], Progress]:
    """What `save_weights` wrote to `path`; raise UsageError if it is not such a file."""
    weights = read_weights(str(path))
    return recipe_of(weights.card["recipe"]), weights.tensors, Progress(**weights.card["progress"])


def _write(tensors: dict[str, Tensor], metadata: dict[str, str], path: Path) -> None:
    write_file(path, to_bytes({name: value.contiguous() for name, value in tensors.items()}, metadata))


def train(
    training: Training,
    corpus: Corpus,
    held_out: dict[str, list[SeriesBatch]],
    folder: Path,
    hours: float,
    every: float,
    steps: int | None = None,
    sources: dict[str, int] | None = None,
) -> Iterator[dict[str, Any]]:
    """Train for `hours` of processor time in all, up to `steps` steps, or until the rate is 0, and write the number of
    series in each of `sources` into the card of the weights.

    Yields:
        Every `every` minutes of processor time and at the end: progress, mean losses, and scores of the averaged
        weights on `held_out`. The state is then in `folder`.
    """
    started, before = time.process_time(), training.progress.cpu_hours
    paused, next_report = 0.0, every / 60
    recent: list[tuple[float, float]] = []

    def used() -> float:
        return (time.process_time() - started - paused) / 3600

    ends = [last for last in (steps, training.cooling and training.cooling[1]) if last is not None]
    while True:
        done = before + used() >= hours or training.progress.steps >= min(ends, default=training.progress.steps + 1)
        if recent and (done or used() >= next_report):
            # Drawing series counts, too; scoring does not.
            training.progress = replace(training.progress, cpu_hours=before + used())
            begun = time.process_time()
            next_report += every / 60
            loss, naive = (sum(values) / len(recent) for values in zip(*recent, strict=True))
            recent = []
            scores = score(training.average.model, held_out)
            training.save(folder / "state.safetensors")
            save_weights(training, folder / "weights.safetensors", scores, sources or {})
            paused += time.process_time() - begun
            yield {**asdict(training.progress), "loss": loss, "naive": naive, "scores": scores}
        if done:
            return
        first = training.progress.steps * training.recipe.batches
        recent.append(training.step([corpus.batch(first + k) for k in range(training.recipe.batches)]))
