"""Latency bins: exact below 128 ns, then 128 for each power of two up to 2^40 ns (<= 0.8 % wide), by integer shift.

The one formula: for v >= 128 with e = floor(log2 v), bin = 128 (e - 6) + (v >> (e - 7)) - 128. Longer than 2^40 ns
(18 minutes) counts in the last bin; exact minimum and maximum are kept beside the bins.
"""
from __future__ import annotations

import numpy as np

from cxdbench.jit import inline, kernel, leading_zeros

BITS = 7
TOP = 40
N_BINS = (1 << BITS) * (TOP - BITS + 1)

_U = np.uint64
_EXACT, _LAST = _U(1 << BITS), _U((1 << TOP) - 1)


@inline
def bin_of(v):
    """Bin of v ns (uint64)."""
    if v < _EXACT:
        return v
    if v > _LAST:
        v = _LAST
    shift = _U(63 - BITS) - leading_zeros(v)
    return (shift << _U(BITS)) + (v >> shift)


@kernel
def _bins_of(values, out):
    for i in range(values.shape[0]):
        out[i] = bin_of(values[i])


def bins_of(values: np.ndarray) -> np.ndarray:
    """Bins of ns, shape (n,), as int64."""
    out = np.empty(len(values), np.int64)
    _bins_of(np.ascontiguousarray(values, np.uint64), out)
    return out


def lower_edges() -> np.ndarray:
    """Smallest value of each bin, ns, shape (N_BINS,), int64."""
    index = np.arange(N_BINS, dtype=np.int64)
    shift = np.maximum((index >> BITS) - 1, 0)
    return np.where(index < (1 << BITS), index, (index - (shift << BITS)) << shift)


def widths() -> np.ndarray:
    """Width of each bin, ns, shape (N_BINS,), int64."""
    return np.int64(1) << np.maximum((np.arange(N_BINS, dtype=np.int64) >> BITS) - 1, 0)


def middles() -> np.ndarray:
    """The value that stands for each bin, ns, shape (N_BINS,), float64: its middle (exact where a bin is 1 ns wide)."""
    return lower_edges() + (widths() - 1) / 2
