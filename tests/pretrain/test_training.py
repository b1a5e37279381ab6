"""Network, loop and scores: what may be read, what is learned, and that a training resumes to the same numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from femts.models.parts.expert_network import Network, NetworkConfig, origins_of
from femts.models.parts.experts import expert_forecasts
from femts.models.parts.zero_shot import SeriesBatch, losses, tokenize
from scripts.pretrain import __main__ as command
from scripts.pretrain.corpus import Corpus
from scripts.pretrain.loop import Recipe, Training, load_weights, orthogonal, save_weights, train
from scripts.pretrain.scores import held_out_real, score

pytest.importorskip("synforecast")

SMALL = NetworkConfig(width=32, layers=2, heads=2, expansion=2)
RECIPE = Recipe(network=SMALL, size=6, batches=1, lengths=(64, 128), warmup=5)
VARIANTS: list[dict[str, Any]] = [
    {},
    {"patch": 8},
    {"read_experts": False},
    {"weigh_experts": False},
    {"every_origin": False},
    {"components": "", "prior": "gla"},
    {"prior": "mamba"},
]


def corpus(**settings: Any) -> Corpus:
    return Corpus({}, **{"size": RECIPE.size, "lengths": RECIPE.lengths, **settings})


def batch(**settings: Any) -> SeriesBatch:
    return corpus(**settings).draw(np.random.default_rng(0), 7, 128, 16)


def perturbed(network: Network) -> Network:
    """With an output that depends on the tokens, unlike the initial one."""
    torch.manual_seed(1)
    torch.nn.init.normal_(network.head.weight, std=0.2)
    return network.double()


def in_double(batch: SeriesBatch) -> SeriesBatch:
    return replace(batch, x=batch.x.double())


@pytest.mark.parametrize("settings", VARIANTS)
def test_forecasts_read_only_what_was_known(settings: dict[str, Any]) -> None:
    network = perturbed(Network(replace(SMALL, **settings)))
    b = in_double(batch())
    before = network(tokenize(network, b))
    changed = b.x.clone()
    changed[-16:] += 50
    after = network(tokenize(network, replace(b, x=changed)))
    torch.testing.assert_close(after, before, rtol=0, atol=1e-9)
    changed[-32:-16] -= 3  # what the one before the last forecast is scored on
    after = network(tokenize(network, replace(b, x=changed)))
    assert not torch.allclose(after[:, -1], before[:, -1])
    if network.config.every_origin and network.config.prior != "mamba":
        torch.testing.assert_close(after[:, :-1], before[:, :-1], rtol=0, atol=1e-9)


def test_unseen_beginnings_do_not_matter() -> None:
    network = perturbed(Network(SMALL))
    b = in_double(batch(gaps=0.0))
    observed = b.observed.clone()
    observed[:50] = False
    x = b.x.clone()
    x[:50] = 99.0
    first = network(tokenize(network, replace(b, observed=observed)))
    second = network(tokenize(network, replace(b, observed=observed, x=x)))
    torch.testing.assert_close(second[:, -1], first[:, -1], rtol=0, atol=1e-9)


def test_losses_are_those_of_the_plain_definition() -> None:
    network = perturbed(Network(SMALL))
    b = in_double(batch())
    with torch.no_grad():
        got = losses(network, b)
    tokens, origins = tokenize(network, b), origins_of(len(b.x) - b.horizon, b.horizon, 512)
    forecasts = expert_forecasts(b.x, b.observed, b.season, b.second, b.horizon, origins, 512)
    quantiles = (tokens.centre[..., None] + tokens.unit[..., None] * network(tokens)).detach()
    o, column = 3, 2
    y = b.x[origins[o] : origins[o] + b.horizon, column]
    seen = b.observed[origins[o] : origins[o] + b.horizon, column]
    scale = forecasts.seasonal[o, column]
    total, steps = 0.0, 0
    for h in range(b.horizon):
        if seen[h]:
            steps += 1
            for i in range(9):
                level, missed = (i + 1) / 10, float(y[h] - quantiles[column, o, h, i])
                total += 2 * max(level * missed, (level - 1) * missed) / 9
    assert float(got.quantile[column, o]) == pytest.approx(total / steps / float(scale), rel=1e-9)


def test_steps_on_one_batch_lower_its_loss() -> None:
    training, b = Training(replace(RECIPE, warmup=1)), batch()
    first, *_, last = [training.step([b])[0] for _ in range(20)]
    assert last < 0.9 * first


def test_a_step_without_a_finite_gradient_has_no_effect() -> None:
    training, b = Training(RECIPE), batch()
    before = {name: value.clone() for name, value in training.network.state_dict().items()}
    training.step([replace(b, x=b.x.masked_fill(b.observed, torch.inf))])
    assert (training.progress.steps, training.progress.skipped) == (1, 1)
    for name, value in training.network.state_dict().items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("settings", [{"muon": False}, {"muon": True, "batches": 2, "size": 3, "relative": True}])
def test_training_resumes_to_the_same_numbers(tmp_path: Path, settings: dict[str, Any]) -> None:
    groups, recipe = {"synthetic 7": [batch()]}, replace(RECIPE, **settings)
    drawn = corpus(size=recipe.size)
    whole = Training(recipe)
    (report,) = train(whole, drawn, groups, tmp_path, hours=1.0, every=60.0, steps=12)
    stopped = Training(recipe)
    list(train(stopped, drawn, groups, tmp_path, hours=1.0, every=60.0, steps=5))
    resumed = Training.resume(tmp_path / "state.safetensors")
    assert resumed.progress.steps == 5 and resumed.recipe == recipe
    list(train(resumed, drawn, groups, tmp_path, hours=1.0, every=60.0, steps=12))
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, resumed.network.state_dict()[name]), name
    for name, value in whole.average.model.state_dict().items():
        assert torch.equal(value, resumed.average.model.state_dict()[name]), name
    assert report["steps"] == 12 and report["series"] == 72


def test_the_rate_falls_to_0_and_resumes_on_the_way(tmp_path: Path) -> None:
    def started() -> Training:
        training = Training(RECIPE)
        for number in range(8):
            training.step([corpus().batch(number)])
        training.cool(10)
        return training

    groups, whole, stopped = {"synthetic 7": [batch()]}, started(), started()
    (report,) = train(whole, corpus(), groups, tmp_path, hours=1.0, every=60.0)
    assert report["steps"] == 18
    (rate,) = {group["lr"] for optimizer in whole.optimizers for group in optimizer.param_groups}
    assert rate == pytest.approx(RECIPE.lr / 10)  # of the last step
    list(train(stopped, corpus(), groups, tmp_path, hours=1.0, every=60.0, steps=12))
    resumed = Training.resume(tmp_path / "state.safetensors")
    list(train(resumed, corpus(), groups, tmp_path, hours=1.0, every=60.0))
    assert resumed.progress.steps == 18
    for name, value in whole.average.model.state_dict().items():
        assert torch.equal(value, resumed.average.model.state_dict()[name]), name


def test_weights_go_on_at_a_flat_rate(tmp_path: Path) -> None:
    training = Training(RECIPE)
    for number in range(8):
        training.step([corpus().batch(number)])
    save_weights(training, tmp_path / "w.safetensors", {"real": (0.6, 0.5)}, {"mine.csv": 3})
    recipe, weights, progress = load_weights(tmp_path / "w.safetensors")
    assert recipe == RECIPE and progress.steps == 8
    assert {value.dtype for value in weights.values()} == {torch.float16}
    carried = Training(recipe, weights, progress)
    assert carried.average.steps == 8, "the average goes on, too"
    for name, value in training.average.model.state_dict().items():
        torch.testing.assert_close(carried.network.state_dict()[name], value, rtol=1e-3, atol=1e-4)
    for number in range(8, 20):
        carried.step([corpus().batch(number)])
    assert carried.progress.steps == 20
    assert {group["lr"] for optimizer in carried.optimizers for group in optimizer.param_groups} == {RECIPE.lr}


def test_real_series_are_scored_at_their_ends() -> None:
    t = np.arange(400)
    real = {24: (np.sin(2 * np.pi * t / 24) + 0.01 * t, 5 + np.cos(2 * np.pi * t[:330] / 24))}
    groups = held_out_real(real)
    assert [b.x.shape[1] for b in groups["real 24"]] == [2, 1, 1, 0][: len(groups["real 24"])]
    first = groups["real 24"][0]
    assert first.horizon == 48 and int(first.observed[:, 0].sum()) == 400
    scores = score(Network(SMALL), groups)
    assert scores["real"] == pytest.approx(scores["real 24"])


def test_the_command_trains_resumes_and_carries_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "held_out_pool", lambda patch: {"synthetic 7": [batch()]})
    small = "network.width=32 network.heads=2 network.layers=1 training.size=4 training.batches=1 training.lengths=64"
    settings = [word for setting in small.split() for word in ("--set", setting)]

    def run(folder: str, *more: str) -> list[dict[str, Any]]:
        assert command.main([str(tmp_path / folder), *more]) == 0
        return [json.loads(line) for line in (tmp_path / folder / "log.jsonl").read_text().splitlines()]

    assert [r["steps"] for r in run("a", "--steps", "3", *settings)] == [3]
    assert [r["steps"] for r in run("a", "--steps", "5")] == [3, 5]
    assert [r["steps"] for r in run("cooled", "--cool", str(tmp_path / "a"), "2")] == [7]
    carried = run("b", "--steps", "7", "--from", str(tmp_path / "a" / "weights.safetensors"))
    assert [r["steps"] for r in carried] == [7]
    assert carried[0]["recipe"]["network"]["width"] == 32 and carried[0]["recipe"]["lengths"] == [64]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("new --set network.wide=3", "Unknown setting 'network.wide'; did you mean 'network.width'"),
        ("new --set lr=3", "Setting 'lr=3' is not of the form training.lr=1e-3"),
        ("new --set training.lr=high", "Setting 'training.lr' takes a number, not 'high'"),
        ("new --set network.heads=7", "is not a multiple of"),
        ("new --from missing.safetensors", "The weights missing.safetensors cannot be read"),
        ("new --cool old few", "--cool takes the folder of a training and a number of steps, not 'old' 'few'"),
        ("new --cool gone 5", "--cool takes the folder of a training"),
        ("new --files missing.csv", "missing.csv cannot be read"),
        ("new --hours 0", "--hours 0 counts all hours"),
        ("old --set training.lr=1e-3", "holds a training, which --set cannot change; give another folder"),
        ("old --from w.safetensors", "holds a training, which --from cannot change; give another folder"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(
    words: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "state.safetensors").write_bytes(b"")
    assert command.main(words.split()) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.count("\n") == 1
    assert not (tmp_path / "new").exists() and len(list((tmp_path / "old").iterdir())) == 1


@pytest.mark.parametrize("shape", [(64, 32), (32, 64), (48, 48)])
def test_products_in_single_precision_are_those_of_muon(shape: tuple[int, int]) -> None:
    coefficients, steps = (3.4445, -4.775, 2.0315), 5
    grad = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    got = orthogonal(grad, coefficients, steps, 1e-7)
    u, values, v = torch.linalg.svd(grad / grad.norm(), full_matrices=False)
    for _ in range(steps):  # the iteration is a polynomial of the singular values
        values = sum(c * values ** (2 * k + 1) for k, c in enumerate(coefficients))
    torch.testing.assert_close(got, u @ torch.diag(values) @ v, rtol=1e-4, atol=1e-4)
