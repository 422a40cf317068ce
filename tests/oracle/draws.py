"""The page's "Numbers": splitmix64, thresholds, draws from quantile knots, and where a thread's next address is."""

from math import log

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
ADDRESS, WRITE, FAULT, HANDOVER = range(4)
QUANTILES = (0, 0.5, 0.99, 0.999, 0.9999, 1)


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
        return self.draw() < threshold

    def quantile(self, knots: list[tuple[int, int]]) -> int:
        draw = self.draw()
        for (u0, v0), (u1, v1) in zip(knots, knots[1:], strict=False):
            if u0 <= draw < u1:
                return v0 + (v1 - v0) * (draw - u0) // (u1 - u0)
        raise AssertionError(f"{draw} is outside the knots")


def threshold(share: float) -> int:
    return round(share * 2**32)


def quantile_knots(values_us) -> list[tuple[int, int]]:
    values = [round(v * 1000) for v in values_us]
    return list(zip(map(threshold, QUANTILES), [*values, values[-1]], strict=True))


def exponential_knots(mean_us: float) -> list[tuple[int, int]]:
    return quantile_knots([-mean_us * log(1 - u) for u in QUANTILES[:-1]])


class Addresses:
    """One thread's walk: `next()` is (page, what a trace says of writing); the position outlives the phases."""

    def __init__(self, inputs, t: int, stream: Stream):
        self.inputs, self.stream = inputs, stream
        self.first, self.length, self.position = (int(x[t]) for x in (inputs.first, inputs.length, inputs.start))

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
