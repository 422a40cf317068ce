"""A report as its reader meets it: a file, opened in a browser with no network and no kernel."""

import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from PIL import Image

from cxdbench.report import export

from .harness import bokeh_data

LINE = (213, 94, 0)
TEXT = """# What a device does

The read takes $t_R = 3\\,\\mu s$, and

$$\\text{miss} = t_R + t_{transfer}$$
"""
LOAD = """
import ipywidgets as W
import matplotlib
matplotlib.use("svg")
from bokeh.io import output_notebook, show
from bokeh.models import ColumnDataSource, CustomJS, Slider
from bokeh.layouts import column
from bokeh.plotting import figure
from bokeh.resources import Resources
from IPython.display import SVG
from jupyter_bokeh import BokehModel
output_notebook(Resources(mode="inline", components=["bokeh"]))

def curve(name, **options):
    source = ColumnDataSource({"x": [0, 1, 2], "y": [0, 2, 1]}, name=name)
    plot = figure(width=500, height=250, **options)
    plot.line("x", "y", source=source, line_width=6, line_color="#d55e00")
    return plot, source
"""
WIDGETS = """
plot, source = curve("in-widget")
table = W.HTML("<table><tr><th>P99</th><td id='p99'>8.4 us</td></tr></table>")
W.HBox([W.VBox([W.FloatSlider(description="WSS", value=2.5, min=0.1, max=4)]), BokehModel(plot), table])
"""
SHOW = """
plot, source = curve("shown", output_backend="webgl")
move = Slider(start=0, end=9, value=2, step=1, title="t_R")
move.js_on_change("value", CustomJS(args={"source": source}, code="source.data = {x: [0, 1, 2], y: [0, this.value, 1]}"))
show(column(move, plot))
"""
PICTURE = """SVG('<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><circle id="dot" r="20"/></svg>')"""
FOREIGN = """
from IPython.display import HTML
HTML('<img id="foreign" src="HOST/a.png"><script src="HOST/a.js"></script><iframe src="HOST/a.html"></iframe>'
     '<style>@import url(HOST/a.css);</style><script>fetch("HOST/x").catch(() => 0)</script>')
"""


@pytest.fixture(scope="module")
def host():
    """A web server on this machine that lists what it is asked for in `host.asked`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def report(tmp_path_factory, host):
    """The report of a notebook with all of these cells, the last reaching for `host`."""
    foreign = FOREIGN.replace("HOST", f"http://127.0.0.1:{host.server_port}")
    path = tmp_path_factory.mktemp("report") / "device.ipynb"
    cells = [new_markdown_cell(TEXT), *map(new_code_cell, (LOAD, WIDGETS, SHOW, PICTURE, foreign))]
    nbformat.write(new_notebook(cells=cells), path)
    return export(path, execute=True)


@pytest.fixture
def opened(report, new_page):
    page = new_page(1280, 1600)
    page.loaded = []
    page.on("requestfinished", lambda request: page.loaded.append(request.url))
    page.context.set_offline(True)
    page.goto(report.as_uri())
    page.wait_for_function("window.Bokeh.documents.length === 2 && Bokeh.documents.every(d => d.is_idle)")
    return page


def drawn(page, plot) -> int:
    """How many pixels of the plot have the line's colour."""
    pixels = np.asarray(Image.open(io.BytesIO(plot.screenshot())).convert("RGB")).astype(int)
    return int((np.abs(pixels - LINE).sum(axis=2) < 60).sum())


def test_curves_are_drawn_and_nothing_is_asked_of_anyone(opened, report):
    assert bokeh_data(opened, "in-widget") == {"x": [0, 1, 2], "y": [0, 2, 1]}
    plots = opened.locator(".bk-Figure")
    assert plots.count() == 2
    for index in range(2):
        assert drawn(opened, plots.nth(index)) > 1500
    assert opened.loaded == [report.as_uri()] and opened.blocked == [] and opened.errors == []


def test_no_output_can_reach_a_host_even_with_a_network(report, host, new_page):
    page, refused = new_page(), []
    page.on(
        "console",
        lambda message: refused.append(message.text) if "Content Security" in message.text else None,
    )
    page.goto(report.as_uri())
    page.wait_for_timeout(1000)
    for way in ("image", "script", "stylesheet", "Connecting", "Framing"):
        assert any(way in text for text in refused), (
            f"{way}: the report's last output did not try to reach out"
        )
    assert host.asked == []
    other = new_page()
    other.set_content(f'<img src="http://127.0.0.1:{host.server_port}/seen">')
    other.wait_for_function("document.images[0].complete")
    assert host.asked == ["/seen"], "this browser could not have reached the host anyway"


def test_widgets_tables_math_and_pictures_are_legible(opened):
    assert opened.locator(".w-field").inner_text().split("\n")[:2] == ["WSS", "2.50"]
    assert opened.locator("#p99").inner_text() == "8.4 us"
    assert opened.locator("math").count() == 2
    box = opened.locator("math[display=block]").bounding_box()
    assert box["width"] > 80 and box["height"] > 10
    assert opened.locator("#dot").bounding_box()["width"] == 40
    assert opened.title() == "What a device does"
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_plots_still_answer(opened):
    """A slider of Bokeh's own, with its script in the page, redraws its curve without a kernel."""
    plot = opened.locator(".bk-Figure").nth(1)
    before = plot.screenshot()
    opened.locator(".noUi-handle").focus()
    opened.keyboard.press("ArrowRight")
    assert bokeh_data(opened, "shown")["y"] == [0, 3, 1]
    opened.wait_for_timeout(300)
    assert plot.screenshot() != before and drawn(opened, plot) > 1500


def test_in_the_dark_text_stays_legible(report, new_page):
    page = new_page(1280, 800, dark=True)
    page.goto(report.as_uri())
    ink, paper = page.evaluate(
        "() => { const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        ".map(c => c.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + +part, 0)) }"
    )
    assert ink > 600 and paper < 120


def test_on_paper_it_is_dark_on_white_and_whole(report, new_page):
    page = new_page(1280, 800, dark=True)
    page.goto(report.as_uri())
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf().count(b"/Type /Page\n") >= 2
