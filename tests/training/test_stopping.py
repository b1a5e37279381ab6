"""Signal handling."""

import os
import signal
import threading

import pytest

from femts.training.stopping import StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_is_recorded_and_handlers_restored(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopSignals() as signals:
        os.kill(os.getpid(), number)
        assert signals.received == 1
    assert signal.getsignal(number) is before


def test_second_signal_interrupts() -> None:
    with StopSignals(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_signals_in_a_thread_are_ignored() -> None:
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
