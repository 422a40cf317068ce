"""The CPU-cache filter against a plain-Python cache, on arbitrary accesses."""
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cxdbench.cpucache import CpuCache, Filter


def oracle(accesses, sets, ways):
    """[(line, is_write, cause)] and hits, by one ordered dict a set: least recently used first."""
    rows = [OrderedDict() for _ in range(sets)]
    out, hits = [], 0
    for n, (line, write) in enumerate(accesses):
        row = rows[line % sets]
        if line in row:
            hits += 1
            row.move_to_end(line)
        else:
            if len(row) == ways:
                victim, dirty = row.popitem(last=False)
                if dirty:
                    out.append((victim, True, n))
            out.append((line, False, n))
            row[line] = False
        row[line] = row[line] or write
    return out, hits


@settings(deadline=None)     # the first example compiles and imports
@given(accesses=st.lists(st.tuples(st.integers(0, 24), st.booleans()), max_size=200),
       sets=st.integers(1, 5), ways=st.integers(1, 4), cut=st.integers(0, 200))
def test_equals_the_oracle_also_in_parts(accesses, sets, ways, cut):
    cache = Filter(CpuCache(bytes=sets * ways * 64, ways=ways))
    got = []
    for part, base in ((accesses[:cut], 0), (accesses[cut:], min(cut, len(accesses)))):
        lines, writes, cause = cache.pass_through(np.array([a[0] for a in part], np.uint64),
                                                  np.array([a[1] for a in part], bool))
        got += zip(lines.tolist(), writes.tolist(), (cause + base).tolist(), strict=True)
    want, hits = oracle(accesses, sets, ways)
    assert got == want
    assert (cache.accesses, cache.hits, cache.left) == (len(accesses), hits, len(want))


def test_line_zero_is_not_there_before_it_is_fetched():
    lines, writes, _ = Filter().pass_through(np.zeros(2, np.uint64), np.array([False, True]))
    assert lines.tolist() == [0] and writes.tolist() == [False]


def test_ratios_of_a_scan_that_fits_and_one_that_does_not():
    lines = np.tile(np.arange(16384, dtype=np.uint64), 4)            # 1 MiB, four times
    fits = Filter()
    fits.pass_through(lines, np.ones(len(lines), bool))
    assert (fits.hit_ratio, fits.left_ratio) == (0.75, 0.25)
    half = Filter(CpuCache(bytes=1 << 19))                           # LRU under a cyclic scan never hits
    half.pass_through(lines, np.ones(len(lines), bool))
    assert half.hit_ratio == 0
    assert half.left == 2 * len(lines) - 8192                 # all written back but what is still inside


def test_the_default_is_the_stated_one():
    cache = CpuCache()
    assert (cache.bytes, cache.ways, cache.line_bytes, cache.sets) == (1 << 20, 16, 64, 1024)


@pytest.mark.parametrize("shape, field", [({"bytes": 1000}, "bytes"), ({"ways": 0}, "ways"),
                                          ({"line_bytes": -64}, "line_bytes")])
def test_shapes_that_cannot_be(shape, field):
    with pytest.raises(ValueError, match=rf"CpuCache\.{field} is -?\d+: it must be"):
        CpuCache(**shape)


def test_arrays_of_two_lengths():
    with pytest.raises(ValueError, match="lines has shape"):
        Filter().pass_through(np.zeros(2, np.uint64), np.zeros(3, bool))
