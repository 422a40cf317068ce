"""The page's "Numbers": splitmix64, thresholds, draws from quantile knots; and a thread's next address."""

from itertools import pairwise
from math import log1p

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
ADDRESS, WRITE, FAULT, HANDOVER = range(4)
QUANTILES = (0, 0.5, 0.99, 0.999, 0.9999, 1)
EXPONENTIAL = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999, 0.99999, 1)


def mix(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


class Stream:
    """Stream `k` of thread `t`."""

    def __init__(self, seed: int, t: int, k: int):
        self.state = mix(seed ^ mix(GOLDEN * (1 + 4 * t + k) & MASK))

    def draw(self) -> int:
        """32 bits."""
        self.state = (self.state + GOLDEN) & MASK
        return mix(self.state) >> 32

    def below(self, n: int) -> int:
        return self.draw() * n >> 32

    def happens(self, threshold: int) -> bool:
        """What is certain or impossible takes no draw."""
        return threshold == 2**32 or (threshold > 0 and self.draw() < threshold)

    def quantile(self, knots: list[tuple[int, int]]) -> int:
        draw = self.draw()
        for (u0, v0), (u1, v1) in pairwise(knots):
            if u0 <= draw < u1:
                return v0 + (v1 - v0) * (draw - u0) // (u1 - u0)
        raise AssertionError(f"{draw} is outside the knots")


def threshold(share: float) -> int:
    return round(share * 2**32)


def quantile_knots(values_us) -> list[tuple[int, int]]:
    values = [round(v * 1000) for v in values_us]
    return list(zip(map(threshold, QUANTILES), [*values, values[-1]], strict=True))


def exponential_knots(mean_us: float) -> list[tuple[int, int]]:
    values = [round(-mean_us * 1000 * log1p(-u)) for u in EXPONENTIAL[:-1]]
    return list(zip(map(threshold, EXPONENTIAL), [*values, values[-1]], strict=True))


class Addresses:
    """One thread's walk: `next()` is (page, whether a trace writes it); the position outlives the phases."""

    def __init__(self, inputs, t: int, stream: Stream):
        self.inputs, self.stream = inputs, stream
        self.first, self.length = int(inputs.first[t]), int(inputs.length[t])
        self.position = int(inputs.start[t])

    def next(self) -> tuple[int, bool]:
        inputs = self.inputs
        if inputs.kind == "random":
            return self.first + self.stream.below(self.length), False
        if inputs.kind == "zipf":
            item = self.stream.below(self.length)
            if self.stream.draw() >= int(inputs.zipf_keep[item]):
                item = int(inputs.zipf_alias[item])
            return self.first + item, False
        position = self.position
        self.position = (position + 1) % self.length
        if inputs.kind == "sequential":
            return self.first + (position >> int(inputs.shift)), False
        entry = int(inputs.entries[self.first + position])
        return entry & 0x7FFF_FFFF, bool(entry >> 31)
