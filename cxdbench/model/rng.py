"""splitmix64, four streams a thread, and draws from quantile knots; integers only."""
from __future__ import annotations

import numpy as np

from cxdbench.jit import inline, kernel
from cxdbench.model.layout import GOLD, U

_ALWAYS = U(2**32)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@inline
def mix(z):
    """The output function of splitmix64 on a uint64."""
    z = (z ^ (z >> U(30))) * _M1
    z = (z ^ (z >> U(27))) * _M2
    return z ^ (z >> U(31))


@inline
def draw(th, t, stream):
    """The next 32-bit draw of a thread's stream (a column of th)."""
    s = th[t, stream] + GOLD
    th[t, stream] = s
    return mix(s) >> U(32)


@inline
def chance(th, t, stream, threshold):
    """True with probability threshold / 2^32; the certain and the impossible take no draw."""
    if threshold == U(0) or threshold >= _ALWAYS:
        return threshold > U(0)
    return draw(th, t, stream) < threshold


@inline
def below(n, u):
    """A 32-bit draw u scaled to 0 … n - 1."""
    return (u * n) >> U(32)


@inline
def from_knots(knots, row, n, u):
    """The quantile at u of knots[row, i] = (threshold, value), i < n; linear between knots."""
    i = U(0)
    while i + U(2) < n and knots[row, i + U(1), 0] <= u:
        i += U(1)
    u0, v0 = knots[row, i, 0], knots[row, i, 1]
    return v0 + (knots[row, i + U(1), 1] - v0) * (u - u0) // (knots[row, i + U(1), 0] - u0)


@kernel
def fill_alias(scaled, keep, alias, small, large):
    """Walker's alias method (Vose's order): from n weights of mean 1 to thresholds and aliases, shape (n,) each.

    small and large are scratch, shape (n,) int64.
    """
    n = scaled.shape[0]
    n_small = n_large = 0
    for i in range(n):
        if scaled[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        low, high = small[n_small], large[n_large - 1]
        keep[low], alias[low] = min(2.0**32 - 1, scaled[low] * 2.0**32), high
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < 1.0:
            n_large -= 1
            small[n_small] = high
            n_small += 1
