"""Figures from results: Bokeh ones that redraw in place, and the same CDF as a still picture.

Each function returns a `Plot`: its `figure` is the Bokeh model, and a notebook shows it when a cell ends with it.
"""
from cxdbench.plot.base import Plot
from cxdbench.plot.inside import over_time, stages, threads
from cxdbench.plot.latency import ccdf, cdf
from cxdbench.plot.sweeps import heat, multiples

__all__ = ["Plot", "ccdf", "cdf", "heat", "multiples", "over_time", "stages", "threads"]
