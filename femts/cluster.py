"""Engines that run tasks: this machine, or a cluster of Ray."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from femts.errors import UsageError, unknown
from femts.text import arguments, quote

ENGINES = ("local", "ray")
PATIENCE = 5.0  # seconds to wait for the cluster to answer


def check_engine(name: str) -> str:
    """Return `name`; raise UsageError if it is not an engine."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES, "engine")
    return name


@contextmanager
def connected() -> Iterator[Any]:
    """The module `ray`, connected to the cluster at `RAY_ADDRESS`, or to this machine as one.

    An existing connection of the caller is used and kept.

    Raises:
        UsageError: Ray is not installed, or the cluster cannot be used.
    """
    try:
        import ray
    except ImportError as error:
        text = f"Engine 'ray' needs Ray, which is not installed; run pip install ray, or use {arguments({'engine': 'local'})}."
        raise UsageError(text, argument="engine", value="ray", remedy={"engine": None}) from error
    if ray.is_initialized():
        yield ray
        return
    address = os.environ.get("RAY_ADDRESS", "")
    with redirect_stdout(sys.stderr):  # standard output is for data, but Ray prints there which nodes it has lost
        try:
            _check_listening(address)
            # Without an address, Ray would join a cluster that somebody else started on this machine.
            ray.init(address or "local", include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, OverflowError, RuntimeError) as error:
            if not address:
                raise
            reason = quote(" ".join(str(error).split()))
            raise UsageError(
                f"The Ray cluster at RAY_ADDRESS '{quote(address)}' cannot be used ({reason}); start it with ray start "
                "--head, or unset RAY_ADDRESS to use this machine."
            ) from error
        try:
            yield ray
        finally:
            ray.shutdown()


def _check_listening(address: str) -> None:
    """Raise OSError if nothing listens at an `address` with a port; Ray would wait for two minutes and then end this
    process."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
