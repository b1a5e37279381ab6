"""The synthetic suite of the paper's Table 1, reduced: two blocks of mixer and SwiGLU over tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, nn

from scripts.bench.selection.networks import Compressor, Reader, SwiGLU
from scripts.bench.selection.task import IGNORED, Choices, Pair, Part

MAP = 12345  # seed of the map that is memorised


@dataclass(frozen=True)
class SuiteTask(Choices):
    """Task over a `vocabulary` of tokens."""

    rate: float = 6e-3
    vocabulary: int = 16

    def host(self, mixer: str) -> nn.Module:
        return Reader(self.blocks(mixer, rope=True, mlp=SwiGLU), self.width, self.vocabulary)


@dataclass(frozen=True)
class Recall(SuiteTask):
    """A key that comes again asks for the value that followed it before; one map of keys to values a sequence.

    Attributes:
        noise: share of pairs that are noise instead, from tokens of its own.
    """

    name = "recall"

    noise: float = 0.0

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        keys_values, pairs = self.vocabulary // (4 if self.noise else 2), self.length // 2
        key = torch.randint(keys_values, (count, pairs), generator=generator)
        values = torch.randint(keys_values, 2 * keys_values, (count, keys_values), generator=generator)
        is_noise = torch.rand(count, pairs, generator=generator) < self.noise
        earlier = (key.unsqueeze(2) == key.unsqueeze(1)) & ~is_noise.unsqueeze(1)
        again = earlier.tril(-1).any(2) & ~is_noise
        tokens = torch.stack([key, values.gather(1, key)], dim=-1)
        target = tokens[..., 1].masked_fill(~again, IGNORED)
        if self.noise:
            noise = torch.randint(2 * keys_values, self.vocabulary, tokens.shape, generator=generator)
            tokens = torch.where(is_noise.unsqueeze(-1), noise, tokens)
        return tokens.flatten(1), torch.stack([target, torch.full_like(target, IGNORED)], dim=-1).flatten(1)


@dataclass(frozen=True)
class NoisyRecall(Recall):
    """Recall, where a fifth of the pairs are noise."""

    name = "noisy_recall"

    vocabulary: int = 32
    noise: float = 0.2


@dataclass(frozen=True)
class FuzzyRecall(SuiteTask):
    """Recall, where keys and values are motifs of different tokens; in the test part every key has the longest length.

    Attributes:
        longest: tokens of the longest motif.
        motifs: different keys of a sequence.
    """

    name = "fuzzy_recall"

    length: int = 96
    longest: int = 3
    motifs: int = 8

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        samples = [self._sample(part, generator) for _ in range(count)]
        tokens, targets = (torch.tensor(each) for each in zip(*samples, strict=True))
        return tokens, targets

    def _sample(self, part: Part, generator: Generator) -> tuple[list[int], list[int]]:
        """Tokens and targets of one sequence: motif after motif from a few pairs, cut at the end."""
        pairs = self._pairs(part, generator)
        order = torch.randint(len(pairs), (self.length,), generator=generator).tolist()
        tokens, targets, seen = list[int](), list[int](), set[int]()
        for number in order:
            key, value = pairs[number]
            # The token before one of the value has it for its target.
            targets += [IGNORED] * (len(key) - 1) + (value if number in seen else [IGNORED] * len(value)) + [IGNORED]
            tokens += key + value
            seen.add(number)
            if len(tokens) >= self.length:
                break
        return tokens[: self.length], targets[: self.length]

    def _pairs(self, part: Part, generator: Generator) -> list[tuple[list[int], list[int]]]:
        half = self.vocabulary // 2
        tokens = torch.rand((self.motifs, 2, half), generator=generator).argsort(-1).tolist()
        lengths = torch.randint(1, self.longest + 1, (self.motifs, 2), generator=generator).tolist()
        pairs = dict[tuple[int, ...], list[int]]()
        for (key, value), (key_length, value_length) in zip(tokens, lengths, strict=True):
            length = self.longest if part == "test" else key_length
            pairs.setdefault(tuple(key[:length]), [half + each for each in value[:value_length]])
        return [(list(key), value) for key, value in pairs.items()]


@dataclass(frozen=True)
class SelectiveCopy(SuiteTask):
    """Give back in order the tokens that were scattered among blanks: a sign to begin, then as many blanks as tokens.

    Attributes:
        copied: tokens to copy.
    """

    name = "selective_copy"

    copied: int = 8

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        blank, begin, places = self.vocabulary - 2, self.vocabulary - 1, self.length - self.copied - 1
        chosen = torch.randint(self.vocabulary - 2, (count, self.copied), generator=generator)
        where = torch.rand(count, places, generator=generator).argsort(1)[:, : self.copied].sort(1).values
        tokens = torch.full((count, self.length), blank)
        tokens.scatter_(1, where, chosen)[:, places] = begin
        targets = torch.full_like(tokens, IGNORED)
        targets[:, -self.copied :] = chosen
        return tokens, targets


@dataclass(frozen=True)
class Compression(SuiteTask):
    """The last token, a sign, gives back with a place the token of that place."""

    name = "compression"

    length: int = 16
    steps: int = 1500

    def host(self, mixer: str) -> nn.Module:
        return Compressor(self.blocks(mixer, rope=True, mlp=SwiGLU), self.width, self.vocabulary, self.length)

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        tokens = torch.randint(self.vocabulary - 1, (count, self.length), generator=generator)
        tokens[:, -1] = self.vocabulary - 1
        return tokens, tokens.masked_fill(tokens == self.vocabulary - 1, IGNORED)


@dataclass(frozen=True)
class Memorisation(SuiteTask):
    """A fixed map of keys to values, the same in all sequences, is learned in the weights."""

    name = "memorisation"

    vocabulary: int = 256
    length: int = 32
    steps: int = 200

    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        keys, sign = self.vocabulary // 2, self.vocabulary - 1
        values = keys + torch.randint(sign - keys, (keys,), generator=Generator().manual_seed(MAP))
        key = torch.randint(keys, (count, self.length // 2), generator=generator)
        tokens = torch.stack([key, torch.full_like(key, sign)], dim=-1).flatten(1)
        return tokens, torch.stack([torch.full_like(key, IGNORED), values[key]], dim=-1).flatten(1)
