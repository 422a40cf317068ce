"""What is drawn equals what was counted."""
import numpy as np
import pytest
from bokeh.embed import file_html
from bokeh.models import ColumnDataSource
from hypothesis import given
from hypothesis import strategies as st

import cxdbench as cxd
from cxdbench.bins import N_BINS, lower_edges, widths
from cxdbench.plot.latency import LatencyPlot
from cxdbench.plot.shape import (
    MAX_POINTS,
    latency_curve,
    polyline,
    share_at,
    stage_rows,
    thread_rows,
    time_text,
    window_rows,
)
from cxdbench.plot.sweeps import METRICS, cells

DEVICE = cxd.Device.named("cxdvirt").scaled(cache_pages=1024)
CHASE = cxd.Chase(accesses=20_000)


@pytest.fixture(scope="module")
def result():
    return cxd.run(DEVICE, CHASE)


@pytest.fixture(scope="module")
def grid():
    return cxd.sweep(DEVICE, CHASE.with_(accesses=5_000), {"wss": [0.5, 2.0], "threads": [1, 4]}, progress=False)


@given(st.lists(st.tuples(st.integers(0, N_BINS - 1), st.integers(1, 10**6)), min_size=1, max_size=400))
def test_a_polyline_passes_through_the_cdf(pairs):
    counts = np.zeros(N_BINS, np.int64)
    for where, count in pairs:
        counts[where] += count
    ns, share = polyline(counts)
    assert len(ns) <= MAX_POINTS and (np.diff(ns) >= 0).all() and (np.diff(share) >= -1e-12).all()
    assert share[0] == 0 and share[-1] == 1
    upper = lower_edges() + widths() - 1
    below = np.array([counts[upper <= at].sum() for at in ns[1::2]]) / counts.sum()
    np.testing.assert_allclose(share[1::2], below)


def test_the_cdf_within_a_bin_is_linear():
    counts = np.zeros(N_BINS, np.int64)
    where = int(np.searchsorted(lower_edges(), 6200, side="right")) - 1
    counts[where] = 10
    low, wide = lower_edges()[where], widths()[where]
    np.testing.assert_allclose(share_at(counts, np.array([low - 1, low, low + wide - 1])), [0, 1 / wide, 1])


def test_rows_hold_the_results_numbers(result):
    threads, windows, stages = thread_rows(result), window_rows(result), stage_rows(result)
    np.testing.assert_array_equal(threads["thread"], range(8))
    np.testing.assert_allclose(threads["run_ms"], result["thread_run_ns"] / 1e6)
    hits = float(result["count"].sel(outcome="hit") / result["count"].sum())
    assert windows["hit_ratio"].mean() == pytest.approx(hits, abs=0.01)
    shares = np.array([stages[name] for name in result["stage"].values])
    np.testing.assert_allclose(shares.sum(0), 100)


@pytest.mark.parametrize("kind", ["cdf", "ccdf", "stages", "over_time", "threads"])
def test_every_picture_of_a_run_is_a_bokeh_figure(result, kind):
    figure = getattr(cxd.plot, kind)(result).figure
    assert file_html(figure, title=kind)
    assert any(len(next(iter(source.data.values()))) for source in figure.select({"type": ColumnDataSource}))


def test_a_pin_in_anothers_place_is_drawn(result):
    front, behind = latency_curve(result), latency_curve(cxd.run(DEVICE, CHASE.with_(wss=0.5)), "a pin")
    plot = LatencyPlot("cdf")
    for curve in (front, behind, front):
        plot.update(front, [(curve.named("a pin"), 0)])
        assert plot.pins.data["ns"] == [curve.ns.tolist()]


def test_a_heat_map_shows_the_summarys_numbers(grid):
    xs, ys, values = cells(grid, "hit_ratio")
    assert (xs, ys) == (["0.5", "2.0"], ["1", "4"])
    np.testing.assert_array_equal(values, cxd.summary(grid)["hit_ratio"].values)
    drawn = cxd.plot.heat(grid, "hit_ratio").figure.select_one({"name": "heat-cells"})
    np.testing.assert_array_equal(drawn.data["value"], values.ravel())
    assert cxd.plot.multiples(grid).figure


def test_a_picture_that_cannot_be_says_why(grid):
    with pytest.raises(cxd.ConfigError, match="metric is 'speed': allowed: " + ", ".join(METRICS)):
        cxd.plot.heat(grid, "speed")
    with pytest.raises(cxd.ConfigError, match="3 axes"):
        cxd.plot.heat(grid.expand_dims(seed=[1, 2]).assign(finished=grid["finished"].expand_dims(seed=[1, 2])))


@pytest.mark.parametrize("ns, text", [(139, "139 ns"), (8_400, "8.4 us"), (99_960, "100 us"), (1.2e6, "1.2 ms"), (3e9, "3.0 s")])
def test_a_time_is_readable(ns, text):
    assert time_text(ns) == text
