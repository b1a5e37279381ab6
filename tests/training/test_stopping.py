"""Signals become a flag."""

import os
import signal
import threading

import pytest

from femts.training.stopping import StopSignals


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
