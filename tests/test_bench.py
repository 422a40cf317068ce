"""The benchmark's own instruments: a speed is only worth printing if both sides did the same work."""
import shutil

import pytest

import cxdbench as cxd
from cxdbench.model import layout
from cxdbench.model.engine import Run
from tests.bench.__main__ import BEGIN, END, put_between, same, timed_part
from tests.bench.ctwin import CRun

needs_compiler = pytest.mark.skipif(not (shutil.which("gcc") or shutil.which("cc")),
                                    reason="needs a C compiler: apt-get install gcc")
CHASES = [{"wss": 0.5}, {"wss": 1.5, "pattern": "random", "threads": 4}, {"wss": 2.5, "write_share": 0.5, "threads": 8}]


@needs_compiler
@pytest.mark.parametrize("chase", CHASES, ids=str)
def test_the_c_loop_leaves_the_cells_that_numba_leaves(chase):
    workload = cxd.Chase(accesses=30_000, **chase)
    ours = timed_part(Run, workload)
    assert same(ours, timed_part(CRun, workload))
    assert ours[0].g[layout.G_DONE] == 30_000
    ours[0].hist[1, 0] += 1
    assert not same(ours, timed_part(CRun, workload)), "a difference would not be seen"


def test_only_what_stands_between_the_markers_is_replaced():
    text = f"a\n{BEGIN}\nold\n{END}\nz"
    assert put_between(text, "new", BEGIN, END) == f"a\n{BEGIN}\nnew\n{END}\nz"
    with pytest.raises(SystemExit, match=r"README.md has no"):
        put_between(text.replace(END, ""), "new", BEGIN, END)
