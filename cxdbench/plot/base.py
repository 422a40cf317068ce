"""What all figures share: colours that colour-blind readers tell apart, Lab's light and dark, axes of time, showing."""
from __future__ import annotations

from math import floor, log10

from bokeh.io import output_notebook, show
from bokeh.models import ColumnDataSource, LayoutDOM, LogTicker, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources

# Okabe and Ito's palette without its black and its yellow, which one of the two themes swallows.
CURRENT = "#d55e00"
PINNED = ("#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#0072b2", "#999999")
DASHES = ("dashed", "dotdash", "dotted", "dashdot", [12, 4], [2, 2])
NEUTRAL = "#888888"
FAINT = 0.35

# Bokeh draws text and lines in the colours that these variables name where the plot stands: Lab's, a report's, or,
# where neither has set any, a grey that is legible on white and on black.
THEME = """
:host {
  --text: var(--jp-ui-font-color1, #777777); --rule: var(--jp-border-color2, #99999966);
  --bk-major-label-text-color: var(--text); --bk-axis-label-text-color: var(--text); --bk-text-color: var(--text);
  --bk-label-text-color: var(--text); --bk-group-text-color: var(--text);
  --bk-axis-line-color: var(--rule); --bk-major-tick-line-color: var(--rule); --bk-minor-tick-line-color: var(--rule);
  --bk-grid-line-color: var(--rule); --bk-outline-line-color: transparent;
}
"""
# Of the legend the background too: curves pass under it.
LEGEND_THEME = ":host { --bk-background-fill-color: var(--jp-layout-color0, transparent); }"

_TICKS = {m * 10**e: f"{m * 10 ** (e % 3)} {('ns', 'us', 'ms', 's')[e // 3]}" for e in range(12) for m in (1, 2, 5)}


class Plot:
    """A Bokeh figure that can be redrawn in place. `figure`: the model. Shows itself at a notebook cell's end."""

    figure: LayoutDOM

    def _ipython_display_(self) -> None:
        load_bokehjs()
        show(self.figure)


_loaded = False


def load_bokehjs(again: bool = False) -> None:
    """Put BokehJS into the notebook's page, out of this installation and from no other host; once a kernel."""
    global _loaded
    if again or not _loaded:
        output_notebook(Resources(mode="inline", components=["bokeh"]), hide_banner=True)
        _loaded = True


def blank(width: int = 760, height: int = 420, **kwargs) -> figure:
    """An empty figure in the theme, which fills what it is given in the explorer."""
    kwargs = {"tools": "pan,box_zoom,wheel_zoom,reset,save", "toolbar_location": "above"} | kwargs
    plot = figure(width=width, height=height, background_fill_color=None, border_fill_color=None,
                  outline_line_color=None, stylesheets=[THEME], **kwargs)
    plot.toolbar.logo = None
    plot.toolbar.autohide, plot.toolbar_inner = True, True
    for axis in plot.axis:
        axis.major_label_text_color = axis.axis_label_text_color = NEUTRAL
        axis.axis_line_color = axis.major_tick_line_color = axis.minor_tick_line_color = NEUTRAL
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "11px"
    plot.grid.grid_line_color, plot.grid.grid_line_alpha = NEUTRAL, 0.35
    return plot


def style_legend(plot: figure, location: str) -> None:
    """The plot's legend in the theme; a click on an entry hides its curve."""
    legend = plot.legend[0]
    legend.location, legend.click_policy = location, "hide"
    legend.background_fill_color, legend.background_fill_alpha, legend.border_line_color = None, 0.8, None
    legend.label_text_color, legend.label_text_font_size = NEUTRAL, "11px"
    legend.padding, legend.spacing, legend.label_height, legend.glyph_height = 2, 0, 14, 14
    legend.stylesheets = [LEGEND_THEME]


def time_axis(axis) -> None:
    """A log axis in ns, its ticks named in ns, us, ms and s."""
    axis.ticker = LogTicker(desired_num_ticks=8)
    axis.major_label_overrides = _TICKS


def steps(low: float, high: float) -> tuple[float, float]:
    """The range of a log axis that holds low to high, its ends at 1, 2 or 5 times a power of ten."""
    def snap(value: float, up: bool) -> float:
        decade = 10.0 ** floor(log10(value))
        marks = [m * decade for m in (1, 2, 5, 10)]
        return min(m for m in marks if m >= value) if up else max(m for m in marks if m <= value)
    return snap(low, False), snap(high, True)


def set_range(bounds: Range1d, start: float, end: float) -> None:
    """Move an axis if it has to move; the reset tool comes back to here."""
    if (bounds.start, bounds.end) != (start, end):
        bounds.update(start=start, end=end, reset_start=start, reset_end=end)


def source(name: str, *columns: str) -> ColumnDataSource:
    """An empty named source, found by its name in the page's BokehJS."""
    return ColumnDataSource({c: [] for c in columns}, name=name)
