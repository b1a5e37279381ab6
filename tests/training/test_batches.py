"""Batches, their order and their shares among processes."""

import itertools

import pytest
import torch

from femts.training.batches import Share, StepBatches, drawn_channels


def epoch_of(batches: StepBatches, number: int = 0) -> list[Share]:
    steps = range(number * batches.epoch, (number + 1) * batches.epoch)
    return [batch for step in steps for batch in batches.of(step)]


def test_epoch_visits_every_window_once() -> None:
    for windows, size in [(10, 3), (9, 3), (2, 5)]:
        batches = epoch_of(StepBatches(windows, size, 1, seed=0))
        assert sorted(torch.cat([b.windows for b in batches]).tolist()) == list(range(windows))
        assert [len(b.windows) for b in batches][:-1] == [size] * (len(batches) - 1)
        assert all(b.weight == 1.0 for b in batches)


def test_order_depends_on_seed_and_epoch_only() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        torch.manual_seed(len(str(seed)) + epoch)  # the global state must not matter
        return torch.cat([b.windows for b in epoch_of(StepBatches(50, 7, 1, seed), epoch)]).tolist()

    assert order(1, 3) == order(1, 3)
    assert len({tuple(order(seed, epoch)) for seed, epoch in itertools.product(range(3), range(3))}) == 9


def test_shares_average_to_the_step_mean() -> None:
    """DDP divides the gradient by the number of processes."""
    for accumulate in [1, 2, 3]:
        for world in [1, 2, 3]:
            for windows in [13, 16, 17, 3]:
                losses = torch.rand(windows, dtype=torch.float64)
                ranks = [StepBatches(windows, 4, accumulate, 0, (rank, world)) for rank in range(world)]
                for step in range(ranks[0].epoch):
                    shares = [rank.of(step) for rank in ranks]
                    assert len({len(share) for share in shares}) == 1, "processes would wait for each other"
                    each = [batch for share in shares for batch in share]
                    combined = sum(losses[b.windows].mean() * b.weight for b in each) / world
                    used = torch.cat([b.windows[: b.real] for b in each])
                    assert float(combined) == pytest.approx(float(losses[used].mean()), rel=1e-12)


def test_channels_are_resampled_each_step() -> None:
    drawn = [drawn_channels(3, 10, 7, step).tolist() for step in range(60)]
    assert all(len(set(each)) == 3 and each == sorted(each) for each in drawn)
    assert set().union(*drawn) == set(range(10)) and len({tuple(each) for each in drawn}) > 40
    assert drawn[5] == drawn_channels(3, 10, 7, 5).tolist()
