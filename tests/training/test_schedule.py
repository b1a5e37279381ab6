"""Learning-rate schedules and time budgets."""

import math
import time
from itertools import pairwise

import pytest

from femts.config.training import TrainingConfig
from femts.training.schedule import Budget, learning_rate


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_warm_up_and_decay_to_zero(schedule: str) -> None:
    config = TrainingConfig(lr=1e-3, schedule=schedule, warm_up=0.1, div_factor=10.0)  # type: ignore[arg-type]
    rates = [learning_rate(config, step / 1000, 0) for step in range(1001)]
    assert rates[0] == pytest.approx(1e-4) and rates[50] == pytest.approx(5.5e-4) and rates[100] == pytest.approx(1e-3)
    assert rates[1000] == 0.0
    assert rates[550] == pytest.approx(5e-4)
    assert all(a < b for a, b in pairwise(rates[:101]))
    assert all(a > b for a, b in pairwise(rates[100:]))
    expected = 1e-3 * ((1 + math.cos(math.pi * 0.25)) / 2 if schedule == "cosine" else 0.75)
    assert rates[325] == pytest.approx(expected)


def test_no_warm_up_starts_at_the_peak() -> None:
    assert learning_rate(TrainingConfig(lr=0.5, warm_up=0.0), 0.0, 0) == 0.5


def test_exponential_schedule() -> None:
    config = TrainingConfig(lr=1.0, schedule="exponential", hold_epochs=2, epoch_decay=0.5)
    assert [learning_rate(config, 0.3, epoch) for epoch in range(4)] == [1.0, 1.0, 0.5, 0.25]


def test_no_time_limit_spends_no_time() -> None:
    assert Budget(10, None, time.monotonic() - 1e6, 10**9).time_spent() == 0.0


def test_time_budget_reserves_scoring_time() -> None:
    now = time.monotonic()
    assert Budget(10, 60, now - 61, 0).time_spent() == 1.0
    budget = Budget(10, 60, now - 50, 100)
    assert budget.time_spent() < 0.01
    budget.note_scoring(0.1)  # 100 windows would take the ten seconds that are left
    assert budget.time_spent() == 1.0
    many, few = Budget(10, 60, now - 40, 10**6), Budget(10, 60, now - 46, 10**6)
    for budget in (many, few):
        budget.note_scoring(0.01)  # the hours that all windows would take are not kept, but a quarter of a minute
    assert many.time_spent() < 0.01 and few.time_spent() == 1.0


def test_step_time_ignores_slow_outliers() -> None:
    budget = Budget(10, 60, time.monotonic(), 100)
    for seconds in (90.0, 90.0, 90.0, 1e-3):  # held up by the machine
        budget.note_step(seconds)
        assert budget.time_spent() < 0.01
    budget.note_step(90.0)
    assert budget.time_spent() < 0.01
    slow = Budget(10, 60, time.monotonic(), 100)
    for _ in range(5):
        slow.note_step(90.0)
    assert slow.time_spent() == 1.0
