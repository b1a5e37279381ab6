"""A training step as a CUDA graph: one launch instead of hundreds, most of which last less than it takes to make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from femts.errors import RunFailure
from femts.mixers.ops.precision import full_precision


class CudaGraph:
    """The CUDA graph of a step without arguments, which reads from and writes to the same tensors whenever replayed.

    Random numbers are those of an eager step with the same seed, which has to be set before each replay: the device's
    generator is registered with the graph, and counts from the seed in both.

    Args:
        device: CUDA device of the step.
    """

    def __init__(self, device: torch.device) -> None:
        self._device, self._stream = device, torch.cuda.Stream(device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._gradients: list[Tensor | None] = []

    @property
    def captured(self) -> bool:
        """Whether there is a graph to replay."""
        return self._graph is not None

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Context of eager steps on the stream of the capture, as libraries prepare some things once per stream."""
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            yield
        current.wait_stream(self._stream)

    def capture(self, step: Callable[[], None], parameters: Sequence[Tensor]) -> None:
        """Capture `step`, without computing anything; it has to be replayed to take effect.

        Args:
            step: computes the gradients of all `parameters`, which have none yet, and reads nothing from the device.
            parameters: weights that require gradients.

        Raises:
            RunFailure: An operation of the step cannot be captured.
        """
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(torch.cuda.default_generators[self._device.index or 0])
        try:
            # An autocast must not cache the weights that it casts: the graph would be of the cast ones forever.
            with torch.cuda.graph(graph, stream=self._stream), full_precision(self._device.type):
                step()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0]
            raise RunFailure(
                f"The training step cannot be captured as a CUDA graph ({reason}); set training.graph=off."
            ) from error
        # The graph writes them at these addresses, which nothing else may be given.
        self._gradients = [parameter.grad for parameter in parameters]
        self._graph = graph

    def replay(self) -> None:
        """Run the captured step, in the order of the current stream."""
        assert self._graph is not None
        self._graph.replay()
