"""Signals become a flag, the clock a decision."""

import os
import signal
import threading
import time

import pytest

from femts.training.stopping import Deadline, StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_and_the_handlers_put_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopSignals() as signals:
        os.kill(os.getpid(), number)
        assert signals.received == 1
    assert signal.getsignal(number) is before


def test_the_second_signal_ends_at_once() -> None:
    with StopSignals(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_signals_can_be_taken_back_from_another_library() -> None:
    with StopSignals() as signals:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signals.claim()
        os.kill(os.getpid(), signal.SIGTERM)
        assert signals.received == 1


def test_a_thread_that_may_not_set_handlers_changes_nothing() -> None:
    before, failures = signal.getsignal(signal.SIGINT), []

    def enter() -> None:
        try:
            with StopSignals():
                pass
        except ValueError as error:
            failures.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert not failures and signal.getsignal(signal.SIGINT) is before


def test_a_deadline_keeps_time_for_the_scores() -> None:
    now = time.monotonic()
    assert not Deadline(None, now, 10**9).passed()
    deadline = Deadline(60, now, 100)
    assert not deadline.passed()
    deadline.seconds_per_window = 0.6  # 100 windows would take the minute
    assert deadline.passed()
    assert Deadline(60, now - 61, 0).passed()
