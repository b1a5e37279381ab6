"""What femts logs."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Messages(logging.Handler):
    def __init__(self, take: Callable[[str], object]) -> None:
        super().__init__()
        self.take = take

    def emit(self, record: logging.LogRecord) -> None:
        self.take(record.getMessage())


@contextmanager
def logged(also: Callable[[], object] = lambda: None) -> Iterator[list[str]]:
    """Yield a list of logged messages; `also` is called after each."""
    messages, logger = list[str](), logging.getLogger("femts")

    def take(message: str) -> None:
        messages.append(message)
        also()

    handler = _Messages(take)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
