"""Every window once, in an order that (seed, epoch) alone decides, with weights that make shares add up."""

import itertools

import pytest
import torch

from femts.training.batches import IndexBatches, derive_seed


@pytest.mark.parametrize(("windows", "size"), [(10, 3), (9, 3), (2, 5)])
def test_an_epoch_has_every_window_once(windows: int, size: int) -> None:
    batches = list(IndexBatches(windows, size, 1, seed=0))
    assert sorted(torch.cat([b.windows for b in batches]).tolist()) == list(range(windows))
    assert [len(b.windows) for b in batches][:-1] == [size] * (len(batches) - 1)
    assert all(b.weight == 1.0 for b in batches)


def test_the_order_follows_from_seed_and_epoch_alone() -> None:
    def order(seed: int, epoch: int) -> list[int]:
        torch.manual_seed(len(str(seed)) + epoch)  # the global state must not matter
        batches = IndexBatches(50, 7, 1, seed)
        batches.epoch = epoch
        return torch.cat([b.windows for b in batches]).tolist()

    assert order(1, 3) == order(1, 3)
    assert len({tuple(order(seed, epoch)) for seed, epoch in itertools.product(range(3), range(3))}) == 9


def test_a_resumed_epoch_gives_its_remaining_batches_and_the_next_one_all() -> None:
    batches = IndexBatches(20, 3, 1, seed=5)
    whole = [b.windows.tolist() for b in batches]
    batches.first = 4
    iter(batches)  # looked at, as Lightning does, but nothing taken
    assert [b.windows.tolist() for b in batches] == whole[4:]
    assert [b.windows.tolist() for b in batches] == whole


@pytest.mark.parametrize("accumulate", [1, 2, 3])
@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("windows", [13, 16, 17, 3])
def test_weighted_means_of_all_shares_are_the_mean_over_the_step(windows: int, world: int, accumulate: int) -> None:
    """Lightning divides each loss by `accumulate` and DDP the gradient by `world`; what comes out must be one mean."""
    losses = torch.rand(windows, dtype=torch.float64)
    shares = [list(IndexBatches(windows, 4, accumulate, 0, rank, world)) for rank in range(world)]
    assert len({len(share) for share in shares}) == 1, "processes would wait for each other"
    for start in range(0, len(shares[0]), accumulate):
        step = [batch for share in shares for batch in share[start : start + accumulate]]
        combined = sum(losses[b.windows].mean() * b.weight for b in step) / accumulate / world
        used = torch.cat([b.windows[: b.real] for b in step])
        assert float(combined) == pytest.approx(float(losses[used].mean()), rel=1e-12)


def test_unequal_shares_without_weights_would_be_wrong() -> None:
    """The fault that the weights are there for: the mean of two processes' means is not the mean."""
    losses = torch.arange(3.0)
    shares = [next(iter(IndexBatches(3, 3, 1, 0, rank, 2))) for rank in range(2)]
    assert sum(losses[b.windows].mean() for b in shares) / 2 != losses.mean()
    assert sum(losses[b.windows].mean() * b.weight for b in shares) / 2 == losses.mean()


def test_steps_count_a_short_last_one() -> None:
    batches = IndexBatches(17, 4, 2, 0)
    assert (batches.count, batches.steps) == (5, 3)


def test_derived_seeds_differ_for_neighbours_and_fit_a_generator() -> None:
    seeds = {derive_seed("step", seed, epoch, 0) for seed in range(30) for epoch in range(30)}
    assert len(seeds) == 900 and all(0 <= s < 2**63 for s in seeds)
